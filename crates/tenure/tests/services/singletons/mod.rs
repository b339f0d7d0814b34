//! Singletons: one in a fleet.

mod functions;
mod listeners;
mod locks;
