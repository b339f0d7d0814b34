//! Programs of a folder: `tenure run` makes them run on this host, `tenure app` asks about them.

mod ask;
mod bounds;
mod continuous;
mod copying;
mod deploy;
mod desk;
#[cfg(test)]
mod fuzz;
mod host;
mod identity;
mod lease;
mod links;
mod orders;
mod passing;
mod place;
mod report;
mod run;
mod shown;
mod timers;
mod told;
mod triggered;
mod trusted;
mod unpack;

pub(crate) use ask::{AppArgs, run as app};
pub(crate) use run::{Run, run};

/// What a set is called if nobody says it.
const SET: &str = "apps";
