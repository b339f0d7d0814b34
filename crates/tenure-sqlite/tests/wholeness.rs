//! After whatever was done, what the file keeps twice agrees with itself.

#![allow(clippy::unwrap_used)]

mod given;

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::{
    AfterJobs, Cause, Due, Failure, Head, IfFailed, JobId, Key, Kind, Limit, LimitKey, Name, NewJob,
    OnConflict, OrderingKey, Priority, QueueName, Rate, Reserved, Terms, Unique, UniqueKey, Verdict, Window,
};
use tenure_sqlite::{Durability, Options, SqliteStore};
use tenure_store::{
    Chance, Change, Filter, Held, Jobs, Kinds, ManualClock, Renew, Reserve, Selection, Store, Views, Want,
};

use given::{file, host, new_job, runtime, settle};

const STEPS: u64 = 1500;
const QUEUES: u64 = 3;

struct Life {
    /// One or two programs on the same file.
    stores: Vec<Arc<SqliteStore>>,
    clock: ManualClock,
    chance: Chance,
    held: Vec<Reserved>,
    ids: Vec<JobId>,
}

impl Life {
    /// One of the programs.
    fn store(&self) -> &SqliteStore {
        let one = usize::try_from(self.chance.below(self.stores.len() as u64)).unwrap();
        &self.stores[one]
    }

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
            terms: Arc::new(Terms { tags, unique, ..self.keys() }),
            ..new_job(number)
        }
    }

    fn key(&self, of: &str, keys: u64) -> Key {
        Key::new("key", &format!("{of}-{}", self.chance.below(keys))).unwrap()
    }

    fn one_in(&self, many: u64) -> bool {
        self.chance.below(many) == 0
    }

    /// Half of the jobs have no keys.
    fn keys(&self) -> Terms {
        if self.one_in(2) {
            return Terms::default();
        }
        let head = if self.one_in(2) { Head::Block } else { Head::StepAside };
        let ordering = self.one_in(2).then(|| OrderingKey { key: self.key("order", 4), head });
        let most = self.one_in(2).then(|| 1 + u32::try_from(self.chance.below(3)).unwrap());
        let limit = self.one_in(2).then(|| LimitKey { key: self.key("limit", 3), most });
        let share = self.one_in(6).then(|| self.key("share", 3));
        let if_failed = if self.one_in(2) { IfFailed::Cancel } else { IfFailed::Run };
        let known = || usize::try_from(self.chance.below(self.ids.len() as u64)).unwrap();
        let after = (self.one_in(4) && !self.ids.is_empty())
            .then(|| AfterJobs { jobs: vec![self.ids[known()], self.ids[known()]], if_failed });
        Terms { ordering, limit, share, after, ..Terms::default() }
    }

    fn limit(&self) -> Limit {
        let most = self.one_in(2).then(|| 1 + u32::try_from(self.chance.below(4)).unwrap());
        let rate = self.one_in(2).then(|| Rate::new(2, Duration::from_secs(1 + self.chance.below(20))));
        Limit { most, rate }
    }

    async fn set_limit(&self) {
        if self.one_in(2) {
            self.store().set_queue_limit(&self.queue(), self.limit()).await.unwrap();
        } else {
            let limit = (!self.one_in(3)).then(|| self.limit());
            self.store().set_limit(&self.key("limit", 3), limit).await.unwrap();
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
            0 if self.one_in(10) => self.set_limit().await,
            0..3 => {
                let batch: Vec<NewJob> =
                    (0..1 + self.chance.below(4)).map(|n| self.new_job(number * 10 + n)).collect();
                self.ids.extend(batch.iter().map(|new| new.id));
                self.store().enqueue(batch).await.unwrap();
            }
            3 => self.held.extend(self.store().reserve(self.ask()).await.unwrap().jobs),
            4..7 => {
                let ends = usize::try_from(self.chance.below(1 + self.held.len() as u64)).unwrap();
                let ends: Vec<Reserved> = self.held.drain(..ends).collect();
                let settlements = ends.into_iter().map(|reserved| settle(reserved, self.verdict())).collect();
                let turn = self.store().settle(settlements, Some(self.ask())).await.unwrap();
                self.held.extend(turn.reservation.jobs);
            }
            7 => drop(self.store().change(self.change(), self.selection()).await.unwrap()),
            8 => {
                let held = self.held.iter().map(|reserved| {
                    let (id, seq) = (reserved.job().id, reserved.job().seq);
                    Held { id, seq, fence: reserved.fence() }
                });
                let ask = Renew { ttl: Duration::from_secs(30), held: held.collect() };
                self.store().renew(ask).await.unwrap();
            }
            _ => {
                // Now and then so long that finished jobs are pruned.
                let long = self.chance.below(100) == 0;
                self.clock.advance(Duration::from_secs(if long { 2_000_000 } else { self.chance.below(40) }));
                self.store().tend().await.unwrap();
            }
        }
    }
}

