//! The one source of chance.

use std::sync::atomic::{AtomicU64, Ordering};

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A source of chance: SplitMix64, from a seed or from the system. Not for secrets.
#[derive(Debug)]
pub struct Chance {
    state: AtomicU64,
}

impl Chance {
    /// The same seed gives the same numbers.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { state: AtomicU64::new(seed) }
    }

    /// Seeded by the operating system.
    ///
    /// # Panics
    /// If the operating system has no source of randomness: ids would repeat without one.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where real chance enters")]
    pub fn from_system() -> Self {
        let seed = getrandom::u64().expect("ids cannot be drawn without the system's randomness");
        Self::seeded(seed)
    }

    /// The next 64 bits.
    pub fn bits(&self) -> u64 {
        let state = self.state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A fraction from 0 up to, but not including, 1.
    pub fn fraction(&self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(&self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.bits() % limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
