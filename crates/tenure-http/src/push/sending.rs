//! One job on its way: it is sent, held while it is waited for, and ended by what is answered.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, Method};
use bytes::Bytes;
use tenure::{Cause, Ending, Failure, Invalid, JobRecord, Renewal, Verdict, limits};
use tokio_util::sync::CancellationToken;

use super::budget::LargeResponse;
use super::endpoint::{Endpoint, Endpoints};
use super::heard::Meaning;
use crate::api::Api;
use crate::callbacks::caller::{Call, Caller};
use crate::callbacks::delivery::Signed;
use crate::callbacks::target::Target;
use crate::callbacks::webhook::secrets;
use crate::problem::Problem;
use crate::spans;
use crate::trace;
use crate::workers::granted::lease_of;

/// A job is held for so long at a time,
pub(super) const LEASE: Duration = Duration::from_secs(30);
/// and is renewed so often.
const RENEWED: Duration = Duration::from_secs(8);
/// Hints are about any job or worker of the store. Beyond the first, they cause at most one renewal in this time.
const HINTS_APART: Duration = Duration::from_secs(1);

/// How the waiting for an answer ended.
enum Waited {
    Means(Meaning),
    /// Somebody wants it to stop: whoever does it is hung up on.
    Cancelled(String),
    /// It is not held any more.
    Lost,
    /// The server ends.
    Stopped,
}

/// One job on its way to a push endpoint.
pub(super) struct Sending {
    pub api: Api,
    pub caller: Caller,
    pub endpoint: Arc<Endpoint>,
    pub job: Arc<JobRecord>,
    /// Memory for the response. It counts until the store has the result.
    pub large: Arc<LargeResponse>,
    /// The server ends, and waits no longer.
    pub stop: CancellationToken,
}

/// The args of a job as the body of a request, without a copy.
struct ArgsOf(Arc<JobRecord>);

impl AsRef<[u8]> for ArgsOf {
    fn as_ref(&self) -> &[u8] {
        self.0.args.as_bytes()
    }
}

impl Sending {
    /// Does all of it.
    pub(super) async fn run(self) {
        let call = match self.call().await {
            Ok(call) => call,
            Err(problem) => {
                tracing::error!(
                    ?problem,
                    endpoint = self.endpoint.name,
                    "failed to prepare a job for a push endpoint"
                );
                return self.end(Meaning::given_back()).await;
            }
        };
        let timeout = call.within;
        match self.wait(call).await {
            Waited::Means(Meaning::Ends(verdict)) => self.end(verdict).await,
            Waited::Means(Meaning::GoesOn) => self.leave_there(timeout).await,
            Waited::Means(Meaning::Disabled(why)) => {
                let endpoints = Endpoints::of(self.api.tenure());
                if let Err(error) = endpoints.disable(&self.endpoint, &why).await {
                    tracing::warn!(%error, endpoint = self.endpoint.name, "failed to disable a push endpoint");
                }
                self.api.pushing().look();
                self.end(Meaning::given_back()).await;
            }
            Waited::Cancelled(reason) => {
                self.end(Verdict::Cancelled(Failure::new(Cause::Cancelled, &reason))).await;
            }
            Waited::Stopped => self.end(Verdict::Released).await,
            // Whoever has it now ends it.
            Waited::Lost => {}
        }
    }

