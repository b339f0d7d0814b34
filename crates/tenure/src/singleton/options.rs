//! How singletons hold: the options of old with their defaults and ranges, and what one singleton may say
//! for itself.

use std::ops::RangeInclusive;
use std::time::Duration;

use tenure_core::{Invalid, Ttl, limits};

const COMPATIBLE: RangeInclusive<Duration> = Duration::from_secs(15)..=Duration::from_secs(60);
const SHORTEST_POLL: Duration = Duration::from_millis(500);
const SHORTEST_RECOVERY: Duration = Duration::from_secs(15);

/// Options of all singletons of a worker, with the names and ranges of WebJobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SingletonOptions {
    /// Lease duration of a function: 15 to 60 s.
    pub lock_period: Duration,
    /// Lease duration of a listener: 15 to 60 s.
    pub listener_lock_period: Duration,
    /// Maximum wait of a function for its lease before its attempt fails, in real time, more than 0; `None` means no
    /// limit.
    pub lock_acquisition_timeout: Option<Duration>,
    /// How long a function that waits without limit keeps its slot, and how long its job pauses before the next try:
    /// 500 ms or more.
    pub lock_acquisition_polling_interval: Duration,
    /// Longest pause of a listener that failed or returned before it stands by again: 15 s or more. After a lost lease it
    /// stands by at once. With `None` it does not restart after any of the three, and its worker stops with an error.
    pub listener_lock_recovery_polling_interval: Option<Duration>,
}

impl Default for SingletonOptions {
    fn default() -> Self {
        Self {
            lock_period: Duration::from_secs(15),
            listener_lock_period: Duration::from_secs(60),
            lock_acquisition_timeout: None,
            lock_acquisition_polling_interval: Duration::from_secs(5),
            listener_lock_recovery_polling_interval: Some(Duration::from_secs(60)),
        }
    }
}

impl SingletonOptions {
    /// Checks that all options are within their ranges.
    ///
    /// # Errors
    /// Names the first option outside its range.
    pub fn check(&self) -> Result<(), Invalid> {
        period("lock_period", self.lock_period)?;
        period("listener_lock_period", self.listener_lock_period)?;
        if let Some(timeout) = self.lock_acquisition_timeout {
            acquisition_timeout("lock_acquisition_timeout", timeout)?;
        }
        at_least("lock_acquisition_polling_interval", self.lock_acquisition_polling_interval, SHORTEST_POLL)?;
        if let Some(recovery) = self.listener_lock_recovery_polling_interval {
            at_least("listener_lock_recovery_polling_interval", recovery, SHORTEST_RECOVERY)?;
        }
        Ok(())
    }
}

/// Restricts a kind of jobs, or a listener, to one run at a time within a scope.
///
/// ```
/// use std::time::Duration;
/// use tenure::Singleton;
///
/// let one_at_a_time = Singleton::function();
/// let one_for_each_customer = Singleton::function().scope("customer-{customer}");
/// let one_on_the_printer = Singleton::host("printer-%floor%").lease(Duration::from_secs(5));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Singleton {
    pub(crate) of_host: bool,
    pub(crate) scope: String,
    pub(crate) lease: Option<Duration>,
    pub(crate) acquire_within: Option<Duration>,
    pub(crate) ready_within: Option<Duration>,
}

impl Singleton {
    /// Allows one run per function: per kind, or per listener name.
    pub fn function() -> Self {
        Self { of_host: false, scope: String::new(), lease: None, acquire_within: None, ready_within: None }
    }

    /// Allows one run among everything in the app that names this scope, whatever its kind. Not for listeners.
    pub fn host(scope: &str) -> Self {
        Self { of_host: true, scope: scope.to_owned(), ..Self::function() }
    }

    /// Restricts the singleton to a part: a template such as `customer-{customer}`. `{param}` is filled in from the
    /// args of the job, `%setting%` when the worker starts; `{{` and `}}` are braces. A listener has no args, so its
    /// braces are ordinary characters.
    pub fn scope(mut self, template: &str) -> Self {
        template.clone_into(&mut self.scope);
        self
    }

    /// Sets the lease duration, 1 second to 1 day; overrides the options of the worker.
    pub fn lease(mut self, ttl: Duration) -> Self {
        self.lease = Some(ttl);
        self
    }

    /// Limits the wait for the lease, in real time, before the attempt fails; more than 0. A listener waits without
    /// limit unless it [must not restart](SingletonOptions).
    pub fn acquire_within(mut self, span: Duration) -> Self {
        self.acquire_within = Some(span);
        self
    }

    /// Sets the start timeout: a listener must call `Duty::ready` within this time after it has acquired the lease.
    /// Otherwise it is stopped and the lease goes to another host.
    pub fn ready_within(mut self, span: Duration) -> Self {
        self.ready_within = Some(span);
        self
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        if self.of_host && self.scope.is_empty() {
            return Err(Invalid::new("singleton.scope", "a host scope without a name", "a name"));
        }
        if let Some(lease) = self.lease {
            Ttl::new(lease).map_err(|wrong| Invalid { field: "singleton.lease".to_owned(), ..wrong })?;
        }
        let spans = [("acquire_within", self.acquire_within), ("ready_within", self.ready_within)];
        for (field, span) in spans {
            span.map_or(Ok(()), |span| acquisition_timeout(&format!("singleton.{field}"), span))?;
        }
        Ok(())
    }
}

fn period(field: &str, span: Duration) -> Result<(), Invalid> {
    if COMPATIBLE.contains(&span) {
        return Ok(());
    }
    let allowed = "15 to 60 seconds; Singleton::lease accepts 1 second to 1 day";
    Err(Invalid::new(field, format_args!("{} seconds", span.as_secs_f64()), allowed))
}

fn acquisition_timeout(field: &str, span: Duration) -> Result<(), Invalid> {
    if !span.is_zero() && span <= limits::LONGEST {
        return Ok(());
    }
    let allowed = format!("more than 0 and at most {} seconds", limits::LONGEST.as_secs());
    Err(Invalid::new(field, format_args!("{} seconds", span.as_secs_f64()), allowed))
}

fn at_least(field: &str, span: Duration, least: Duration) -> Result<(), Invalid> {
    if (least..=limits::LONGEST).contains(&span) {
        return Ok(());
    }
    let allowed = format!("{} to {} seconds", least.as_secs_f64(), limits::LONGEST.as_secs());
    Err(Invalid::new(field, format_args!("{} seconds", span.as_secs_f64()), allowed))
}
