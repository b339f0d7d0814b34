//! Running, stopping and starting apps.

use axum::body::Body;
use axum::extract::OriginalUri;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use tenure::apps::{Began, Sort, Wanted};
use tenure::{ChangeOutcome, Invalid, JobId, QueueName, limits};

use super::look::{OfSort, changed, set_of, there};
use super::wire::{RunAsk, StopAsk};
use crate::api::Api;
use crate::body;
use crate::finish::finish;
use crate::id::Named;
use crate::jobs::act::{self, Nothing};
use crate::jobs::admit;
use crate::problem::{Problem, ProblemType};

const BODY_BYTES: usize = 16 * 1024;
/// Bytes of what is told of whoever wishes it.
const MOST_BY: usize = 200;
/// Words of a run.
const MOST_ARGUMENTS: usize = 1_000;

/// `POST /v1/apps/triggered/{name}/run`
pub(crate) async fn run(
    api: Api,
    Named(name): Named,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (ask, loan) = body::values(&api, &headers, body, limits::ARGS_BYTES).await?;
    finish(loan, began(api, name, uri, ask)).await
}

async fn began(api: Api, name: String, uri: Uri, ask: RunAsk) -> Result<Response, Problem> {
    let id = ask.id.as_deref().map(str::parse::<JobId>).transpose();
    let id = id.map_err(|wrong| Invalid { field: "id".to_owned(), ..wrong })?;
    let id = id.map(|id| id.chosen("id")).transpose()?;
    if ask.arguments.len() > MOST_ARGUMENTS {
        let found = format!("{} words", ask.arguments.len());
        return Err(Invalid::new("arguments", found, format_args!("at most {MOST_ARGUMENTS}")).into());
    }
    if ask.arguments.iter().any(|word| word.contains('\0')) {
        return Err(Invalid::new("arguments", "an argument with a NUL byte", "arguments without NUL").into());
    }
    let by = ask.by.unwrap_or_else(|| "HTTP".to_owned());
    if by.len() > MOST_BY {
        return Err(Invalid::new(
            "by",
            format!("{} bytes", by.len()),
            format_args!("at most {MOST_BY} bytes"),
        )
        .into());
    }
    let apps = set_of(&api, &uri)?;
    let wanted = Wanted {
        arguments: ask.arguments,
        by,
        id,
        owner: api.who().name().map(str::to_owned),
        ..Wanted::default()
    };
    // Only an offered program has a queue.
    there(&apps, Sort::Triggered, &name).await?;
    api.admit_queue(&QueueName::new(apps.set())?).await?;
    if let Some(stored) = admit::waiting(&api, id).await? {
        if stored.kind.as_str() == apps.kind(&name)? {
            return act::shown(&api, stored.id, ChangeOutcome::Asked, StatusCode::ACCEPTED).await;
        }
        let detail = format!("id: {} belongs to a job that is no run of program {name}", stored.id);
        return Err(Problem::new(ProblemType::IdTaken, detail).with("job_id", stored.id.to_string()));
    }
    match apps.run(&name, &wanted).await? {
        Began::New(id) => act::shown(&api, id, ChangeOutcome::Asked, StatusCode::ACCEPTED).await,
        Began::Busy(id) => {
            let detail = "Cannot start a new run since job is already running.";
            Err(Problem::new(ProblemType::StateConflict, detail).with("job_id", id.to_string()))
        }
        Began::Stopped => {
            let detail = "WebJobs are currently in \"stopped\" state.";
            Err(Problem::new(ProblemType::StateConflict, detail))
        }
        Began::Wrong(why) => {
            let detail = format!("no host can run triggered program {name}: {why}");
            Err(Problem::new(ProblemType::StateConflict, detail))
        }
        Began::NotOffered => there(&apps, Sort::Triggered, &name).await.and_then(|_| {
            let detail = format!("no live host offers triggered program {name}");
            Err(Problem::new(ProblemType::NotFound, detail))
        }),
    }
}

/// `POST /v1/apps/triggered/{name}/stop`, and the same of a continuous one
pub(crate) async fn stop<Which: OfSort>(
    api: Api,
    Named(name): Named,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let ask: StopAsk = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let apps = set_of(&api, &uri)?;
    there(&apps, Which::SORT, &name).await?;
    apps.stop(Which::SORT, &name, &ask.reason).await?;
    Ok(changed(there(&apps, Which::SORT, &name).await?))
}

/// `POST /v1/apps/triggered/{name}/start`, and the same of a continuous one
pub(crate) async fn start<Which: OfSort>(
    api: Api,
    Named(name): Named,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let Nothing {} = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let apps = set_of(&api, &uri)?;
    // Looked at before: one that nobody offers is gone from the list once it is not stopped any more.
    let mut info = there(&apps, Which::SORT, &name).await?;
    apps.start(Which::SORT, &name).await?;
    info.stopped = None;
    Ok(changed(info))
}
