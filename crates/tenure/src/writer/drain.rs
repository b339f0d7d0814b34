//! The writer at work: one loop that settles what was written, takes what comes next, and writes it.
//!
//! ```text
//!   look: is a message in other hands? ──yes──▶ wait until they open, or until it lapses
//!     │ no                                              │
//!     ▼                                                 │
//!   settle the last batch, reserve the next one ◀───────┘
//!     ▼
//!   look: does nothing else come before it? ──no──▶ give back what comes too soon
//!     ▼ yes
//!   write it; a message that fails stays the first
//! ```
//! A host that has lost the lease may still be on its way into any of these steps. What it reserves keeps
//! this one from going on, until it gives it back or its time there is over; what it settles late under a
//! present fence counts; what it writes elsewhere under its own fence is refused.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{HostId, Reserved, StateName, limits};
use tenure_store::{Fault, Filter, Kinds, Order, Page, PageAsk, Reserve, Turn, Want};
use tokio::sync::broadcast::error::RecvError;

use super::batch::Batch;
use super::handle::{Left, give_back, handle};
use super::message::Open;
use super::names::Names;
use super::order::{Look, is_in_line};
use super::pending::{Pending, Written};
use super::settings::Writer;
use crate::worker::{Backoff, Holding, Lease};
use crate::{CutShort, Duty, Failed};

/// Hints are answered by a look at most so often.
const LOOKS_APART: Duration = Duration::from_millis(20);

/// What a writer needs to write.
pub(crate) struct Drain<App> {
    pub(crate) writer: Writer,
    pub(crate) names: Names,
    pub(crate) open: Open<App>,
    pub(crate) host: HostId,
    pub(crate) holding: Arc<Holding>,
    pub(crate) lease: Lease,
    pub(crate) poll: Duration,
    pub(crate) grace: Duration,
}

/// Why a round of the loop ended early.
enum Cut {
    /// It shall stop.
    Stop,
    /// The store could not answer.
    Fault(Fault),
}

impl From<CutShort> for Cut {
    fn from(_: CutShort) -> Self {
        Self::Stop
    }
}

impl From<Fault> for Cut {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Where the writer stands.
struct Pen {
    pending: Pending,
    /// Every message up to this one had ended when it was last looked.
    ended: u64,
    /// So many messages are taken one by one.
    one_by_one: usize,
    /// Whether a message may be in other hands.
    may_wait: bool,
    /// Times in a row that what was handed out did not come next.
    vain: u32,
}

impl<App: Send + Sync + 'static> Drain<App> {
    /// Writes until it shall stop.
    pub(crate) async fn write(&self, duty: Duty<App>) -> Result<(), Failed> {
        let pending = Pending::new(duty.tenure().clone(), Arc::clone(&self.holding));
        let mut pen = Pen { pending, ended: 0, one_by_one: 0, may_wait: true, vain: 0 };
        let mut faults = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        loop {
            let pause = match self.round(&duty, &mut pen).await {
                Ok(()) => {
                    faults.reset();
                    continue;
                }
                Err(Cut::Stop) => break,
                Err(Cut::Fault(fault)) if fault.is_passing() => {
                    faults.next(duty.tenure().chance(), "writing", &fault)
                }
                Err(Cut::Fault(fault)) => return Err(fault.into()),
            };
            if duty.sleep(pause).await.is_err() {
                break;
            }
        }
        // What was decided is worth a try; if it fails, the messages lapse.
        let _ = self.settle(&duty, &mut pen).await;
        Ok(())
    }

    async fn round(&self, duty: &Duty<App>, pen: &mut Pen) -> Result<(), Cut> {
        if duty.stopping().is_some() {
            return Err(Cut::Stop);
        }
        if pen.may_wait {
            self.settle(duty, pen).await?;
            self.wait_for_others(duty, pen).await?;
            pen.may_wait = false;
        }
        // Whoever sends while this asks is heard behind it.
        let mut heard = Heard::new(duty, &self.names);
        let batch = self.turn(duty, pen).await?;
        if batch.len() == 0 {
            return self.rest(duty, heard.something(), self.poll).await;
        }
        let batch = self.check(duty, pen, batch).await?;
        if batch.len() == 0 {
            return self.wait_in_vain(duty, pen).await;
        }
        let left = handle(&self.writer, &self.open, (duty, self.grace), batch, &mut pen.pending).await;
        match left {
            Left::Ended(messages) => pen.one_by_one = pen.one_by_one.saturating_sub(messages),
            Left::OneByOne(messages) => pen.one_by_one = messages,
            Left::Rest(span) => {
                self.settle(duty, pen).await?;
                duty.sleep(span).await?;
            }
            Left::Pause => self.pause(duty, pen).await?,
        }
        Ok(())
    }

    /// Waits until no message is in other hands: of a host that wrote before, or of a request of this one
    /// whose reply was lost.
    async fn wait_for_others(&self, duty: &Duty<App>, pen: &mut Pen) -> Result<(), Cut> {
        let states = vec![StateName::Queued, StateName::Blocked, StateName::Running];
        loop {
            let mut heard = Heard::new(duty, &self.names);
            let mut after = None;
            let first = loop {
                let filter = Filter { states: states.clone(), ..self.filter() };
                let ask =
                    PageAsk { filter, order: Order::OldestFirst, after, at_most: 100, ..PageAsk::default() };
                // Messages are in order: one that cannot be read stops those behind it.
                let page = duty.tenure().store().jobs(ask).await?.complete()?;
                let first = page.jobs.into_iter().find(is_in_line);
                after = page.next;
                if first.is_some() || after.is_none() {
                    break first;
                }
            };
            let Some(first) = first else { return Ok(()) };
            pen.ended = pen.ended.max(first.seq.saturating_sub(1));
            let tenure_core::State::Running { until, .. } = first.state else { return Ok(()) };
            let now = duty.tenure().now();
            if until <= now {
                return Ok(());
            }
            self.rest(duty, heard.something(), until.since(now).min(self.poll)).await?;
        }
    }

