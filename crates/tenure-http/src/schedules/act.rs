//! Pausing a schedule, resuming it, and asking for a job of it now.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tenure::{ChangeOutcome, Invalid, JobId, Name, TimerAct, TimerOutcome, json_value, limits};

use super::look::{missing, shown, there};
use super::set::acted;
use crate::api::Api;
use crate::body;
use crate::finish::finish;
use crate::id::Named;
use crate::jobs::act::{self, Nothing};
use crate::jobs::admit;
use crate::problem::{Problem, ProblemType};
use crate::wire::{PauseAsk, TriggerAsk};

const BODY_BYTES: usize = 16 * 1024;

/// `POST /v1/schedules/{name}/pause`
pub(crate) async fn pause(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let ask: PauseAsk = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let name = Name::new("name", &name)?;
    let outcome = acted(&api, &name, &headers, TimerAct::Pause { reason: ask.reason }).await?;
    done(&api, &name, &outcome).await
}

/// `POST /v1/schedules/{name}/resume`
pub(crate) async fn resume(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let Nothing {} = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let name = Name::new("name", &name)?;
    let outcome = acted(&api, &name, &headers, TimerAct::Resume).await?;
    done(&api, &name, &outcome).await
}

async fn done(api: &Api, name: &Name, outcome: &TimerOutcome) -> Result<Response, Problem> {
    if *outcome == TimerOutcome::NotFound {
        return Err(missing(name));
    }
    Ok(shown(api, StatusCode::OK, &there(api, name).await?))
}

/// `POST /v1/schedules/{name}/trigger`
pub(crate) async fn trigger(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let most = limits::ARGS_BYTES + BODY_BYTES;
    let (ask, loan) = body::values(&api, &headers, body, most).await?;
    let name = Name::new("name", &name)?;
    finish(loan, triggered(api, name, ask)).await
}

async fn triggered(api: Api, name: Name, ask: TriggerAsk) -> Result<Response, Problem> {
    let id = ask.id.as_deref().map(str::parse::<JobId>).transpose();
    let id = id.map_err(|wrong| Invalid { field: "id".to_owned(), ..wrong })?;
    let id = id.map(|id| id.chosen("id")).transpose()?;
    if !api.reach().is_whole() || ask.args.is_some() {
        let timer = there(&api, &name).await?;
        if let Some(args) = ask.args.as_deref() {
            let kind = &timer.agreed.job.kind;
            api.check_program(&name, kind.as_str())?;
            admit::check_args(&api, kind, args).await?;
        }
    }
    if let Some(stored) = admit::waiting(&api, id).await? {
        there(&api, &name).await?;
        let repeats = stored.terms.slot.as_ref().is_some_and(|slot| slot.is_trigger_of(&name));
        let id = stored.id;
        return answered(
            &api,
            &name,
            if repeats { TimerOutcome::Triggered(id) } else { TimerOutcome::IdTaken(id) },
        )
        .await;
    }
    let mut trigger = api.tenure().timers().trigger(name.as_str());
    if let Some(owner) = api.who().name() {
        trigger = trigger.owner(owner);
    }
    if let Some(id) = id {
        trigger = trigger.id(id);
    }
    if let Some(args) = ask.args {
        let value = json_value(args.get()).map_err(|_| Invalid::new("args", "invalid JSON", "JSON"))?;
        trigger = trigger.raw_args(&value);
    }
    answered(&api, &name, trigger.await?).await
}

async fn answered(api: &Api, name: &Name, outcome: TimerOutcome) -> Result<Response, Problem> {
    match outcome {
        TimerOutcome::Triggered(job) => {
            act::shown(api, job, ChangeOutcome::Asked, StatusCode::ACCEPTED).await
        }
        TimerOutcome::Busy(job) => {
            let detail = format!(
                "job {job} of schedule {name} has not ended, and its overlap policy allows no second one"
            );
            Err(Problem::new(ProblemType::StateConflict, detail).with("job_id", job.to_string()))
        }
        // Nothing is told of the other job: it may be one that the access token does not reach.
        TimerOutcome::IdTaken(id) => {
            let detail = format!("id: {id} belongs to a job that was not triggered for schedule {name}");
            Err(Problem::new(ProblemType::IdTaken, detail).with("job_id", id.to_string()))
        }
        TimerOutcome::NotFound => Err(missing(name)),
        TimerOutcome::Done | TimerOutcome::Backfilled { .. } => {
            tracing::error!(schedule = %name, "the store answered a trigger request with another result");
            Err(Problem::new(ProblemType::Internal, "the store answered with an unexpected result"))
        }
    }
}