#[test]
fn a_long_life_leaves_a_whole_file_whose_parts_agree() {
    for seed in 1..=6 {
        let (_directory, file) = file();
        let clock = ManualClock::new();
        let options = Options { durability: Durability::Normal, ..Options::default() };
        let open = || SqliteStore::open(&file, options.clone(), Arc::new(clock.clone())).unwrap();
        let stores = (0..1 + seed % 2).map(|_| open()).collect();
        let mut life = Life { stores, clock, chance: Chance::seeded(seed), held: vec![], ids: vec![] };
        runtime().block_on(async {
            for number in 1..=STEPS {
                life.step(number).await;
            }
            for store in &life.stores {
                store.close().await.unwrap();
            }
        });
        assert_agrees(&Connection::open(&file).unwrap());
    }
}

fn assert_agrees(conn: &Connection) {
    let verdict: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert!(number("SELECT count(*) FROM job") > 50, "too little was left to compare");
    assert!(number("SELECT count(*) FROM standing WHERE state = 0") > 0);
    conn.execute_batch(BESIDE).unwrap();
    for (what, sql) in CONTRADICTIONS.iter().chain(CONTRADICTIONS_OF_KEYS) {
        let found: Vec<i64> =
            conn.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert!(found.is_empty(), "{what}: {found:?}");
    }
}

/// What is derived from the jobs' own rows, to be compared with.
const BESIDE: &str = "
    CREATE TEMP VIEW seen AS SELECT j.seq, j.lane, j.priority, ifnull(s.due, j.due) AS due, s.seq IS NOT NULL AS begun,
        ifnull(s.state, 0) AS state, s.limit_id,
        j.terms ->> '$.ordering.key' AS ordering, j.terms ->> '$.limit.key' AS limited
        FROM job j LEFT JOIN standing s USING (seq);
    CREATE TEMP VIEW rooms AS SELECT l.id, r.value ->> 0 AS lane, r.value ->> 1 AS queued, r.value ->> 2 AS blocked,
        ifnull(r.value ->> '$[3][0]', -1000) AS p, ifnull(r.value ->> '$[3][1]', 0) AS r,
        ifnull(r.value ->> '$[3][2]', 0) AS d, ifnull(r.value ->> '$[3][3]', 0) AS s,
        iif(l.set_to IS NULL, l.said, l.set_to ->> '$.most') AS most, l.set_to ->> '$.rate' AS rate, l.running
        FROM limit_key l, json_each(l.lanes) r;
    CREATE TEMP VIEW held_back AS SELECT b.* FROM limit_line b JOIN rooms r ON (r.id, r.lane) = (b.limit_id, b.lane)
        WHERE (b.priority, b.round, b.due, b.seq) > (r.p, r.r, r.d, r.s);
    CREATE TEMP VIEW in_chain AS SELECT m.* FROM chained m JOIN chain c ON c.id = m.chain WHERE m.seq > c.passed;
    CREATE TEMP VIEW placed AS SELECT lane, priority, due, seq, begun FROM ready
        UNION ALL SELECT lane, priority, due, seq, begun FROM later
        UNION ALL SELECT lane, priority, due, seq, begun FROM held_back;
    CREATE TEMP VIEW held_up AS SELECT seq FROM in_chain UNION SELECT seq FROM dependency;";

