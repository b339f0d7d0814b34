//! Tests of `tenure-cli` from outside, in one program.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test fails by panicking")]

mod apps;
mod around;
mod bench;
mod book;
mod browser;
mod chart;
mod clients;
mod contract;
mod db;
mod db_copy;
mod dev;
mod encrypted;
mod exec;
mod exit_codes;
mod failover;
mod generators;
mod histories;
mod hostile;
mod installed;
mod job;
mod lease;
mod output;
mod pattern;
mod private;
mod program;
mod restart;
mod schedule;
mod schedule_served;
mod secret_values;
mod selftest;
mod serve;
mod served;
mod settings;
mod sign_in;
mod stops;
mod terminal;
mod token;
mod unix_socket;
mod unreadable;
mod webhook;
mod without_server;
mod workers;
