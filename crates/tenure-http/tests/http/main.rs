//! Jobs as resources, asked for as clients do.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

mod apps;
mod asking;
mod audit;
mod bodies;
mod bulk;
mod crew;
mod derived;
mod embedded;
mod ends;
mod feed;
mod greed;
mod hiding;
mod item;
mod kinds;
mod leases;
mod limits;
mod listing;
mod logs;
mod metrics;
mod once;
mod owners;
mod proxied;
mod pushing;
mod queue_terms;
mod queues;
mod quotas;
mod reach;
mod receiving;
mod retention;
mod rights;
mod rules;
mod schedules;
mod serving;
mod submitting;
mod telling;
mod tls;
mod together;
mod tracing;
mod webhooks;
mod workers;
