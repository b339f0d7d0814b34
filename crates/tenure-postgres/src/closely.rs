//! Which claims look closely. A row that somebody else has touched is passed by: most likely he is taking it. What he has given up
//! again looks the same for very long, and nobody tells of it; so some claims look at those rows, too.

use std::collections::BTreeMap;

/// Of so many claims of the same lanes one looks closely.
const ONE_IN: u8 = 8;
/// Sets of lanes that are known at most.
const SETS: usize = 1_000;

/// When claims look closely, for all lanes by themselves that are claimed from together: claims of several queues are made in turns, and
/// what is the turn of one would always be that of the same.
#[derive(Debug, Default)]
pub(crate) struct Closely {
    /// How many claims come before the next that does. The next does of lanes that are not here.
    before: BTreeMap<Vec<i32>, u8>,
}

impl Closely {
    /// Whether the claim of these lanes that is made now does.
    pub(crate) fn claims(&mut self, lanes: &[i32]) -> bool {
        if let Some(before @ 1..) = self.before.get_mut(lanes) {
            *before -= 1;
            return false;
        }
        if self.before.len() >= SETS {
            self.before.clear();
        }
        self.before.insert(lanes.to_vec(), ONE_IN - 1);
        true
    }

    /// The next claim of these lanes does.
    pub(crate) fn is_next(&mut self, lanes: &[i32]) {
        self.before.remove(lanes);
    }

    /// The next claim of any lanes does.
    pub(crate) fn is_next_of_all(&mut self) {
        self.before.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_claim_in_eight_looks_closely_of_all_lanes_by_themselves() {
        let mut closely = Closely::default();
        for turn in 0..20 {
            // Two queues that are asked for together, and a third one now and then.
            let are_close = [&[1][..], &[2, 3]].map(|lanes| closely.claims(lanes));
            assert_eq!(are_close, [turn % 8 == 0; 2], "{turn}");
            assert_eq!(turn % 3 == 0 && closely.claims(&[4]), turn == 0, "{turn}");
        }
    }

    #[test]
    fn who_was_to_find_more_looks_closely_next_and_takes_that_from_nobody() {
        let mut closely = Closely::default();
        assert!(closely.claims(&[1]) && closely.claims(&[2]));
        closely.is_next(&[2]);
        assert!(!closely.claims(&[1]) && closely.claims(&[2]) && !closely.claims(&[2]));
        closely.is_next_of_all();
        assert!(closely.claims(&[1]) && closely.claims(&[2]));
    }

    #[test]
    fn what_is_known_is_bounded() {
        let mut closely = Closely::default();
        for lane in 0..2_500 {
            assert!(closely.claims(&[lane]) && closely.before.len() <= SETS);
        }
    }
}
