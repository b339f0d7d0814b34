//! The keeper: goes on holding what the worker runs, and tells attempts what they have lost.
//!
//! ```text
//!   Held ──(a request failed; work goes on)──▶ Doubtful ──(deadline)──▶ Lost
//!    ▲                                            │                      ▲
//!    └────────────(a request succeeded)───────────┘                      │
//!    └───────────────(the store says: taken, or lapsed)──────────────────┘
//! ```
//! Nothing goes from Lost back to Held: a new grant is a new fence and a new run of the handler.
//!
//! In a real program it runs on a thread of its own, so that a handler that blocks every other thread
//! does not lose its job. One batched request renews all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{HostId, QueueName, Serves};
use tenure_store::{Chance, Clock, Fault, Held, Holds, Moment, Renew, Renewal, Store};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::control::Control;
use super::holding::Holding;
use super::lease::Lease;
use super::waits::{Knot, Slots};
use crate::commands::command_of;
use crate::holding::Pace;
use crate::{Stopping, WorkerCommand};

/// Hints that somebody was asked to stop are acted upon at most so often.
const HINTS_APART: Duration = Duration::from_millis(100);

/// What the host is told to do is asked for so often at the most, but for a few times at once: where nothing is heard, a hint a
/// second says nothing.
const HEARING_APART: Duration = Duration::from_secs(10);
const HEARINGS_AT_ONCE: u32 = 5;

/// Shorter waits do not count, because another worker may soon take the awaited job.
const LONG_WAIT: Duration = Duration::from_secs(5);

pub(crate) struct Keeper {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Chance,
    pub(crate) holding: Arc<Holding>,
    pub(crate) lease: Lease,
    pub(crate) host: HostId,
    pub(crate) name: String,
    pub(crate) slots: u32,
    pub(crate) serves: Vec<Serves>,
    /// The slots whose handlers may wait for other jobs.
    pub(super) to_wait_in: Slots,
    /// Who is told what this host is told to do; nobody if it heeds nobody.
    pub(crate) commands: Option<watch::Sender<WorkerCommand>>,
}

/// What was heard last, and what is to be said and heard next.
struct Said {
    /// When it is to be said that the host lives.
    announce: Moment,
    heard: Option<Moment>,
    hearing: Pace,
    /// Whether what the host is told to do is still to be heard.
    is_unheard: bool,
    knots: BTreeMap<QueueName, Knot>,
}

impl Said {
    fn new(announce: Moment, lease: Lease) -> Self {
        Self {
            announce,
            heard: None,
            hearing: Pace::new(HEARING_APART.min(lease.renew_every()), HEARINGS_AT_ONCE),
            is_unheard: false,
            knots: BTreeMap::new(),
        }
    }
}

impl Keeper {
    /// Keeps until told to stop, then says that the host has gone.
    pub(crate) async fn keep(self, stop: CancellationToken) {
        tokio::select! {
            biased;
            () = self.watch_deadlines() => {}
            () = self.go_on_renewing(&stop) => {}
        }
        let _ = self.bounded(self.store.retire(self.host)).await;
    }

    /// Tells attempts at their deadline that they are lost. Beside the requests, not between them: one
    /// that hangs must not keep the news back until somebody else has the job.
    async fn watch_deadlines(&self) {
        loop {
            let now = self.clock.moment();
            self.holding.expire(now);
            // What is taken meanwhile has its deadline later than this.
            let most = self.lease.request_timeout();
            let first = self.holding.first_deadline().map_or(most, |deadline| deadline.since(now).min(most));
            self.clock.sleep(first.max(HINTS_APART.min(most))).await;
        }
    }

