//! Where claims begin. While somebody's snapshot is old, what was deleted stays at the head of a line, and each claim that
//! looks at the whole line passes all of it.
//!
//! A lane's mark is the place of what was claimed last. A look at whole lines is the rule; where it takes longer than
//! looks behind the marks do, it comes so seldom that this costs half a percent of the time, and no claim makes it. How long
//! looks take is kept for all lanes together that are looked at together: what one statement takes is not said of each.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_store::Moment;

use crate::pace::Pace;

/// A place in line: priority, round, due, seq.
pub(crate) type Place = (i16, i64, i64, i64);

/// Behind this lies the whole line.
pub(crate) const START: Place = (i16::MIN, 0, i64::MIN, 0);

/// Marks are set so much before the last place: transactions commit in another order than they began.
const BEFORE_MICROS: i64 = 100_000;
/// So much before the last place of others: what joins a line may be older than what others have by then.
const BESIDE_MICROS: i64 = 5_000_000;
/// The priority of jobs of which nothing else is said.
const USUAL: i16 = 0;
/// Lanes that have marks at most.
const LANES: usize = 10_000;
/// Sets of lanes of which it is known how long looks at them take, at most.
const SETS: usize = 1_000;

/// The marks of lanes.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    of: BTreeMap<i32, Mark>,
    /// How long looks take, at lanes that are looked at together.
    paces: BTreeMap<Vec<i32>, Pace>,
    /// Lanes that are to be looked at as wholes, aside.
    asked: Vec<Vec<i32>>,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    place: Place,
    /// Whether it was put back to something that was found before it. Who begins there passes all that he else would not.
    put_back: bool,
}

impl Marks {
    /// Behind which place of each of these lanes a claim begins now. If they are to be looked at as wholes aside, that is
    /// [asked](Self::take_asked) for.
    pub(crate) fn begin(&mut self, lanes: &[i32], now: Moment) -> Vec<Place> {
        let Some(pace) = self.paces.get_mut(lanes).filter(|pace| pace.is_behind(now)) else {
            return vec![START; lanes.len()];
        };
        if pace.asks(now) {
            self.asked.push(lanes.to_vec());
        }
        self.places(lanes)
    }

    fn places(&self, lanes: &[i32]) -> Vec<Place> {
        lanes.iter().map(|lane| self.of.get(lane).map_or(START, |mark| mark.place)).collect()
    }

    /// The lanes that are to be looked at as wholes, aside, and their marks.
    pub(crate) fn take_asked(&mut self) -> Vec<(Vec<i32>, Vec<Place>)> {
        let asked = std::mem::take(&mut self.asked);
        asked
            .into_iter()
            .map(|lanes| (self.places(&lanes), lanes))
            .map(|(places, lanes)| (lanes, places))
            .collect()
    }

    /// Notes a look aside, at all that comes before the marks of these lanes: how long it took, and what was found first in any of
    /// them. Whether that was anything: claims begin there then.
    pub(crate) fn looked_aside(
        &mut self,
        lanes: &[i32],
        took: Duration,
        found: &[(i32, Place)],
        now: Moment,
    ) -> bool {
        if let Some(pace) = self.paces.get_mut(lanes) {
            pace.looked_aside(took, now);
        }
        let mut is_any = false;
        for (lane, (priority, round, due, seq)) in found {
            let before = (*priority, *round, *due, seq - 1);
            if let Some(mark) = self.of.get_mut(lane).filter(|mark| before < mark.place) {
                *mark = Mark { place: before, put_back: true };
                is_any = true;
            }
        }
        is_any
    }

    /// When these lanes are looked at as wholes again; `None` if they always are.
    pub(crate) fn whole_in(&self, lanes: &[i32], now: Moment) -> Option<Duration> {
        self.paces.get(lanes).and_then(|pace| pace.whole_in(now))
    }

