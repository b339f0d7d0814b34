//! Models of Tenure's protocols, searched exhaustively: every order of steps, every loss, every pause within their
//! bounds. What the store's side does at each step is done by the real code of `tenure-core`.
//!
//! ```text
//!   lease/   one name, several parties: who believes, who is granted, whose effects count
//!   job/     one job, several hosts: its life, and `follow`, which replays a real history against it
//!   keys/    several jobs with one limit or one ordering key: slots and turns
//!   timer/   one timer and its jobs: each slot decided once, whatever restarts, clocks and edits do
//! ```
//! Each model has bugs that can be planted in it (`Bug`), and each of them has to be found: a search that finds nothing
//! where something is wrong says nothing where all is well. Each also has situations that must occur in it (`Probe`).
//!
//! `docs/decisions/0013-models.md` says what is modelled, what is not, and how to read what a search prints.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod catalogue;
mod check;
pub mod job;
pub mod keys;
pub mod lease;
pub mod ticks;
pub mod timer;
mod watch;

pub use check::{Counterexample, Found, Told, search};
