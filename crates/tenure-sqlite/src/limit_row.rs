//! A limit key, as the writer has it in mind.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tenure_core::{Bucket, Limit, Meter, Timestamp};

use crate::reserve::Place;

/// How many of those that a limit blocks are read ahead, and how many that it let go are deleted at once. The
/// lines of many limits lie far apart in the file: each change of one costs a page.
pub(crate) const READ_AHEAD: usize = 12;

/// A limit key that unfinished jobs name or that somebody has set.
#[derive(Debug)]
pub(crate) struct LimitRow {
    /// How many at once, by the last job that said it.
    pub said: Option<u32>,
    /// What somebody set.
    pub set: Option<Limit>,
    /// Unfinished jobs that name it.
    pub named: i64,
    pub running: u32,
    pub bucket: Bucket,
    /// Its due jobs in each lane that has some.
    pub rooms: BTreeMap<i64, Rooms>,
    /// When time makes room for some that are blocked, or since when a sweep has to let in some.
    pub grows: Option<Timestamp>,
    /// Whether the file lists it among those that block jobs.
    pub is_listed: bool,
    /// Whether it has to be looked at before the present step ends.
    pub is_touched: bool,
}

/// Its due jobs in one lane, in a line: those that are gone (granted) but not deleted, those for which there is
/// room, those that are blocked.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    pub lane: i64,
    pub queued: i64,
    pub blocked: i64,
    pub gone: i64,
    /// The last that is gone, if any row of those may still be there.
    pub last_gone: Option<Place>,
    /// The last that is queued.
    pub last_queued: Option<Place>,
    /// The first that are blocked, as far as they were read.
    pub front: VecDeque<(Place, Begun)>,
}

/// Whether a job has a standing.
pub(crate) type Begun = bool;

impl Default for LimitRow {
    fn default() -> Self {
        Self {
            said: None,
            set: None,
            named: 0,
            running: 0,
            bucket: Bucket::FULL,
            rooms: BTreeMap::new(),
            grows: None,
            is_listed: false,
            is_touched: false,
        }
    }
}

impl LimitRow {
    pub(crate) fn limit(&self) -> Limit {
        self.set.unwrap_or(Limit { most: self.said, rate: None })
    }

    pub(crate) fn meter(&self) -> Meter {
        Meter { limit: self.limit(), running: self.running, bucket: self.bucket }
    }

    /// Its jobs in this lane.
    pub(crate) fn room_in(&mut self, lane: i64) -> &mut Rooms {
        self.rooms.entry(lane).or_insert_with(|| Rooms { lane, ..Rooms::default() })
    }

    /// How many of its jobs are queued in each lane that has some.
    pub(crate) fn queued(&self) -> Vec<(i64, i64)> {
        self.rooms.iter().map(|(lane, rooms)| (*lane, rooms.queued)).collect()
    }

    /// Returns the lanes in which more or fewer jobs are queued than there is room for, each with the difference.
    pub(crate) fn surpluses(&self, room: i64) -> Vec<(i64, i64)> {
        let surplus = |rooms: &Rooms| rooms.queued - room.min(rooms.queued + rooms.blocked);
        let of_lanes = self.rooms.iter().map(|(lane, rooms)| (*lane, surplus(rooms)));
        of_lanes.filter(|(_, jobs)| *jobs != 0).collect()
    }

    /// Whether it blocks any job.
    pub(crate) fn blocks(&self) -> bool {
        self.rooms.values().any(|rooms| rooms.blocked > 0)
    }

    /// Keeps what follows from all else in step with it. `behind`: since when a sweep has to let in some.
    pub(crate) fn settle(&mut self, now: Timestamp, behind: Option<Timestamp>) {
        self.rooms.retain(|_, rooms| rooms.queued != 0 || rooms.blocked != 0 || rooms.gone != 0);
        self.grows = if self.blocks() { behind.or_else(|| self.meter().grows_at(now)) } else { None };
        if self.is_idle() {
            // What was said is forgotten now, though its row goes with the end of the transaction.
            (self.said, self.bucket) = (None, Bucket::FULL);
        }
    }

    /// Whether nobody has need of it any more, but rows of those that are gone are there.
    pub(crate) fn has_gone_idle(&self) -> bool {
        self.is_idle() && self.rooms.values().any(|rooms| rooms.gone > 0)
    }

