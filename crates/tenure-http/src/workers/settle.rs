//! Telling how many jobs went, and claiming the next ones, in one round trip.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tenure::{Ending, Invalid, JobId, Reserve, Settled, Verdict, limits};
use tokio::sync::oneshot;

use super::attempt::told;
use super::claim::{Claim, ClaimedJob, answer};
use super::commands::Command;
use super::grant::{Grant, portion};
use super::granted::grants_of_tokens;
use super::large::Look;
use super::roll;
use super::verdict::{Complete, Fail, Release, WorkerError};
use crate::answer::json;
use crate::api::Api;
use crate::body;
use crate::finish::unfinished;
use crate::in_transit::paid;
use crate::memory::Loan;
use crate::problem::{Problem, ProblemType};
use crate::spans;
use crate::wire::shape;

/// Jobs of one request.
const MOST: usize = limits::RESERVE_JOBS;
/// The largest body.
const BODY_BYTES: usize = 4 * 1024 * 1024;

/// Results of jobs, and a claim for the next ones.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settle {
    /// Results; at most 1000.
    #[schemars(length(max = MOST))]
    #[serde(deserialize_with = "shape::objects")]
    items: Vec<SettleItem>,
    /// Claim for the next jobs.
    #[serde(default, deserialize_with = "shape::object")]
    claim: Option<Claim>,
}

/// Result of one job. An invalid item does not affect the others.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettleItem {
    /// Job ID.
    #[schemars(extend("format" = "uuid"))]
    job_id: String,
    /// Token of the job.
    token: String,
    /// `complete`, `fail` or `release`.
    outcome: Outcome,
    /// Result, for `complete`.
    #[schemars(with = "Option<serde_json::Value>")]
    #[serde(default)]
    result: Option<Box<RawValue>>,
    /// Path of the resource that the job created.
    #[serde(default)]
    resource_location: Option<String>,
    /// Error, for `fail`.
    #[serde(default, deserialize_with = "shape::object")]
    error: Option<WorkerError>,
    /// `false` if a retry cannot help.
    #[serde(default)]
    retryable: Option<bool>,
    /// Delay before the retry; default: by the retry policy.
    #[serde(default)]
    retry_after_seconds: Option<f64>,
    /// Delay until the job is due again, for `release`.
    #[serde(default)]
    delay_seconds: Option<f64>,
}

/// Outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// The job succeeded.
    Complete,
    /// The attempt failed.
    Fail,
    /// The job is released.
    Release,
}

/// Results of a settle request.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SettleAnswer {
    /// One result per item, in order.
    items: Vec<SettleItemAnswer>,
    /// Worker ID, if jobs were claimed.
    #[schemars(extend("format" = "uuid"))]
    worker_id: Option<String>,
    /// Granted jobs.
    jobs: Vec<ClaimedJob>,
    /// Problem document, if the claim was invalid; the items are settled anyway. Without items the whole request is
    /// refused.
    claim_problem: Option<Value>,
    /// Command for the worker: `run`, `quiet` or `terminate`. Jobs are granted only with `run`.
    command: Command,
}

/// Result for one item.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SettleItemAnswer {
    /// Job ID.
    #[schemars(extend("format" = "uuid"))]
    job_id: String,
    /// 200, or the status code of the refusal.
    status: u16,
    /// New state.
    state: Option<&'static str>,
    /// `true` if the same report was already recorded.
    repeated: bool,
    /// Problem document, if the item was refused.
    problem: Option<Value>,
}

