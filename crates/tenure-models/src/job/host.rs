//! A host that wants the job, and its messages.

use super::row::{Own, Saying};
use super::store::{Renewal, Settled};

/// A host. It takes no step unless it likes, and knows of no time: whatever a clock could make it do, it may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Host {
    /// What it works on.
    pub work: Option<Work>,
    /// The request whose answer it waits for.
    pub call: Option<Call>,
    /// A request that is under way though nobody waits for its answer.
    pub late: Option<Request>,
    /// An effect that is under way to the store.
    pub effect: Option<Own>,
}

/// A run of the job on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// The ownership.
    pub own: Own,
    /// What its handler said at its end. The proof of ownership is spent with it: nothing else is ever said.
    pub said: Option<Saying>,
    /// Whether it was told to stop.
    pub told: bool,
}

/// A request and the wait for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    /// What is asked.
    pub request: Request,
    /// The answer, if it is under way; else the request is.
    pub answer: Option<Reply>,
}

/// What a host asks of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Request {
    /// To be granted the job.
    Reserve,
    /// To have it for longer.
    Renew(Own),
    /// To end it so.
    Settle(Own, Saying),
}

/// An answer from which something follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reply {
    /// It is granted.
    Granted(Own),
    /// The answer to a renewal.
    Renewal(Renewal),
    /// The answer to a settlement.
    Settled(Settled),
}

impl Host {
    /// Takes note of an answer.
    pub fn hear(&mut self) {
        let Some(Call { answer: Some(reply), .. }) = self.call.take() else { return };
        match reply {
            Reply::Granted(own) => self.work = Some(Work { own, said: None, told: false }),
            Reply::Renewal(Renewal::Held { cancel }) => {
                if let Some(work) = &mut self.work {
                    work.told |= cancel;
                }
            }
            Reply::Renewal(Renewal::Lapsed | Renewal::Lost) | Reply::Settled(_) => self.work = None,
        }
    }

    /// It dies and starts again, knowing nothing.
    pub fn crash(&mut self) {
        *self = Self { late: self.late, effect: self.effect, ..Self::default() };
    }

    /// How many of its requests are under way.
    #[must_use]
    pub fn requests(&self) -> usize {
        usize::from(self.late.is_some()) + usize::from(self.call.is_some_and(|call| call.answer.is_none()))
    }

    /// The settlements of which it may hear or send more.
    pub fn settlements(&self) -> impl Iterator<Item = Own> + use<> {
        let under_way = [self.late, self.call.map(|call| call.request)];
        let sent = under_way.into_iter().flatten().filter_map(|request| match request {
            Request::Settle(own, _) => Some(own),
            Request::Reserve | Request::Renew(_) => None,
        });
        sent.chain(self.work.map(|work| work.own))
    }
}
