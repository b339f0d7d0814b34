//! The ticker of a worker: it sets the timers that the worker declares, and fires whatever is ripe in the store.
//!
//! Every running worker has one, and each of them fires all timers: whoever comes first decides a slot, and the others
//! find it decided. It looks when the next timer is ripe, when somebody calls, and every few seconds by a clock that
//! runs through suspend, so that neither a clock that was set nor a call that was lost hides a slot for long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tenure_core::{HostId, NewTimer, Timestamp, limits};
use tenure_store::{Fault, Fired, Moment, TimerSet};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::worker::{Backoff, Body, catching, let_go, words_of};
use crate::{Error, Tenure};

/// It is looked at least so often, whatever the store said about the next slot.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Calls are answered at most so often: every job that is enqueued makes one.
const CALLS_APART: Duration = Duration::from_millis(250);
/// The first wait after a look for something that by this host's clock is ripe and by the store's is not.
const FIRST_VAIN_WAIT: Duration = Duration::from_millis(1);
/// A request without an answer for so long is asked again. What it may have done is not done twice.
const LONGEST_REQUEST: Duration = Duration::from_secs(3);
/// After a request without an answer there is no longer wait than this: it was waited for already. With what a request
/// may take that is less than the five seconds within which timers go on once the store answers again.
const LONGEST_WAIT_AFTER_SILENCE: Duration = Duration::from_secs(1);

/// Fires timers while a worker runs.
pub(crate) struct Ticker {
    pub(crate) tenure: Tenure,
    /// What the worker declares.
    pub(crate) declared: Vec<NewTimer>,
    /// Somebody calls out that something may be due.
    pub(crate) calls: Arc<Notify>,
    pub(crate) stop: CancellationToken,
    /// Its host, by which the start is known for which timers bring a job.
    pub(crate) host: HostId,
    /// So many of what is declared are set.
    pub(crate) set: AtomicUsize,
}

/// What came of one look.
struct Looked {
    fired: Fired,
    /// When the store was asked: from there on it counts what it said of the next slot, whenever its answer came.
    asked: Moment,
    /// What the host's clock showed.
    now: Timestamp,
}

impl Ticker {
    /// Goes on until told to stop, or until the store is closed.
    pub(crate) async fn tick(self) -> Result<(), Error> {
        let ticker = Arc::new(self);
        tokio::select! {
            biased;
            () = ticker.stop.cancelled() => Ok(()),
            ended = ticker.go_on() => ended,
        }
    }

    async fn go_on(self: &Arc<Self>) -> Result<(), Error> {
        let mut faults = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        let mut pace = Pace::default();
        let _beating = self.tenure.heart().begins();
        loop {
            match self.look_safely().await {
                Ok(Looked { fired, asked, now }) => {
                    faults.reset();
                    self.tenure.heart().beats(now);
                    self.rest(pace.pause(&fired), asked).await;
                }
                Err(fault @ Fault::Closed) => return Err(fault.into()),
                Err(_) if cfg!(mutant = "ticker-gives-up") => return Ok(()),
                // One that does not pass may be mended by a person while this program runs, and its jobs go on.
                Err(fault) => {
                    self.tenure.heart().misses(&fault);
                    let pause = faults.next(self.tenure.chance(), "running schedules", &fault);
                    let most = match fault {
                        Fault::Unknown(_) => LONGEST_WAIT_AFTER_SILENCE,
                        Fault::Unavailable(_) | Fault::Broken(_) | Fault::Closed => pause,
                    };
                    self.tenure.pause_for(pause.min(most)).await;
                }
            }
        }
    }

    /// One look. If it panics that is a fault as any other, and the next one begins anew: what it had written is there,
    /// and what it had not is ripe as before.
    async fn look_safely(self: &Arc<Self>) -> Result<Looked, Fault> {
        let mut look: Body<_> = Box::pin(Arc::clone(self).look());
        match catching(&mut look).await {
            Ok(looked) => looked,
            Err(panic) => {
                let_go(look, "running schedules");
                Err(Fault::Broken(format!("running schedules panicked: {}", words_of(&*panic))))
            }
        }
    }

