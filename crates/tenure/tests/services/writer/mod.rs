//! The single writer: one in a fleet, in order.

mod book;
mod failures;
mod kill;
mod mailbox;
mod order;
mod takeover;
