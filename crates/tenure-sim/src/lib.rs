//! Whole clusters of Tenure in one thread, by seed.
//!
//! A seed decides everything: how many hosts there are, what their clients ask for, what their
//! handlers do, which leases are wanted, and which faults befall them. Time is simulated: it moves when
//! nothing else can. Under the same seed every byte of the trace is the same.
//!
//! ```text
//!   clients, operators, workers,     the library, as users have it        rivals: programs that ask
//!   holders, services                                                     the store without it
//!            │                                                               │
//!          Wire ◀────────────────────────────────────────────────────────────┘
//!            │                       what one host has for a store: frozen, cut, dead with its host
//!       FaultyStore                  requests and replies that are late, lost or refused
//!            │
//!         Witness ───▶ Book          what really happened: traced, checked at once, probed
//!            │           ▲
//!       MemoryStore ─ Resource       one for all, and what leases guard beside it
//! ```
//! Each seed has two phases. First there are faults, and nothing unsafe may happen. Then all is
//! healed, and everything has to end within a bounded time.
//!
//! ```
//! let outcome = tenure_sim::Setup::of(7).run();
//! assert_eq!(outcome.violation, None);
//! ```

#![allow(clippy::wildcard_enum_match_arm, reason = "a check looks at a few of the many things that happen")]

mod asks;
mod book;
mod checks;
mod client;
mod clock;
mod companions;
mod gate;
mod handlers;
mod heads;
mod history;
mod holders;
mod host;
mod operator;
mod plan;
mod probes;
mod records;
mod report;
mod resource;
mod rival;
mod run;
mod services;
mod timekeeper;
mod timers;
mod trace;
mod weather;
mod wire;
mod witness;
mod world;

pub use checks::Violation;
pub use probes::Probe;
pub use report::{Summary, report};
pub use run::{Outcome, Setup};
