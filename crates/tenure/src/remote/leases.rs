//! Leases that are held outside of this program: whoever has one renews it himself, through this program.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Fence, Holder, Late, LeaseAct, LeaseId, LeaseName, LeaseOutcome, LeaseRefusal, Timestamp, Ttl,
};
use tenure_store::{Clock, Fault};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};

use super::Remote;
use super::line::Place;
use crate::holding::{Pace, check_is_users};
use crate::{Error, Tenure};

/// For how long a place in line is kept at a time. If this program dies, those behind it are kept back for a moment at
/// each turn until then.
const SEAT: Duration = Duration::from_secs(30);
/// Who waits looks at least so often, whatever was said and heard,
const LOOK: Duration = Duration::from_secs(5);
/// and never sooner than this: the store's clock may be a little behind.
const SOONEST: Duration = Duration::from_millis(20);
/// Who is not the first in line only keeps its place, and asks so often.
const STAY: Duration = Duration::from_secs(10);
/// Hints may be about other leases: a few are followed at once, then one in so long.
const HINTS_APART: Duration = Duration::from_secs(1);
const HINTS_AT_ONCE: u32 = 4;

/// A lease as it was granted to somebody elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseGrant {
    /// The lease.
    pub name: LeaseName,
    /// The acquisition: with it and the fence its holder proves that it is his.
    pub id: LeaseId,
    /// The number of the ownership.
    pub fence: Fence,
    /// Until when unless it is renewed, by the store's clock; without end if `None`.
    pub until: Option<Timestamp>,
}

/// What came of a wish about a lease: how it stands, or why not.
pub type Leased<T> = Result<T, LeaseRefusal>;

impl Remote<'_> {
    /// Takes a lease for somebody elsewhere. If it cannot be had now he waits for it in line, as every holder does, until
    /// `wait` is over; without one he is answered at once.
    ///
    /// Whoever drops this before it has answered is taken to have gone: he leaves the line, and what was granted to him
    /// meanwhile is given back.
    ///
    /// # Errors
    /// A name, holder or time outside the limits, a name of Tenure's own, or a fault. That somebody else has it is an
    /// answer.
    pub async fn acquire<F>(
        &self,
        name: &str,
        by: Holder,
        ttl: Ttl,
        wait: Option<F>,
    ) -> Result<Leased<LeaseGrant>, Error>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let name = LeaseName::new(name)?;
        check_is_users("lease name", name.as_str())?;
        let id = self.tenure.draw_lease_id();
        let wish = LeaseAct::Acquire { id, by, ttl, wait: wait.is_some().then_some(SEAT) };
        wish.check()?;
        let (tell, told) = oneshot::channel();
        let wanting = Wanting { tenure: self.tenure.clone(), name, id, wish };
        tokio::spawn(wanting.ask_for(tell, wait));
        let unfinished = || Fault::Unknown("the lease task of this program has ended".to_owned());
        let granted = told.await.map_err(|_| unfinished())??;
        Ok(granted.map(Given::taken))
    }

    /// Holds a lease for longer: for as long as it was taken for, or from now on for another time.
    ///
    /// # Errors
    /// A time outside the limits, or a fault.
    pub async fn renew_lease(
        &self,
        grant: &LeaseGrant,
        ttl: Option<Ttl>,
    ) -> Result<Leased<Option<Timestamp>>, Error> {
        let LeaseGrant { name, id, fence, .. } = grant;
        let (id, fence) = (*id, *fence);
        // Who it is stays as it was: it is said only once, when the lease is taken.
        let longer = ttl.map(|ttl| LeaseAct::Acquire { id, by: Holder::default(), ttl, wait: None });
        longer.as_ref().map_or(Ok(()), LeaseAct::check)?;
        let leases = self.tenure.leases();
        let renewed = leases.wish(name, LeaseAct::Renew { id, fence, late: Late::Refused }).await?;
        let (LeaseOutcome::Renewed { until } | LeaseOutcome::RenewedLate { until, .. }) = renewed else {
            if is_loss(&renewed) {
                self.tenure.heap().lease_lost();
            }
            return refused(renewed);
        };
        let Some(longer) = longer else { return Ok(Ok(until)) };
        let outcome = leases.wish(name, longer).await?;
        let LeaseOutcome::Granted { fence: now, until } = outcome else { return refused(outcome) };
        if now == fence {
            return Ok(Ok(until));
        }
        // It was taken from him since, and this was a grant that he knows nothing of.
        leases.wish(name, LeaseAct::Leave { id }).await?;
        Ok(Err(LeaseRefusal::Lost { fence: now }))
    }

    /// Gives a lease back. That its time was over, or that it was given back before, is no refusal.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn release_lease(&self, grant: &LeaseGrant) -> Result<Leased<()>, Error> {
        let act = LeaseAct::Release { id: grant.id, fence: grant.fence };
        let outcome = self.tenure.leases().wish(&grant.name, act).await?;
        if let LeaseOutcome::Released | LeaseOutcome::Refused(LeaseRefusal::NotHeld) = outcome {
            return Ok(Ok(()));
        }
        refused(outcome)
    }
}