    /// Notes a look at these lanes, behind a place of each, that took so long, and claimed of some lanes what lies from the first of
    /// these places to the last.
    pub(crate) fn looked(
        &mut self,
        of: &[(i32, Place)],
        took: Duration,
        claimed: &BTreeMap<i32, (Place, Place)>,
        now: Moment,
    ) {
        let lanes: Vec<i32> = of.iter().map(|(lane, _)| *lane).collect();
        let is_whole = of.iter().all(|(_, from)| *from == START);
        let Some(last) = claimed.values().map(|(_, last)| *last).max() else {
            let pace = self.paces.get_mut(&lanes).filter(|_| is_whole);
            pace.into_iter().for_each(|pace| pace.looked_in_vain(now));
            return;
        };
        let is_usual = of
            .iter()
            .all(|(lane, from)| *from != START && self.of.get(lane).is_some_and(|mark| !mark.put_back));
        for (lane, from) in of {
            match claimed.get(lane) {
                Some(places) => self.claimed(*lane, *from, *places),
                None => self.claimed_beside(*lane, *from, last),
            }
        }
        if lanes.iter().all(|lane| !self.of.contains_key(lane)) {
            self.paces.remove(&lanes);
            return;
        }
        let is_room = self.paces.len() < SETS;
        match self.paces.get_mut(&lanes) {
            Some(pace) if is_whole || is_usual => pace.looked(is_whole, took, now),
            None if is_whole && is_room => {
                self.paces.insert(lanes, Pace::new(took, now));
            }
            // It has passed what others do not.
            _ => {}
        }
    }

    /// Of a lane was claimed what lies from the first of these places to the last, by a look that began there.
    fn claimed(&mut self, lane: i32, from: Place, (first, last): (Place, Place)) {
        // A mark in one priority would hide what comes before it in another, and one in a round what is served next.
        if first.0 != last.0 || last.1 != 0 {
            self.of.remove(&lane);
            return;
        }
        self.pass(lane, from, before(last, BEFORE_MICROS), |_| true);
    }

    /// Of other lanes was claimed what lies up to this place, by a look that began there: whatever lies before that in this lane would
    /// have been claimed first.
    fn claimed_beside(&mut self, lane: i32, from: Place, last: Place) {
        let place = before(last, BESIDE_MICROS);
        // A mark in another priority would hide what joins this line in that of its own.
        let is_none = !self.of.contains_key(&lane);
        if last.1 == 0 && (!is_none || last.0 <= USUAL) {
            self.pass(lane, from, place, |mark| mark.0 == place.0 && mark < place);
        }
    }

    /// Sets a mark, or moves it if it may be.
    fn pass(&mut self, lane: i32, from: Place, place: Place, may_move: impl Fn(Place) -> bool) {
        let is_room = self.of.len() < LANES;
        match self.of.get_mut(&lane) {
            // It was put back while this look was under way: what was found there is still there.
            Some(mark) if from != START && mark.place < from => {}
            Some(mark) if may_move(mark.place) => *mark = Mark { place, put_back: false },
            // Who began behind a mark that is forgotten by now has not seen why it was.
            None if from == START && is_room => {
                self.of.insert(lane, Mark { place, put_back: false });
            }
            _ => {}
        }
    }

    /// Whether every look is one at a whole line.
    pub(crate) fn are_none(&self) -> bool {
        self.of.is_empty()
    }

    /// Notes a job that came into line: one that stands before the mark makes the next look one at the whole line.
    pub(crate) fn joined(&mut self, lane: i32, priority: i16, due: Option<i64>) {
        let Some(mark) = self.of.get(&lane) else { return };
        // One that is due at once stands behind all others of its priority.
        if priority < mark.place.0 || due.is_some_and(|due| (priority, 0, due, 0) <= mark.place) {
            self.of.remove(&lane);
        }
    }
}

/// Where claims begin that come after one that claimed this last.
fn before((priority, _, due, _): Place, micros: i64) -> Place {
    (priority, 0, due.saturating_sub(micros), 0)
}

#[cfg(test)]
mod tests;
