//! One who reserves jobs by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tenure_core::{Holding, Invalid, LeaseName, LeaseRefusal, Ttl};
use tenure_store::LeaseInfo;

use super::reservation::{Reservation, Slip};
use crate::holding::RESERVATION;
use crate::{Error, Tenure};

/// How many of the last reservers of a job are told.
const LAST: usize = 10;
/// How long work has to come to an end once its reservation is lost.
const GRACE: Duration = Duration::from_secs(5);

/// Reserves jobs by name: one holder per name and app at a time.
///
/// ```
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tenure::Error> {
/// # let tenure = tenure::OpenOptions::new().app("shop").open("memory:").await?;
/// let reservations = tenure.reservations();
/// match reservations.reserve("stock-taking", Duration::from_secs(60)).await? {
///     Ok(reservation) => reservation.run(async |pass| println!("under fence {}", pass.fence())).await?,
///     Err(busy) => println!("not now: {busy}"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Reservations {
    tenure: Tenure,
    who: String,
    is_compatible: bool,
    slips: Arc<Mutex<BTreeMap<String, Weak<Slip>>>>,
}

impl Tenure {
    /// Returns a new reserver. Two reservers share nothing, even in one program.
    #[must_use]
    pub fn reservations(&self) -> Reservations {
        let who = format!("Reserver-{}", self.draw_lease_id());
        Reservations { tenure: self.clone(), who, is_compatible: false, slips: Arc::default() }
    }
}

impl Reservations {
    /// Names the reserver for people.
    #[must_use]
    pub fn named(mut self, who: &str) -> Self {
        who.clone_into(&mut self.who);
        self
    }

    /// Accepts the periods of Azure blob leases only: 15 to 60 whole seconds.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tenure::Error> {
    /// # let tenure = tenure::OpenOptions::new().app("shop").open("memory:").await?;
    /// let reservations = tenure.reservations().compatible();
    /// assert!(reservations.reserve("stock-taking", Duration::from_secs(61)).await.is_err());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn compatible(mut self) -> Self {
        self.is_compatible = true;
        self
    }

    /// Returns the name of the reserver.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.who
    }

    /// Reserves a job for a period, 1 s to 24 h, and renews the reservation while it lives. If the job is taken, the
    /// refusal names the holder and the times.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an invalid name or period, [`Error::NoApp`], or a fault. An unavailable store is never
    /// reported as "busy".
    pub async fn reserve(
        &self,
        job: &str,
        period: Duration,
    ) -> Result<Result<Reservation, LeaseRefusal>, Error> {
        let lease = self.lease(job)?;
        check_period(period)?;
        if self.is_compatible {
            Ttl::compatible(period.as_secs_f64()).map_err(|wrong| Invalid {
                field: "period".to_owned(),
                allowed: "15 to 60 whole seconds, as for Azure blob leases".to_owned(),
                ..wrong
            })?;
        }
        let hold = self.tenure.leases().hold_own(&lease).ttl(period).who(&self.who);
        let held = match hold.try_now().await {
            Ok(held) => held,
            Err(Error::LeaseRefused { refusal, .. }) => return Ok(Err(*refusal)),
            Err(error) => return Err(error),
        };
        let slip = Arc::new(Slip::new(job, held));
        let mut slips = self.slips();
        slips.retain(|_, slip| slip.strong_count() > 0);
        slips.insert(job.to_owned(), Arc::downgrade(&slip));
        Ok(Ok(Reservation { slip, tenure: self.tenure.clone(), grace: GRACE }))
    }

    /// Returns `true` if this reserver holds the job, by the clock.
    #[must_use]
    pub fn has(&self, job: &str) -> bool {
        self.slip(job).is_some_and(|slip| slip.is_held())
    }

    /// Cancels this reserver's reservation of a job. Work under it is told, and others can reserve the job when it
    /// has ended. Returns `true` if there was one.
    ///
    /// # Errors
    /// A fault; the reservation expires then.
    pub async fn cancel(&self, job: &str) -> Result<bool, Error> {
        let Some(slip) = self.slip(job).filter(|slip| slip.is_held()) else { return Ok(false) };
        match slip.cancel().await {
            Ok(()) => Ok(true),
            // Lost in this very moment.
            Err(Error::LeaseLost(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the current holder of a job with the times; `None` if there is none.
    ///
    /// # Errors
    /// An invalid name, [`Error::NoApp`], or a fault.
    pub async fn holder(&self, job: &str) -> Result<Option<LeaseInfo>, Error> {
        let info = self.tenure.store().lease_info(&self.lease(job)?).await?;
        Ok(info.filter(|info| info.state.is_locked()))
    }

    /// Returns the last ten reservations of a job, latest first: holder, times and how each ended. They are recorded
    /// in the transactions that reserve and release the job.
    ///
    /// # Errors
    /// An invalid name, [`Error::NoApp`], or a fault.
    pub async fn reservers(&self, job: &str) -> Result<Vec<Holding>, Error> {
        self.tenure.leases().last(self.lease(job)?.as_str(), LAST).await
    }

    fn lease(&self, job: &str) -> Result<LeaseName, Error> {
        let app = self.tenure.need_app(&format!("reserving job {job:?}"))?;
        Ok(lease_of(app.as_str(), job)?)
    }

    fn slip(&self, job: &str) -> Option<Arc<Slip>> {
        self.slips().get(job)?.upgrade()
    }

    fn slips(&self) -> MutexGuard<'_, BTreeMap<String, Weak<Slip>>> {
        self.slips.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For how long a job is reserved at a time.
pub(super) fn check_period(period: Duration) -> Result<(), Invalid> {
    Ttl::new(period).map(drop).map_err(|wrong| Invalid { field: "period".to_owned(), ..wrong })
}

/// The lease of a job. An app id has no slash in it, so no two jobs have the same.
pub(super) fn lease_of(app: &str, job: &str) -> Result<LeaseName, Invalid> {
    LeaseName::behind("job", &format!("{RESERVATION}{app}/"), job)
}

impl fmt::Debug for Reservations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reservations({})", self.who)
    }
}
