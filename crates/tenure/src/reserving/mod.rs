//! Reserving jobs by name, as the oldest ancestor did, and the roster of roles on top.

mod reservation;
mod reservations;
mod roster;

pub use reservation::Reservation;
pub use reservations::Reservations;
pub use roster::Roster;
