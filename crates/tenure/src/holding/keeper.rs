//! The keeper: does what its book says.
//!
//! In a real program it runs on a thread of its own with its own small runtime, so that whatever blocks every
//! other thread costs no lease. One batched request renews all that this program holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Invalid, LeaseId, LeaseName, LeaseOutcome, limits};
use tenure_store::{Chance, Clock, Fault, LeaseWish, Store};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{Id, JoinError, JoinSet};

use super::Loss;
use super::book::{Book, Gone, Input, Now, Number, Output};
use super::client::{Answer, Asker, Command, Shared};
use super::grip::{Belief, Grip};
use super::hand::Hand;
use super::held::Held;
use crate::Error;

/// See the top of this file.
pub(super) struct Keeper {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    book: Book,
    line: mpsc::UnboundedReceiver<Command>,
    shared: Arc<Shared>,
    kept: BTreeMap<Number, Kept>,
    requests: JoinSet<Result<Vec<LeaseOutcome>, Fault>>,
    /// Which request is whose task. There are few.
    under_way: Vec<(Id, u64)>,
    closing: Vec<oneshot::Sender<()>>,
}

/// How the task of a request ended.
type Ended = Result<(Id, Result<Vec<LeaseOutcome>, Fault>), JoinError>;

/// What a number in the book stands for here.
struct Kept {
    name: LeaseName,
    id: LeaseId,
    /// Who waits for the answer to the ask.
    asker: Option<Asker>,
    grip: Option<Arc<Grip>>,
    /// Who waits to hear what came of giving it back.
    listeners: Vec<oneshot::Sender<Result<(), Error>>>,
}

/// What the keeper listens to beside its line.
struct Ears {
    freed: watch::Receiver<u64>,
    asked: watch::Receiver<u64>,
    /// Whether to be woken by the news that somebody was asked to stop. Where time is simulated others wait
    /// for that, too, and the order in which several are woken is left to chance: there it is looked for.
    woken_by_asked: bool,
}

/// What woke the keeper.
enum Woken {
    Told(Option<Command>),
    Answered(Ended),
    Freed,
    Asked,
    Time,
}

impl Keeper {
    pub(super) fn new(
        store: Arc<dyn Store>,
        chance: Chance,
        line: mpsc::UnboundedReceiver<Command>,
        shared: Arc<Shared>,
    ) -> Self {
        let (clock, book) = (store.clock(), Book::new(chance));
        let (requests, under_way) = (JoinSet::new(), Vec::new());
        let (kept, closing) = (BTreeMap::new(), Vec::new());
        Self { store, clock, book, line, shared, kept, requests, under_way, closing }
    }

    /// Keeps until nobody is there any more and all is given back.
    pub(super) async fn keep(mut self, woken_by_asked: bool) {
        let mut ears = Ears { freed: self.store.freed(), asked: self.store.asked(), woken_by_asked };
        let mut is_alone = false;
        loop {
            self.step(Input::Tick);
            self.shared.set_tally(self.book.tally());
            if self.book.is_empty() {
                for done in self.closing.drain(..) {
                    let _ = done.send(());
                }
                if is_alone {
                    return;
                }
            }
            match self.wait(&mut ears, is_alone).await {
                Woken::Told(Some(command)) => self.told(command),
                Woken::Told(None) => {
                    is_alone = true;
                    self.step(Input::Alone);
                }
                Woken::Answered(ended) => self.answered(ended),
                Woken::Freed => self.step(Input::Freed),
                Woken::Asked => self.step(Input::Broken),
                Woken::Time => {}
            }
            // What else has happened by now is decided together.
            while let Ok(command) = self.line.try_recv() {
                self.told(command);
            }
            while let Some(done) = self.requests.try_join_next_with_id() {
                self.answered(done);
            }
            if !woken_by_asked && ears.asked.has_changed().unwrap_or(false) {
                ears.asked.mark_unchanged();
                self.step(Input::Broken);
            }
        }
    }

    async fn wait(&mut self, ears: &mut Ears, is_alone: bool) -> Woken {
        let now = self.clock.moment();
        let nap = self.book.wakes(now).map(|moment| moment.since(now));
        let has_waiters = self.book.has_waiters();
        tokio::select! {
            biased;
            command = self.line.recv(), if !is_alone => Woken::Told(command),
            Some(ended) = self.requests.join_next_with_id() => Woken::Answered(ended),
            Ok(()) = ears.freed.changed(), if has_waiters => Woken::Freed,
            Ok(()) = ears.asked.changed(), if ears.woken_by_asked => Woken::Asked,
            () = nap_or_never(&self.clock, nap) => Woken::Time,
        }
    }

    fn told(&mut self, command: Command) {
        match command {
            Command::Ask { number, ask, asker } => {
                let (name, id) = (ask.name.clone(), ask.id);
                let kept = Kept { name, id, asker: Some(asker), grip: None, listeners: Vec::new() };
                self.kept.insert(number, kept);
                self.step(Input::Ask(number, ask));
            }
            Command::Abandon(number) => {
                if let Some(kept) = self.kept.get_mut(&number) {
                    kept.asker = None;
                }
                self.step(Input::Abandon(number));
                // Nobody hears the answer; and its line, kept, would keep this from ever being alone.
                if let Some(kept) = self.kept.get_mut(&number) {
                    kept.asker = None;
                }
                self.forget(number);
            }
            Command::LetGo(number) => self.step(Input::LetGo(number)),
            Command::Listen(number, listener) => {
                if let Some(kept) = self.kept.get_mut(&number) {
                    kept.listeners.push(listener);
                }
            }
            Command::Close(done) => {
                self.closing.push(done);
                self.step(Input::Close);
            }
        }
    }