/// `POST /v1/settle`
pub(crate) async fn post(api: Api, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let text = body::read(&api, body, BODY_BYTES).await?;
    let said: Settle = body::json_of_items(&headers, &text)?;
    let loan = text.into_loan();
    if said.items.len() > MOST {
        let detail = format!("items: {} entries; expected at most {MOST}", said.items.len());
        return Err(Problem::new(ProblemType::PayloadTooLarge, detail));
    }
    let key = api.key().await?.clone();
    // Whatever is wrong with what is wanted next, how it went is heard of all the same.
    let (command, then, mut claim_problem) = match wanted(&api, said.claim.as_ref()).await {
        Ok((command, then)) => (command, then, None),
        Err(problem) if said.items.is_empty() => return Err(problem),
        Err(problem) => (Command::Run, None, Some(problem.document())),
    };
    let mut answers = Vec::with_capacity(said.items.len());
    let (mut endings, mut places) = (Vec::new(), Vec::new());
    let ids = job_ids("items", said.items.iter().map(|item| item.job_id.as_str()))?;
    let shown: Vec<_> = ids.iter().copied().zip(said.items.iter().map(|item| item.token.as_str())).collect();
    let grants = grants_of_tokens(&api, &shown).await?;
    for (item, grant) in said.items.into_iter().zip(grants) {
        let job_id = item.job_id.clone();
        match grant.and_then(|(job, _)| Ok(Ending { job, verdict: verdict(item)? })) {
            Ok(ending) => {
                let completes = matches!(ending.verdict, Verdict::Succeeded(_));
                places.push((answers.len(), completes, ending.job.clone()));
                endings.push(ending);
                answers.push(SettleItemAnswer {
                    job_id,
                    status: 200,
                    state: None,
                    repeated: false,
                    problem: None,
                });
            }
            Err(problem) => answers.push(refused(job_id, &problem)),
        }
    }
    let holder = then.as_ref().map(|ask| ask.holder);
    let (settled, grant) = settle_and_grant(&api, endings, loan, then).await?;
    for ((at, completes, job), settled) in places.into_iter().zip(settled) {
        api.granted().forget(&job);
        answers[at] = settled_answer(&api, job.id, completes, settled).await;
    }
    let grant = grant.admitted(&api, answers.len()).unwrap_or_else(|problem| {
        claim_problem = Some(problem.document());
        Grant::none(api.tenure())
    });
    let granted = holder.map(|holder| answer(&api, &key, holder, grant));
    let (worker_id, jobs, loan) = granted
        .map_or_else(Default::default, |(granted, loan)| (Some(granted.worker_id), granted.jobs, loan));
    let answer = SettleAnswer { items: answers, worker_id, jobs, claim_problem, command };
    Ok(paid(json(StatusCode::OK, &answer), loan))
}

/// Reads the job IDs of all entries. One that is no ID refuses the request: no worker was given it.
pub(super) fn job_ids<'a>(list: &str, texts: impl Iterator<Item = &'a str>) -> Result<Vec<JobId>, Invalid> {
    let read = |(place, text): (usize, &str)| {
        let named = |wrong| Invalid { field: format!("{list}[{place}].job_id"), ..wrong };
        text.parse::<JobId>().map_err(named)
    };
    texts.enumerate().map(read).collect()
}

/// What a worker that claims is told, and what the store is asked for it.
async fn wanted(api: &Api, claim: Option<&Claim>) -> Result<(Command, Option<Reserve>), Problem> {
    let Some(claim) = claim else { return Ok((Command::Run, None)) };
    let holder = claim.holder(api)?;
    if claim.says_who() {
        roll::check_passes(api, holder).await?;
    }
    let command = api.commands().of_or_run(api.tenure(), holder).await;
    // A server that is about to end grants nothing: nobody would know its tokens. Nor does a worker that is to take no more
    // jobs get any.
    if api.is_draining() || command != Command::Run {
        return Ok((command, None));
    }
    api.transfer().responses.check(api.client())?;
    // It is asked once: what a worker is told meanwhile must not keep its outcomes from being heard.
    Ok((command, Some(claim.ask_anyway(api, holder).await?)))
}

/// Grants jobs in a separate task: if the client disconnects meanwhile, the task releases the undelivered jobs.
pub(crate) async fn grant(api: &Api, ask: Reserve) -> Result<Grant, Problem> {
    settle_and_grant(api, Vec::new(), None, Some(ask)).await.map(|(_, grant)| grant)
}

/// Settles and grants in a task of its own. The memory of the results counts until the store has them.
async fn settle_and_grant(
    api: &Api,
    endings: Vec<Ending>,
    loan: Option<Loan>,
    then: Option<Reserve>,
) -> Result<(Vec<Settled>, Grant), Problem> {
    let (mut to, settled) = oneshot::channel();
    let api = api.clone();
    tokio::spawn(async move {
        let answer = settle_then_grant(&api, (endings, loan), then, &mut to).await;
        // If nobody receives it any more, the grant gives itself back.
        let _ = to.send(answer);
    });
    Ok(settled.await.map_err(|_| unfinished())??)
}

type Answer = Result<(Vec<Settled>, Grant), tenure::Error>;