    async fn go_on_renewing(&self, stop: &CancellationToken) {
        let mut asked = self.store.asked();
        let mut said = Said::new(self.clock.moment().after(self.in_a_while()), self.lease);
        // What it was told since it said that it lives, and before hints arrived, it hears at once.
        let mut hinted = true;
        let mut faults = Backoff::new(self.lease.ttl() / 100, self.lease.ttl() / 12);
        loop {
            // A hint that somebody was asked to stop is answered by asking the store about all.
            let age = if hinted { Duration::ZERO } else { self.renew_every() };
            let done = match self.renew(age).await {
                Ok(()) => self.announce_again(&mut said, hinted).await,
                Err(fault) => Err(fault),
            };
            let is_missed = hinted && done.is_err();
            let pause = match done {
                Ok(()) => {
                    faults.reset();
                    HINTS_APART
                }
                Err(fault) => faults.next(&self.chance, "renewing", &fault),
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.clock.sleep(pause) => {}
            }
            if is_missed {
                // What the hint was about is still to be heard.
                continue;
            }
            hinted = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = asked.changed() => true,
                () = self.clock.sleep(self.until_next(&said)) => false,
            };
        }
    }

    /// A little sooner than needed, so that one wake serves all that was taken at about one time.
    fn renew_every(&self) -> Duration {
        self.lease.renew_every().mul_f64(0.8)
    }

    /// When what is done now is to be done again. Programs that began together drift apart.
    fn in_a_while(&self) -> Duration {
        self.lease.renew_every().mul_f64(0.9 + 0.1 * self.chance.fraction())
    }

    /// How long until something has to be done, if no hint comes.
    fn until_next(&self, said: &Said) -> Duration {
        let now = self.clock.moment();
        let every = self.in_a_while();
        let renew = self.holding.oldest_sent().map(|sent| sent.after(every));
        let hear = said.is_unheard.then(|| said.hearing.next(now).unwrap_or(now));
        let sooner = [renew, hear, self.holding.first_deadline()].into_iter().flatten();
        sooner.fold(said.announce, Moment::min).since(now).min(every)
    }

    /// Says that the host lives, if it is time; and hears what it is told to do, if hints are to be answered, and if it is time and
    /// there was no hint for long.
    async fn announce_again(&self, said: &mut Said, called: bool) -> Result<(), Fault> {
        let now = self.clock.moment();
        let is_time = now >= said.announce;
        if is_time {
            self.find_knots(&mut said.knots);
            self.announce_with(&said.knots).await?;
        }
        let is_long_ago = said.heard.is_none_or(|heard| now.since(heard) >= self.renew_every());
        // Only hints are paced: what is heard without any keeps none of them waiting, and is heard with the hint if there is one.
        let is_owed = is_time && is_long_ago && !called && !said.is_unheard;
        said.is_unheard |= called || is_owed;
        match &self.commands {
            None => said.is_unheard = false,
            Some(commands) if said.is_unheard && (is_owed || said.hearing.take(now)) => {
                // What a fault has kept back is asked for again soon.
                self.hear(commands).await.inspect_err(|_| said.hearing.refill())?;
                (said.is_unheard, said.heard) = (false, Some(now));
            }
            Some(_) => {}
        }
        if is_time {
            said.announce = now.after(self.in_a_while());
        }
        Ok(())
    }

    /// Passes on what the host is told to do, if that is something else than before.
    async fn hear(&self, commands: &watch::Sender<WorkerCommand>) -> Result<(), Fault> {
        let told = self.bounded(command_of(&*self.store, self.host)).await?;
        let is_new = commands.send_if_modified(|known| std::mem::replace(known, told) != told);
        if is_new {
            tracing::info!(worker = %self.host, command = ?told, "received a command for this worker");
        }
        Ok(())
    }

    /// Finds the queues whose slots are all taken by handlers that wait for other jobs, and warns of each that is new.
    fn find_knots(&self, known: &mut BTreeMap<QueueName, Knot>) {
        let waiters = self.holding.waiters(LONG_WAIT, self.clock.moment());
        let before = std::mem::replace(known, self.to_wait_in.knots(waiters));
        let is_new = |queue| before.get(queue).is_none_or(|knot| knot.awaited.is_none());
        for (queue, Knot { slots, awaited }) in known.iter().filter(|(queue, _)| is_new(*queue)) {
            let Some(job) = awaited else { continue };
            tracing::warn!(
                worker = %self.name, %queue, slots, %job,
                "possible deadlock: handlers that wait for other jobs occupy all slots for the queue, so the worker cannot start \
                 those jobs; add slots, give the awaited jobs a queue of their own, or enqueue a follow-up job with `after_jobs` \
                 instead of waiting"
            );
        }
    }

    /// Sends the first heartbeat, before the host has any job.
    pub(crate) async fn announce(&self) -> Result<(), Fault> {
        self.announce_with(&BTreeMap::new()).await
    }

    /// Sends a heartbeat that marks the queues with a knot.
    async fn announce_with(&self, knots: &BTreeMap<QueueName, Knot>) -> Result<(), Fault> {
        let ttl = self.lease.ttl();
        let serves = self.serves.iter().cloned();
        let serves: Vec<Serves> = serves
            .map(|serves| Serves { all_waiting: knots.contains_key(&serves.queue), ..serves })
            .collect();
        self.bounded(self.store.announce(self.host, &self.name, self.slots, &serves, ttl)).await
    }

    /// Renews what was last renewed at least `age` ago.
    async fn renew(&self, age: Duration) -> Result<(), Fault> {
        let controls = self.holding.older_than(age, self.clock.moment());
        if controls.is_empty() {
            return Ok(());
        }
        let held: Vec<Held> = controls.iter().map(|control| control.held()).collect();
        let sent = self.clock.moment();
        let renewals = self.bounded(self.store.renew(Renew { ttl: self.lease.ttl(), held })).await?;
        for (control, renewal) in controls.iter().zip(renewals) {
            tell(control, renewal, self.lease, sent);
        }
        Ok(())
    }

    /// A request that takes too long has an unknown outcome: the old deadline goes on counting.
    async fn bounded<T>(&self, request: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let limit = self.lease.request_timeout();
        tokio::select! {
            biased;
            answer = request => answer,
            () = self.clock.sleep(limit) => Err(Fault::Unknown(format!("no answer within {} ms", limit.as_millis()))),
        }
    }
}

/// Tells an attempt the answer to a renewal that was sent at `sent`.
pub(crate) fn tell(control: &Control, renewal: Renewal, lease: Lease, sent: Moment) {
    match renewal {
        Renewal::Held(Holds { until, cancel }) => {
            control.renewed(lease.trust_from(sent));
            if let Some(request) = cancel {
                // What the store's clock showed when it answered.
                let grace = request.deadline.since(until.before(lease.ttl()));
                let why = Stopping::Cancelled { reason: request.reason, deadline: request.deadline };
                control.cancel(why, grace);
            }
        }
        Renewal::Lapsed | Renewal::Lost => control.stop(Stopping::Lost),
    }
}
