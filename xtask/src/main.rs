//! Automation for this repository.

fn main() {}
