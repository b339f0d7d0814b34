//! Fuzzes a parser inside the tests of its crate, where private functions are in reach.
//!
//! A [`Target`] reads its corpus from `fuzz/NAME.txt` in the folder of its crate, one escaped input a line. An ordinary
//! test replays it and tries a few hundred mutants, always the same. With `TENURE_FUZZ_SECONDS` it searches for that
//! long, from another seed each time. `cargo xtask test --long` does so for a minute per target.
//!
//! A check returns a word for the outcome, such as the error. An input whose outcome is new joins those that are
//! mutated, which leads the search into code that the corpus has not reached.

mod corpus;
mod dice;
mod mutate;
mod pool;
mod shape;
mod shrink;
mod target;
mod watch;

pub use target::Target;