/// Each of these statements finds what contradicts something else.
const CONTRADICTIONS: &[(&str, &str)] = &[
    ("a job with two places", "SELECT seq FROM placed GROUP BY seq HAVING count(*) > 1"),
    (
        "a waiting job without a place, or a place of another",
        "SELECT seq FROM seen WHERE (state = 0) <> (seq IN (SELECT seq FROM placed UNION ALL SELECT seq FROM held_up))",
    ),
    (
        "a place that is not the job's",
        "SELECT p.seq FROM placed p JOIN seen j USING (seq)
         WHERE p.lane <> j.lane OR p.priority <> j.priority OR p.due <> j.due OR p.begun <> j.begun",
    ),
    (
        "a standing in another lane",
        "SELECT seq FROM job j JOIN standing s USING (seq) WHERE j.lane <> s.lane",
    ),
    (
        "a counter that counts wrong",
        "SELECT l.id FROM lane l WHERE
             l.queued <> (SELECT count(*) FROM ready WHERE lane = l.id)
             OR l.scheduled <> (SELECT count(*) FROM later WHERE lane = l.id)
             OR l.blocked <> (SELECT count(*) FROM held_back WHERE lane = l.id)
                 + (SELECT count(*) FROM held_up JOIN job USING (seq) WHERE lane = l.id)
             OR l.running <> (SELECT count(*) FROM standing WHERE lane = l.id AND state = 1)
             OR l.succeeded <> (SELECT count(*) FROM standing WHERE lane = l.id AND state = 2)
             OR l.failed <> (SELECT count(*) FROM standing WHERE lane = l.id AND state = 3)
             OR l.cancelled <> (SELECT count(*) FROM standing WHERE lane = l.id AND state = 4)",
    ),
    (
        "something kept of a job that is gone",
        "SELECT seq FROM (SELECT seq FROM standing UNION SELECT seq FROM attempt UNION SELECT seq FROM log
             UNION SELECT seq FROM tag UNION SELECT seq FROM unique_key WHERE until IS NULL
             UNION SELECT seq FROM stepped_aside UNION SELECT seq FROM fair_place UNION SELECT turn FROM chain
             WHERE turn IS NOT NULL)
         WHERE seq NOT IN (SELECT seq FROM job)",
    ),
    (
        "a key that is held by a job that has ended",
        "SELECT u.seq FROM unique_key u JOIN standing s USING (seq) WHERE u.until IS NULL AND s.state >= 2",
    ),
    ("a running job that never lapses", "SELECT seq FROM standing WHERE (state = 1) <> (lapse IS NOT NULL)"),
];

