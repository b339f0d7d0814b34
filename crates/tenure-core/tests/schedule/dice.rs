//! Numbers that look random and are the same each time.

pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, below: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.0 >> 33) % u64::try_from(below).unwrap()).unwrap()
    }

    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.roll(high - low + 1)
    }

    pub fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.roll(i64::try_from(choices.len()).unwrap())).unwrap()].clone()
    }

    /// One to four of what a roll gives, parted by commas.
    pub fn list(&mut self, mut one: impl FnMut(&mut Self) -> String) -> String {
        let number = self.between(1, 4);
        (0..number).map(|_| one(self)).collect::<Vec<_>>().join(",")
    }
}
