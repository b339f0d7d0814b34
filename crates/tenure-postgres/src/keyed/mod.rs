//! Jobs with keys, queues with limits or fair shares, and jobs that wait for others: all that is decided under the lock
//! of the gates, job by job as in the other stores. Nothing is kept in memory from one transaction to the next.
//!
//! `PLANS` in `database.rs` tells why statements contain `OFFSET 0` and `seq + 0`.

mod claim;
#[cfg(test)]
mod large;
mod limits;
mod needs;
mod orders;
mod queues;
mod row;
mod shares;
mod stand;
mod sweep;
mod views;
mod waits;

pub(crate) use claim::{AROUND, Around, around, reserve};
#[cfg(test)]
pub(crate) use limits::STATEMENTS as LIMITS;
pub(crate) use limits::{LimitRow, is_limit_readable, set_limit};
#[cfg(test)]
pub(crate) use needs::STATEMENTS as NEEDS;
pub(crate) use needs::{needed, read_needed};
pub(crate) use queues::LIMIT;
pub(crate) use row::Keys;
pub(crate) use sweep::{Swept, is_due, sweep};
pub(crate) use views::{limit, limits, surroundings};
#[cfg(test)]
pub(crate) use waits::STATEMENTS as WAITS;