    /// Sets what is declared and not set yet, then fires what is ripe.
    async fn look(self: Arc<Self>) -> Result<Looked, Fault> {
        while let Some(left) =
            self.declared.get(self.set.load(Ordering::Relaxed)..).filter(|left| !left.is_empty())
        {
            let set = self.set_some(&left[..left.len().min(limits::SET_TIMERS)]).await?;
            self.set.fetch_add(set, Ordering::Relaxed);
        }
        let asked = self.tenure.clock().moment();
        let mut fired = self.bounded(self.tenure.store().fire(limits::FIRE_TIMERS)).await?;
        self.tenure.note_fired(std::mem::take(&mut fired.records));
        Ok(Looked { fired, asked, now: self.tenure.now() })
    }

    /// Sets some of what is declared, or the first of them. Answers how many.
    async fn set_some(&self, some: &[NewTimer]) -> Result<usize, Fault> {
        let asked = self.tenure.store().set_timers(some.to_vec(), Some(self.host));
        let outcomes = self.bounded(asked).await?;
        let set = outcomes.len();
        some.iter().zip(outcomes).for_each(|(timer, outcome)| tell(timer, outcome, self.tenure.now()));
        if set == 0 {
            Err(Fault::Broken("the store returned no result for timers".to_owned()))
        } else {
            Ok(set)
        }
    }

    /// Waits for the next look, or until somebody calls.
    async fn rest(&self, pause: Duration, asked: Moment) {
        if pause.is_zero() {
            // There is more, and others want to go on as well.
            return tokio::task::yield_now().await;
        }
        let clock = self.tenure.clock();
        let end = asked.after(pause);
        self.tenure.pause_for(end.since(clock.moment()).min(CALLS_APART)).await;
        // It may have been long: the host may have been suspended.
        let left = end.since(clock.moment());
        if left.is_zero() {
            return;
        }
        tokio::select! {
            biased;
            () = self.calls.notified() => {}
            () = self.tenure.pause_for(left) => {}
        }
    }

    async fn bounded<T>(&self, request: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            answer = request => answer,
            () = self.tenure.pause_for(LONGEST_REQUEST) => {
                Err(Fault::Unknown(format!("no answer within {} s", LONGEST_REQUEST.as_secs())))
            }
        }
    }
}

fn tell(timer: &NewTimer, outcome: TimerSet, now: Timestamp) {
    let name = &timer.name;
    let is_news = matches!(outcome, TimerSet::New | TimerSet::Changed);
    if let Some(over) = timer.check_left(now).err().filter(|_| is_news) {
        tracing::warn!(timer = %name, %over, "schedule has no more runs");
    }
    match outcome {
        TimerSet::Over { now } => {
            tracing::warn!(timer = %name, %now, "schedule has no more runs and was not stored")
        }
        TimerSet::New => tracing::info!(timer = %name, schedule = %timer.schedule, "created schedule"),
        TimerSet::Changed => tracing::info!(timer = %name, schedule = %timer.schedule, "changed schedule"),
        TimerSet::Same => tracing::debug!(timer = %name, "schedule is unchanged"),
        TimerSet::Outdated { by } => tracing::warn!(
            timer = %name, revision = timer.revision, by,
            "kept a schedule declared by a later version of this program"
        ),
    }
}

/// How long to wait for the next look.
#[derive(Debug, Default)]
struct Pace {
    /// Looks in a row that found nothing, though something was said to be ripe.
    vain: u32,
}

