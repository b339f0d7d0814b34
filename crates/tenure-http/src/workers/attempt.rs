//! What a worker tells about one job that it was granted.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::{
    Ending, Invalid, JobId, Progress, Renewal, Report, Settled, StateName, Verdict, held, limits, seconds,
};

use super::claim::check_lease;
use super::granted::{grant_of_token, lost, of_token};
use super::verdict::{Complete, Fail, Release};
use super::{overdue, roll};
use crate::answer::json;
use crate::api::Api;
use crate::body;
use crate::finish::finish;
use crate::id::Id;
use crate::problem::Problem;
use crate::spans;
use crate::wire::shape;

/// The largest body that tells about one job: its result, and a little more.
const BODY_BYTES: usize = limits::OUTPUT_BYTES + 64 * 1024;

/// A heartbeat for a running job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Heartbeat {
    /// Token of the job.
    token: String,
    /// Progress.
    #[serde(default, deserialize_with = "shape::object")]
    progress: Option<HeartbeatProgress>,
    /// New lease duration: 1 to 86400; default: the duration of the grant.
    #[schemars(range(min = limits::SHORTEST_LEASE.as_secs(), max = limits::LONGEST_LEASE.as_secs()))]
    lease_seconds: Option<f64>,
}

/// Progress of a job.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeartbeatProgress {
    /// Fraction done, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    fraction: f64,
    /// Current step.
    #[serde(default)]
    message: String,
}

impl HeartbeatProgress {
    /// As it is kept.
    pub(crate) fn checked(self) -> Result<Progress, Invalid> {
        Progress::new(self.fraction, &self.message)
    }
}

/// Response to a heartbeat.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HeartbeatAnswer {
    /// Time until the lease expires.
    expires_in_seconds: f64,
    /// `true` if the job was asked to stop.
    cancel_requested: bool,
    /// Reason for the cancellation.
    cancel_reason: Option<String>,
    /// Time that the worker has to stop the job.
    cancel_within_seconds: Option<f64>,
}

/// The job's state after the report.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SettledAnswer {
    /// Job ID.
    #[schemars(extend("format" = "uuid"))]
    pub job_id: String,
    /// New state.
    pub state: &'static str,
    /// `true` if the same report was already recorded.
    pub repeated: bool,
}

/// `POST /v1/jobs/{id}/complete`
pub(crate) async fn complete(
    api: Api,
    Id(id): Id,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (said, loan) = body::values::<Complete>(&api, &headers, body, BODY_BYTES).await?;
    let token = said.token.clone();
    finish(loan, settle(api, id, token, said.verdict()?)).await
}

/// `POST /v1/jobs/{id}/fail`
pub(crate) async fn fail(api: Api, Id(id): Id, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let (said, loan) = body::values::<Fail>(&api, &headers, body, BODY_BYTES).await?;
    let token = said.token.clone();
    finish(loan, settle(api, id, token, said.verdict()?)).await
}

/// `POST /v1/jobs/{id}/release`
pub(crate) async fn release(
    api: Api,
    Id(id): Id,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (said, loan) = body::values::<Release>(&api, &headers, body, BODY_BYTES).await?;
    let token = said.token.clone();
    finish(loan, settle(api, id, token, said.verdict()?)).await
}

async fn settle(api: Api, id: JobId, token: String, verdict: Verdict) -> Result<Response, Problem> {
    let completes = matches!(verdict, Verdict::Succeeded(_));
    let job = of_token(&api, id, &token).await?;
    let ending = Ending { job: Arc::clone(&job), verdict };
    let (settled, _) = spans::attempt::settle(&api, vec![ending], None).await?;
    api.granted().forget(&job);
    let settled = settled.into_iter().next().unwrap_or(Settled::Gone);
    Ok(json(StatusCode::OK, &told(&api, id, completes, settled).await?))
}

/// What a worker is told of what it has told.
pub(crate) async fn told(
    api: &Api,
    id: JobId,
    completes: bool,
    settled: Settled,
) -> Result<SettledAnswer, Problem> {
    let answer = |state: StateName, repeated| {
        Ok(SettledAnswer { job_id: id.to_string(), state: state.as_str(), repeated })
    };
    match settled {
        Settled::Done(state) => answer(state, false),
        Settled::Repeated => {
            let state = api.job(id).await?.state.name(api.tenure().now());
            // It had been told something else before: that it is done now changes nothing.
            if completes && state != StateName::Succeeded { Err(lost(id)) } else { answer(state, true) }
        }
        Settled::Fenced => Err(lost(id)),
        Settled::Gone => Err(api.missing(id)),
    }
}

/// `POST /v1/jobs/{id}/heartbeat`
pub(crate) async fn heartbeat(
    api: Api,
    Id(id): Id,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (said, loan) = body::values(&api, &headers, body, BODY_BYTES).await?;
    finish(loan, beat(api, id, said)).await
}

async fn beat(api: Api, id: JobId, said: Heartbeat) -> Result<Response, Problem> {
    let ttl = said.lease_seconds.map(|span| seconds("lease_seconds", span)).transpose()?;
    ttl.map_or(Ok(()), check_lease)?;
    let progress = said.progress.map(HeartbeatProgress::checked).transpose()?;
    let (job, lease) = grant_of_token(&api, id, &said.token).await?;
    if let Some(timeout) = overdue::overdue(&job, api.tenure().now()) {
        spans::attempt::settle(&api, vec![overdue::ending(Arc::clone(&job), timeout)], None).await?;
        api.granted().forget(&job);
        return Err(overdue::told(id, timeout));
    }
    if progress.is_some() {
        let report = Report { held: held(&job), progress, lines: Vec::new() };
        api.tenure().remote().report(vec![report]).await?;
    }
    let ttl = ttl.unwrap_or(lease);
    let renewed = api.tenure().remote().renew(ttl, &[Arc::clone(&job)]).await?;
    let Some(Renewal::Held(holds)) = renewed.into_iter().next() else { return Err(lost(id)) };
    roll::again_with_job(&api, &job).await;
    let now = api.tenure().now();
    let answer = HeartbeatAnswer {
        expires_in_seconds: holds.until.since(now).as_secs_f64(),
        cancel_requested: holds.cancel.is_some(),
        cancel_within_seconds: holds.cancel.as_ref().map(|cancel| cancel.deadline.since(now).as_secs_f64()),
        cancel_reason: holds.cancel.map(|cancel| cancel.reason),
    };
    Ok(json(StatusCode::OK, &answer))
}
