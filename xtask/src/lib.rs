//! Automation for this repository, and the rules that its architecture is held to.
//!
//! The commands are in [`check`] with [`programs`], [`sim`], [`mutants`], [`package`] and [`lines`]. The [`rules`] are pure functions from text to findings:
//! `tests/architecture.rs` runs each of them on the repository, and once on a text that breaks it.

pub mod bench;
pub mod book;
pub mod check;
pub mod documentation;
pub mod failure;
pub mod files;
pub mod fresh;
pub mod fuzz;
pub mod lanes;
pub mod last_words;
pub mod lines;
pub mod mutants;
pub mod package;
pub mod planted;
pub mod programs;
pub mod prose;
pub mod rules;
pub mod second_try;
pub mod sim;
pub mod source;
pub mod tally;
