//! Fair shares: the jobs of one queue take turns by their share keys.
//!
//! Each job that joins a line is given a round. The jobs of one key have one round each, so in each round
//! every key has at most one job, however many wait behind it. Rounds come before due times in line.

/// The round of a job that joins the line of a queue: the next of its key, but not one that has passed.
#[must_use]
pub fn round_of(last_of_key: Option<u64>, present: u64) -> u64 {
    if cfg!(mutant = "share-first-come") {
        return present;
    }
    last_of_key.map_or(present, |last| last.saturating_add(1).max(present))
}
