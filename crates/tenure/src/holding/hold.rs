//! A lease about to be taken.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Holder, LeaseAct, LeaseId, LeaseName, LeaseOutcome, LeaseRefusal, Ttl};
use tenure_store::{Fault, LeaseWish};

use super::grip::{Belief, Grip};
use super::hand::Hand;
use super::held::Held;
use crate::{Error, Tenure};

/// For how long a lease is taken at a time if nothing else is said.
const TTL: Duration = Duration::from_secs(15);
/// How long work has to come to an end once its lease is lost.
const GRACE: Duration = Duration::from_secs(5);

/// A lease about to be taken: say more about it, then [try](Hold::try_now), or await it until it is had.
///
/// Who waits has a place in line, in the order in which all came. Dropping the wait gives up the place, and
/// what was granted meanwhile as well. While the store is away the wait goes on.
#[derive(Debug)]
#[must_use = "nothing is held until this is awaited or tried"]
pub struct Hold<'a> {
    tenure: &'a Tenure,
    name: Result<LeaseName, Error>,
    ttl: Result<Ttl, Error>,
    id: Option<LeaseId>,
    by: Holder,
    within: Option<Duration>,
    grace: Duration,
}

impl<'a> Hold<'a> {
    pub(super) fn new(tenure: &'a Tenure, name: &str) -> Self {
        Self {
            tenure,
            name: LeaseName::new(name).map_err(Error::from),
            ttl: Ok(Ttl::For(TTL)),
            id: None,
            by: tenure.holder(),
            within: None,
            grace: GRACE,
        }
    }

    /// Takes it for so long at a time, 1 s to 24 h, and renews it while it is held. 15 s by default. If
    /// this program dies, others can have it after this.
    pub fn ttl(mut self, span: Duration) -> Self {
        self.ttl = Ttl::new(span).map_err(Error::from);
        self
    }

    /// Takes it without end: until it is given back or somebody breaks it. If this program dies, a person
    /// has to break it.
    pub fn endless(mut self) -> Self {
        self.ttl = Ok(Ttl::Endless);
        self
    }

    /// Takes it under this id instead of a drawn one. Who takes a lease under the id that holds it already
    /// has it under the same fence: so a program can have back what it held before it started anew.
    pub fn id(mut self, id: LeaseId) -> Self {
        self.id = Some(id);
        self
    }

    /// By which words people know the holder; the process by default.
    pub fn who(mut self, who: &str) -> Self {
        self.by.who = who.to_owned();
        self
    }

    /// A note beside it that Tenure keeps and does not read.
    pub fn note(mut self, key: &str, value: &str) -> Self {
        self.by.meta.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Waits no longer than this, all told: calls, sleeps and outages.
    pub fn within(mut self, span: Duration) -> Self {
        self.within = Some(span);
        self
    }

    /// How long work has to come to an end once the lease is lost, see [`Held::run`]. 5 s by default.
    pub fn grace(mut self, span: Duration) -> Self {
        self.grace = span;
        self
    }

    /// Takes it if it can be had now.
    ///
    /// # Errors
    /// A name, time or note outside the limits, or a fault: a store that is away is never "held".
    pub async fn try_now(self) -> Result<Result<Held, LeaseRefusal>, Error> {
        let (name, ttl) = (self.name?, self.ttl?);
        self.by.check()?;
        let id = self.id.unwrap_or_else(|| self.tenure.draw_lease_id());
        let act = LeaseAct::Acquire { id, by: self.by, ttl, wait: None };
        let sent = self.tenure.clock().moment();
        let wish = LeaseWish { name: name.clone(), act };
        let outcome = self.tenure.store().lease(vec![wish]).await?.into_iter().next();
        match outcome {
            Some(LeaseOutcome::Granted { fence, until }) => {
                let deadline = match ttl {
                    Ttl::For(span) => Some(sent.after(span.mul_f64(0.8))),
                    Ttl::Endless => None,
                };
                let belief = Belief { deadline, until, doubtful: false };
                let grip = Grip::new((name, id, fence), Arc::clone(self.tenure.clock()), belief);
                Ok(Ok(Held::new(Hand::new(Arc::new(grip), self.tenure.clone()), self.grace)))
            }
            Some(LeaseOutcome::Refused(refusal)) => Ok(Err(refusal)),
            other => Err(Fault::Broken(format!("the store answered {other:?} to an acquisition")).into()),
        }
    }

    async fn wait(self) -> Result<Held, Error> {
        let (within, name) = (self.within.unwrap_or_default(), self.name.as_ref().ok().cloned());
        let held = self.try_now().await?;
        held.map_err(|refusal| match name {
            Some(name) => Error::WaitOver { name, waited: within, refusal },
            None => Error::Settings("a lease without a name was refused".to_owned()),
        })
    }
}

impl<'a> IntoFuture for Hold<'a> {
    type Output = Result<Held, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait())
    }
}
