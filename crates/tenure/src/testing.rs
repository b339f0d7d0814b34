//! Test support: run jobs in memory, on a clock that you move, one turn at a time.
//!
//! ```
//! use std::time::Duration;
//! use serde::{Deserialize, Serialize};
//! use tenure::testing::Lab;
//! use tenure::{Failed, Job, Run, StateName, Worker};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Charge { cents: u64 }
//! impl Job for Charge { const KIND: &'static str = "charge"; type Output = (); }
//!
//! async fn charge(run: Run<()>, _job: Charge) -> Result<(), Failed> {
//!     if run.attempt() == 1 { Err(Failed::retry("card reader busy")) } else { Ok(()) }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tenure::Error> {
//! let mut lab = Lab::new(|tenure| Worker::new(tenure, ()).queue("default", 10).job(charge));
//! lab.tenure().enqueue(Charge { cents: 500 }).await?;
//! lab.assert_enqueued::<Charge>(|job| job.cents == 500).await;
//!
//! assert_eq!(lab.turn().await?[0].state, StateName::Scheduled);   // it failed and waits
//! lab.advance(Duration::from_secs(5));
//! assert_eq!(lab.turn().await?[0].state, StateName::Succeeded);
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tenure_core::{AppId, AppUse, Failure, HostId, JobId, Kind, Reserved, StateName, Timestamp, limits};
use tenure_store::{
    Answer, Chance, Clock, Filter, Held, ManualClock, MemoryStore, Order, PageAsk, Renew, Reserve, Settled,
    Store, SystemClock, Want,
};

use crate::worker::{Control, Finish, Lease, Parts, Reports, attempt, failures, kinds_but, tell};
use crate::{Error, Job, Run, Tenure, Worker};

/// How often a handler is polled before it is given real time, and how much of that.
const YIELDS: u32 = 10_000;
const REAL_WAIT: Duration = Duration::from_millis(1);
const REAL_WAITS: u32 = 30_000;
/// After so many of them its timeout fires, or the time to stop is over.
const PATIENCE: u32 = 5_000;

/// Looks for timers while the clock is advanced once.
const LOOKS: u32 = 10_000;

/// Turns that [`Lab::drain`] takes before it says that the jobs never end.
const TURNS: usize = 10_000;

/// A test lab: a store in memory, a clock that you move, and a worker whose turns you take. The same seed gives the
/// same run.
pub struct Lab<App> {
    tenure: Tenure,
    clock: ManualClock,
    parts: Parts<App>,
    reports: Arc<Reports>,
}

/// An attempt that was run by a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// Job ID.
    pub id: JobId,
    /// Kind.
    pub kind: Kind,
    /// Attempt number.
    pub attempt: u32,
    /// State of the job after the attempt.
    pub state: StateName,
    /// Error of the attempt.
    pub failure: Option<Failure>,
}

