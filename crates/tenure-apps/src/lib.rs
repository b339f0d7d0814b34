//! A folder of programs, read: which *apps* there are, what of each is run, when, and by which rules.
//!
//! Two layouts are understood, and both at once: that of Kudu's WebJobs, where `triggered/NAME` and `continuous/NAME` are
//! folders with a script and perhaps a `settings.job`, and a `tenure.toml` that says the same in one place. What is not
//! understood is told in words, beside the app that it belongs to; an app whose settings are wrong does not run.
//!
//! Nothing here starts a program, waits, or reads a clock. Whoever does that asks [`Idle`], [`rest`] and [`Manners`].

mod app;
mod count;
mod environment;
mod folder;
#[cfg(test)]
mod fuzz;
mod host;
mod idle;
mod limits;
mod manners;
mod overall;
mod plain;
mod rest;
mod sandbox;
mod settings;

pub use app::{App, Sort, check_name};
pub use count::LineLimit;
pub use environment::{Environment, RunWords, quoted};
pub use folder::{Folder, ReadError, read, root_of};
pub use host::{Chosen, Installed, NOTHING_TO_RUN, choose};
pub use idle::Idle;
pub use limits::Limits;
pub use manners::{Manners, Said};
pub use overall::Overall;
pub use rest::{STEADY, rest};
pub use sandbox::Sandbox;
pub use settings::Settings;