/// Whether whoever renewed a lease hears that it is not his any more.
fn is_loss(outcome: &LeaseOutcome) -> bool {
    use LeaseRefusal::{Broken, Lapsed, Lost};
    matches!(outcome, LeaseOutcome::Refused(Lost { .. } | Lapsed { .. } | Broken))
}

/// Somebody elsewhere who wants a lease.
struct Wanting {
    tenure: Tenure,
    name: LeaseName,
    id: LeaseId,
    wish: LeaseAct,
}

impl Wanting {
    /// In a task of its own: whoever asked may go away meanwhile.
    async fn ask_for<F>(self, mut tell: oneshot::Sender<Result<Leased<Given>, Error>>, wait: Option<F>)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let waits = wait.is_some();
        let mut over = pin!(async move {
            if let Some(wait) = wait {
                wait.await;
            }
        });
        let (mut freed, mut pace) = (self.tenure.store().freed(), Pace::new(HINTS_APART, HINTS_AT_ONCE));
        // Given up at the end, when the store knows that he has gone.
        let mut place: Option<Place> = None;
        let end = loop {
            freed.mark_unchanged();
            let refusal = match self.ask().await {
                Ok(Err(refusal)) if waits => refusal,
                end => break end,
            };
            let place = place.get_or_insert_with(|| self.tenure.waiting_elsewhere().join(&self.name));
            tokio::select! {
                biased;
                // First, so that no amount of hints keeps anybody waiting.
                () = &mut over => break Ok(Err(refusal)),
                () = tell.closed() => break Ok(Err(refusal)),
                () = self.worth_a_look(place, &refusal, &mut freed, &mut pace) => {}
            }
        };
        // After a fault nobody knows what was granted; who gives up has a place in line.
        if end.is_err() || (waits && matches!(end, Ok(Err(_)))) {
            leave(&self.tenure, &self.name, self.id).await;
        }
        let given = |grant| Given { tenure: self.tenure.clone(), grant, has_arrived: false };
        // If he has gone, what was granted is given back.
        let _ = tell.send(end.map(|granted| granted.map(given)));
    }

    async fn ask(&self) -> Result<Leased<LeaseGrant>, Error> {
        let outcome = self.tenure.leases().wish(&self.name, self.wish.clone()).await?;
        let LeaseOutcome::Granted { fence, until } = outcome else { return refused(outcome) };
        Ok(Ok(LeaseGrant { name: self.name.clone(), id: self.id, fence, until }))
    }

    /// Ends when it may be had.
    async fn worth_a_look(
        &self,
        place: &Place,
        refusal: &LeaseRefusal,
        freed: &mut watch::Receiver<u64>,
        pace: &mut Pace,
    ) {
        let clock: &Arc<dyn Clock> = self.tenure.clock();
        if !place.is_first() {
            tokio::select! {
                biased;
                () = place.comes_up() => {}
                () = clock.sleep(STAY) => {}
            }
            return;
        }
        let nap = self.had_in(refusal).map_or(LOOK, |span| span.clamp(SOONEST, LOOK));
        tokio::select! {
            biased;
            () = clock.sleep(nap) => return,
            // A store that calls out nothing any more is looked at all the same.
            Ok(()) = freed.changed() => {}
        }
        let now = clock.moment();
        if let Some(next) = pace.next(now) {
            clock.sleep(next.since(now)).await;
        }
        pace.take(clock.moment());
    }

    /// In how long it may be had, as far as that was said.
    fn had_in(&self, refusal: &LeaseRefusal) -> Option<Duration> {
        let now = self.tenure.now();
        match refusal {
            LeaseRefusal::Held { until, .. } => until.map(|until| until.since(now)),
            LeaseRefusal::Breaking { until } => Some(until.since(now)),
            LeaseRefusal::Awaited { again, .. } => Some(again.since(now)),
            LeaseRefusal::WrongId
            | LeaseRefusal::Lost { .. }
            | LeaseRefusal::Lapsed { .. }
            | LeaseRefusal::Broken
            | LeaseRefusal::NotHeld => None,
        }
    }
}

/// A grant on its way to somebody. If it does not arrive, because he has gone, it is given back.
struct Given {
    tenure: Tenure,
    grant: LeaseGrant,
    has_arrived: bool,
}

impl Given {
    fn taken(mut self) -> LeaseGrant {
        self.has_arrived = true;
        self.grant.clone()
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        // Without a runtime the program is ending: it lapses.
        if let (false, Ok(runtime)) = (self.has_arrived, Handle::try_current()) {
            let (tenure, name, id) = (self.tenure.clone(), self.grant.name.clone(), self.grant.id);
            runtime.spawn(async move { leave(&tenure, &name, id).await });
        }
    }
}

/// Nobody wants it any more: neither a place in line nor what may have been granted.
async fn leave(tenure: &Tenure, lease: &LeaseName, id: LeaseId) {
    if let Err(error) = tenure.leases().wish(lease, LeaseAct::Leave { id }).await {
        tracing::warn!(%lease, %error, "failed to withdraw a lease request; it will expire");
    }
}

/// What is answered to a wish that was not granted.
fn refused<T>(outcome: LeaseOutcome) -> Result<Leased<T>, Error> {
    if let LeaseOutcome::Refused(refusal) = outcome {
        return Ok(Err(refusal));
    }
    Err(Fault::Broken(format!("the store returned an unexpected result: {outcome:?}")).into())
}
