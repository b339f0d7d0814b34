//! Rosters: lists of named roles, each of which one instance at a time takes.
//!
//! A role for an occurrence is a job whose id derives from both: who ticks again, on whatever instance and
//! however late, stores nothing. An instance takes one such job at a time, under a reservation of the role,
//! so that two occurrences of one role never overlap either.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};
use tenure_core::{
    AppId, Invalid, JobId, Keep, Key, LimitKey, Name, Retention, RetryPolicy, Terms, delay_of, limits,
};
use tenure_store::Accepted;

use super::reservations::{check_period, lease_of};
use crate::worker::{Role, RoleStart};
use crate::{Draft, Error, Failed, Run, Stopped, Tenure, Worker};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Longest name of an occurrence, in bytes.
const OCCURRENCE_BYTES: usize = 256;
/// An instance that stands by looks so often whether something is due, even if nothing calls.
const POLL: Duration = Duration::from_secs(5);

/// A list of named roles. Several instances share the list; each takes one free role, runs it, releases it, and takes
/// the next.
pub struct Roster<App> {
    tenure: Tenure,
    name: String,
    app: Arc<App>,
    roles: Vec<(String, RoleStart<App>)>,
    period: Duration,
    at_once: usize,
    stop_within: Duration,
    retry: RetryPolicy,
    keep: Duration,
    who: Option<String>,
    keeper_on_runtime: bool,
}

