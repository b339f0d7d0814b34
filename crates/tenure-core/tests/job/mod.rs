//! A job: what may become of it, what is kept of it, and why it does not run.

use crate::common;

mod apps;
mod cancel;
mod conditions;
mod explain;
mod gates;
mod keys;
mod lapse;
mod life;
mod limits;
mod settlements;
mod stored;
