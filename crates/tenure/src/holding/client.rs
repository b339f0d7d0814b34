//! The line to the keeper.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::LeaseRefusal;
use tenure_store::Fault;
use tokio::sync::{mpsc, oneshot};

use super::book::{Ask, Number};
use super::held::Held;
use super::tally::LeaseTally;
use crate::Error;

/// What a keeper is told.
pub(super) enum Command {
    /// Somebody wants a lease.
    Ask { number: Number, ask: Box<Ask>, asker: Asker },
    /// Whoever wanted it is gone.
    Abandon(Number),
    /// Nobody holds it any more.
    LetGo(Number),
    /// Somebody wants to hear what came of giving it back.
    Listen(Number, oneshot::Sender<Result<(), Error>>),
    /// All is to end; somebody wants to hear when it has.
    Close(oneshot::Sender<()>),
}

/// Who waits for the answer to an ask.
pub(super) struct Asker {
    pub(super) answer: oneshot::Sender<Answer>,
    /// With it what is granted is held.
    pub(super) client: Client,
    pub(super) grace: Duration,
}

/// What came of an ask.
pub(super) enum Answer {
    Held(Held),
    Refused(LeaseRefusal),
    /// The time to wait is over; what came of the last try.
    Over(Option<Result<LeaseRefusal, Fault>>),
    Failed(Error),
}

/// A line to the keeper. It keeps as long as one is there.
#[derive(Clone)]
pub(super) struct Client {
    line: mpsc::UnboundedSender<Command>,
    shared: Arc<Shared>,
}

/// What a keeper and its clients both see.
#[derive(Debug, Default)]
pub(super) struct Shared {
    last: AtomicU64,
    tally: Mutex<LeaseTally>,
}

impl Client {
    /// A line and its other end. What travels on it is bounded by how many leases a keeper takes.
    pub(super) fn pair() -> (Self, mpsc::UnboundedReceiver<Command>, Arc<Shared>) {
        let (line, end) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::default());
        (Self { line, shared: Arc::clone(&shared) }, end, shared)
    }

    /// Whether the keeper still listens.
    pub(super) fn is_open(&self) -> bool {
        !self.line.is_closed()
    }

    pub(super) fn tally(&self) -> LeaseTally {
        self.shared.tally()
    }

    /// Asks for a lease.
    pub(super) async fn ask(&self, ask: Ask, grace: Duration) -> Answer {
        let number = self.shared.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, answered) = oneshot::channel();
        let asker = Asker { answer, client: self.clone(), grace };
        self.tell(Command::Ask { number, ask: Box::new(ask), asker });
        let mut asking = Asking { client: self, number, is_answered: false };
        let answer = answered.await;
        asking.is_answered = true;
        answer.unwrap_or_else(|_| Answer::Failed(gone().into()))
    }

    /// Lets go of a lease.
    pub(super) fn let_go(&self, number: Number) {
        self.tell(Command::LetGo(number));
    }

    /// Answers, when the lease was let go of, what came of giving it back.
    pub(super) fn listen(&self, number: Number) -> impl Future<Output = Result<(), Error>> + use<> {
        let (told, hears) = oneshot::channel();
        self.tell(Command::Listen(number, told));
        async { hears.await.unwrap_or_else(|_| Err(gone().into())) }
    }

    /// Ends all that is held. Resolves when the last of it was given back.
    pub(super) async fn close(&self) {
        let (done, ended) = oneshot::channel();
        self.tell(Command::Close(done));
        let _ = ended.await;
    }

    /// A keeper that is not there any more needs not be told: what it kept lapses.
    fn tell(&self, command: Command) {
        let _ = self.line.send(command);
    }
}

fn gone() -> Fault {
    Fault::Unknown("the lease thread of this program has ended".to_owned())
}

/// Somebody is waiting for an answer. Dropped before it came, the ask is withdrawn.
struct Asking<'a> {
    client: &'a Client,
    number: Number,
    is_answered: bool,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.client.tell(Command::Abandon(self.number));
        }
    }
}

impl Shared {
    pub(super) fn tally(&self) -> LeaseTally {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_tally(&self, tally: LeaseTally) {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner) = tally;
    }
}
