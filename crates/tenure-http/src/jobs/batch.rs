//! Enqueueing many jobs: all of them or none, or each by itself.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenure::{Accepted, Draft};

use crate::answer::json;
use crate::api::Api;
use crate::body;
use crate::finish::finish;
use crate::jobs::admit::admitted_in;
use crate::jobs::each::enqueue_each;
use crate::jobs::enqueue::{names_of, say_replayed};
use crate::jobs::told;
use crate::kinds::known::ShortChecks;
use crate::once::{Did, Once};
use crate::problem::{Problem, ProblemType};
use crate::spans::{self, attempt::SentJobs};
use crate::trace::{self, Trace};
use crate::wire::{Submit, shape};

/// Jobs of one request.
pub(crate) const MOST_JOBS: usize = 1_000;
/// Dependencies of all jobs of one request: each may be a look at the store.
const MOST_DEPENDENCIES: usize = 10_000;
/// Bytes of one request.
pub(crate) const MOST_BYTES: usize = 4 * 1024 * 1024;

/// A batch of jobs to enqueue.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Batch {
    /// The jobs; at most 1000.
    #[schemars(length(max = MOST_JOBS))]
    #[serde(deserialize_with = "shape::objects")]
    jobs: Vec<Submit>,
    /// `true` enqueues all jobs or none; this is the default. `false` handles each job on its own and answers 200.
    #[serde(default)]
    atomic: Option<bool>,
}

/// Result of a batch.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BatchAnswer {
    /// One item per job, in order.
    items: Vec<BatchItem>,
}

/// Result for one job of a batch.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BatchItem {
    /// Position in the batch, from 0.
    index: usize,
    /// ID of the enqueued or existing job; omitted for an existing job that the access token does not cover.
    #[schemars(extend("format" = "uuid"))]
    id: Option<String>,
    /// `true` if the job was created by this request.
    created: bool,
}

/// Result of a batch whose jobs are handled one by one.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EachAnswer {
    /// One item per job, in order.
    items: Vec<EachItem>,
}

/// Result for one job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EachItem {
    /// Position in the batch, from 0.
    index: usize,
    /// 202, or the status code of the refusal.
    status: u16,
    /// ID of the enqueued or existing job; omitted if the job was refused or the access token does not cover it.
    #[schemars(extend("format" = "uuid"))]
    id: Option<String>,
    /// `true` if the job was created by this request.
    created: bool,
    /// Problem document, if the job was refused.
    problem: Option<Value>,
}

/// `POST /v1/jobs/batch`
pub(crate) async fn post(api: Api, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let text = body::read(&api, body, MOST_BYTES).await?;
    let Batch { jobs, atomic } = match is_lines(&headers) {
        true => {
            body::check_encoding(&headers)?;
            Batch { jobs: lines(&text)?, atomic: None }
        }
        false => body::json_of_items(&headers, &text)?,
    };
    if jobs.len() > MOST_JOBS {
        let detail = format!("jobs: {} entries; expected at most {MOST_JOBS}", jobs.len());
        return Err(Problem::new(ProblemType::PayloadTooLarge, detail).with("limit_jobs", MOST_JOBS));
    }
    let dependencies: usize = jobs.iter().map(|job| job.after.len()).sum();
    if dependencies > MOST_DEPENDENCIES {
        let detail = format!("after: {dependencies} IDs in all jobs; expected at most {MOST_DEPENDENCIES}");
        return Err(Problem::new(ProblemType::PayloadTooLarge, detail));
    }
    let once = Once::of(&api, &headers, &[b"POST /v1/jobs/batch", &text])?;
    finish(text.into_loan(), async move {
        match atomic {
            Some(false) => each(&api, &headers, once, jobs).await,
            Some(true) | None => all(&api, &headers, once, jobs).await,
        }
    })
    .await
}

/// Enqueues all jobs or none.
async fn all(
    api: &Api,
    headers: &HeaderMap,
    once: Option<Once>,
    jobs: Vec<Submit>,
) -> Result<Response, Problem> {
    let (began, begun) = (api.tenure().now(), api.spans().begin(trace::parent(headers)));
    let own = begun.map(|begun| Trace::below(headers, begun.context.to_string()));
    let drafts = drafts(api, jobs, own.or_else(|| Trace::of(headers)).as_ref()).await;
    let first = drafts.as_ref().ok().and_then(|drafts| drafts.first().map(names_of));
    let done = match (once, drafts) {
        (None, Ok(drafts)) => {
            let enqueued = told::enqueue_all(api.tenure(), drafts).await;
            enqueued.map(|accepted| Did { accepted, replayed: false }).map_err(Problem::from)
        }
        (None, Err(problem)) => Err(problem),
        (Some(once), Ok(drafts)) => once.enqueue(api.tenure(), drafts).await,
        (Some(once), Err(problem)) => once.done_before(api.tenure(), problem).await,
    };
    let Did { accepted, replayed } = match done {
        Ok(did) => did,
        Err(problem) => return Err(api.conceal(problem).await),
    };
    let (kind, queue) = first.unwrap_or_default();
    let sent = SentJobs { queue: &queue, kind: &kind, id: None, count: accepted.len() };
    spans::attempt::sent(api, begun, began, sent, None);
    let items = items(api, accepted).await;
    let mut response = json(StatusCode::ACCEPTED, &BatchAnswer { items });
    say_replayed(&mut response, replayed);
    Ok(response)
}

