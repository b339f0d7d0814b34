//! Where claims begin. While somebody's snapshot is old, what was deleted stays at the head of a line, and each claim that
//! looks at the whole line passes all of it.
//!
//! A lane's mark is the place of what was claimed last. A look at whole lines is the rule; where it takes longer than
//! looks behind the marks do, it comes so seldom that this costs half a percent of the time, and no claim makes it. How long
//! looks take is kept for all lanes together that are looked at together: what one statement takes is not said of each.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::Priority;
use tenure_store::Moment;

use crate::closely::Closely;
use crate::pace::Pace;
use crate::value;

/// A place in line: priority, round, due, seq.
pub(crate) type Place = (i16, i64, i64, i64);

/// Behind this lies the whole line.
pub(crate) const START: Place = (i16::MIN, 0, i64::MIN, 0);

/// Marks are set so much before the last place: transactions commit in another order than they began.
const BEFORE_MICROS: i64 = 100_000;
/// So much before the last place of others: what joins a line may be older than what others have by then.
const BESIDE_MICROS: i64 = 5_000_000;
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
    /// Which claims look closely: what was found before a mark is looked for by one that does.
    closely: Closely,
    /// Lanes that are to be looked at as wholes, aside.
    asked: Vec<Vec<i32>>,
    /// How often something was found, or joined a line, before a mark.
    changes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    place: Place,
    /// Whether it was put back to something that was found before it. Who begins there passes all that he else would not.
    put_back: bool,
    /// With which of the changes it was put back. A look that had begun by then moves it no further.
    changed: u64,
}

/// A look under way: at which lanes, and behind which place of each.
#[derive(Debug, Clone)]
pub(crate) struct Behind {
    pub lanes: Vec<i32>,
    pub from: Vec<Place>,
    /// Whether also at what others have touched.
    pub closely: bool,
    /// The changes by then.
    begun: u64,
}

/// What a look has claimed.
pub(crate) struct Claimed {
    /// How long it took until that was found.
    pub took: Duration,
    /// The first and the last of the places, for each lane.
    pub places: BTreeMap<i32, (Place, Place)>,
    /// The server's time then.
    pub at: i64,
}

impl Marks {
    /// Behind which place of each of these lanes a claim begins now. If they are to be looked at as wholes aside, that is
    /// [asked](Self::take_asked) for.
    pub(crate) fn begin(&mut self, lanes: Vec<i32>, now: Moment) -> Behind {
        let from = match self.paces.get_mut(&lanes).filter(|pace| pace.is_behind(now)) {
            None => vec![START; lanes.len()],
            Some(pace) => {
                if pace.asks(now) {
                    self.asked.push(lanes.clone());
                }
                self.places(&lanes)
            }
        };
        let closely = self.closely.claims(&lanes);
        Behind { lanes, from, closely, begun: self.changes }
    }

    fn place(&self, lane: i32) -> Place {
        self.of.get(&lane).map_or(START, |mark| mark.place)
    }

    fn places(&self, lanes: &[i32]) -> Vec<Place> {
        lanes.iter().map(|lane| self.place(*lane)).collect()
    }

