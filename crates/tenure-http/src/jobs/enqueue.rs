//! Enqueueing one job.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::value::RawValue;
use tenure::{Accepted, Draft, Invalid, JobId, JobRecord, Tenure};

use crate::answer::{PREFERENCE_APPLIED, REPLAYED, Shown, json};
use crate::api::{Api, concealed_holder};
use crate::body;
use crate::finish::finish;
use crate::hide::{Hiding, View};
use crate::id::{Id, Named};
use crate::item::made as made_by;
use crate::jobs::{admit, told};
use crate::memory::Loan;
use crate::once::{Client, Did, Once};
use crate::prefer::Prefer;
use crate::problem::{Problem, ProblemType};
use crate::site::Site;
use crate::spans::{self, attempt::SentJobs};
use crate::trace::{self, Trace};
use crate::wait::until;
use crate::wire::{BODY_BYTES, Submit};

/// `POST /v1/jobs`
pub(crate) async fn post(api: Api, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let text = body::read(&api, body, BODY_BYTES).await?;
    let submit: Submit = body::json(&headers, &text)?;
    let once = Once::of(&api, &headers, &[b"POST /v1/jobs", &text])?;
    posted(api, headers, submit, once, text.into_loan()).await
}

/// `POST /v1/kinds/{name}/jobs`
pub(crate) async fn post_of_kind(
    api: Api,
    Named(kind): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let text = body::read(&api, body, BODY_BYTES).await?;
    let mut fields: BTreeMap<String, Box<RawValue>> = body::json(&headers, &text)?;
    if fields.contains_key("kind") {
        return Err(Invalid::new("kind", "set in the body", "only the kind in the path").into());
    }
    let unread = |error: serde_json::Error| Problem::new(ProblemType::Malformed, error.to_string());
    fields.insert("kind".to_owned(), serde_json::value::to_raw_value(&kind).map_err(unread)?);
    // An empty body needs no type. With the kind it is not empty.
    let json = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let submit: Submit = body::json(&json, &serde_json::to_vec(&fields).map_err(unread)?)?;
    let once = Once::of(&api, &headers, &[b"POST /v1/kinds/jobs", kind.as_bytes(), &text])?;
    drop(fields);
    posted(api, headers, submit, once, text.into_loan()).await
}

async fn posted(
    api: Api,
    headers: HeaderMap,
    submit: Submit,
    once: Option<Once>,
    loan: Option<Loan>,
) -> Result<Response, Problem> {
    // The request may wait for the job's end, and must not hold its values meanwhile.
    let (api, headers, accepted, replayed) = finish(loan, async move {
        let (accepted, replayed) = sent(&api, submit, None, &headers, once).await?;
        Ok((api, headers, accepted, replayed))
    })
    .await?;
    met(&api, accepted).await?;
    let status = match accepted {
        Accepted::New(_) | Accepted::Repeated(_) | Accepted::Replaced { .. } => StatusCode::ACCEPTED,
        Accepted::Existing(_) => StatusCode::OK,
    };
    let mut response = answer(&api, &headers, accepted.id(), status).await?;
    say_replayed(&mut response, replayed);
    Ok(response)
}

/// Enqueues the job that is wanted, with the trace that it belongs to, unless it names one itself.
async fn sent(
    api: &Api,
    submit: Submit,
    id: Option<JobId>,
    headers: &HeaderMap,
    once: Option<Once>,
) -> Result<(Accepted, bool), Problem> {
    let began = api.tenure().now();
    let is_named = submit.meta.contains_key(trace::PARENT);
    let begun = if is_named { None } else { api.spans().begin(trace::parent(headers)) };
    let mut draft = match (admit::admitted(api, submit, id).await, &once) {
        (Ok(draft), _) => draft,
        (Err(problem), None) => return Err(problem),
        (Err(problem), Some(once)) => return one(once.done_before(api.tenure(), problem).await?),
    };
    let own = begun.map(|begun| Trace::below(headers, begun.context.to_string()));
    if let Some(trace) = own.or_else(|| Trace::of(headers)).filter(|_| !is_named) {
        draft = trace.on(draft);
    }
    let (kind, queue) = names_of(&draft);
    let done = accept(api.tenure(), once, draft).await;
    let id = done.as_ref().ok().map(|(accepted, _)| accepted.id());
    let error = done.as_ref().err().map(|problem| problem.problem_type().title().to_owned());
    let jobs = SentJobs { queue: &queue, kind: &kind, id, count: 1 };
    spans::attempt::sent(api, begun, began, jobs, error);
    match done {
        Ok(done) => Ok(done),
        Err(problem) => Err(api.conceal(problem).await),
    }
}

/// The kind of a job and its queue.
pub(crate) fn names_of(draft: &Draft) -> (String, String) {
    let kind = draft.kind_and_args().0.map(ToString::to_string).unwrap_or_default();
    (kind, draft.queue_name().map(ToString::to_string).unwrap_or_default())
}

/// Refuses to reveal an existing job that the client does not reach.
async fn met(api: &Api, accepted: Accepted) -> Result<(), Problem> {
    let problem = match accepted {
        Accepted::New(_) | Accepted::Replaced { .. } => return Ok(()),
        Accepted::Repeated(_) => {
            let detail = "the ID belongs to a job that the access token does not cover; use another ID";
            Problem::new(ProblemType::IdTaken, detail)
        }
        Accepted::Existing(_) => concealed_holder(),
    };
    // If the job was deleted meanwhile, its client still gets the first answer.
    if api.conceals(accepted.id()).await { Err(problem) } else { Ok(()) }
}

