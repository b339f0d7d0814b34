//! The audit log: a hash chain of entries about changes, revealed values and refused clients.

mod act;
mod chain;
mod change;
mod check;
mod export;
mod file;
mod log;
mod refusals;
pub(crate) mod routes;
mod target;

pub use act::{Caller, Source};
pub use check::check_audit;
pub use file::AuditFile;

pub(crate) use act::Act;
pub(crate) use change::Detail;
pub(crate) use export::{AuditExport, ExportCounts};
pub(crate) use log::{AuditLog, KEEP};
pub(crate) use refusals::{Origin, Refusals, record as record_refusal};
pub(crate) use target::{Look, Target, caught};

/// The actor of an entry about a client that has not proved its identity.
pub(crate) const ANONYMOUS: &str = "anonymous";

/// The journal, and the shelf of its head.
const JOURNAL: &str = "audit";

/// Extension of a response to a request that needs no entry: it changed nothing, or only data of its client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotAudited;
