//! The one source of randomness.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
/// Bytes that are fetched from the system at once, so that few IDs cost a system call.
const FETCHED: usize = 512;

/// A source of randomness. From the system, its numbers cannot be predicted, however many of them are known: job IDs
/// and request IDs are made of them. From a seed, they repeat.
#[derive(Debug)]
pub struct Chance {
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// SplitMix64, for tests and simulation.
    Seeded(AtomicU64),
    System(Mutex<Fetched>),
}

/// Random bytes of the system that were not handed out.
struct Fetched {
    bytes: Box<[u8; FETCHED]>,
    left: usize,
}

impl Chance {
    /// Creates a source that repeats its numbers for the same seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { source: Source::Seeded(AtomicU64::new(seed)) }
    }

    /// Creates a source that hands out random bytes of the operating system.
    ///
    /// # Panics
    /// If the operating system has no source of randomness: IDs would repeat without one.
    #[must_use]
    pub fn from_system() -> Self {
        let mut fetched = Fetched { bytes: Box::new([0; FETCHED]), left: 0 };
        fetched.fetch();
        Self { source: Source::System(Mutex::new(fetched)) }
    }

    /// Returns the next 64 bits.
    pub fn bits(&self) -> u64 {
        match &self.source {
            Source::Seeded(state) => mixed(state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP)),
            Source::System(fetched) => fetched.lock().unwrap_or_else(PoisonError::into_inner).next(),
        }
    }

    /// Returns a fraction from 0 up to, but not including, 1.
    pub fn fraction(&self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number below `limit`; 0 if `limit` is 0.
    pub fn below(&self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.bits() % limit }
    }
}

impl Fetched {
    #[expect(clippy::disallowed_methods, reason = "this is where real chance enters")]
    fn fetch(&mut self) {
        getrandom::fill(self.bytes.as_mut_slice())
            .expect("ids cannot be drawn without the system's randomness");
        self.left = FETCHED;
    }

    fn next(&mut self) -> u64 {
        if self.left < size_of::<u64>() {
            self.fetch();
        }
        let start = self.left - size_of::<u64>();
        let mut number = [0; size_of::<u64>()];
        number.copy_from_slice(&self.bytes[start..self.left]);
        // A later look into memory does not find them.
        self.bytes[start..self.left].fill(0);
        self.left = start;
        u64::from_ne_bytes(number)
    }
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetched").field("left", &self.left).finish_non_exhaustive()
    }
}

fn mixed(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64 can be inverted: from one number, an attacker computed all later ones.
    #[test]
    fn a_number_of_the_system_does_not_give_the_next_one_away() {
        let unmix = |number: u64| {
            let number = number ^ (number >> 31) ^ (number >> 62);
            let number = number.wrapping_mul(0x3196_42B2_D24D_8EC3);
            let number = number ^ (number >> 27) ^ (number >> 54);
            let number = number.wrapping_mul(0x96DE_1B17_3F11_9089);
            number ^ (number >> 30) ^ (number >> 60)
        };
        let next = |number| mixed(unmix(number).wrapping_add(STEP));
        let seeded = Chance::seeded(7);
        assert_eq!(next(seeded.bits()), seeded.bits());
        let system = Chance::from_system();
        assert!((0..1000).all(|_| next(system.bits()) != system.bits()));
    }

    #[test]
    fn numbers_of_the_system_do_not_repeat_and_are_not_shown() {
        let system = Chance::from_system();
        let drawn: std::collections::BTreeSet<u64> = (0..10_000).map(|_| system.bits()).collect();
        assert_eq!(drawn.len(), 10_000);
        assert!(!format!("{system:?}").contains("bytes"), "{system:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_seed_others() {
        let draw = |seed| {
            (0..8).map(|_| 0).scan(Chance::seeded(seed), |chance, _| Some(chance.bits())).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn fractions_fill_the_unit_interval() {
        let chance = Chance::seeded(1);
        let drawn: Vec<f64> = (0..10_000).map(|_| chance.fraction()).collect();
        assert!(drawn.iter().all(|f| (0.0..1.0).contains(f)));
        let mean = drawn.iter().sum::<f64>() / 10_000.0;
        assert!((0.48..0.52).contains(&mean), "{mean}");
    }
}