    /// Waits for the answer, and holds the job meanwhile.
    async fn wait(&self, call: Call) -> Waited {
        let tenure = self.api.tenure();
        let clock = tenure.store().clock();
        let heard = self.caller.call(call);
        tokio::pin!(heard);
        // A wish that it stop is called out; if the call is missed, the next renewal tells of it.
        let mut asked = tenure.store().asked();
        let mut deadline = clock.moment().after(LEASE);
        let mut last_hint = None;
        loop {
            let hint = async {
                let hinted = asked.changed().await;
                let rest = last_hint.map(|at| HINTS_APART.saturating_sub(clock.moment().since(at)));
                if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
                    clock.sleep(rest).await;
                }
                hinted
            };
            let (sent, is_hint) = tokio::select! {
                biased;
                heard = &mut heard => return Waited::Means(Meaning::of(heard, tenure.now())),
                () = self.stop.cancelled() => return Waited::Stopped,
                Ok(()) = hint => (clock.moment(), true),
                () = clock.sleep(RENEWED) => (clock.moment(), false),
            };
            if is_hint {
                last_hint = Some(sent);
            }
            let jobs = [Arc::clone(&self.job)];
            let renewing = async {
                let remote = tenure.remote();
                remote.renew(LEASE, &jobs).await
            };
            // What is answered meanwhile counts.
            let renewed = tokio::select! {
                biased;
                heard = &mut heard => return Waited::Means(Meaning::of(heard, tenure.now())),
                renewed = renewing => renewed,
            };
            match renewed.map(|renewed| renewed.into_iter().next()) {
                Ok(Some(Renewal::Held(holds))) => {
                    deadline = sent.after(LEASE);
                    if let Some(cancel) = holds.cancel {
                        return Waited::Cancelled(cancel.reason);
                    }
                }
                Ok(Some(Renewal::Lapsed | Renewal::Lost) | None) => return Waited::Lost,
                Err(_) if clock.moment() < deadline => {}
                Err(error) => {
                    tracing::warn!(%error, job = %self.job.id, "lost a job: the store did not answer in time");
                    return Waited::Lost;
                }
            }
        }
    }

    /// What is sent.
    async fn call(&self) -> Result<Call, Problem> {
        let (tenure, kept, job) = (self.api.tenure(), &self.endpoint.kept, &self.job);
        let now = tenure.now();
        let body = Bytes::from_owner(ArgsOf(Arc::clone(job)));
        let id = job.id.to_string();
        // The same in every attempt: whoever has done it knows it again.
        let signed = Signed { id: &id, seconds: now.as_micros().div_euclid(1_000_000) };
        let mut headers = signed.headers(&secrets(&kept.secrets, now), &body)?;
        headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
        let token = self.api.key().await?.token(job.id, job.fence, lease_of(job));
        let callback = format!("{}/v1/jobs/{id}", self.api.public_url());
        for (name, value) in [
            ("job-id", id.as_str()),
            ("job-kind", job.kind.as_str()),
            ("job-queue", job.queue.as_str()),
            ("job-attempt", &job.attempt.to_string()),
            ("job-max-attempts", &job.terms.max_attempts().to_string()),
            ("job-token", &token),
            ("job-callback", &callback),
        ] {
            headers.push((HeaderName::from_static(name), value_of(name, value)?));
        }
        let attempt = self.api.spans().of_attempt(job).map(|begun| begun.context.to_string());
        if let Some(parent) = attempt.as_ref().or_else(|| job.terms.meta.get(trace::PARENT))
            && let Ok(parent) = HeaderValue::from_str(parent)
        {
            headers.push((HeaderName::from_static(trace::PARENT), parent));
        }
        if let Some(Ok(state)) = job.terms.meta.get(trace::STATE).map(|state| HeaderValue::from_str(state)) {
            headers.push((HeaderName::from_static(trace::STATE), state));
        }
        for (name, value) in &kept.headers {
            let Ok(named) = HeaderName::try_from(name.as_str()) else { continue };
            headers.push((named, value_of(name, value)?));
        }
        let target = Target::read(&kept.url)?;
        let within = job.terms.timeout.unwrap_or(kept.timeout).min(kept.timeout);
        let (most, large) = (limits::OUTPUT_BYTES, Some(Arc::clone(&self.large)));
        Ok(Call { method: Method::POST, target, headers, body, within, most, large })
    }

    /// Whoever was called does it by himself from here on: he renews it, and tells its end with the token.
    async fn leave_there(&self, timeout: Duration) {
        let ttl = timeout.clamp(LEASE, limits::LONGEST_LEASE);
        let jobs = [Arc::clone(&self.job)];
        if let Err(error) = self.api.tenure().remote().renew(ttl, &jobs).await {
            tracing::warn!(%error, job = %self.job.id, "failed to renew a job that the endpoint accepted");
        }
        self.api.granted().remember(&jobs);
    }

    async fn end(&self, verdict: Verdict) {
        let ending = Ending { job: Arc::clone(&self.job), verdict };
        if let Err(error) = spans::attempt::settle(&self.api, vec![ending], None).await {
            tracing::warn!(%error, job = %self.job.id, "failed to settle a pushed job; its lease will expire");
        }
    }
}

fn value_of(name: &str, value: &str) -> Result<HeaderValue, Invalid> {
    let unfit = |_| Invalid::new(name, "characters that a header cannot hold", "visible ASCII characters");
    HeaderValue::from_str(value).map_err(unfit)
}
