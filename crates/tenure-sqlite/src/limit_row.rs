//! A limit key, as the writer has it in mind.

use serde::{Deserialize, Serialize};
use tenure_core::{Bucket, Limit, Meter, Timestamp};

use crate::front::Front;
use crate::reserve::Place;

/// A limit key that unfinished jobs name or that somebody has set.
#[derive(Debug, Clone)]
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
    pub rooms: Vec<Rooms>,
    /// When time makes room for some that are blocked.
    pub grows: Option<Timestamp>,
    /// Whether it has to be looked at before the present step ends.
    pub is_touched: bool,
}

/// Its due jobs in one lane.
#[derive(Debug, Clone)]
pub(crate) struct Rooms {
    pub lane: i64,
    /// There is room for these.
    pub queued: i64,
    /// These wait behind them.
    pub blocked: i64,
    /// The first of those.
    pub front: Front<Place, Begun>,
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
            rooms: Vec::new(),
            grows: None,
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
        let index = self.rooms.iter().position(|rooms| rooms.lane == lane).unwrap_or_else(|| {
            self.rooms.push(Rooms { lane, queued: 0, blocked: 0, front: Front::new(None) });
            self.rooms.len() - 1
        });
        &mut self.rooms[index]
    }

    /// How many of its jobs are queued in each lane that has some.
    pub(crate) fn queued(&self) -> Vec<(i64, i64)> {
        self.rooms.iter().map(|rooms| (rooms.lane, rooms.queued)).collect()
    }

    /// In which lanes more jobs are queued than there is room for, and in which fewer: how many.
    pub(crate) fn surpluses(&self, room: i64) -> Vec<(i64, i64)> {
        let surplus = |of_lane: &Rooms| of_lane.queued - room.min(of_lane.queued + of_lane.blocked);
        self.rooms
            .iter()
            .map(|of_lane| (of_lane.lane, surplus(of_lane)))
            .filter(|(_, jobs)| *jobs != 0)
            .collect()
    }

    /// The lanes in which all that were blocked have been let in, and how far their lines were passed.
    pub(crate) fn passed_wholly(&mut self) -> Vec<(i64, Place)> {
        let wholly = self.rooms.iter_mut().filter(|rooms| rooms.blocked == 0);
        wholly.filter_map(|rooms| rooms.front.passed.take().map(|passed| (rooms.lane, passed))).collect()
    }

    /// Keeps what follows from all else in step with it.
    pub(crate) fn settle(&mut self, now: Timestamp) {
        self.rooms.retain(|rooms| rooms.queued != 0 || rooms.blocked != 0);
        let blocks = self.rooms.iter().any(|rooms| rooms.blocked > 0);
        self.grows = self.meter().grows_at(now).filter(|_| blocks);
        if self.is_idle() {
            // What was said is forgotten now, though its row goes with the end of the transaction.
            (self.said, self.bucket) = (None, Bucket::FULL);
        }
    }

    /// Whether nobody has need of it any more.
    pub(crate) fn is_idle(&self) -> bool {
        self.set.is_none() && self.named == 0
    }
}

// A row has few lanes, and is written often: numbers without names are enough.
impl Serialize for Rooms {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.lane, self.queued, self.blocked, self.front.passed).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Rooms {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (lane, queued, blocked, passed) = Deserialize::deserialize(deserializer)?;
        Ok(Self { lane, queued, blocked, front: Front::new(passed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lane_is_let_as_much_as_there_is_room_for() {
        let mut limit = LimitRow { said: Some(2), ..LimitRow::default() };
        for (lane, queued, blocked) in [(7, 3, 1), (8, 0, 5), (9, 1, 0)] {
            *limit.room_in(lane) = Rooms { lane, queued, blocked, front: Front::new(None) };
        }
        limit.room_in(8).front.passed = Some((0, 0, 10, 3));
        assert_eq!(limit.surpluses(2), [(7, 1), (8, -2)]);
        assert_eq!(limit.surpluses(i64::from(u32::MAX)), [(7, -1), (8, -5)]);
        let text = serde_json::to_string(&limit.rooms).unwrap();
        assert_eq!(text, "[[7,3,1,null],[8,0,5,[0,0,10,3]],[9,1,0,null]]");
        let read: Vec<Rooms> = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn what_was_said_is_forgotten_with_the_last_job() {
        let mut limit = LimitRow { said: Some(2), named: 1, ..LimitRow::default() };
        limit.settle(Timestamp::EPOCH);
        assert_eq!(limit.said, Some(2));
        limit.named = 0;
        limit.settle(Timestamp::EPOCH);
        assert_eq!((limit.said, limit.is_idle()), (None, true));
    }
}