    /// Whether nobody has need of it any more.
    pub(crate) fn is_idle(&self) -> bool {
        self.set.is_none() && self.named == 0
    }
}

impl Rooms {
    /// The last place before the first that is blocked.
    pub(crate) fn end_of_queued(&self) -> Option<Place> {
        self.last_queued.or(self.last_gone)
    }

    /// Somebody joins those that are blocked.
    pub(crate) fn block(&mut self, place: Place, begun: Begun) {
        let front = &mut self.front;
        let is_all = front.len() as i64 == self.blocked && front.len() < READ_AHEAD;
        match front.back() {
            Some((last, _)) if place < *last => front.clear(),
            Some(_) | None if is_all => front.push_back((place, begun)),
            Some(_) | None => {}
        }
        self.blocked += 1;
    }

    /// The first that is queued is gone.
    pub(crate) fn let_go(&mut self, place: Place) {
        self.queued -= 1;
        self.gone += 1;
        self.last_gone = Some(place);
        if self.queued == 0 {
            self.last_queued = None;
        }
    }

    /// The place up to which rows are to be deleted, if it is time for that.
    pub(crate) fn cut(&mut self, at_least: usize) -> Option<Place> {
        if self.gone < at_least.max(1) as i64 {
            return None;
        }
        self.gone = 0;
        self.last_gone.take()
    }
}

// A row has few lanes, and is written often: numbers without names are enough.
impl Serialize for Rooms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { lane, queued, blocked, gone, last_gone, last_queued, .. } = self;
        (lane, queued, blocked, gone, last_gone, last_queued).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Rooms {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (lane, queued, blocked, gone, last_gone, last_queued) = Deserialize::deserialize(deserializer)?;
        Ok(Self { lane, queued, blocked, gone, last_gone, last_queued, front: VecDeque::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(seq: i64) -> Place {
        (0, 0, 10, seq)
    }

    #[test]
    fn each_lane_is_let_as_much_as_there_is_room_for() {
        let mut limit = LimitRow { said: Some(2), ..LimitRow::default() };
        *limit.room_in(7) = Rooms { lane: 7, queued: 3, blocked: 1, ..Rooms::default() };
        assert_eq!([2, 3, 9].map(|room| limit.surpluses(room)), [vec![(7, 1)], vec![], vec![(7, -1)]]);
        *limit.room_in(8) =
            Rooms { lane: 8, queued: 1, gone: 2, last_gone: Some(place(3)), ..Rooms::default() };
        assert_eq!((limit.surpluses(3), limit.surpluses(0)), (vec![], vec![(7, 3), (8, 1)]));
        let text = serde_json::to_string(&limit.rooms.values().collect::<Vec<_>>()).unwrap();
        assert_eq!(text, "[[7,3,1,0,null,null],[8,1,0,2,[0,0,10,3],null]]");
        let read: Vec<Rooms> = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn what_was_said_is_forgotten_with_the_last_job() {
        let mut limit = LimitRow { said: Some(2), named: 1, ..LimitRow::default() };
        limit.settle(Timestamp::EPOCH, None);
        assert_eq!(limit.said, Some(2));
        limit.named = 0;
        limit.settle(Timestamp::EPOCH, None);
        assert_eq!((limit.said, limit.is_idle()), (None, true));
    }

    #[test]
    fn the_front_holds_the_first_that_are_blocked_or_is_read_again() {
        let mut rooms = Rooms::default();
        rooms.block(place(5), false);
        rooms.block(place(7), true);
        assert_eq!(rooms.front, [(place(5), false), (place(7), true)]);
        rooms.block(place(6), false);
        assert!(rooms.front.is_empty(), "the first ones are not known any more");
        rooms.block(place(9), false);
        assert!(rooms.front.is_empty(), "nor is this one the first");
        assert_eq!(rooms.blocked, 4);
    }

    #[test]
    fn those_that_are_gone_are_deleted_some_at_a_time() {
        let mut rooms = Rooms { queued: 3, last_queued: Some(place(3)), ..Rooms::default() };
        rooms.let_go(place(1));
        rooms.let_go(place(2));
        assert_eq!((rooms.end_of_queued(), rooms.cut(3)), (Some(place(3)), None));
        rooms.let_go(place(3));
        assert_eq!((rooms.last_queued, rooms.end_of_queued()), (None, Some(place(3))));
        assert_eq!((rooms.cut(3), rooms.cut(0), rooms.gone), (Some(place(3)), None, 0));
    }
}
