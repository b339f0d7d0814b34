//! After whatever was done, what the file keeps twice agrees with itself.

#![allow(clippy::unwrap_used)]

mod given;

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::{
    Cause, Due, Failure, JobId, Kind, Name, NewJob, OnConflict, Priority, QueueName, Reserved, Terms, Unique,
    UniqueKey, Verdict, Window,
};
use tenure_sqlite::{Durability, Options, SqliteStore};
use tenure_store::{
    Chance, Change, Filter, Held, Jobs, Kinds, ManualClock, Renew, Reserve, Selection, Store, Want,
};

use given::{file, host, new_job, runtime, settle};

const STEPS: u64 = 1500;
const QUEUES: u64 = 3;

struct Life {
    store: Arc<SqliteStore>,
    clock: ManualClock,
    chance: Chance,
    held: Vec<Reserved>,
    ids: Vec<JobId>,
}

impl Life {
    fn queue(&self) -> QueueName {
        QueueName::new(&format!("queue-{}", self.chance.below(QUEUES))).unwrap()
    }

    fn due(&self) -> Due {
        match self.chance.below(3) {
            0 => Due::In(Duration::from_secs(self.chance.below(300))),
            _ => Due::Now,
        }
    }

    fn new_job(&self, number: u64) -> NewJob {
        let tags =
            (0..self.chance.below(3)).map(|tag| Name::new("tag", &format!("tag-{tag}")).unwrap()).collect();
        let window = if self.chance.below(2) == 0 {
            Window::WhileUnfinished
        } else {
            Window::For(Duration::from_secs(60))
        };
        let key = UniqueKey([u8::try_from(self.chance.below(20)).unwrap(); 16]);
        let unique = Unique { key, window, on_conflict: OnConflict::Replace };
        let unique = (self.chance.below(4) == 0).then_some(unique);
        NewJob {
            kind: Kind::new(&format!("kind-{}", self.chance.below(3))).unwrap(),
            queue: self.queue(),
            priority: Priority::new(i64::try_from(self.chance.below(3)).unwrap()).unwrap(),
            due: self.due(),
            terms: Arc::new(Terms { tags, unique, ..Terms::default() }),
            ..new_job(number)
        }
    }

    fn verdict(&self) -> Verdict {
        let failure = Failure::new(Cause::Error, "no");
        match self.chance.below(8) {
            0 => Verdict::Retry { failure, due: None },
            1 => Verdict::Failed(failure),
            2 => Verdict::Snoozed(self.due()),
            3 => Verdict::Released,
            _ => Verdict::Succeeded(None),
        }
    }

    fn change(&self) -> Change {
        match self.chance.below(6) {
            0 => Change::Cancel {
                grace: Duration::from_secs(self.chance.below(20)),
                reason: "test".to_owned(),
            },
            1 => Change::Redo,
            2 => Change::Delete,
            3 => Change::Move(self.queue()),
            4 => Change::Reprioritise(Priority::FIRST),
            _ => Change::Reschedule(self.due()),
        }
    }

    fn selection(&self) -> Selection {
        if self.ids.is_empty() || self.chance.below(40) == 0 {
            return Selection::Matching {
                filter: Filter { queues: vec![self.queue()], ..Filter::default() },
                after: None,
            };
        }
        let one = usize::try_from(self.chance.below(self.ids.len() as u64)).unwrap();
        Selection::Ids(vec![self.ids[one]])
    }

    fn ask(&self) -> Reserve {
        let wants =
            (0..QUEUES).map(|_| Want { queue: self.queue(), kinds: Kinds::All, at_most: 4 }).collect();
        Reserve { holder: host(self.chance.below(4)), ttl: Duration::from_secs(30), wants, at_most: 6 }
    }

