//! Singletons: what runs once in a fleet, because it runs only while its host holds a lease.

mod around;
mod duty;
mod listener;
mod lock;
mod on_worker;
mod options;
mod prepared;
mod template;

pub(crate) use around::Around;
pub use duty::Duty;
pub(crate) use listener::Listener;
pub(crate) use lock::escaped;
pub use lock::{Lock, Mode, Scope};
pub use options::{Singleton, SingletonOptions};
pub(crate) use prepared::Prepared;
use template::Template;
