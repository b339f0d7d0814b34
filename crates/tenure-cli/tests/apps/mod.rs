//! `tenure run` and `tenure app`: folders of real programs, well and badly behaved, run by real hosts.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]
#![expect(clippy::disallowed_methods, reason = "real processes run in real time")]

mod away;
mod bounded;
mod crontab;
mod deploying;
mod fleet;
mod hostile;
mod injected;
mod orphans;
mod records;
mod rights;
mod running;
mod served;
pub mod stand;
mod stopping;
mod switched;
