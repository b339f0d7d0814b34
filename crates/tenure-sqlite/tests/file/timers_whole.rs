//! After whatever was done with timers, the file tells the same as the memory store, and its parts agree.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tenure_core::schedule::{Jitter, Schedule};
use tenure_core::{
    CatchUp, JobId, NewTimer, OnEdit, Origin, Overlap, Policies, SlotRecord, Timestamp, limits,
};
use tenure_sqlite::{Durability, Options, SqliteStore};
use tenure_store::{
    Chance, Change, Clock, ManualClock, MemoryStore, Order, PageAsk, Selection, SlotsAsk, Store, TimerAct,
    Timers, TimersAsk, Views,
};

use crate::given::agree::assert_agrees;
use crate::given::timers::{assert_timers_agree, name, records, timer};
use crate::given::{file, host, runtime};

const STEPS: u64 = 1500;
const NAMES: u64 = 5;
const SCHEDULES: [&str; 6] =
    ["every 2s", "every 5s", "*/3 * * * * *", "0,1,2 * * * * *", "every 1h", "delay 4s"];

struct Life {
    chance: Chance,
    clock: ManualClock,
    seed: u64,
    /// Jobs that were asked for by hand.
    triggered: Vec<JobId>,
}

/// Something done to both stores.
#[derive(Debug, Clone)]
enum Step {
    Set(Vec<NewTimer>, bool),
    Fire(usize),
    Act(String, TimerAct),
    End(Change, usize),
    Prune(Timestamp),
    Pass(Duration),
    Back(Duration),
    Tend,
}

impl Life {
    fn below(&self, limit: u64) -> u64 {
        self.chance.below(limit)
    }

    fn span(&self, seconds: u64) -> Duration {
        Duration::from_millis(self.below(seconds * 1000))
    }

