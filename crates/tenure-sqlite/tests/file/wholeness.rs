//! After whatever was done, what the file keeps twice agrees with itself.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::{
    AfterJobs, Cause, Due, Failure, Head, IfFailed, JobId, Key, Kind, Limit, LimitKey, Name, NewJob,
    OnConflict, OrderingKey, Priority, QueueName, Rate, Reserved, Terms, Unique, UniqueKey, Verdict, Window,
};
use tenure_sqlite::{Durability, Options, SqliteStore};
use tenure_store::{
    Chance, Change, Clock, Filter, Held, Jobs, Kinds, ManualClock, Renew, Reserve, Selection, Store, Views,
    Want,
};

use crate::given::agree::assert_agrees;
use crate::given::{file, host, new_job, runtime, settle};

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
            _ if self.one_in(30) => {
                let now = self.clock.now();
                self.clock.step_to(now.before(Duration::from_secs(self.chance.below(100))));
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

/// `TENURE_LIVES` says how many are lived and `TENURE_SEED` with which seed they begin.
#[test]
fn a_long_life_leaves_a_whole_file_whose_parts_agree() {
    let number_from = |variable: &str| std::env::var(variable).ok().map(|text| text.parse::<u64>().unwrap());
    let (first, lives) = (number_from("TENURE_SEED").unwrap_or(1), number_from("TENURE_LIVES").unwrap_or(6));
    for seed in first..first + lives {
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
        let conn = Connection::open(&file).unwrap();
        let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert!(number("SELECT count(*) FROM job") > 50, "too little was left to compare");
        assert!(number("SELECT count(*) FROM standing WHERE state = 0") > 0);
        println!("seed {seed}");
        assert_agrees(&conn);
    }
}
