//! `tenure run` and `tenure app`: folders of real programs, well and badly behaved, run by real hosts.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]
#![expect(clippy::disallowed_methods, reason = "real processes run in real time")]

pub mod accounts;
mod away;
mod bounded;
mod crontab;
mod deploying;
mod exposed;
mod fleet;
mod hostile;
mod injected;
mod linked;
pub mod orphans;
mod places;
mod records;
pub mod rights;
mod running;
pub mod sandbox;
mod served;
pub mod stand;
mod stopping;
mod switched;
