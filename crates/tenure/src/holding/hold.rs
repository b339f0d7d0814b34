//! A lease about to be taken.

use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use tenure_core::{Holder, Invalid, LeaseId, LeaseName, Ttl};
use tenure_store::Fault;

use super::book::Ask;
use super::client::Answer;
use super::held::Held;
use crate::{Error, Tenure};

/// For how long a lease is taken at a time if nothing else is said.
const TTL: Duration = Duration::from_secs(15);
/// Who does not wait for a lease waits no longer than this for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// How long work has to come to an end once its lease is lost.
const GRACE: Duration = Duration::from_secs(5);

/// A lease about to be taken: say more about it, then [try](Hold::try_now), or await it until it is had.
///
/// Who waits has a place in line, in the order in which all came. Dropping the wait gives up the place, and
/// what was granted meanwhile as well. While the store is away the wait goes on. Who was too late to keep
/// the lease and waits for it again lets others go first, for half a second.
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
    pub(super) fn new(tenure: &'a Tenure, name: Result<LeaseName, Invalid>) -> Self {
        Self {
            tenure,
            name: name.map_err(Error::from),
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

    /// Waits no longer than this, all told: calls, sleeps and outages. Without it, for as long as it takes.
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
    /// [`Error::LeaseRefused`] if it cannot be had now; a name, time or note outside the limits; or a fault:
    /// a store that is away is never "held".
    pub async fn try_now(self) -> Result<Held, Error> {
        self.ask(false).await
    }

    async fn ask(self, waits: bool) -> Result<Held, Error> {
        let (name, ttl) = (self.name?, self.ttl?);
        self.by.check()?;
        let within = self.within.map(|span| tenure_core::delay_of("within", span)).transpose()?;
        let grace = tenure_core::delay_of("grace", self.grace)?;
        let started = self.tenure.clock().moment();
        let until =
            if waits { within } else { Some(within.filter(|span| !span.is_zero()).unwrap_or(ANSWER_WITHIN)) };
        let ask = Ask {
            name: name.clone(),
            id: self.id.unwrap_or_else(|| self.tenure.draw_lease_id()),
            by: self.by,
            ttl,
            waits,
            until: until.map(|span| started.after(span)),
        };
        let client = self.tenure.keeping().client(self.tenure)?;
        let waited = || self.tenure.clock().moment().since(started);
        match client.ask(ask, grace).await {
            Answer::Held(held) => Ok(held),
            Answer::Refused(refusal) => Err(Error::LeaseRefused { name, refusal: Box::new(refusal) }),
            Answer::Over(Some(Ok(refusal))) => {
                Err(Error::WaitOver { name, waited: waited(), refusal: Box::new(refusal) })
            }
            Answer::Over(Some(Err(fault))) => Err(fault.into()),
            Answer::Over(None) => {
                let waited = waited().as_millis();
                Err(Fault::Unknown(format!("no answer within {waited} ms")).into())
            }
            Answer::Failed(error) => Err(error),
        }
    }

    async fn wait(self) -> Result<Held, Error> {
        // Without any time there is nothing to wait for, but still one try.
        let waits = self.within.is_none_or(|span| !span.is_zero());
        match self.ask(waits).await {
            Err(Error::LeaseRefused { name, refusal }) => {
                Err(Error::WaitOver { name, waited: Duration::ZERO, refusal })
            }
            held_or_not => held_or_not,
        }
    }
}

impl<'a> IntoFuture for Hold<'a> {
    type Output = Result<Held, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait())
    }
}
