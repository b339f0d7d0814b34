//! What the handlers have seen.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::Args;
use crate::clock::now_ms;

/// Starts within which the longest pause is looked for.
const STRETCH: u64 = 1_000;
/// Starts that are remembered one by one; later ones are counted only.
const REMEMBERED: usize = 2_000_000;

/// One for the process: the handlers of some systems are plain functions that are given nothing else.
static TALLY: Mutex<Tally> = Mutex::new(Tally::new());

#[derive(Default)]
pub struct Tally {
    pub begun: u64,
    first_ms: f64,
    last_ms: f64,
    /// From enqueueing to here, in the order of the starts.
    waits_ms: Vec<f64>,
    pause_ms: f64,
    /// The longest time without a start, one for each stretch of starts.
    pauses_ms: Vec<f64>,
}

/// A handler has begun with this job.
pub fn begun(args: &Args) {
    if args.number >= 0 {
        let mut tally = tally();
        let now = now_ms();
        tally.note(now, now - args.sent_ms);
    }
}

pub fn tally() -> MutexGuard<'static, Tally> {
    TALLY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tally {
    const fn new() -> Self {
        Self { begun: 0, first_ms: 0.0, last_ms: 0.0, waits_ms: vec![], pause_ms: 0.0, pauses_ms: vec![] }
    }

    fn note(&mut self, now: f64, waited: f64) {
        if self.begun == 0 {
            self.first_ms = now;
        } else {
            self.pause_ms = self.pause_ms.max(now - self.last_ms);
        }
        self.begun += 1;
        self.last_ms = now;
        if self.waits_ms.len() < REMEMBERED {
            self.waits_ms.push(waited);
        }
        if self.begun.is_multiple_of(STRETCH) {
            self.pauses_ms.push(std::mem::take(&mut self.pause_ms));
        }
    }

    pub fn to_json(&self) -> Value {
        let late = &self.waits_ms[self.waits_ms.len() * 2 / 3..];
        json!({
            "jobs": self.begun,
            "seconds": (self.last_ms - self.first_ms) / 1e3,
            "p50_ms": percentile(&self.waits_ms, 0.5),
            "p99_ms": percentile(&self.waits_ms, 0.99),
            "late_p99_ms": percentile(late, 0.99),
            "pause_p50_ms": percentile(&self.pauses_ms, 0.5),
            "pause_p99_ms": percentile(&self.pauses_ms, 0.99),
            "first_ms": self.first_ms,
            "last_ms": self.last_ms,
        })
    }
}

/// The figure that this part of all figures stays below; `None` if there are none.
pub fn percentile(figures: &[f64], part: f64) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = ((sorted.len() as f64 * part) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_the_longest_time_without_a_start_in_its_stretch() {
        let mut tally = Tally::default();
        for start in 0..2_500_u32 {
            let late = if start >= 1_500 { 40.0 } else { 0.0 };
            tally.note(f64::from(start) + late, 1.0);
        }
        assert_eq!(tally.pauses_ms, [1.0, 41.0]);
        assert_eq!((tally.begun, tally.first_ms, tally.last_ms), (2_500, 0.0, 2_539.0));
    }

    #[test]
    fn a_percentile_is_one_of_the_figures() {
        let figures: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&figures, 0.5), Some(51.0));
        assert_eq!(percentile(&figures, 0.99), Some(100.0));
        assert_eq!(percentile(&[7.0], 0.99), Some(7.0));
        assert_eq!(percentile(&[], 0.5), None);
    }
}
