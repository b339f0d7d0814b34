//! The single writer: one place in a fleet that does all the writing, with a durable mailbox.
//!
//! Messages are jobs of one kind in one queue, all due at the beginning of time, so that their place in
//! line is the order in which they were accepted. Whoever holds the lease of the writer reserves them in
//! batches, looks that nothing before them is in other hands, and settles each under its own fence.

mod batch;
mod drain;
mod handle;
mod mailbox;
mod message;
mod names;
mod on_worker;
mod order;
mod outcome;
mod pending;
mod settings;

pub use mailbox::{Full, Mailbox, MailboxInfo};
pub use message::Message;
pub use settings::{AtLast, Writer};