/// Enqueues a job, once if its client would have that; answers whether it had been done before.
pub(crate) async fn accept(
    tenure: &Tenure,
    once: Option<Once>,
    draft: Draft,
) -> Result<(Accepted, bool), Problem> {
    let Some(once) = once else { return Ok((told::enqueue_one(tenure, draft).await?, false)) };
    one(once.enqueue(tenure, vec![draft]).await?)
}

/// What became of a request for one job.
fn one(did: Did) -> Result<(Accepted, bool), Problem> {
    let accepted = did.accepted.into_iter().next();
    let none = || Problem::new(ProblemType::Internal, "the store neither accepted nor refused the job");
    Ok((accepted.ok_or_else(none)?, did.replayed))
}

/// Says that a request had been done before, if it had.
pub(crate) fn say_replayed(response: &mut Response, replayed: bool) {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
}

/// `PUT /v1/jobs/{id}`
pub(crate) async fn put(api: Api, Id(id): Id, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let (submit, loan) = body::values(&api, &headers, body, BODY_BYTES).await?;
    let (api, headers, accepted) = finish(loan, async move {
        let (accepted, _) = sent(&api, submit, Some(id), &headers, None).await?;
        Ok((api, headers, accepted))
    })
    .await?;
    met(&api, accepted).await?;
    let status = match accepted {
        Accepted::New(_) | Accepted::Replaced { .. } => StatusCode::CREATED,
        Accepted::Repeated(_) | Accepted::Existing(_) => StatusCode::OK,
    };
    answer(&api, &headers, accepted.id(), status).await
}

/// Enqueues a job as a client asked, in a service of somebody's own.
pub(crate) async fn enqueue(
    tenure: &Tenure,
    client: Client<'_>,
    (headers, path, site): (&HeaderMap, &str, &Site),
    draft: Draft,
) -> Result<Response, Problem> {
    let (kind, args) = draft.kind_and_args();
    let kind = kind.map_or("", |kind| kind.as_str());
    let what = [path.as_bytes(), kind.as_bytes(), args.unwrap_or_default()];
    let once = Once::of_client(client, headers, &what)?;
    let draft = match Trace::of(headers) {
        Some(trace) => trace.on(draft),
        None => draft,
    };
    let (accepted, replayed) = accept(tenure, once, draft).await?;
    let mut response = told_of(tenure, (headers, site), accepted.id()).await;
    say_replayed(&mut response, replayed);
    Ok(response)
}

/// Tells a client of a service of somebody's own of a job that was accepted.
pub(crate) async fn told_of(tenure: &Tenure, (headers, site): (&HeaderMap, &Site), id: JobId) -> Response {
    let prefer = Prefer::of(headers);
    if let Some(wait) = prefer.wait {
        let (clock, mut ending) = (tenure.store().clock(), tenure.streams_end());
        tokio::select! {
            biased;
            _ = ending.changed() => {}
            // How it ended is looked at below, whatever came of waiting.
            _ = tenure.wait(id) => {}
            () = clock.sleep(wait) => {}
        }
    }
    let job = tenure.jobs().get(id).await.map_err(Problem::from);
    let look = |job: &JobRecord| Shown::of(job, tenure.now(), View::Plain, &Hiding::default());
    shown(site, prefer, (id, StatusCode::ACCEPTED), job, look)
}

pub(crate) async fn answer(
    api: &Api,
    headers: &HeaderMap,
    id: JobId,
    status: StatusCode,
) -> Result<Response, Problem> {
    let prefer = Prefer::of(headers);
    let wait = prefer.wait.unwrap_or(Duration::ZERO);
    let job = until(api, id, wait, |job| job.state.is_finished()).await;
    Ok(shown(api.site(), prefer, (id, status), job, |job| api.shown(job)))
}

/// Shows a job that was accepted; whoever would rather wait for its end may see that, and if it has made something, what that
/// is, as if he had made it himself. It was accepted, and that is told
/// even if it cannot be looked at any more: whoever heard of a failure would enqueue it again.
fn shown(
    site: &Site,
    prefer: Prefer,
    (id, status): (JobId, StatusCode),
    job: Result<JobRecord, Problem>,
    look: impl Fn(&JobRecord) -> Shown,
) -> Response {
    let mut made = None;
    let mut response = match job {
        Ok(job) if !prefer.minimal => {
            let shown = look(&job).on(site);
            let ended = prefer.wait.is_some() && shown.is_finished && status == StatusCode::ACCEPTED;
            made = made_by(&job).filter(|_| ended && prefer.respond_async);
            shown.answer(match (ended, &made) {
                (true, Some(_)) => StatusCode::CREATED,
                (true, None) => StatusCode::OK,
                (false, _) => status,
            })
        }
        Ok(job) => look(&job).answer_minimal(status, id),
        Err(_) => json(status, &serde_json::json!({ "id": id.to_string() })),
    };
    let is_accepted = response.status() == StatusCode::ACCEPTED;
    site.locate(response.headers_mut(), id);
    if let Some(place) = made.and_then(|place| HeaderValue::from_str(&place).ok()) {
        response.headers_mut().insert(LOCATION, place);
    }
    if let Some(applied) =
        prefer.applied(is_accepted).and_then(|applied| HeaderValue::from_str(&applied).ok())
    {
        response.headers_mut().insert(PREFERENCE_APPLIED, applied);
    }
    response
}