impl<App: Send + Sync + 'static> Roster<App> {
    /// Creates a roster of this name, whose roles share `app`. It requires an [app id](crate::OpenOptions::app).
    #[must_use]
    pub fn new(tenure: &Tenure, name: &str, app: App) -> Self {
        Self {
            tenure: tenure.clone(),
            name: name.to_owned(),
            app: Arc::new(app),
            roles: Vec::new(),
            period: Duration::from_secs(60),
            at_once: 1,
            stop_within: Duration::from_secs(30),
            retry: RetryPolicy::default(),
            keep: DAY * 31,
            who: None,
            keeper_on_runtime: false,
        }
    }

    /// Adds a role: a function that gets the occurrence. It may run to an end, or until it is told to stop. If it
    /// fails it is retried by the policy, perhaps on another instance.
    #[must_use]
    pub fn role<F, Fut>(mut self, name: &str, body: F) -> Self
    where
        F: Fn(Run<App>, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Failed>> + Send + 'static,
    {
        let start: RoleStart<App> = Arc::new(move |run, occurrence| Box::pin(body(run, occurrence)));
        self.roles.push((name.to_owned(), start));
        self
    }

    /// Sets the reservation period of a role; default 60 s. If an instance dies, another takes its role after this
    /// time.
    #[must_use]
    pub fn period(mut self, span: Duration) -> Self {
        self.period = span;
        self
    }

    /// Sets how many roles an instance takes at once; default 1.
    #[must_use]
    pub fn at_once(mut self, roles: usize) -> Self {
        self.at_once = roles;
        self
    }

    /// Sets how long a role has to finish when its instance stops; default 30 s. The role is released only after it
    /// has ended or was dropped.
    #[must_use]
    pub fn stop_within(mut self, span: Duration) -> Self {
        self.stop_within = span;
        self
    }

    /// Sets the retry policy of a role that failed or whose instance died.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets how long a finished occurrence is remembered; default 31 days. A later tick runs it again.
    #[must_use]
    pub fn keep(mut self, span: Duration) -> Self {
        self.keep = span;
        self
    }

    /// Names this instance for people.
    #[must_use]
    pub fn named(mut self, who: &str) -> Self {
        self.who = Some(who.to_owned());
        self
    }

    /// Like [`Worker::keeper_on_runtime`].
    #[must_use]
    pub fn keeper_on_runtime(mut self) -> Self {
        self.keeper_on_runtime = true;
        self
    }

    /// Starts an occurrence, such as `2026-03-29T02:00:00Z`: each role runs once for it, on any instance. Repeating
    /// the call, from any instance and at any time, changes nothing; the result says so. It does not wait for the
    /// roles.
    ///
    /// A role that should run forever runs for an occurrence that never changes.
    ///
    /// # Errors
    /// [`Error::NoApp`], an invalid name, or a fault.
    pub async fn tick(&self, occurrence: &str) -> Result<Vec<Accepted>, Error> {
        if occurrence.is_empty() || occurrence.len() > OCCURRENCE_BYTES {
            let found = format!("{} bytes", occurrence.len());
            return Err(Invalid::new("occurrence", found, format!("1 to {OCCURRENCE_BYTES} bytes")).into());
        }
        let (app, queue) = (self.app_id()?, self.queue()?);
        self.check(app)?;
        let mut drafts = Vec::with_capacity(self.roles.len());
        for (role, _) in &self.roles {
            let terms = Terms {
                retry: Some(self.retry.clone()),
                retention: Retention::always(Keep::For(self.keep)),
                ..Terms::default()
            };
            let draft = Draft::raw(&self.kind(role), &json!({ "occurrence": occurrence }));
            drafts.push(
                draft
                    .queue(&queue)
                    .terms(terms)
                    .line(self.line(app, role)?)
                    .derived_id(id_of(&queue, role, occurrence)),
            );
        }
        self.tenure.enqueue_all(drafts).await
    }

    /// Takes roles and runs them, one after the other, until told to stop. Then the current role is told, has its
    /// time to finish, and is released.
    ///
    /// # Errors
    /// Invalid settings, or a store that cannot be used.
    pub async fn run<T>(&self, shutdown: impl Future<Output = T>) -> Result<Stopped, Error> {
        let (app, queue) = (self.app_id()?, self.queue()?);
        self.check(app)?;
        let mut worker = Worker::sharing(&self.tenure, Arc::clone(&self.app))
            .queue(&queue, self.at_once)
            .lease(self.period)
            .poll(POLL)
            .finish_within(Duration::ZERO)
            .stop_grace(self.stop_within);
        for (role, start) in &self.roles {
            let lease = lease_of(app.as_str(), &self.job(role))?;
            let (start, period, retry) = (Arc::clone(start), self.period, self.retry.clone());
            worker = worker.role(Role { kind: self.kind(role), start, lease, period, retry });
        }
        if let Some(who) = &self.who {
            worker = worker.name(who);
        }
        if self.keeper_on_runtime {
            worker = worker.keeper_on_runtime();
        }
        worker.run(shutdown).await
    }

    /// Returns the name under which a role is [reserved](crate::Reservations).
    #[must_use]
    pub fn job(&self, role: &str) -> String {
        format!("{}/{role}", self.name)
    }

    /// What is wrong with it is told by the names by which its user knows it, before anything is done.
    fn check(&self, app: &AppId) -> Result<(), Error> {
        let in_field = |field: &str, wrong: Invalid| Invalid { field: field.to_owned(), ..wrong };
        if self.name.is_empty() {
            return Err(Invalid::new("roster", "empty", "a name").into());
        }
        fits("roster", &self.name, &self.queue()?)?;
        if self.roles.is_empty() {
            return Err(Invalid::new("roles", "none", "at least one, added with Roster::role").into());
        }
        let mut known = BTreeSet::new();
        for (role, _) in &self.roles {
            if role.is_empty() {
                return Err(Invalid::new("role", "empty", "a name").into());
            }
            fits("role", role, &self.kind(role))?;
            lease_of(app.as_str(), &self.job(role)).map_err(|wrong| in_field("role", wrong))?;
            if !known.insert(role) {
                return Err(Invalid::new("role", format_args!("{role}, twice"), "each role once").into());
            }
        }
        if !(1..=limits::SLOTS).contains(&self.at_once) {
            let allowed = format!("1 to {}", limits::SLOTS);
            return Err(Invalid::new("at_once", self.at_once, allowed).into());
        }
        check_period(self.period)?;
        delay_of("stop_within", self.stop_within)?;
        delay_of("keep", self.keep)?;
        Ok(self.retry.check()?)
    }

    fn app_id(&self) -> Result<&AppId, Error> {
        self.tenure.need_app(&format!("roster {}", self.name))
    }

    fn queue(&self) -> Result<String, Error> {
        Ok(format!("roster.{}.{}", self.app_id()?, self.name))
    }

    fn kind(&self, role: &str) -> String {
        format!("role.{role}")
    }

    /// Two occurrences of one role wait for each other in line.
    fn line(&self, app: &AppId, role: &str) -> Result<Option<LimitKey>, Error> {
        let lease = lease_of(app.as_str(), &self.job(role))?;
        if lease.as_str().len() > limits::KEY_BYTES {
            return Ok(None);
        }
        Ok(Some(LimitKey { key: Key::new("role", lease.as_str())?, most: Some(1) }))
    }
}

/// Accepts `given` if the name that is made of it is one: of a queue or a kind.
fn fits(field: &str, given: &str, made: &str) -> Result<(), Invalid> {
    let room = limits::NAME_BYTES.saturating_sub(made.len().saturating_sub(given.len()));
    if given.len() > room {
        let (found, allowed) = (format!("{} bytes", given.len()), format!("1 to {room} bytes"));
        return Err(Invalid::new(field, found, allowed));
    }
    Name::new(field, given).map(drop)
}

/// The id of the job of a role for an occurrence: the same on every instance.
fn id_of(queue: &str, role: &str, occurrence: &str) -> JobId {
    let mut digest = Sha256::new();
    for part in [queue, role, occurrence] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.finalize()[..16]);
    JobId::derived(bytes)
}