    fn answered(&mut self, ended: Ended) {
        let (task, answer) =
            ended.unwrap_or_else(|end| (end.id(), Err(Fault::Unknown(format!("the request failed: {end}")))));
        if let Some(place) = self.under_way.iter().position(|(id, _)| *id == task) {
            let (_, request) = self.under_way.swap_remove(place);
            self.step(Input::Answered(request, answer));
        }
    }

    fn step(&mut self, input: Input) {
        let now = Now { moment: self.clock.moment(), time: self.clock.now() };
        let mut news = News::default();
        for output in self.book.step(now, input) {
            self.act(output, &mut news);
        }
        news.tell();
    }

    fn act(&mut self, output: Output, news: &mut News) {
        match output {
            Output::Send { request, wishes, within } => self.send(request, wishes, within),
            Output::Granted { number, fence, until, deadline } => {
                let belief = Belief { deadline, until, doubtful: false };
                let Some(kept) = self.kept.get_mut(&number) else { return };
                let Some(Asker { answer, client, grace }) = kept.asker.take() else { return };
                let what = (kept.name.clone(), kept.id, fence);
                let grip = Arc::new(Grip::new(what, Arc::clone(&self.clock), belief));
                kept.grip = Some(Arc::clone(&grip));
                // If nobody hears of it, it is dropped here, and that lets go of it.
                let _ = answer.send(Answer::Held(Held::new(Hand::new(grip, number, client), grace)));
            }
            Output::Refused { number, refusal } => self.answer(number, Answer::Refused(refusal)),
            Output::Over { number, last } => self.answer(number, Answer::Over(last)),
            Output::Failed { number, fault } => self.answer(number, Answer::Failed(fault.into())),
            Output::Full { number } => {
                let most = limits::HELD_LEASES;
                let allowed = format_args!("at most {most} leases held or requested at once");
                let full = Invalid::new("leases", format_args!("more than {most}"), allowed);
                self.answer(number, Answer::Failed(full.into()));
            }
            Output::Renewed { number, until, deadline } => {
                let Some(grip) = self.grip(number) else { return };
                if let Some(loss) = grip.renewed(Belief { deadline, until, doubtful: false }) {
                    // Somebody looked at the deadline, while the good answer was being read.
                    self.step(Input::Lost(number, loss));
                }
            }
            Output::Doubtful { number, fault } => {
                let Some(grip) = self.grip(number) else { return };
                grip.doubt();
                news.doubtful.push(format!("{} (fence {}): {fault}", grip.name, grip.fence));
            }
            Output::Lost { number, loss } => {
                let Some(grip) = self.grip(number) else { return };
                grip.lose(loss);
                if loss != Loss::Closed {
                    news.lost.push(format!("{} (fence {}): {loss}", grip.name, grip.fence));
                }
            }
            Output::Gone { number, end } => self.gone(number, &end),
            Output::ClockStepped { by, ahead } => news.clock = Some((by, ahead)),
        }
    }

    fn send(&mut self, request: u64, wishes: Vec<LeaseWish>, within: Duration) {
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        let task = self.requests.spawn(async move {
            tokio::select! {
                biased;
                answer = store.lease(wishes) => answer,
                () = clock.sleep(within) => Err(Fault::Unknown(format!("no answer within {} ms", within.as_millis()))),
            }
        });
        self.under_way.push((task.id(), request));
    }

    fn grip(&self, number: Number) -> Option<Arc<Grip>> {
        self.kept.get(&number)?.grip.clone()
    }

    fn answer(&mut self, number: Number, answer: Answer) {
        if let Some(asker) = self.kept.get_mut(&number).and_then(|kept| kept.asker.take()) {
            // Whoever is gone has abandoned it.
            let _ = asker.answer.send(answer);
        }
        self.forget(number);
    }

    fn gone(&mut self, number: Number, end: &Gone) {
        let Some(kept) = self.kept.get_mut(&number) else { return };
        for listener in kept.listeners.drain(..) {
            let end = match (end, &kept.grip) {
                (Gone::Lost(loss), Some(grip)) => Err(grip.lost_by(*loss).into()),
                (Gone::Unheard(fault), _) => Err(Error::Fault(fault.clone())),
                (Gone::Free | Gone::Lost(_), _) => Ok(()),
            };
            let _ = listener.send(end);
        }
        self.forget(number);
    }

    /// Forgets what is not in the book any more.
    fn forget(&mut self, number: Number) {
        if !self.book.has(number) {
            self.kept.remove(&number);
        }
    }
}

async fn nap_or_never(clock: &Arc<dyn Clock>, nap: Option<Duration>) {
    match nap {
        Some(nap) => clock.sleep(nap).await,
        None => std::future::pending().await,
    }
}

/// What is told to whoever reads the log, once for all that comes together.
#[derive(Default)]
struct News {
    doubtful: Vec<String>,
    lost: Vec<String>,
    clock: Option<(Duration, bool)>,
}

impl News {
    fn tell(&self) {
        if let Some(first) = self.doubtful.first() {
            tracing::warn!(leases = self.doubtful.len(), first, "failed to renew leases; retrying");
        }
        if let Some(first) = self.lost.first() {
            tracing::error!(
                leases = self.lost.len(),
                first,
                "lost leases; stopping the work that they protect"
            );
        }
        if let Some((by, ahead)) = self.clock {
            let by_ms = by.as_millis();
            tracing::warn!(by_ms, ahead, "the store's clock and this host's clock run differently");
        }
    }
}