async fn settle_then_grant(
    api: &Api,
    (endings, loan): (Vec<Ending>, Option<Loan>),
    then: Option<Reserve>,
    to: &mut oneshot::Sender<Answer>,
) -> Answer {
    let Some(ask) = then else {
        let (settled, claimed) = spans::attempt::settle(api, endings, None).await?;
        return Ok((settled, Grant::new(api.tenure(), claimed)));
    };
    if let Some(look) = api.large_queues().look_now(&ask) {
        return settle_at_once(api, endings, &ask, look).await;
    }
    // Outcomes do not wait until other claims have looked.
    let (settled, _) = spans::attempt::settle(api, endings, None).await?;
    drop(loan);
    let look = tokio::select! {
        look = api.large_queues().look(&ask) => look,
        () = to.closed() => return Ok((settled, Grant::none(api.tenure()))),
    };
    match settle_at_once(api, Vec::new(), &ask, look).await {
        Ok((_, grant)) => Ok((settled, grant)),
        // The outcomes are recorded; the worker claims again.
        Err(_) if !settled.is_empty() => Ok((settled, Grant::none(api.tenure()))),
        Err(error) => Err(error),
    }
}

/// Settles, and grants as much of what is asked for as fits in one response.
async fn settle_at_once(api: &Api, endings: Vec<Ending>, ask: &Reserve, look: Look<'_>) -> Answer {
    let first = portion(ask, look.at_once.min(ask.at_most));
    let (settled, claimed) = spans::attempt::settle(api, endings, Some(first)).await?;
    api.large_queues().note(&claimed.jobs);
    Ok((settled, Grant::new(api.tenure(), claimed).completed(ask, look.at_once).await))
}

fn verdict(item: SettleItem) -> Result<Verdict, tenure::Invalid> {
    let SettleItem { token, outcome, result, resource_location, error, retryable, .. } = item;
    match outcome {
        Outcome::Complete => Complete { token, result, resource_location }.verdict(),
        Outcome::Fail => {
            let retry_after_seconds = item.retry_after_seconds;
            Fail { token, error, retryable, retry_after_seconds }.verdict()
        }
        Outcome::Release => Release { token, delay_seconds: item.delay_seconds }.verdict(),
    }
}

async fn settled_answer(api: &Api, id: JobId, completes: bool, settled: Settled) -> SettleItemAnswer {
    match told(api, id, completes, settled).await {
        Ok(told) => SettleItemAnswer {
            job_id: told.job_id,
            status: 200,
            state: Some(told.state),
            repeated: told.repeated,
            problem: None,
        },
        Err(problem) => refused(id.to_string(), &problem),
    }
}

fn refused(job_id: String, problem: &Problem) -> SettleItemAnswer {
    let status = problem.problem_type().status().as_u16();
    SettleItemAnswer { job_id, status, state: None, repeated: false, problem: Some(problem.document()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tenure::{Chance, Draft, Kinds, MemoryStore, QueueName, State, SystemClock, Tenure, Want};

    use super::*;
    use crate::api::Rules;

    async fn enqueue(tenure: &Tenure, args: &str) {
        tenure.enqueue_draft(Draft::raw("k", &Value::from(args)).queue("large")).await.unwrap();
    }

    fn ask(tenure: &Tenure) -> Reserve {
        let want = Want { queue: QueueName::new("large").unwrap(), kinds: Kinds::All, at_most: 1 };
        let (holder, ttl) = (tenure.remote().draw_worker(), Duration::from_secs(30));
        Reserve { holder, ttl, wants: vec![want], at_most: 1 }
    }

    #[tokio::test]
    async fn outcomes_do_not_wait_for_other_claims_of_queues_with_large_jobs() {
        let tenure = Tenure::on(Arc::new(MemoryStore::new(Arc::new(SystemClock))), Chance::seeded(1));
        let api = Api::new(&tenure, Rules::default());
        for _ in 0..2 {
            enqueue(&tenure, &"x".repeat(250_000)).await;
        }
        let grant = grant(&api, ask(&tenure)).await.unwrap();
        let (claimed, _) = grant.told();
        let job = Arc::clone(&claimed.jobs[0]);
        let mut looks = Vec::new();
        while let Some(look) = api.large_queues().look_now(&ask(&tenure)) {
            looks.push(look);
        }
        let ending = Ending { job: Arc::clone(&job), verdict: Verdict::Released };
        let then = Some(ask(&tenure));
        let request = tokio::spawn({
            let api = api.clone();
            async move { settle_and_grant(&api, vec![ending], None, then).await }
        });
        while matches!(tenure.jobs().get(job.id).await.unwrap().state, State::Running { .. }) {
            tokio::task::yield_now().await;
        }
        assert!(!request.is_finished(), "its claim still waits for the others");
        drop(looks);
        let (settled, grant) = request.await.unwrap().unwrap();
        assert_eq!((settled.len(), grant.len()), (1, 1));
    }
}
