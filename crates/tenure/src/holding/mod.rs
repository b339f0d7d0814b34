//! Holding leases: the ownership of names, kept by renewing it, and what its holder is told.
//!
//! ```text
//!   Hold ──ask──▶ Client ═══ line ═══▶ Keeper ──▶ Book   what is to be done, and when
//!    │                                   │          │
//!    ▼ granted                           ▼          ▼ requests, all in one
//!   Held, Pass ──── Hand ──── Grip ◀── news       Store
//! ```
//! The [book](book) decides, the [keeper](keeper) does. What a holder asks of its [grip](grip) needs neither:
//! it compares the clock with the deadline that the last good answer set.

mod beat;
mod book;
mod client;
mod gate;
mod grip;
mod hand;
mod held;
mod hold;
mod keeper;
mod keeping;
mod leases;
mod loss;
mod own_names;
mod pace;
mod past;
mod tally;

pub use gate::{FENCE_HEADER, FenceGate, Stale};
pub use held::{Held, Pass};
pub use hold::Hold;
pub(crate) use keeping::Keeping;
pub use leases::Leases;
pub use loss::{LeaseLost, Loss};
pub(crate) use own_names::{RESERVATION, SINGLETON, WRITER, check_is_users};
pub(crate) use pace::Pace;
pub use tally::LeaseTally;
