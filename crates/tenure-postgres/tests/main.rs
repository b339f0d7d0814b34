//! Tests of `tenure-postgres` from outside, in one program.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test fails by panicking")]

mod arrivals;
mod aside;
mod beside;
mod came_due;
mod check_in;
mod check_in_jobs;
mod claims;
mod common;
mod creators;
mod dashboard;
mod failover;
mod followed;
mod formed;
mod given;
mod granted;
mod leases;
mod leases_by_sql;
mod leases_shared;
mod leases_whole;
mod life;
mod limit_moves;
mod needed;
mod network;
mod opening;
mod operations;
mod ordinary;
mod outage;
mod pooler;
mod processes;
mod refused;
mod restored;
mod runtimes;
mod several;
mod shortage;
mod synchronous;
mod timers;
mod tls;
mod traps;
mod unreadable;
