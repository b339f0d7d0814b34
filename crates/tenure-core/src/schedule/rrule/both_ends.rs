//! Sets of numbers that count from the first or from the last.

/// Enough bits for the days of a year.
const WORDS: usize = 6;

/// A set of numbers from 1 or, counted from the end, from -1.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BothEnds {
    from_first: [u64; WORDS],
    from_last: [u64; WORDS],
}

impl BothEnds {
    /// Adds a number from 1 to 366, or from -366 to -1.
    pub(super) fn insert(&mut self, number: i32) {
        let words = if number < 0 { &mut self.from_last } else { &mut self.from_first };
        if let Some(word) = words.get_mut(number.unsigned_abs() as usize / 64) {
            *word |= 1 << (number.unsigned_abs() % 64);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.from_first.iter().chain(&self.from_last).all(|word| *word == 0)
    }

    /// Returns `true` if the set has a number that is one thing from the first and another from the last.
    pub(super) fn has(&self, from_first: i32, from_last: i32) -> bool {
        has(&self.from_first, from_first) || has(&self.from_last, from_last)
    }

    /// Returns the numbers: those from the first, then those from the last, each in the order of time.
    pub(super) fn list(&self) -> impl Iterator<Item = i32> {
        let all = 1..(64 * WORDS) as i32;
        let first = all.clone().filter(|number| has(&self.from_first, *number));
        first.chain(all.rev().filter(|number| has(&self.from_last, *number)).map(|number| -number))
    }
}

fn has(words: &[u64; WORDS], number: i32) -> bool {
    let number = number.unsigned_abs() as usize;
    words.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 != 0)
}

impl FromIterator<i32> for BothEnds {
    fn from_iter<T: IntoIterator<Item = i32>>(numbers: T) -> Self {
        let mut set = Self::default();
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}
