//! One file: what is kept in it, who shares it, and what becomes of it.

#![allow(clippy::unwrap_used)]

mod backup;
mod check_in;
mod files;
mod groups;
mod keys;
mod leases;
mod leases_shared;
mod leases_whole;
mod needed;
mod panic;
#[cfg(unix)]
mod private;
mod replaced;
mod restored;
mod sharing;
mod timers;
#[cfg(target_os = "linux")]
mod timers_many;
mod timers_shared;
mod timers_whole;
mod unreadable;
mod wholeness;
