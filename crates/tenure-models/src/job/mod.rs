//! The life of a job: K2. Several hosts want one job; requests, answers and effects are late, lost and repeated; hosts
//! pause and die; somebody cancels. What becomes of the job is decided by `tenure-core`.

mod bug;
mod follow;
mod host;
mod judge;
mod model;
mod row;
mod setting;
mod state;
mod step;
mod store;
mod tell;

pub use bug::Bug;
pub use follow::{Event, Impossible, follow};
pub use model::Jobs;
pub use row::{Own, Place, Row, Saying};
pub use setting::Setting;
pub use state::{MOST_HOSTS, Promise, State};
pub use step::{Probe, Step};
pub use store::{Cancelled, Renewal, Settled, Store};
