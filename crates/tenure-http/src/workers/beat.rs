//! One word of a worker about all that it does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::{HostId, JobRecord, Progress, Renewal, Report, held, limits, seconds};

use super::claim::check_lease;
use super::commands::Command;
use super::granted::grants_of_tokens;
use super::settle::job_ids;
use super::{overdue, roll};
use crate::answer::json;
use crate::api::Api;
use crate::body;
use crate::finish::finish;
use crate::problem::{Problem, ProblemType};
use crate::wire::shape;

/// Jobs of one request.
const MOST: usize = limits::RESERVE_JOBS;
/// The largest body.
const BODY_BYTES: usize = 4 * 1024 * 1024;

/// A heartbeat for all jobs of a worker.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beat {
    /// The running jobs; at most 1000.
    #[serde(default, deserialize_with = "shape::objects")]
    #[schemars(length(max = MOST))]
    running: Vec<BeatItem>,
    /// New lease duration of each job; default: the duration of its grant.
    #[schemars(range(min = limits::SHORTEST_LEASE.as_secs(), max = limits::LONGEST_LEASE.as_secs()))]
    lease_seconds: Option<f64>,
}

/// A running job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BeatItem {
    /// Job ID. An unknown job is reported as lost.
    #[schemars(extend("format" = "uuid"))]
    job_id: String,
    /// Token of the job.
    token: String,
    /// Progress.
    #[serde(default, deserialize_with = "shape::object")]
    progress: Option<BeatProgress>,
}

/// Progress of a job. An invalid value is ignored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BeatProgress {
    /// Fraction done, from 0 to 1; other values are clamped.
    fraction: f64,
    /// Current step.
    #[serde(default)]
    message: String,
}

/// Response to a heartbeat.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BeatAnswer {
    /// Jobs whose lease was renewed.
    extended: Vec<Extended>,
    /// Jobs among them that were asked to stop.
    cancel: Vec<ToCancel>,
    /// Jobs that the worker has lost and must stop.
    #[schemars(inner(regex(pattern = shape::ID)))]
    lost: Vec<String>,
    /// Command for the worker: `run`; `quiet`, claim no more jobs; `terminate`, stop.
    command: Command,
}

/// A renewed job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Extended {
    #[schemars(extend("format" = "uuid"))]
    job_id: String,
    /// Time until the lease expires.
    expires_in_seconds: f64,
}

/// A job that was asked to stop.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ToCancel {
    #[schemars(extend("format" = "uuid"))]
    job_id: String,
    /// Reason for the cancellation.
    reason: String,
    /// Time that the worker has to stop the job.
    within_seconds: f64,
}

/// `POST /v1/workers/{id}/heartbeat`
pub(crate) async fn post(
    api: Api,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let worker: HostId = id.parse()?;
    let (said, loan) = body::values(&api, &headers, body, BODY_BYTES).await?;
    finish(loan, beat(api, worker, said)).await
}

async fn beat(api: Api, worker: HostId, said: Beat) -> Result<Response, Problem> {
    if said.running.len() > MOST {
        let detail = format!("running: {} entries; expected at most {MOST}", said.running.len());
        return Err(Problem::new(ProblemType::PayloadTooLarge, detail));
    }
    let ttl = said.lease_seconds.map(|span| seconds("lease_seconds", span)).transpose()?;
    ttl.map_or(Ok(()), check_lease)?;
    roll::check_passes(&api, worker).await?;
    let (extended, cancel, lost, command) = (Vec::new(), Vec::new(), Vec::new(), Command::Run);
    let mut answer = BeatAnswer { extended, cancel, lost, command };
    let (mut over, now) = (Vec::new(), api.tenure().now());
    let (mut held_jobs, mut reports) = (BTreeMap::<Duration, Vec<Arc<JobRecord>>>::new(), Vec::new());
    let ids = job_ids("running", said.running.iter().map(|item| item.job_id.as_str()))?;
    let shown: Vec<_> =
        ids.iter().copied().zip(said.running.iter().map(|item| item.token.as_str())).collect();
    let grants = grants_of_tokens(&api, &shown).await?;
    for (item, grant) in said.running.into_iter().zip(grants) {
        match grant {
            Ok((job, lease)) => {
                if let Some(timeout) = overdue::overdue(&job, now) {
                    answer.lost.push(item.job_id);
                    api.granted().forget(&job);
                    over.push(overdue::ending(job, timeout));
                    continue;
                }
                // What is wrong with the progress of one job must not cost the worker any: it is cut to what is allowed.
                let progress =
                    item.progress.map(|said| Progress::new(said.fraction.clamp(0.0, 1.0), &said.message));
                if let Some(Ok(progress)) = progress {
                    reports.push(Report { held: held(&job), progress: Some(progress), lines: Vec::new() });
                }
                held_jobs.entry(ttl.unwrap_or(lease)).or_default().push(job);
            }
            Err(problem) if is_about_the_job(&problem) => answer.lost.push(item.job_id),
            Err(problem) => return Err(problem),
        }
    }
    // First of all: while anything else is done, time goes by.
    for (ttl, jobs) in held_jobs {
        let renewed = api.tenure().remote().renew(ttl, &jobs).await?;
        answer.note(&api, &jobs, renewed);
    }
    if !over.is_empty() {
        api.tenure().remote().settle(over, None).await?;
    }
    roll::again(&api, worker);
    if !reports.is_empty()
        && let Err(error) = api.tenure().remote().report(reports).await
    {
        tracing::debug!(%error, "failed to store progress");
    }
    answer.command = api.commands().of_or_run(api.tenure(), worker).await;
    Ok(json(StatusCode::OK, &answer))
}

impl BeatAnswer {
    fn note(&mut self, api: &Api, jobs: &[Arc<JobRecord>], renewed: Vec<Renewal>) {
        let now = api.tenure().now();
        for (job, renewal) in jobs.iter().zip(renewed) {
            let job_id = job.id.to_string();
            let Renewal::Held(holds) = renewal else {
                self.lost.push(job_id);
                continue;
            };
            if let Some(cancel) = holds.cancel {
                let within_seconds = cancel.deadline.since(now).as_secs_f64();
                self.cancel.push(ToCancel { job_id: job_id.clone(), reason: cancel.reason, within_seconds });
            }
            self.extended.push(Extended { job_id, expires_in_seconds: holds.until.since(now).as_secs_f64() });
        }
    }
}

/// Whether only this job is concerned, and not the whole request.
fn is_about_the_job(problem: &Problem) -> bool {
    matches!(problem.problem_type(), ProblemType::LeaseLost | ProblemType::NotFound | ProblemType::Validation)
}
