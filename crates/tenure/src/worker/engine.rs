//! The engine of a worker: one loop that settles what has ended, reserves what is free, and starts it.
//!
//! ```text
//!        ┌──────────── one round trip ────────────┐
//!        │  settle what ended, reserve for room   │
//!        └───────▲──────────────────────┬─────────┘
//!      verdicts  │                      │ reserved jobs
//!        ┌───────┴──────────────────────▼─────────┐
//!        │  attempts, each a task with its reins  │
//!        └────────────────────────────────────────┘
//! ```
//! While the round trip is under way attempts go on and end; the next one takes all that ended
//! meanwhile. That is the whole batching: a lone job goes at once, a flood goes in batches.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{HostId, Reserved, Settlement, Verdict, limits};
use tenure_store::{Fault, Held, Kinds, Moment, Reserve, Settled, Turn};
use tokio::sync::{Notify, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::attempt::{Finish, attempt, verdict_before_start};
use super::backoff::Backoff;
use super::blocking::Blocking;
use super::control::Control;
use super::handlers::Handlers;
use super::holding::Holding;
use super::lease::Lease;
use super::look::Look;
use super::plan::{Room, wants};
use super::reports::Reports;
use super::settings::Settings;
use super::stop::Stopped;
use crate::{Run, Stopping, Tenure};

pub(crate) struct Engine<App> {
    pub(crate) tenure: Tenure,
    pub(crate) app: Arc<App>,
    pub(crate) handlers: Arc<Handlers<App>>,
    pub(crate) settings: Settings,
    pub(crate) kinds: Kinds,
    pub(crate) lease: Lease,
    pub(crate) host: HostId,
    pub(crate) holding: Arc<Holding>,
    pub(crate) reports: Arc<Reports>,
    /// Calls that something may be due are passed on to the ticker: two who wait at one board are woken in an order
    /// that no seed decides.
    pub(crate) calls: Arc<Notify>,
    pub(crate) running: Running,
}

/// What the engine has under way.
#[derive(Default)]
pub(crate) struct Running {
    attempts: JoinSet<Finish>,
    active: HashMap<Id, Active>,
    ghosts: JoinSet<usize>,
    /// Reserved ahead, for each queue; started when a slot frees.
    ahead: Vec<VecDeque<Waiting>>,
    busy: Vec<usize>,
    decided: Vec<(Settlement, Arc<Control>)>,
    pub(crate) tally: Stopped,
}

struct Active {
    reserved: Reserved,
    queue: usize,
    control: Arc<Control>,
}

struct Waiting {
    reserved: Reserved,
    control: Arc<Control>,
}

/// What woke the engine.
enum Woken {
    Ended(Result<(Id, Finish), JoinError>),
    GhostGone(usize),
    Called,
    MaybeDue,
    Stop,
}

impl<App: Send + Sync + 'static> Engine<App> {
    /// Works until told to stop or until the store is beyond use.
    pub(crate) async fn work(&mut self, stop: &CancellationToken) -> Result<(), Fault> {
        let mut due = self.tenure.store().due();
        if self.settings.queues.is_empty() {
            self.pass_calls_on(due, stop).await;
            return Ok(());
        }
        self.running.ahead.resize_with(self.settings.queues.len(), VecDeque::new);
        self.running.busy.resize(self.settings.queues.len(), 0);
        let mut faults = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        let mut look = Look::new(self.settings.queues.len());
        loop {
            if due.has_changed().unwrap_or(false) {
                self.calls.notify_one();
            }
            due.mark_unchanged();
            if stop.is_cancelled() {
                return Ok(());
            }
            let ask = self.ask(&look);
            if ask.is_some() || !self.running.decided.is_empty() {
                match self.turn(ask, &mut look).await {
                    Ok(()) => faults.reset(),
                    Err(fault) if fault.is_passing() => {
                        let pause = faults.next(self.tenure.chance(), "settling and reserving", &fault);
                        self.rest(pause, stop).await;
                        continue;
                    }
                    Err(fault) => return Err(fault),
                }
                if self.ask(&look).is_some() {
                    continue;
                }
            }
            let poll = self.settings.poll.mul_f64(0.9 + 0.2 * self.tenure.chance().fraction());
            let pause = look.pause(poll, self.tenure.clock().moment());
            let woken = tokio::select! {
                biased;
                () = stop.cancelled() => Woken::Stop,
                Some(ended) = self.running.attempts.join_next_with_id() => Woken::Ended(ended),
                Some(ghost) = self.running.ghosts.join_next() => Woken::GhostGone(ghost.unwrap_or(usize::MAX)),
                _ = due.changed() => Woken::Called,
                () = self.tenure.pause_for(pause) => Woken::MaybeDue,
            };
            match woken {
                Woken::Stop => return Ok(()),
                Woken::Called => {
                    self.calls.notify_one();
                    look.hint();
                }
                Woken::MaybeDue => look.hint(),
                Woken::GhostGone(queue) => self.ghost_gone(queue),
                Woken::Ended(ended) => {
                    self.ended(ended);
                    self.gather().await;
                }
            }
        }
    }

    /// Only what runs beside: there is nothing to look for.
    async fn pass_calls_on(&self, mut due: watch::Receiver<u64>, stop: &CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                called = due.changed() => match called {
                    Ok(()) => self.calls.notify_one(),
                    // Nobody calls any more.
                    Err(_) => return stop.cancelled().await,
                },
            }
        }
    }

    /// One round trip: settles what has been decided and reserves for the room there is.
    async fn turn(&mut self, ask: Option<Reserve>, look: &mut Look) -> Result<(), Fault> {
        self.reports.flush(self.tenure.store()).await;
        let settlements: Vec<Settlement> =
            self.running.decided.iter().map(|(settlement, _)| settlement.clone()).collect();
        let asked = ask.as_ref().map(|ask| (ask.at_most, ask.wants.clone()));
        let sent = self.tenure.clock().moment();
        let Turn { settled, reservation } = self.tenure.store().settle(settlements, ask).await?;
        let decided = std::mem::take(&mut self.running.decided);
        self.holding.remove(decided.iter().map(|(_, control)| control));
        for ((settlement, _), settled) in decided.iter().zip(settled) {
            self.running.tally.count(settlement, settled);
        }
        if let Some((at_most, wants)) = asked {
            look.answered(&self.settings.queues, &wants, at_most, &reservation.jobs);
            // It counts from before the store answered: a reply that is late makes nothing late that comes due.
            look.expect_next(reservation.due_in, reservation.jobs.len(), sent);
        }
        let late = cfg!(feature = "mutant-deadline-from-receipt");
        self.take(reservation.jobs, if late { self.tenure.clock().moment() } else { sent });
        Ok(())
    }

    /// What to ask for; `None` if there is no room.
    fn ask(&self, look: &Look) -> Option<Reserve> {
        let room = look.worth_filling(self.room());
        let wants = wants(&self.settings, &self.kinds, &room, self.tenure.chance());
        let at_most =
            wants.iter().map(|want| want.at_most).sum::<usize>().min(room.in_all).min(limits::RESERVE_JOBS);
        (!wants.is_empty()).then(|| Reserve { holder: self.host, ttl: self.lease.ttl(), wants, at_most })
    }

    fn room(&self) -> Room {
        let taken = |index: usize| self.running.busy[index] + self.running.ahead[index].len();
        let in_all: usize = (0..self.settings.queues.len()).map(taken).sum();
        let ahead = self.settings.prefetch;
        Room {
            of_queue: self
                .settings
                .queues
                .iter()
                .enumerate()
                .map(|(index, served)| (served.slots + ahead).saturating_sub(taken(index)))
                .collect(),
            in_all: (self.settings.all_slots + ahead).saturating_sub(in_all),
        }
    }

    /// Holds what was granted, and starts what has a slot.
    fn take(&mut self, jobs: Vec<Reserved>, sent: Moment) {
        let trust = self.lease.trust_from(sent);
        let mut controls = Vec::with_capacity(jobs.len());
        for reserved in jobs {
            let job = reserved.job();
            let Some(queue) = self.settings.queues.iter().position(|served| served.name == job.queue) else {
                continue; // Not a queue that was asked for: it lapses and somebody else takes it.
            };
            let held = Held { id: job.id, seq: job.seq, fence: job.fence };
            let control = Arc::new(Control::new(held, Arc::clone(self.tenure.clock()), trust));
            controls.push(Arc::clone(&control));
            self.running.ahead[queue].push_back(Waiting { reserved, control });
        }
        self.holding.add(controls);
        (0..self.settings.queues.len()).for_each(|queue| self.start(queue));
    }

    /// Starts what was reserved ahead of a queue, as far as there are slots.
    fn start(&mut self, queue: usize) {
        while self.running.busy[queue] < self.settings.queues[queue].slots
            && self.busy_in_all() < self.settings.all_slots
        {
            let Some(Waiting { reserved, control }) = self.running.ahead[queue].pop_front() else { return };
            if let Some(why) = control.stopping() {
                // Told to stop before it began: it never does.
                self.decide(reserved, verdict_before_start(&why), control);
                continue;
            }
            let run = Run::new(
                Arc::clone(&self.app),
                self.tenure.clone(),
                reserved.job().clone(),
                Arc::clone(&control),
                Arc::clone(&self.reports),
            );
            let work = attempt(
                Arc::clone(&self.handlers),
                run,
                Arc::clone(&control),
                Arc::clone(self.tenure.clock()),
                self.settings.grace(),
            );
            let task = self.running.attempts.spawn(work);
            self.running.busy[queue] += 1;
            self.running.active.insert(task.id(), Active { reserved, queue, control });
        }
    }

    fn busy_in_all(&self) -> usize {
        self.running.busy.iter().sum()
    }

    /// Takes the verdict of an attempt and frees its slot.
    fn ended(&mut self, ended: Result<(Id, Finish), JoinError>) {
        let (id, finish) = match ended {
            Ok((id, finish)) => (id, finish),
            // Only a task that was dropped ends so; what it did is not known, so it is given back.
            Err(end) => (end.id(), Finish { verdict: Verdict::Released, ghost: None }),
        };
        let Some(Active { reserved, queue, control }) = self.running.active.remove(&id) else { return };
        match finish.ghost {
            Some(ghost) => self.haunt(ghost, queue),
            None => self.running.busy[queue] -= 1,
        }
        self.decide(reserved, finish.verdict, control);
        (0..self.settings.queues.len()).for_each(|queue| self.start(queue));
    }

    fn decide(&mut self, reserved: Reserved, verdict: Verdict, control: Arc<Control>) {
        let policy = self.handlers.policy(&reserved.job().kind);
        let settlement = reserved.settle(verdict, &policy, self.tenure.chance().fraction());
        self.running.decided.push((settlement, control));
    }

    /// A thread that does not stop keeps its slot: the limit is about what really runs.
    fn haunt(&mut self, mut ghost: Blocking, queue: usize) {
        tracing::warn!(queue = %self.settings.queues[queue].name, "a blocking handler did not stop when told; its slot stays taken until it does");
        self.running.tally.deaf += 1;
        self.running.ghosts.spawn(async move {
            let _ = ghost.done().await;
            queue
        });
    }

    fn ghost_gone(&mut self, queue: usize) {
        if let Some(busy) = self.running.busy.get_mut(queue) {
            *busy = busy.saturating_sub(1);
            self.start(queue);
        }
    }

    /// Takes what else has ended by now, and goes on as long as each chance for others brings more:
    /// attempts that end together are settled together.
    async fn gather(&mut self) {
        let mut before = 0;
        while self.running.decided.len() > before && self.running.decided.len() < limits::RESERVE_JOBS {
            before = self.running.decided.len();
            tokio::task::yield_now().await;
            while let Some(ended) = self.running.attempts.try_join_next_with_id() {
                self.ended(ended);
            }
        }
    }

    /// Waits while the store is away; attempts go on.
    async fn rest(&mut self, pause: Duration, stop: &CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.tenure.pause_for(pause) => {}
        }
    }

    /// Stops: gives back what has not begun, waits for the rest, tells it to stop, drops it; settles
    /// all. Each part is bounded by its time; the caller bounds the whole.
    pub(crate) async fn stop(&mut self) {
        for queue in 0..self.running.ahead.len() {
            for Waiting { reserved, control } in std::mem::take(&mut self.running.ahead[queue]) {
                self.decide(reserved, Verdict::Released, control);
            }
        }
        self.settle_pending().await;
        self.finish_within(self.settings.finish_within).await;
        self.holding.stop_all(&Stopping::HostStops);
        self.finish_within(self.settings.stop_grace + Duration::from_millis(500)).await;
        self.running.attempts.abort_all();
        while let Some(ended) = self.running.attempts.join_next_with_id().await {
            self.ended(ended);
        }
        self.settle_pending().await;
        self.running.tally.unsettled = self.running.decided.len();
    }

    /// Settles attempts as they end, until none is left or the time is over.
    async fn finish_within(&mut self, span: Duration) {
        let until = self.tenure.clock().moment().after(span);
        while !self.running.attempts.is_empty() {
            let left = until.since(self.tenure.clock().moment());
            let ended = tokio::select! {
                biased;
                ended = self.running.attempts.join_next_with_id() => ended,
                () = self.tenure.pause_for(left) => return,
            };
            if let Some(ended) = ended {
                self.ended(ended);
                self.gather().await;
            }
            self.settle_pending().await;
        }
    }

    /// Settles what is decided; what cannot be settled now stays for the next time.
    async fn settle_pending(&mut self) {
        if self.running.decided.is_empty() {
            return;
        }
        if let Err(fault) = self.turn(None, &mut Look::new(0)).await {
            tracing::warn!(%fault, jobs = self.running.decided.len(), "settling while stopping did not work");
        }
    }
}

impl Stopped {
    fn count(&mut self, settlement: &Settlement, settled: Settled) {
        match settled {
            Settled::Done(_) | Settled::Repeated => self.settled += 1,
            Settled::Fenced => {
                self.fenced += 1;
                tracing::warn!(job = %settlement.id(), fence = %settlement.fence(), "the job was taken from this host; what it did was refused");
            }
            Settled::Gone => {
                self.fenced += 1;
                tracing::warn!(job = %settlement.id(), "the job was removed while this host ran it");
            }
        }
    }
}