impl Pace {
    fn pause(&mut self, fired: &Fired) -> Duration {
        let until = fired.ripe_in.unwrap_or(LOOK_EVERY);
        let is_vain = until.is_zero() && fired.timers == 0;
        self.vain = if is_vain { self.vain.saturating_add(1) } else { 0 };
        let apart = match self.vain {
            0 => Duration::ZERO,
            vain => FIRST_VAIN_WAIT.saturating_mul(1 << (vain - 1).min(16)),
        };
        until.max(apart).min(LOOK_EVERY)
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::schedule::Schedule;
    use tenure_core::{Args, Kind, Name, Origin, Overlap, Policies, Priority, QueueName, TimerJob};
    use tenure_store::{
        Chance, Clock, Faults, FaultyStore, ManualClock, MemoryStore, Moment, Sleep, SlotsAsk, Store,
    };

    use super::*;

    fn fired(timers: usize, ripe_in: Option<Duration>) -> Fired {
        Fired { timers, jobs: timers, records: Vec::new(), ripe_in }
    }

    /// T060: a wait of any length is taken in short steps, each of them counted anew from the clock.
    #[test]
    fn a_long_wait_is_taken_in_short_steps() {
        let mut pace = Pace::default();
        for days in [25, 40, 60] {
            assert_eq!(pace.pause(&fired(0, Some(Duration::from_hours(24 * days)))), LOOK_EVERY);
        }
        assert_eq!(pace.pause(&fired(0, Some(Duration::from_secs(2)))), Duration::from_secs(2));
        assert_eq!(pace.pause(&fired(0, None)), LOOK_EVERY);
    }

    #[test]
    fn what_was_left_over_is_fired_at_once() {
        assert_eq!(Pace::default().pause(&fired(1_000, Some(Duration::ZERO))), Duration::ZERO);
    }

    /// Something may be ripe that this program cannot fire.
    #[test]
    fn a_look_that_fires_nothing_though_something_is_ripe_is_repeated_ever_more_slowly() {
        let (mut pace, mut asked, mut spent) = (Pace::default(), 0, Duration::ZERO);
        while spent < Duration::from_secs(60) {
            spent += pace.pause(&fired(0, Some(Duration::ZERO)));
            asked += 1;
        }
        assert!(asked < 30, "{asked} times in a minute");
    }

    /// A host's clock that panics so many times when it is asked for the time of day.
    #[derive(Debug)]
    struct Panicking {
        clock: ManualClock,
        times: AtomicUsize,
    }

    impl Clock for Panicking {
        fn now(&self) -> Timestamp {
            let less = |times: usize| times.checked_sub(1);
            let panics = self.times.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            assert!(panics.is_err(), "the clock has a bug");
            self.clock.now()
        }

        fn moment(&self) -> Moment {
            self.clock.moment()
        }

        fn sleep(&self, span: Duration) -> Sleep {
            self.clock.sleep(span)
        }
    }

    /// T063: what panics while timers are fired is told by the heartbeat, and scheduling resumes.
    #[tokio::test]
    async fn a_look_that_panics_is_a_fault_and_firing_goes_on() {
        let clock = ManualClock::new();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let bad = Panicking { clock: clock.clone(), times: AtomicUsize::new(3) };
        let host = FaultyStore::new(Arc::clone(&store), Faults::none(1)).with_clock(Arc::new(bad));
        let tenure = Tenure::on(Arc::new(host), Chance::seeded(1));
        let declared = vec![each_second()];
        let (ticking, stop) = start(&tenure, declared);
        pass(&clock, 1).await;
        let during = tenure.timers().heartbeat();
        assert!(during.fault.is_some_and(|fault| fault.contains("the clock has a bug")));
        assert_eq!((during.faults, during.last), (1, None));
        pass(&clock, 100).await;
        let after = tenure.timers().heartbeat();
        assert!(after.last.is_some());
        assert_eq!((after.faults, after.fault), (0, None));
        let counted: Option<u64> =
            store.slots(SlotsAsk::default()).await.unwrap().slots.iter().map(|record| record.count).sum();
        assert!((4..=6).contains(&counted.unwrap()), "{counted:?}");
        stop.cancel();
        ticking.await.unwrap().unwrap();
    }

    /// A reply that is lost before a long outage: the start was, and is not once more.
    #[tokio::test]
    async fn a_start_whose_reply_is_lost_brings_one_job_however_late_it_is_asked_again() {
        let clock = ManualClock::new();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let lossy = Faults { drop_reply: 1.0, ..Faults::none(1) };
        let way = Arc::new(FaultyStore::new(Arc::clone(&store), lossy));
        let tenure = Tenure::on(Arc::clone(&way) as Arc<dyn Store>, Chance::seeded(1));
        let run_on_start = |overlap| Policies { run_on_start: true, overlap, ..Policies::default() };
        let schedule: Schedule = "every 1h".parse().unwrap();
        let starting = NewTimer { schedule, policies: run_on_start(Overlap::QueueAll), ..each_second() };
        let (ticking, stop) = start(&tenure, vec![starting]);
        pass(&clock, 1).await;
        way.down(true);
        pass(&clock, 100 * 20).await;
        way.heal();
        way.down(false);
        pass(&clock, 10 * 20).await;
        assert!(tenure.timers().heartbeat().last.is_some(), "it is at work again");
        let records = store.slots(SlotsAsk::default()).await.unwrap().slots;
        assert_eq!(records.iter().map(|record| record.origin).collect::<Vec<_>>(), [Origin::Start]);
        stop.cancel();
        ticking.await.unwrap().unwrap();
    }

    /// L4: a store that leaves requests without an answer is asked again, and fires within five seconds of when it answers.
    #[tokio::test]
    async fn after_an_outage_in_which_requests_hang_timers_go_on_within_five_seconds() {
        let clock = ManualClock::new();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        for outage in [7, 20, 61, 130, 333] {
            let way = Arc::new(FaultyStore::new(Arc::clone(&store), Faults::none(1)));
            let tenure = Tenure::on(Arc::clone(&way) as Arc<dyn Store>, Chance::seeded(outage));
            let (ticking, stop) = start(&tenure, vec![each_second()]);
            pass(&clock, 40).await;
            way.silent(true);
            pass(&clock, usize::try_from(outage).unwrap() * 20 + 7).await;
            way.silent(false);
            let end = clock.now();
            pass(&clock, 6 * 20).await;
            let records = store.slots(SlotsAsk::default()).await.unwrap().slots;
            let first = records.iter().map(|record| record.at).filter(|at| *at >= end).min().unwrap();
            assert!(first.since(end) <= Duration::from_secs(5), "after {outage} s: {:?}", first.since(end));
            stop.cancel();
            ticking.await.unwrap().unwrap();
        }
    }

    /// In how long something is ripe counts from the question and not from the answer.
    #[tokio::test]
    async fn slots_are_not_late_because_replies_are() {
        let clock = ManualClock::new();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let slow = Faults { reply_takes: Duration::from_secs(2), ..Faults::none(1) };
        let way = Arc::new(FaultyStore::new(Arc::clone(&store), slow));
        let tenure = Tenure::on(way as Arc<dyn Store>, Chance::seeded(1));
        let each_fifth = NewTimer { schedule: "every 5s".parse().unwrap(), ..each_second() };
        let (ticking, stop) = start(&tenure, vec![each_fifth]);
        pass(&clock, 60 * 20).await;
        let records = store.slots(SlotsAsk::default()).await.unwrap().slots;
        assert!(records.len() >= 11, "{records:?}");
        for record in records {
            assert!(record.at.since(record.last) < Duration::from_millis(100), "{record:?}");
        }
        stop.cancel();
        ticking.await.unwrap().unwrap();
    }

    /// More than one call sets, and each of them bringing jobs.
    #[tokio::test]
    async fn all_that_is_declared_is_set_however_much_it_is() {
        let clock = ManualClock::new();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let tenure = Tenure::on(Arc::clone(&store), Chance::seeded(1));
        let named = |number| Name::new("timer", &format!("t{number:03}")).unwrap();
        let policies = Policies { run_on_start: true, ..Policies::default() };
        let declared = (0..limits::SET_TIMERS * 2 + 7).map(|number| NewTimer {
            name: named(number),
            policies,
            ..each_second()
        });
        let (ticking, stop) = start(&tenure, declared.collect());
        pass(&clock, 1).await;
        let ask = SlotsAsk { at_most: 1_000, ..SlotsAsk::default() };
        let records = store.slots(ask).await.unwrap().slots;
        assert_eq!(records.iter().filter(|record| record.origin == Origin::Start).count(), 207);
        stop.cancel();
        ticking.await.unwrap().unwrap();
    }

    fn start(
        tenure: &Tenure,
        declared: Vec<NewTimer>,
    ) -> (tokio::task::JoinHandle<Result<(), Error>>, CancellationToken) {
        let stop = CancellationToken::new();
        let ticker = Ticker {
            tenure: tenure.clone(),
            declared,
            calls: Arc::default(),
            stop: stop.clone(),
            host: HostId::new(Timestamp::EPOCH, 1),
            set: AtomicUsize::new(0),
        };
        (tokio::spawn(ticker.tick()), stop)
    }

    /// Lets so many twentieths of a second pass.
    async fn pass(clock: &ManualClock, steps: usize) {
        for _ in 0..steps {
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            clock.advance(Duration::from_millis(50));
        }
    }

    fn each_second() -> NewTimer {
        NewTimer {
            name: Name::new("timer", "each-second").unwrap(),
            schedule: "every 1s".parse().unwrap(),
            job: TimerJob {
                kind: Kind::new("report").unwrap(),
                queue: QueueName::default(),
                args: Args::new(*b"{}").unwrap(),
                priority: Priority::default(),
                terms: Arc::default(),
            },
            policies: Policies::default(),
            revision: 0,
        }
    }
}
