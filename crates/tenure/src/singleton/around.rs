//! A lease around each attempt of a kind of jobs.

use std::time::Duration;

use tenure_core::{Cause, Due, Failure, Invalid, LeaseName, Verdict, json_value};

use super::{Mode, Prepared, Singleton};
use crate::worker::{Ground, verdict_before_start};
use crate::{Error, Held, Run};

/// A job that waits for its lease rests no longer than this between two tries, unless the options say so:
/// each try is a delivery, and those are bounded.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// How the attempts of one kind take their lease.
#[derive(Debug, Clone)]
pub(crate) struct Around {
    lease: Naming,
    ttl: Duration,
    acquire_within: Option<Duration>,
    poll: Duration,
    longest_rest: Duration,
    who: String,
}

/// How the lease of an attempt is named.
#[derive(Debug, Clone)]
enum Naming {
    /// By the args of its job.
    ByArgs(Prepared),
    /// It is always this one.
    Always(LeaseName),
}

impl Around {
    pub(crate) fn new<App>(singleton: &Singleton, kind: &str, ground: &Ground<App>) -> Result<Self, Error> {
        let app = ground.tenure.need_app(&format!("singleton {kind}"))?;
        let setting = |name: &str| (ground.setting)(name);
        Ok(Self {
            lease: Naming::ByArgs(Prepared::new(singleton, app, kind, Mode::Function, setting)?),
            ttl: singleton.lease.unwrap_or(ground.options.lock_period),
            acquire_within: singleton.acquire_within.or(ground.options.lock_acquisition_timeout),
            poll: ground.options.lock_acquisition_polling_interval,
            longest_rest: LONGEST_REST.max(ground.options.lock_acquisition_polling_interval),
            who: ground.who.clone(),
        })
    }

    /// Always the same lease, which is looked for again and again at the same pace.
    pub(crate) fn always<App>(lease: LeaseName, ttl: Duration, ground: &Ground<App>) -> Self {
        let poll = ground.options.lock_acquisition_polling_interval;
        let (lease, who) = (Naming::Always(lease), ground.who.clone());
        Self { lease, ttl, acquire_within: None, poll, longest_rest: poll, who }
    }

    /// Takes the lease for an attempt. If it cannot be had, the verdict says what becomes of the attempt:
    /// waiting spends none, and keeps a slot only for a moment, unless somebody asked for a bounded wait.
    pub(crate) async fn take<App>(&self, run: &Run<App>) -> Result<Held, Verdict> {
        let (lease, alias) = self.name(run)?;
        let hold = run.tenure().leases().hold_own(&lease).ttl(self.ttl).who(&self.who);
        let hold = if let Some(alias) = &alias { hold.note("alias", alias) } else { hold };
        let hold = hold.note("job", &run.id().to_string()).within(self.acquire_within.unwrap_or(self.poll));
        let held = tokio::select! {
            biased;
            why = run.stopped() => return Err(verdict_before_start(&why)),
            held = hold => held,
        };
        held.map_err(|error| self.without_it(run, &lease, error))
    }

    /// What becomes of an attempt that could not have its lease.
    fn without_it<App>(&self, run: &Run<App>, lease: &LeaseName, error: Error) -> Verdict {
        let bounded = self.acquire_within.is_some() || cfg!(mutant = "singleton-wait-counts");
        match (&error, bounded) {
            (Error::WaitOver { refusal, .. }, false) => {
                run.log(&format!("waiting for lease {lease}: {refusal}"));
                return Verdict::Snoozed(Due::In(self.rest(run)));
            }
            (Error::Fault(fault), _) if fault.is_passing() => {
                return Verdict::Snoozed(Due::In(self.rest(run)));
            }
            (_, _) => {}
        }
        let cause = if matches!(error, Error::WaitOver { .. }) { Cause::TimedOut } else { Cause::Error };
        Verdict::Retry { failure: Failure::new(cause, &error.to_string()), due: None }
    }

    /// The name of the lease, and its form of old.
    fn name<App>(&self, run: &Run<App>) -> Result<(LeaseName, Option<String>), Verdict> {
        let prepared = match &self.lease {
            Naming::Always(lease) => return Ok((lease.clone(), None)),
            Naming::ByArgs(prepared) => prepared,
        };
        let args = json_value(run.job().args.as_bytes())
            .map_err(|error| Verdict::Failed(Failure::new(Cause::Undecodable, &error.to_string())))?;
        // The args never change: trying again would not help.
        let wrong = |wrong: Invalid| Verdict::Failed(Failure::new(Cause::Error, &wrong.to_string()));
        let lock = prepared.lock(&args).map_err(wrong)?;
        Ok((lock.name().clone(), Some(lock.alias().to_owned())))
    }

    /// Longer with each time that the job was given back.
    fn rest<App>(&self, run: &Run<App>) -> Duration {
        let given_back = run.job().delivery.saturating_sub(run.attempt());
        self.poll.saturating_mul(1 << given_back.min(8)).min(self.longest_rest)
    }
}