    fn of<T: Copy>(&self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    fn timer(&self) -> NewTimer {
        let most = 1 + u32::try_from(self.below(3)).unwrap();
        let schedule: Schedule = self.of(&SCHEDULES).parse().unwrap();
        let jitter = Jitter::within(Duration::from_secs(3)).unwrap();
        NewTimer {
            schedule: if self.below(4) == 0 { schedule.with_jitter(jitter) } else { schedule },
            policies: Policies {
                catch_up: self.of(&[CatchUp::Skip, CatchUp::One, CatchUp::All { most }]),
                max_lateness: (self.below(4) == 0).then(|| self.span(60)),
                overlap: self.of(&[
                    Overlap::Skip,
                    Overlap::QueueOne,
                    Overlap::QueueAll,
                    Overlap::CancelPrevious,
                    Overlap::Allow { most },
                ]),
                on_edit: self.of(&[OnEdit::Keep, OnEdit::Drop]),
                run_on_start: self.below(3) == 0,
            },
            ..timer(&self.name(), "every 1h")
        }
    }

    fn name(&self) -> String {
        format!("timer-{}", self.below(NAMES))
    }

    fn act(&mut self, number: u64) -> TimerAct {
        match self.below(8) {
            0 => TimerAct::Pause { reason: "test".to_owned() },
            1..3 => TimerAct::Resume,
            3..5 => {
                let id = JobId::new(self.clock.now(), number);
                self.triggered.push(id);
                let id = self.of(&self.triggered);
                TimerAct::Trigger { id, args: None, owner: None }
            }
            5..7 => {
                let (from, again) = (self.clock.now().before(self.span(20)), self.below(2) == 0);
                TimerAct::Backfill { from, to: Timestamp::LAST, again }
            }
            // A timer that is set anew on a clock that was put back may come to its slots again.
            _ if self.seed.is_multiple_of(2) => TimerAct::Remove,
            _ => TimerAct::Resume,
        }
    }

    fn step(&mut self, number: u64) -> Step {
        match self.below(20) {
            0..3 => Step::Set((0..1 + self.below(3)).map(|_| self.timer()).collect(), self.below(2) == 0),
            3..9 => Step::Fire(usize::try_from(self.below(4)).unwrap()),
            9..11 => Step::Act(self.name(), self.act(number)),
            11..14 => {
                let cancel = Change::Cancel { grace: Duration::ZERO, reason: "test".to_owned() };
                let change = if self.below(3) == 0 { Change::Delete } else { cancel };
                Step::End(change, usize::try_from(self.below(60)).unwrap())
            }
            14 if self.below(20) == 0 => Step::Prune(self.clock.now().before(Duration::from_secs(90))),
            15 => Step::Tend,
            16 if self.below(8) == 0 && !self.seed.is_multiple_of(2) => Step::Back(self.span(60)),
            17 if self.below(4) == 0 => Step::Pass(self.span(200)),
            _ => Step::Pass(self.span(3)),
        }
    }
}

/// Does it, and answers in words.
async fn take(store: &dyn Store, step: &Step) -> String {
    match step {
        Step::Set(timers, starts) => {
            format!("{:?}", store.set_timers(timers.clone(), starts.then(|| host(1))).await.unwrap())
        }
        Step::Fire(at_most) => format!("{:?}", store.fire(*at_most).await.unwrap()),
        Step::Act(text, act) => format!("{:?}", store.change_timer(&name(text), act.clone()).await.unwrap()),
        Step::End(change, one_of) => {
            let ask = SlotsAsk { at_most: 60, ..SlotsAsk::default() };
            let newest = store.slots(ask).await.unwrap().slots;
            let ids: Vec<JobId> = newest.get(*one_of).and_then(SlotRecord::job).into_iter().collect();
            format!("{:?}", store.change(change.clone(), Selection::Ids(ids)).await.unwrap())
        }
        Step::Prune(before) => format!("{:?}", store.prune_slots(*before).await.unwrap()),
        Step::Tend => format!("{:?}", store.tend().await.unwrap()),
        Step::Pass(_) | Step::Back(_) => String::new(),
    }
}

/// Two stores on one file take turns, and are opened anew now and then: nothing is kept in mind only.
#[test]
fn a_long_life_of_timers_is_the_same_as_in_memory_and_leaves_parts_that_agree() {
    for seed in 1..=4 {
        let (_directory, file) = file();
        let clock = ManualClock::new();
        let options = Options { durability: Durability::Normal, ..Options::default() };
        let open = || SqliteStore::open(&file, options.clone(), Arc::new(clock.clone())).unwrap();
        let mut stores = [open(), open()];
        let reference = MemoryStore::new(Arc::new(clock.clone()));
        let chance = Chance::seeded(seed);
        let mut life = Life { chance, clock: clock.clone(), seed, triggered: vec![] };
        runtime().block_on(async {
            for number in 0..STEPS {
                if number % 500 == 499 {
                    stores[0].close().await.unwrap();
                    stores[0] = open();
                }
                let store = &stores[usize::from(life.below(2) == 0)];
                let step = life.step(number);
                if let Step::Pass(span) = &step {
                    clock.advance(*span);
                }
                if let Step::Back(span) = &step {
                    clock.step_to(clock.now().before(*span));
                }
                let (told, expected) = (take(&**store, &step).await, take(&reference, &step).await);
                assert_eq!(told, expected, "seed {seed}, step {number}: {step:?}");
                if number % 50 == 0 {
                    assert_same(store, &reference).await;
                }
            }
            assert_same(&stores[0], &reference).await;
            assert_jobs_are_on_record(&stores[1]).await;
            for store in &stores {
                store.close().await.unwrap();
            }
        });
        let conn = Connection::open(&file).unwrap();
        assert_agrees(&conn);
        assert_timers_agree(&conn);
    }
}

async fn assert_same(store: &SqliteStore, reference: &MemoryStore) {
    let ask = TimersAsk::default();
    assert_eq!(store.timers(ask.clone()).await.unwrap(), reference.timers(ask).await.unwrap());
    assert_eq!(records(store).await, records(reference).await);
    // Narrowed in every way: what a page may look at and leave out is no part of the answer.
    let all = records(reference).await;
    let Some(middle) = all.get(all.len() / 2) else { return };
    for order in [Order::OldestFirst, Order::NewestFirst] {
        for of in [None, Some(middle.timer.clone())] {
            for (from, before) in [(None, None), (Some(middle.last), None), (None, Some(middle.last))] {
                let ask = SlotsAsk { timer: of.clone(), from, before, order, behind: None, at_most: 3 };
                let mut meant: Vec<_> = all.iter().filter(|record| ask.means(record)).cloned().collect();
                if order == Order::NewestFirst {
                    meant.reverse();
                }
                assert_eq!(pages(store, ask.clone()).await, meant, "{ask:?}");
            }
        }
    }
}

async fn pages(store: &SqliteStore, mut ask: SlotsAsk) -> Vec<SlotRecord> {
    let mut all = Vec::new();
    loop {
        let page = store.slots(ask.clone()).await.unwrap();
        assert!(page.slots.len() <= ask.at_most);
        all.extend(page.slots);
        ask.behind = page.next;
        if ask.behind.is_none() {
            return all;
        }
    }
}

/// The timer that somebody gave the id of the job to.
fn given_to(record: &SlotRecord) -> Option<&str> {
    (record.origin == Origin::Trigger).then(|| record.timer.as_str())
}

/// Records are pruned and jobs are removed by hand, but no two slots have one job. An id that somebody gave to one
/// timer may come again to another once its job was removed: nothing is left that knew it.
async fn assert_jobs_are_on_record(store: &SqliteStore) {
    let told = records(store).await;
    let brought: Vec<_> = told.iter().filter_map(|record| Some((record.job()?, given_to(record)))).collect();
    let once: BTreeSet<_> = brought.iter().copied().collect();
    assert_eq!(once.len(), brought.len(), "a job of two slots");
    let known: BTreeSet<JobId> = brought.into_iter().map(|(job, _)| job).collect();
    let oldest = told.iter().map(|record| record.at).min().unwrap();
    let jobs = store.jobs(PageAsk { at_most: limits::PAGE_JOBS, ..PageAsk::default() }).await.unwrap().jobs;
    assert!(jobs.len() > 50, "too little was left to compare");
    for job in jobs {
        assert!(job.created < oldest || known.contains(&job.id), "a job without its record: {job:?}");
    }
}
