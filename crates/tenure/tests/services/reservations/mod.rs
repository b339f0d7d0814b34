//! Reserving jobs by name, and the roster on top.

mod reserving;
mod roster;