impl<App: Send + Sync + 'static> Lab<App> {
    /// Creates a lab for the worker that `build` returns.
    ///
    /// # Panics
    /// If the worker's settings are invalid.
    pub fn new(build: impl FnOnce(&Tenure) -> Worker<App>) -> Self {
        Self::seeded(0, build)
    }

    /// Creates a lab with another seed, for other IDs and jitter.
    ///
    /// # Panics
    /// If the worker's settings are invalid.
    pub fn seeded(seed: u64, build: impl FnOnce(&Tenure) -> Worker<App>) -> Self {
        let clock = ManualClock::new();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(clock.clone())));
        let tenure = Tenure::on(store, Chance::seeded(seed)).leases_on_runtime().with_app(lab(clock.now()));
        let mut parts = build(&tenure).into_parts().expect("a lab needs a worker that can run");
        let declared = std::mem::take(&mut parts.timers);
        let host = tenure.draw_host();
        let mut left = declared.as_slice();
        while !left.is_empty() {
            let some = left[..left.len().min(limits::SET_TIMERS)].to_vec();
            left = &left[at_once(tenure.store().set_timers(some, Some(host))).len()..];
        }
        Self { tenure, clock, parts, reports: Arc::default() }
    }

    /// Returns the store handle.
    #[must_use]
    pub fn tenure(&self) -> &Tenure {
        &self.tenure
    }

    /// Returns the clock.
    #[must_use]
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Returns the current time of the clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Advances the clock. No job runs before the next turn. Timers fire at their times, as they do with running
    /// workers. If a run comes due before the previous job had its turn, the overlap policy applies. A timer that
    /// fires very often falls behind: after ten thousand steps the rest counts as missed.
    pub fn advance(&self, span: Duration) {
        let end = self.clock.moment().after(span);
        for _ in 0..LOOKS {
            let Some(next) = self.fire() else { break };
            let until = next.min(end.since(self.clock.moment()));
            if until.is_zero() {
                break;
            }
            self.clock.advance(until);
        }
        self.clock.advance(end.since(self.clock.moment()));
        self.fire();
    }

    /// Fires all timers that are ripe; answers in how long the next one will be.
    fn fire(&self) -> Option<Duration> {
        for _ in 0..TURNS {
            let fired = at_once(self.tenure.store().fire(limits::FIRE_TIMERS));
            // One call fires a bounded number of timers and brings a bounded number of jobs.
            if fired.timers == 0 || fired.ripe_in.is_none_or(|span| !span.is_zero()) {
                return fired.ripe_in;
            }
        }
        panic!("after {TURNS} steps some schedules are still due");
    }

    /// Runs all due jobs once, up to the number of slots. A handler that waits with [`Run::sleep`] moves the clock.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn turn(&mut self) -> Result<Vec<Ran>, Error> {
        self.fire();
        self.tend().await?;
        let mut ran = Vec::new();
        for reserved in self.reserve().await? {
            ran.push(self.run(reserved).await?);
        }
        Ok(ran)
    }

    /// Lets time and ends have all their effects, as many steps as that takes.
    async fn tend(&self) -> Result<(), Error> {
        for _ in 0..TURNS {
            if !self.tenure.store().tend().await?.more {
                return Ok(());
            }
        }
        panic!("after {TURNS} steps some maintenance is still due");
    }

    /// Takes turns until no job is due. The clock does not move by itself.
    ///
    /// # Errors
    /// A fault of the store.
    ///
    /// # Panics
    /// After ten thousand turns, because jobs keep making each other due.
    pub async fn drain(&mut self) -> Result<Vec<Ran>, Error> {
        let mut all = Vec::new();
        for _ in 0..TURNS {
            let mut ran = self.turn().await?;
            if ran.is_empty() {
                return Ok(all);
            }
            all.append(&mut ran);
        }
        panic!("after {TURNS} turns some jobs are still due");
    }

    /// Asserts that a job of this kind is waiting whose args satisfy `wanted`, and returns its ID.
    ///
    /// # Panics
    /// If there is none; the message lists the waiting jobs.
    pub async fn assert_enqueued<J: Job>(&self, wanted: impl Fn(&J) -> bool) -> JobId {
        let mut seen = Vec::new();
        for job in self.waiting().await {
            let text = String::from_utf8_lossy(job.args.as_bytes()).into_owned();
            if job.kind.as_str() == J::KIND
                && serde_json::from_slice(job.args.as_bytes()).is_ok_and(|args| wanted(&args))
            {
                return job.id;
            }
            seen.push(format!("{} {text}", job.kind));
        }
        panic!("no waiting job of kind {} matches; waiting jobs: [{}]", J::KIND, seen.join(", "));
    }

    async fn waiting(&self) -> Vec<tenure_core::Job> {
        let filter = Filter {
            states: vec![StateName::Queued, StateName::Scheduled, StateName::Blocked],
            ..Filter::default()
        };
        let (mut jobs, mut after) = (Vec::new(), None);
        loop {
            let ask = PageAsk {
                filter: filter.clone(),
                order: Order::OldestFirst,
                after,
                at_most: 1_000,
                ..PageAsk::default()
            };
            let mut page = self.tenure.store().jobs(ask).await.expect("a store in memory has no faults");
            jobs.append(&mut page.jobs);
            let Some(next) = page.next else { return jobs };
            after = Some(next);
        }
    }

    async fn reserve(&self) -> Result<Vec<Reserved>, Error> {
        let settings = &self.parts.settings;
        let kinds = settings.kinds(&self.parts.handlers.kinds());
        let Some(kinds) = kinds_but(&kinds, &self.parts.left.borrow()) else { return Ok(Vec::new()) };
        let want = |served: &crate::worker::Served| Want {
            queue: served.name.clone(),
            kinds: kinds.clone(),
            at_most: served.slots,
        };
        let wants = settings.queues.iter().map(want).collect();
        let ask =
            Reserve { holder: self.parts.host, ttl: settings.lease, wants, at_most: settings.all_slots };
        let jobs = self.tenure.store().reserve(ask).await?.jobs;
        self.tenure.heap().granted(jobs.iter().map(Reserved::job));
        Ok(jobs)
    }

    async fn run(&self, reserved: Reserved) -> Result<Ran, Error> {
        let job = reserved.shared();
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let held = Held { id: job.id, seq: job.seq, fence: job.fence };
        let lease = Lease::new(self.parts.settings.lease)?;
        let trust = lease.trust_from(clock.moment());
        let control = Arc::new(Control::new(held, Arc::clone(&clock), trust));
        let run = Run::new(
            Arc::clone(&self.parts.app),
            self.tenure.clone(),
            job.clone(),
            Arc::clone(&control),
            Arc::clone(&self.reports),
        );
        let work = attempt(
            Arc::clone(&self.parts.handlers),
            run,
            Arc::clone(&control),
            clock,
            self.parts.settings.grace(),
        );
        let Finish { verdict, .. } =
            self.with_time(work, &control, (lease, job.terms.timeout.is_some())).await;
        self.reports.flush(self.tenure.store()).await;
        let policy = self.parts.handlers.policy(&job.kind);
        let settlement = reserved.settle(verdict, &policy, self.tenure.chance().fraction());
        let turn = self.tenure.store().settle(vec![settlement.clone()], None).await?;
        for settled in &turn.settled {
            failures::log(&job, || policy.clone(), (&settlement, *settled), self.now());
        }
        let settled = turn.settled.iter().map(|settled| (&*job, &settlement, *settled));
        self.tenure.heap().settled(settled, self.now());
        let after = self.tenure.store().job(job.id).await?;
        let state = match turn.settled.first() {
            Some(Settled::Done(state)) => *state,
            Some(Settled::Repeated | Settled::Fenced | Settled::Gone) | None => {
                after.as_ref().map_or(StateName::Cancelled, |after| after.state.name(self.now()))
            }
        };
        let failure = after.filter(|_| state != StateName::Succeeded).and_then(|after| after.failure);
        Ok(Ran { id: job.id, kind: job.kind.clone(), attempt: job.attempt, state, failure })
    }

    /// Polls the work; while its handler naps, the clock goes to the end of the nap. A handler that waits
    /// for something real gets real time, but not for ever.
    async fn with_time<T>(
        &self,
        work: impl Future<Output = T>,
        control: &Control,
        (lease, may_time_out): (Lease, bool),
    ) -> T {
        let mut work = std::pin::pin!(work);
        for idle in 0_u32.. {
            let wait = if idle < YIELDS { None } else { Some(REAL_WAIT) };
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = rest(wait) => {}
            }
            self.renew(control, lease);
            let is_hanging = idle > YIELDS + PATIENCE && (may_time_out || control.stopping().is_some());
            if (control.naps() || is_hanging)
                && let Some(span) = self.clock.until_next_sleeper()
            {
                self.pass(span, control, lease);
            } else if idle > YIELDS + REAL_WAITS {
                break;
            }
        }
        panic!(
            "a handler waits for something that never happens; use Run::sleep to wait in a lab, or set a timeout"
        );
    }

    /// Moves the clock while an attempt runs, in steps that keep its lease, until it is told to stop.
    fn pass(&self, span: Duration, control: &Control, lease: Lease) {
        let (end, was_stopping) = (self.clock.moment().after(span), control.stopping().is_some());
        while !end.since(self.clock.moment()).is_zero() && control.stopping().is_some() == was_stopping {
            self.clock.advance(end.since(self.clock.moment()).min(lease.renew_every()));
            self.renew(control, lease);
        }
    }

    /// Renews the lease of the running attempt, by which it hears that it was cancelled.
    fn renew(&self, control: &Control, lease: Lease) {
        let (sent, ask) = (self.clock.moment(), Renew { ttl: lease.ttl(), held: vec![control.held()] });
        for renewal in at_once(self.tenure.store().renew(ask)) {
            tell(control, renewal, lease, sent);
        }
    }
}

/// What a store in memory answers: it has nothing to wait for, and no faults.
fn at_once<T>(mut answer: Answer<'_, T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match answer.as_mut().poll(&mut context) {
        Poll::Ready(Ok(answer)) => answer,
        Poll::Ready(Err(fault)) => panic!("a store in memory cannot fail: {fault}"),
        Poll::Pending => panic!("a store in memory answers at once"),
    }
}

/// The app id of every lab.
fn lab(now: Timestamp) -> AppUse {
    let app = AppId::new("lab").expect("three letters are an app id");
    AppUse { app, program: "lab".to_owned(), host: HostId::new(now, 0), since: now, seen: now }
}

async fn rest(wait: Option<Duration>) {
    match wait {
        None => tokio::task::yield_now().await,
        Some(span) => SystemClock.sleep(span).await,
    }
}