/// What became of each, as whoever asks may know it.
async fn items(api: &Api, accepted: Vec<Accepted>) -> Vec<BatchItem> {
    let mut items = Vec::with_capacity(accepted.len());
    for (index, accepted) in accepted.into_iter().enumerate() {
        let created = matches!(accepted, Accepted::New(_) | Accepted::Replaced { .. });
        let is_kept_back = !created && api.conceals(accepted.id()).await;
        items.push(BatchItem { index, id: (!is_kept_back).then(|| accepted.id().to_string()), created });
    }
    items
}

/// Enqueues those that are not refused.
async fn each(
    api: &Api,
    headers: &HeaderMap,
    once: Option<Once>,
    jobs: Vec<Submit>,
) -> Result<Response, Problem> {
    let (began, begun) = (api.tenure().now(), api.spans().begin(trace::parent(headers)));
    let own = begun.map(|begun| Trace::below(headers, begun.context.to_string()));
    let trace = own.or_else(|| Trace::of(headers));
    let (mut drafts, mut short) = (Vec::with_capacity(jobs.len()), ShortChecks::default());
    for job in jobs {
        match draft(api, job, trace.as_ref(), None, &mut short).await {
            Err(problem) if problem.problem_type().status().is_server_error() => return Err(problem),
            told => drafts.push(told),
        }
    }
    let (kind, queue) = drafts.iter().find_map(|draft| draft.as_ref().ok().map(names_of)).unwrap_or_default();
    let (mut answers, replayed) = match once {
        None => (enqueue_each(api.tenure(), drafts).await?, false),
        Some(once) => once.enqueue_each(api.tenure(), drafts).await?,
    };
    let count = answers.iter().filter(|answer| answer.is_ok()).count();
    spans::attempt::sent(api, begun, began, SentJobs { queue: &queue, kind: &kind, id: None, count }, None);
    for answer in &mut answers {
        if let Err(problem) = answer {
            *problem = api.conceal(problem.clone()).await;
        }
    }
    let answers = answers.into_iter();
    let mut items: Vec<EachItem> =
        answers.enumerate().map(|(index, answer)| EachItem::of(index, answer)).collect();
    for item in items.iter_mut().filter(|item| !item.created) {
        let id = item.id.as_deref().and_then(|id| id.parse().ok());
        if let Some(id) = id
            && api.conceals(id).await
        {
            item.id = None;
        }
    }
    let mut response = json(StatusCode::OK, &EachAnswer { items });
    say_replayed(&mut response, replayed);
    Ok(response)
}

impl EachItem {
    fn of(index: usize, answer: Result<Accepted, Problem>) -> Self {
        match answer {
            Ok(accepted) => Self {
                index,
                status: StatusCode::ACCEPTED.as_u16(),
                id: Some(accepted.id().to_string()),
                created: matches!(accepted, Accepted::New(_) | Accepted::Replaced { .. }),
                problem: None,
            },
            Err(problem) => Self {
                index,
                status: problem.problem_type().status().as_u16(),
                id: None,
                created: false,
                problem: Some(problem.document()),
            },
        }
    }
}

/// The jobs, if each of them may be enqueued, of the trace that they belong to unless one of them names its own.
async fn drafts(api: &Api, jobs: Vec<Submit>, trace: Option<&Trace>) -> Result<Vec<Draft>, Problem> {
    let (mut drafts, mut short) = (Vec::with_capacity(jobs.len()), ShortChecks::default());
    for (index, job) in (0_usize..).zip(jobs) {
        drafts.push(draft(api, job, trace, Some(index), &mut short).await?);
    }
    Ok(drafts)
}

async fn draft(
    api: &Api,
    job: Submit,
    trace: Option<&Trace>,
    index: Option<usize>,
    short: &mut ShortChecks,
) -> Result<Draft, Problem> {
    let trace = trace.filter(|_| !job.meta.contains_key(trace::PARENT));
    let draft = admitted_in(api, job, None, index, short).await?;
    Ok(match trace {
        Some(trace) => trace.on(draft),
        None => draft,
    })
}

fn is_lines(headers: &HeaderMap) -> bool {
    let said = headers.get(CONTENT_TYPE).and_then(|said| said.to_str().ok()).unwrap_or_default();
    said.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/x-ndjson"))
}

/// A job a line; empty lines are passed over.
fn lines(text: &[u8]) -> Result<Vec<Submit>, Problem> {
    let mut json = HeaderMap::new();
    json.insert(CONTENT_TYPE, axum::http::HeaderValue::from_static("application/json"));
    let lines = (1_usize..).zip(text.split(|byte| *byte == b'\n'));
    let lines = lines.filter(|(_, line)| !line.iter().all(u8::is_ascii_whitespace));
    lines
        .map(|(number, line)| body::json(&json, line).map_err(|problem| problem.with("line", number)))
        .collect()
}