    async fn step(&mut self, number: u64) {
        match self.chance.below(10) {
            0..3 => {
                let batch: Vec<NewJob> =
                    (0..1 + self.chance.below(4)).map(|n| self.new_job(number * 10 + n)).collect();
                self.ids.extend(batch.iter().map(|new| new.id));
                self.store.enqueue(batch).await.unwrap();
            }
            3 => self.held.extend(self.store.reserve(self.ask()).await.unwrap().jobs),
            4..7 => {
                let ends = usize::try_from(self.chance.below(1 + self.held.len() as u64)).unwrap();
                let ends: Vec<Reserved> = self.held.drain(..ends).collect();
                let settlements = ends.into_iter().map(|reserved| settle(reserved, self.verdict())).collect();
                let turn = self.store.settle(settlements, Some(self.ask())).await.unwrap();
                self.held.extend(turn.reservation.jobs);
            }
            7 => drop(self.store.change(self.change(), self.selection()).await.unwrap()),
            8 => {
                let held = self.held.iter().map(|reserved| {
                    let (id, seq) = (reserved.job().id, reserved.job().seq);
                    Held { id, seq, fence: reserved.fence() }
                });
                let ask = Renew { ttl: Duration::from_secs(30), held: held.collect() };
                self.store.renew(ask).await.unwrap();
            }
            _ => {
                // Now and then so long that finished jobs are pruned.
                let long = self.chance.below(100) == 0;
                self.clock.advance(Duration::from_secs(if long { 2_000_000 } else { self.chance.below(40) }));
                self.store.tend().await.unwrap();
            }
        }
    }
}

#[test]
fn a_long_life_leaves_a_whole_file_whose_parts_agree() {
    for seed in 1..=3 {
        let (_directory, file) = file();
        let clock = ManualClock::new();
        let options = Options { durability: Durability::Normal, ..Options::default() };
        let store = SqliteStore::open(&file, options, Arc::new(clock.clone())).unwrap();
        let mut life = Life { store, clock, chance: Chance::seeded(seed), held: vec![], ids: vec![] };
        runtime().block_on(async {
            for number in 1..=STEPS {
                life.step(number).await;
            }
            life.store.close().await.unwrap();
        });
        assert_agrees(&Connection::open(&file).unwrap());
    }
}

/// Each of these statements finds what contradicts something else.
fn assert_agrees(conn: &Connection) {
    let verdict: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert!(number("SELECT count(*) FROM job") > 50, "too little was left to compare");
    assert!(number("SELECT count(*) FROM standing WHERE state = 0") > 0);
    for (what, sql) in [
        ("a job with two places", "SELECT seq FROM ready INTERSECT SELECT seq FROM later"),
        (
            "a waiting job without a place, or a place of another",
            "SELECT j.seq FROM job j LEFT JOIN standing s USING (seq)
             WHERE (ifnull(s.state, 0) = 0) <> (j.seq IN (SELECT seq FROM ready UNION ALL SELECT seq FROM later))",
        ),
        (
            "a place that is not the job's",
            "SELECT p.seq FROM (SELECT lane, priority, due, seq, begun FROM ready
                 UNION ALL SELECT lane, priority, due, seq, begun FROM later) p
             JOIN job j USING (seq) LEFT JOIN standing s USING (seq)
             WHERE p.lane <> j.lane OR p.priority <> j.priority OR p.due <> ifnull(s.due, j.due)
                 OR p.begun <> (s.seq IS NOT NULL) OR s.lane <> j.lane",
        ),
        (
            "a counter that counts wrong",
            "SELECT l.id FROM lane l WHERE
                 l.queued <> (SELECT count(*) FROM ready WHERE lane = l.id)
                 OR l.scheduled <> (SELECT count(*) FROM later WHERE lane = l.id)
                 OR l.running <> (SELECT count(*) FROM standing WHERE lane = l.id AND state = 1)
                 OR l.succeeded <> (SELECT count(*) FROM standing WHERE lane = l.id AND state = 2)
                 OR l.failed <> (SELECT count(*) FROM standing WHERE lane = l.id AND state = 3)
                 OR l.cancelled <> (SELECT count(*) FROM standing WHERE lane = l.id AND state = 4)",
        ),
        (
            "something kept of a job that is gone",
            "SELECT seq FROM (SELECT seq FROM standing UNION SELECT seq FROM attempt UNION SELECT seq FROM log
                 UNION SELECT seq FROM tag UNION SELECT seq FROM unique_key WHERE until IS NULL)
             WHERE seq NOT IN (SELECT seq FROM job)",
        ),
        (
            "a key that is held by a job that has ended",
            "SELECT u.seq FROM unique_key u JOIN standing s USING (seq) WHERE u.until IS NULL AND s.state >= 2",
        ),
        ("a running job that never lapses", "SELECT seq FROM standing WHERE (state = 1) <> (lapse IS NOT NULL)"),
    ] {
        let found: Vec<i64> =
            conn.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert!(found.is_empty(), "{what}: {found:?}");
    }
}