    /// Rests a little, and longer each time. Until when a message is in other hands is the store's time: a
    /// host whose clock is ahead takes it for over, and would look again at once, again and again.
    async fn wait_in_vain(&self, duty: &Duty<App>, pen: &mut Pen) -> Result<(), Cut> {
        self.settle(duty, pen).await?;
        let pause = LOOKS_APART.saturating_mul(1 << pen.vain.min(16)).min(self.poll);
        Ok(duty.sleep(pause).await?)
    }

    /// Settles what was decided and reserves what comes next, in one round trip.
    async fn turn(&self, duty: &Duty<App>, pen: &mut Pen) -> Result<Batch, Cut> {
        let most = if pen.one_by_one > 0 { 1 } else { self.writer.batch };
        let kinds = Kinds::Only([self.names.kind.clone()].into());
        let want = Want { queue: self.names.queue.clone(), kinds, at_most: most };
        let ask = Reserve { holder: self.host, ttl: self.lease.ttl(), wants: vec![want], at_most: most };
        let clock = duty.tenure().clock();
        let sent = clock.moment();
        let Turn { settled, reservation } =
            duty.tenure().store().settle(pen.pending.settlements(), Some(ask)).await?;
        duty.tenure().heap().granted(reservation.jobs.iter().map(Reserved::job));
        let batch = Batch::hold(reservation.jobs, (clock, self.lease, sent), &self.holding);
        pen.note(&settled);
        Ok(batch)
    }

    /// Settles what was decided.
    async fn settle(&self, duty: &Duty<App>, pen: &mut Pen) -> Result<(), Cut> {
        if !pen.pending.is_empty() {
            let turn = duty.tenure().store().settle(pen.pending.settlements(), None).await?;
            pen.note(&turn.settled);
        }
        Ok(())
    }

    /// Gives back what does not come next.
    async fn check(&self, duty: &Duty<App>, pen: &mut Pen, mut batch: Batch) -> Result<Batch, Cut> {
        let mine = batch.in_line();
        let free = batch.len() - mine.len();
        let mut look = Look::new(&mine, pen.ended);
        let mut after = Some(tenure_store::Cursor::behind(pen.ended));
        while !look.done {
            let at_most = (mine.len() + 1).min(limits::PAGE_JOBS);
            let ask = PageAsk {
                filter: self.filter(),
                order: Order::OldestFirst,
                after,
                at_most,
                ..PageAsk::default()
            };
            let page = match duty.tenure().store().jobs(ask).await.and_then(Page::complete) {
                Ok(page) => page,
                Err(fault) => {
                    give_back(batch, &mut pen.pending);
                    pen.may_wait = true;
                    return Err(fault.into());
                }
            };
            look.at(&page.jobs);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let unseen = cfg!(mutant = "writer-does-not-look");
        let next = if unseen { batch.len() } else { free + look.intact };
        let too_soon = batch.split_off(next);
        pen.vain = if batch.len() > 0 { 0 } else { pen.vain.saturating_add(1) };
        if too_soon.len() > 0 {
            give_back(too_soon, &mut pen.pending);
            pen.may_wait = true;
        }
        Ok(batch)
    }

    /// Has nothing more written until a person has looked.
    async fn pause(&self, duty: &Duty<App>, pen: &mut Pen) -> Result<(), Cut> {
        tracing::error!(writer = self.writer.name, "cannot write a message; the mailbox is now paused");
        let paused = duty.tenure().store().set_paused(&self.names.queue, true).await;
        self.settle(duty, pen).await?;
        if let Err(fault) = paused {
            // The message comes again, and with it the pause.
            duty.sleep(self.poll).await?;
            return Err(fault.into());
        }
        Ok(())
    }

    async fn rest(
        &self,
        duty: &Duty<App>,
        heard: impl Future<Output = ()>,
        most: Duration,
    ) -> Result<(), Cut> {
        tokio::select! {
            biased;
            _ = duty.stopped() => Err(Cut::Stop),
            () = heard => Ok(duty.sleep(LOOKS_APART.min(most)).await?),
            () = duty.tenure().pause_for(most) => Ok(()),
        }
    }

    fn filter(&self) -> Filter {
        let (queues, kinds) = (vec![self.names.queue.clone()], vec![self.names.kind.clone()]);
        Filter { queues, kinds, ..Filter::default() }
    }
}

impl Pen {
    fn note(&mut self, settled: &[tenure_store::Settled]) {
        match self.pending.written(settled) {
            Written::Until(seq) => self.ended = self.ended.max(seq),
            Written::TakenAway => self.may_wait = true,
        }
    }
}

/// Listens whether something may have come into the mailbox.
struct Heard {
    events: tokio::sync::broadcast::Receiver<Arc<tenure_store::Event>>,
    others: tokio::sync::broadcast::Receiver<()>,
    queue: tenure_core::QueueName,
}

impl Heard {
    fn new<App>(duty: &Duty<App>, names: &Names) -> Self {
        let store = duty.tenure().store();
        Self { events: store.events(), others: store.others(), queue: names.queue.clone() }
    }

    async fn something(&mut self) {
        loop {
            tokio::select! {
                biased;
                event = self.events.recv() => match event {
                    Ok(event) if event.queue == self.queue => return,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return,
                    Err(RecvError::Closed) => std::future::pending().await,
                },
                _ = self.others.recv() => return,
            }
        }
    }
}
