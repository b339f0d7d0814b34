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

/// A lease about to be acquired: set options, then [try](Hold::try_now), or `.await` it.
///
/// Waiters stand in line in order of arrival. Dropping the future gives up the place, and the lease if it was granted
/// meanwhile. Waiting continues while the store is unavailable. A holder that lost its lease and waits for it again
/// lets others go first for half a second.
#[derive(Debug)]
#[must_use = "no lease is acquired until this is awaited or tried"]
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

    /// Sets the lease duration, 1 s to 24 h; default 15 s. The lease is renewed while it is held. If this program
    /// dies, others can acquire the lease after this time.
    pub fn ttl(mut self, span: Duration) -> Self {
        self.ttl = Ttl::new(span).map_err(Error::from);
        self
    }

    /// Takes the lease without expiry: until it is released or broken. If this program dies, a person must break it.
    pub fn endless(mut self) -> Self {
        self.ttl = Ok(Ttl::Endless);
        self
    }

    /// Acquires the lease under this ID instead of a generated one. A program that repeats the ID of its current
    /// lease gets it back under the same fence, for instance after a restart.
    pub fn id(mut self, id: LeaseId) -> Self {
        self.id = Some(id);
        self
    }

    /// Names the holder for people; default: the process.
    pub fn who(mut self, who: &str) -> Self {
        self.by.who = who.to_owned();
        self
    }

    /// Adds a metadata entry, which Tenure stores and does not interpret.
    pub fn note(mut self, key: &str, value: &str) -> Self {
        self.by.meta.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Limits the wait in total, including calls, sleeps and outages. Default: no limit.
    pub fn within(mut self, span: Duration) -> Self {
        self.within = Some(span);
        self
    }

    /// Sets how long work has to finish once the lease is lost, see [`Held::run`]. Default 5 s.
    pub fn grace(mut self, span: Duration) -> Self {
        self.grace = span;
        self
    }

    /// Acquires the lease if it is free now.
    ///
    /// # Errors
    /// [`Error::LeaseRefused`] if the lease is not free; an invalid name, duration or metadata entry; or a fault. An
    /// unavailable store is never reported as "held".
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
