//! Leases: every cell of their tables, what they are asked for, and whatever else may happen to them.

mod acts;
mod given;
mod ledger;
mod line;
mod model;
mod random;
mod table;
mod values;
