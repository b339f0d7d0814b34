//! Holding leases: the ownership of names, kept by renewing it, and what its holder is told.

mod gate;
mod grip;
mod hand;
mod held;
mod hold;
mod leases;
mod loss;
mod past;

pub use gate::{FENCE_HEADER, FenceGate, Stale};
pub use held::{Held, Pass};
pub use hold::Hold;
pub use leases::Leases;
pub use loss::{LeaseLost, Loss};
