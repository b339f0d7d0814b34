//! Singletons: what runs once in a fleet, because it runs only while its host holds a lease.

mod lock;
mod options;
mod prepared;
mod template;

pub(crate) use lock::escaped;
pub use lock::{Lock, Mode, Scope};
pub use options::{Singleton, SingletonOptions};
pub(crate) use prepared::Prepared;
use template::Template;