    /// The lanes that are to be looked at as wholes, aside, and their marks.
    pub(crate) fn take_asked(&mut self) -> Vec<(Vec<i32>, Vec<Place>)> {
        let asked = std::mem::take(&mut self.asked);
        asked.into_iter().map(|lanes| (lanes.clone(), self.places(&lanes))).collect()
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
            is_any |= self.put_back(*lane, (*priority, *round, *due, seq - 1));
        }
        if is_any {
            self.look_closely_at_all();
        }
        is_any
    }

    /// Has the next claim of these lanes look closely: one has not found all that it was to find.
    pub(crate) fn look_closely(&mut self, lanes: &[i32]) {
        self.closely.is_next(lanes);
    }

    /// Has the next claim of any lanes look closely: something was found that somebody may have locked, and given up.
    pub(crate) fn look_closely_at_all(&mut self) {
        self.closely.is_next_of_all();
    }

    /// Puts a mark back to there, if it lies behind that.
    fn put_back(&mut self, lane: i32, place: Place) -> bool {
        let mark = self.of.get_mut(&lane).filter(|mark| place < mark.place);
        let Some(mark) = mark else { return false };
        self.changes += 1;
        *mark = Mark { place, put_back: true, changed: self.changes };
        true
    }

    /// When these lanes are looked at as wholes again; `None` if they always are.
    pub(crate) fn whole_in(&self, lanes: &[i32], now: Moment) -> Option<Duration> {
        self.paces.get(lanes).and_then(|pace| pace.whole_in(now))
    }

    /// Notes a look that claimed nothing: nobody knows how long it took.
    pub(crate) fn looked_in_vain(&mut self, look: &Behind, now: Moment) {
        if look.is_whole() {
            self.paces.get_mut(&look.lanes).into_iter().for_each(|pace| pace.looked_in_vain(now));
        }
    }

    /// Notes a look.
    pub(crate) fn looked(&mut self, look: &Behind, claimed: &Claimed, now: Moment) {
        let Some(last) = claimed.places.values().map(|(_, last)| *last).max() else { return };
        let mut is_usual = true;
        for (lane, from) in look.lanes.iter().copied().zip(look.from.iter().copied()) {
            let was_put_back = self.of.get(&lane).is_some_and(|mark| mark.put_back);
            match claimed.places.get(&lane) {
                Some(places) => self.claimed(lane, look.begun, *places),
                None => self.claimed_beside(lane, look.begun, last, claimed.at),
            }
            // A lane that has no mark is always read whole: that is usual, too.
            is_usual &= !was_put_back && (from == START) == (self.place(lane) == START);
        }
        if look.lanes.iter().all(|lane| !self.of.contains_key(lane)) {
            self.paces.remove(&look.lanes);
            return;
        }
        match self.paces.get_mut(&look.lanes) {
            Some(pace) if look.is_whole() || is_usual => pace.looked(look.is_whole(), claimed.took, now),
            // It has passed what others do not.
            Some(_) => {}
            None if look.is_whole() => {
                if self.paces.len() >= SETS {
                    self.paces.clear();
                }
                self.paces.insert(look.lanes.clone(), Pace::new(claimed.took, now));
            }
            None => {}
        }
    }

    /// Of a lane was claimed what lies from the first of these places to the last.
    fn claimed(&mut self, lane: i32, begun: u64, (first, last): (Place, Place)) {
        // A mark in one priority would hide what comes before it in another, and one in a round what is served next.
        if first.0 != last.0 || last.1 != 0 {
            self.of.remove(&lane);
            return;
        }
        self.pass(lane, begun, before(last.0, last.2, BEFORE_MICROS));
    }

    /// Of other lanes was claimed what lies up to this place, at this time: whatever lies before that in this lane would have been
    /// claimed first.
    fn claimed_beside(&mut self, lane: i32, begun: u64, last: Place, at: i64) {
        let mark = self.of.get(&lane).copied();
        // A mark in a less urgent priority than that of most jobs, or of its own, would hide what joins this line in that.
        let usual = value::of_priority(Priority::default());
        let priority =
            mark.map_or(usual, |mark| if mark.place.0 == last.0 { last.0 } else { mark.place.0.max(usual) });
        let due = if priority == last.0 { last.2 } else { at };
        let place = before(priority, due, BESIDE_MICROS);
        let may_pass = last.1 == 0 && priority <= last.0 && mark.is_none_or(|mark| mark.place < place);
        if may_pass {
            self.pass(lane, begun, place);
        } else if mark.is_some_and(|mark| mark.put_back && mark.changed <= begun) {
            // It was looked for what was found there, and more often would be to pass all the rest each time.
            self.of.remove(&lane);
        }
    }

    /// Sets a mark, unless something before it has changed while the look was under way.
    fn pass(&mut self, lane: i32, begun: u64, place: Place) {
        let is_room = self.of.len() < LANES;
        match self.of.get_mut(&lane) {
            Some(mark) if mark.changed > begun => {}
            Some(mark) => *mark = Mark { place, put_back: false, ..*mark },
            None if is_room => {
                self.of.insert(lane, Mark { place, put_back: false, changed: 0 });
            }
            None => {}
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
            self.put_back(lane, START);
        }
    }
}

impl Behind {
    fn is_whole(&self) -> bool {
        self.from.iter().all(|from| *from == START)
    }
}

/// Where claims begin that come after one that claimed in this priority what was due then.
fn before(priority: i16, due: i64, micros: i64) -> Place {
    (priority, 0, due.saturating_sub(micros), 0)
}

#[cfg(test)]
mod tests;
