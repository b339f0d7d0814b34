//! Singletons: what runs once in a fleet, because it runs only while its host holds a lease.

mod around;
mod duty;
mod line;
mod listener;
mod lock;
mod on_worker;
mod options;
mod prepared;
mod standing;
mod template;

pub(crate) use around::Around;
pub use duty::Duty;
pub(crate) use duty::Reins;
pub(crate) use line::line_of;
pub(crate) use listener::{Begin, Listener, Post, serve};
pub use lock::{Lock, Mode, Scope};
pub use options::{Singleton, SingletonOptions};
pub(crate) use prepared::Prepared;
pub use standing::Singletons;
use template::Template;
