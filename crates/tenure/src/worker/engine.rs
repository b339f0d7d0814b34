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
//! While the round trip is under way attempts go on and end, and what was reserved ahead begins in the slots that they
//! free; the next one takes all that ended meanwhile. That is the whole batching: a lone job goes at once, a flood goes
//! in batches, and the store and the attempts need not wait for each other.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tenure_core::{HostId, Kind, Reserved, Verdict, limits};
use tenure_store::{Chance, Fault, Held, Kinds, Moment, Reserve, Settled};
use tokio::sync::{Notify, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::attempt::{Finish, attempt, verdict_before_start};
use super::backoff::Backoff;
use super::blocking::Blocking;
use super::control::Control;
use super::failures;
use super::handlers::Handlers;
use super::holding::Holding;
use super::lease::Lease;
use super::look::Look;
use super::plan::{Room, kinds_but, wants};
use super::reports::Reports;
use super::settings::Settings;
use super::stop::Stopped;
use super::under_way::{Answered, Decided, Parked, UnderWay};
use crate::{Run, Tenure, WorkerCommand};

pub(crate) struct Engine<App> {
    pub(crate) tenure: Tenure,
    pub(crate) app: Arc<App>,
    pub(crate) handlers: Arc<Handlers<App>>,
    pub(crate) settings: Settings,
    pub(crate) kinds: Kinds,
    /// Those of them that are left to others at present.
    pub(crate) left: watch::Receiver<BTreeSet<Kind>>,
    /// What this host is told to do through the store.
    pub(crate) told: watch::Receiver<WorkerCommand>,
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
    pub(super) attempts: JoinSet<Finish>,
    active: HashMap<Id, Active>,
    ghosts: JoinSet<usize>,
    /// Reserved ahead, for each queue; started when a slot frees.
    pub(super) ahead: Vec<VecDeque<Waiting>>,
    busy: Vec<usize>,
    pub(super) decided: Vec<Decided>,
    /// The earlier one first; see [`Engine::is_worth_a_trip`].
    pub(super) under_way: Vec<UnderWay>,
    /// The claim for the next notification; nothing is under way then.
    parked: Option<Parked>,
    /// How often the store has said that something may be due, as far as this host has heard.
    calls: u64,
    /// Whether nothing begins any more.
    pub(super) is_stopping: bool,
    pub(crate) tally: Stopped,
}

struct Active {
    reserved: Reserved,
    queue: usize,
    control: Arc<Control>,
}

pub(super) struct Waiting {
    pub(super) reserved: Reserved,
    pub(super) control: Arc<Control>,
}

/// What woke the engine.
enum Woken {
    Answered(usize, Result<Answered, Fault>),
    Ended(Result<(Id, Finish), JoinError>),
    GhostGone(usize),
    Called,
    /// It is to take other jobs than it has asked for.
    ToldOtherwise,
    MaybeDue,
    Stop,
}

impl<App: Send + Sync + 'static> Engine<App> {
    /// Works until told to stop or until the store is beyond use.
    pub(crate) async fn work(&mut self, stop: &CancellationToken) -> Result<(), Fault> {
        let mut due = self.tenure.store().due();
        if self.settings.queues.is_empty() {
            pass_calls_on(&self.calls, due, stop).await;
            return Ok(());
        }
        self.running.ahead.resize_with(self.settings.queues.len(), VecDeque::new);
        self.running.busy.resize(self.settings.queues.len(), 0);
        self.running.calls = *due.borrow_and_update();
        let mut faults = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        let mut look = Look::new(self.settings.queues.len());
        loop {
            if stop.is_cancelled() {
                return Ok(());
            }
            self.take_back();
            // A call that comes after this is not missed.
            let calls = *due.borrow_and_update();
            if calls != self.running.calls {
                self.called(calls, &mut look);
            }
            self.set_out(&look);
            let is_idle = self.running.under_way.is_empty();
            let poll = self.settings.poll.mul_f64(0.9 + 0.2 * self.tenure.chance().fraction());
            let pause = look.pause(poll, self.tenure.clock().moment());
            let woken = tokio::select! {
                biased;
                () = stop.cancelled() => Woken::Stop,
                Some((which, answer)) = first_answer(&mut self.running.under_way) => Woken::Answered(which, answer),
                Some(ended) = self.running.attempts.join_next_with_id() => Woken::Ended(ended),
                Some(ghost) = self.running.ghosts.join_next() => Woken::GhostGone(ghost.unwrap_or(usize::MAX)),
                _ = due.changed() => Woken::Called,
                () = changed(&mut self.told) => Woken::ToldOtherwise,
                () = changed(&mut self.left) => Woken::ToldOtherwise,
                () = self.tenure.pause_for(pause), if is_idle => Woken::MaybeDue,
            };
            match woken {
                Woken::Stop => return Ok(()),
                Woken::Answered(which, answer) => match self.arrive(which, answer, &mut look) {
                    Ok(()) => faults.reset(),
                    Err(fault) if fault.is_passing() => {
                        let pause = faults.next(self.tenure.chance(), "settling and claiming jobs", &fault);
                        self.rest(pause, stop).await;
                    }
                    Err(fault) => return Err(fault),
                },
                // What was left is taken back, and all that there is to know is looked at, above.
                Woken::Called | Woken::ToldOtherwise => {}
                Woken::MaybeDue => look.hint(),
                Woken::GhostGone(queue) => self.ghost_gone(queue),
                Woken::Ended(ended) => {
                    self.ended(ended);
                    if is_idle {
                        self.gather().await;
                    } else {
                        self.collect();
                    }
                }
            }
        }
    }

    /// Something may be due, in a queue or for a timer.
    fn called(&mut self, calls: u64, look: &mut Look) {
        self.calls.notify_one();
        self.running.calls = calls;
        look.hint();
    }

    /// Takes back what was left with the store: it is asked for anew, as it is then, or has been asked for meanwhile.
    pub(super) fn take_back(&mut self) {
        self.running.under_way.extend(self.running.parked.take().and_then(Parked::take_back));
    }

    /// Sets out on a round trip if there is a reason: settles what has been decided and reserves for the room there is. If there
    /// is none, it is left with the store what will be asked for when there is.
    fn set_out(&mut self, look: &Look) {
        let ask = self.ask(look.worth_filling(self.room()), self.tenure.chance());
        if self.is_worth_a_trip(ask.as_ref()) {
            self.send(ask);
        } else if self.running.under_way.is_empty() && self.is_at_rest() {
            // Most of what is left is taken back, and shall change nothing that is drawn for anything else.
            let ask = self.ask(self.room(), &Chance::seeded(self.running.calls));
            self.running.parked = ask.map(|ask| Parked::with(self.tenure.store(), ask));
        }
    }

    /// Whether nothing runs: a handler that blocks the runtime would keep what is granted meanwhile from beginning.
    fn is_at_rest(&self) -> bool {
        self.running.attempts.is_empty() && self.running.ghosts.is_empty()
    }

    /// While the answer to one is taken in, the store may have the next to do already, if there is much to do. Whatever is
    /// little waits for the answer, and goes with what else there is by then.
    fn is_worth_a_trip(&self, ask: Option<&Reserve>) -> bool {
        let much = self.enough().div_ceil(2);
        match self.running.under_way.len() {
            0 => ask.is_some() || !self.running.decided.is_empty(),
            1 => {
                self.settings.prefetch > 0
                    && self.running.decided.len() >= much
                    && ask.is_some_and(|ask| ask.at_most >= much)
            }
            _ => false,
        }
    }

    pub(super) fn send(&mut self, ask: Option<Reserve>) {
        let (store, clock) = (Arc::clone(self.tenure.store()), Arc::clone(self.tenure.clock()));
        let with = (store, clock, Arc::clone(&self.reports));
        let settling = std::mem::take(&mut self.running.decided);
        let calls = self.running.calls;
        self.running.under_way.push(UnderWay::new(with, settling, ask, calls));
    }

    /// Takes what the store answered to a round trip. If it is a fault, what was to be settled still is.
    pub(super) fn arrive(
        &mut self,
        which: usize,
        answer: Result<Answered, Fault>,
        look: &mut Look,
    ) -> Result<(), Fault> {
        let UnderWay { mut settling, asked, calls, .. } = self.running.under_way.remove(which);
        let Answered { sent, mut turn } = match answer {
            Ok(answered) => answered,
            Err(fault) => {
                settling.iter_mut().for_each(|decided| decided.is_sent = true);
                settling.append(&mut self.running.decided);
                self.running.decided = settling;
                return Err(fault);
            }
        };
        self.holding.remove(settling.iter().map(|decided| &decided.control));
        for (decided, settled) in settling.iter_mut().zip(&mut turn.settled) {
            decided.take_in(settled);
        }
        let now = self.tenure.now();
        for (Decided { settlement, job, .. }, settled) in settling.iter().zip(&turn.settled) {
            self.running.tally.count(*settled);
            failures::log(job, || self.handlers.policy(&job.kind), (settlement, *settled), now);
        }
        let settled = settling.iter().zip(&turn.settled);
        let settled = settled.map(|(decided, settled)| (&*decided.job, &decided.settlement, *settled));
        self.tenure.heap().settled(settled, now);
        let reservation = turn.reservation;
        self.tenure.heap().granted(reservation.jobs.iter().map(Reserved::job));
        if let Some((at_most, wants)) = asked {
            look.answered(&self.settings.queues, &wants, at_most, &reservation.jobs);
            // It counts from before the store answered: a reply that is late makes nothing late that comes due.
            look.expect_next(reservation.due_in, reservation.jobs.len(), sent);
            // What it says of empty queues may be older than the call.
            if calls < self.running.calls {
                look.hint();
            }
        }
        let late = cfg!(mutant = "deadline-from-receipt");
        self.take(reservation.jobs, if late { self.tenure.clock().moment() } else { sent });
        Ok(())
    }

    /// What to ask for to fill this room; `None` if there is none, or it is told to take no more jobs.
    fn ask(&self, room: Room, chance: &Chance) -> Option<Reserve> {
        if *self.told.borrow() != WorkerCommand::Run {
            return None;
        }
        let kinds = kinds_but(&self.kinds, &self.left.borrow())?;
        let wants = wants(&self.settings, &kinds, &room, chance);
        let at_most =
            wants.iter().map(|want| want.at_most).sum::<usize>().min(room.in_all).min(limits::RESERVE_JOBS);
        (!wants.is_empty()).then(|| Reserve { holder: self.host, ttl: self.lease.ttl(), wants, at_most })
    }

    fn room(&self) -> Room {
        let asked = || self.running.under_way.iter().filter_map(|trip| trip.asked.as_ref());
        let held = |index: usize| self.running.busy[index] + self.running.ahead[index].len();
        let taken = |index: usize| {
            let name = &self.settings.queues[index].name;
            let wanted = asked().flat_map(|(_, wants)| wants).filter(|want| want.queue == *name);
            held(index) + wanted.map(|want| want.at_most).sum::<usize>()
        };
        let queues = 0..self.settings.queues.len();
        let in_all =
            queues.clone().map(held).sum::<usize>() + asked().map(|(at_most, _)| at_most).sum::<usize>();
        let ahead = self.settings.prefetch;
        let of = |index: usize| (self.settings.queues[index].slots + ahead).saturating_sub(taken(index));
        Room {
            of_queue: queues.map(of).collect(),
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
        while !self.running.is_stopping
            && self.running.busy[queue] < self.settings.queues[queue].slots
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
                reserved.shared(),
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
    pub(super) fn ended(&mut self, ended: Result<(Id, Finish), JoinError>) {
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

    pub(super) fn decide(&mut self, reserved: Reserved, verdict: Verdict, control: Arc<Control>) {
        let policy = self.handlers.policy(&reserved.job().kind);
        let job = reserved.shared();
        let settlement = reserved.settle(verdict, &policy, self.tenure.chance().fraction());
        self.running.decided.push(Decided { settlement, control, job, is_sent: false });
    }

    /// A thread that does not stop keeps its slot: the limit is about what really runs.
    fn haunt(&mut self, mut ghost: Blocking, queue: usize) {
        tracing::warn!(queue = %self.settings.queues[queue].name, "a blocking handler did not stop in time; its slot stays occupied until it does");
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
    pub(super) async fn gather(&mut self) {
        let (mut before, enough) = (0, self.enough());
        while self.running.decided.len() > before && self.running.decided.len() < enough {
            before = self.running.decided.len();
            tokio::task::yield_now().await;
            while self.running.decided.len() < enough
                && let Some(ended) = self.running.attempts.try_join_next_with_id()
            {
                self.ended(ended);
            }
        }
    }

    /// Takes what else has ended by now.
    fn collect(&mut self) {
        while let Some(ended) = self.running.attempts.try_join_next_with_id() {
            self.ended(ended);
        }
    }

    /// So many are settled together though more will end soon: what was reserved ahead runs while the store is asked.
    fn enough(&self) -> usize {
        let slots: usize = self.settings.queues.iter().map(|served| served.slots).sum();
        slots.min(self.settings.all_slots).max(self.settings.prefetch).min(limits::RESERVE_JOBS)
    }

    /// Waits while the store is away; attempts go on.
    async fn rest(&mut self, pause: Duration, stop: &CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.tenure.pause_for(pause) => {}
        }
    }
}

/// Waits until it is told something else; for ever if nobody can tell it anything any more.
async fn changed<T>(told: &mut watch::Receiver<T>) {
    if told.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Only what runs beside: there is nothing to look for.
async fn pass_calls_on(calls: &Notify, mut due: watch::Receiver<u64>, stop: &CancellationToken) {
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            called = due.changed() => match called {
                Ok(()) => calls.notify_one(),
                // Nobody calls any more.
                Err(_) => return stop.cancelled().await,
            },
        }
    }
}

/// The first answer to the round trips that are under way, and which one it is to; `None` if none is.
pub(super) async fn first_answer(under_way: &mut [UnderWay]) -> Option<(usize, Result<Answered, Fault>)> {
    if under_way.is_empty() {
        return None;
    }
    std::future::poll_fn(|context| {
        for (which, trip) in under_way.iter_mut().enumerate() {
            if let Poll::Ready(answer) = trip.answer.as_mut().poll(context) {
                return Poll::Ready(Some((which, answer)));
            }
        }
        Poll::Pending
    })
    .await
}

impl Stopped {
    fn count(&mut self, settled: Settled) {
        match settled {
            Settled::Done(_) | Settled::Repeated => self.settled += 1,
            Settled::Fenced | Settled::Gone => self.fenced += 1,
        }
    }
}