/// The same of what jobs share.
const CONTRADICTIONS_OF_KEYS: &[(&str, &str)] = &[
    ("a job that waits for its turn or for others in a place", "SELECT seq FROM placed INTERSECT SELECT seq FROM held_up"),
    (
        "a job that has not ended and is not once in its chain, or one that has and is",
        "SELECT j.seq FROM seen j LEFT JOIN chain c ON c.key = j.ordering
         WHERE (j.ordering IS NOT NULL AND j.state < 2) <> (ifnull(c.turn = j.seq, 0)
             + (SELECT count(*) FROM in_chain WHERE seq = j.seq AND chain = c.id)
             + (SELECT count(*) FROM stepped_aside WHERE seq = j.seq AND chain = c.id))",
    ),
    (
        "a chain that counts wrong, or is empty",
        "SELECT id FROM chain c WHERE waiting <> (SELECT count(*) FROM in_chain WHERE chain = c.id)
             OR aside <> (SELECT count(*) FROM stepped_aside WHERE chain = c.id)
             OR (turn IS NULL AND waiting = 0 AND aside = 0)",
    ),
    (
        "a line of nobody",
        "SELECT chain FROM chained WHERE chain NOT IN (SELECT id FROM chain)
         UNION SELECT limit_id FROM limit_line WHERE (limit_id, lane) NOT IN (SELECT id, lane FROM rooms)",
    ),
    (
        "more rows of those that have passed than are read ahead",
        "SELECT c.id FROM chain c WHERE (SELECT count(*) FROM chained WHERE chain = c.id) > c.waiting + 12
             OR (waiting = 0 AND passed > 0)",
    ),
    (
        "a free turn that somebody could take",
        "SELECT c.id FROM chain c WHERE turn IS NULL AND waiting > 0
             AND (SELECT gate FROM in_chain WHERE chain = c.id ORDER BY seq LIMIT 1) < 2",
    ),
    (
        "a place in a chain that is not the job's",
        "SELECT p.seq FROM in_chain p JOIN seen j USING (seq)
         WHERE p.lane <> j.lane OR p.priority <> j.priority OR p.due <> j.due OR p.begun <> j.begun
             OR (p.gate = 2) <> (p.seq IN (SELECT seq FROM dependency))",
    ),
    (
        "a running job of another limit",
        "SELECT j.seq FROM seen j LEFT JOIN limit_key l ON l.id = j.limit_id
         WHERE j.state = 1 AND j.limited IS NOT l.key",
    ),
    (
        "a queued job of another limit",
        "SELECT r.seq FROM ready r JOIN seen j USING (seq) LEFT JOIN limit_key l ON l.id = r.limit_id
         WHERE j.limited IS NOT l.key",
    ),
    (
        "a limit that counts wrong, or that nobody has need of",
        "SELECT id FROM limit_key l WHERE running <> (SELECT count(*) FROM standing WHERE state = 1 AND limit_id = l.id)
             OR named <> (SELECT count(*) FROM seen WHERE limited = l.key AND state < 2)
             OR (named = 0 AND set_to IS NULL)",
    ),
    ("a job without its limit", "SELECT seq FROM seen WHERE state < 2 AND limited NOT IN (SELECT key FROM limit_key)"),
    (
        "a limit whose jobs in line are others than it counts",
        "SELECT limit_id FROM (
             SELECT limit_id, lane, sum(queued) AS queued, sum(blocked) AS blocked FROM (
                 SELECT limit_id, lane, 1 AS queued, 0 AS blocked FROM ready WHERE limit_id IS NOT NULL
                 UNION ALL SELECT limit_id, lane, 0, 1 FROM held_back)
             GROUP BY 1, 2)
         p FULL JOIN rooms r ON (r.id, r.lane) = (p.limit_id, p.lane)
         WHERE (p.queued, p.blocked) IS NOT (r.queued, r.blocked)",
    ),
    (
        "a limit that lets in more or fewer than there is room for",
        "SELECT id FROM rooms WHERE
             queued > max(0, ifnull(most, queued + running) - running)
             OR (rate IS NULL AND queued < min(max(0, ifnull(most, 1 << 40) - running), queued + blocked))",
    ),
    (
        "a job that waits behind one for which it should make room",
        "SELECT b.seq FROM held_back b JOIN ready r ON (r.limit_id, r.lane) = (b.limit_id, b.lane)
         WHERE (b.priority, b.round, b.due, b.seq) < (r.priority, r.round, r.due, r.seq)",
    ),
    (
        "a job that has ended and waits for others",
        "SELECT d.seq FROM dependency d LEFT JOIN seen j USING (seq) WHERE ifnull(j.state, 2) > 0",
    ),
    (
        "a job that is gone or has ended, and those that wait for it are not told",
        "SELECT d.on_seq FROM dependency d LEFT JOIN seen j ON j.seq = d.on_seq
         WHERE (ifnull(j.state, 2) >= 2) <> (d.on_seq IN (SELECT seq FROM awaited_end))",
    ),
    (
        "news for which nobody waits",
        "SELECT seq FROM awaited_end WHERE seq NOT IN (SELECT on_seq FROM dependency)",
    ),
    (
        "a round of a job that is not in line there",
        "SELECT f.seq FROM fair_place f LEFT JOIN (SELECT seq, round FROM ready UNION ALL SELECT seq, round FROM held_back) p
         USING (seq) WHERE f.round IS NOT p.round",
    ),
    (
        "a place in a round that nobody knows of",
        "SELECT seq FROM (SELECT seq, round FROM ready UNION ALL SELECT seq, round FROM held_back)
         WHERE round > 0 AND seq NOT IN (SELECT seq FROM fair_place)",
    ),
    (
        "a share of another line",
        "SELECT f.seq FROM fair_place f JOIN job j USING (seq) JOIN lane l ON l.id = j.lane
         LEFT JOIN share s ON s.id = f.share
         WHERE (s.queue, s.priority, s.key) IS NOT (l.queue, j.priority, ifnull(j.terms ->> '$.share', ''))",
    ),
];
