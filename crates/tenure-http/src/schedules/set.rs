//! Setting schedules, changing and removing them.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tenure::{
    Args, Error, Invalid, Kind, Name, NewTimer, Priority, QueueName, Timer, TimerAct, TimerDraft, TimerJob,
    TimerOutcome, TimerSeen, TimerSet,
};

use super::look::{any, find, shown, tag, there};
use super::shape::{Shape, patched, policies};
use crate::api::Api;
use crate::body;
use crate::finish::finish;
use crate::id::Named;
use crate::jobs::admit;
use crate::kinds::known::ShortChecks;
use crate::problem::{Problem, ProblemType};
use crate::wire::{BODY_BYTES, JobPatch, SchedulePatch, ScheduleSpec, Submit, check_kind, check_queue};

/// Tries to change what others change as well.
const TRIES: u32 = 10;

/// `PUT /v1/schedules/{name}`
pub(crate) async fn put(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (spec, loan) = body::values(&api, &headers, body, BODY_BYTES).await?;
    let name = Name::new("name", &name)?;
    finish(loan, set(api, name, headers, spec)).await
}

async fn set(api: Api, name: Name, headers: HeaderMap, mut spec: ScheduleSpec) -> Result<Response, Problem> {
    if let Some(other) = spec.name.as_deref().filter(|said| *said != name.as_str()) {
        return Err(Invalid::new("name", other, format_args!("{name}, as in the path, or no name")).into());
    }
    check_job(&api, &name, &mut spec.job).await?;
    let draft = draft(&name, spec)?;
    let before = any(&api, &name).await?;
    if before.is_some() && find(&api, &name).await?.is_none() {
        return Err(api.beyond(&format!("schedule {name}")));
    }
    check(&api, before.as_ref(), &headers)?;
    let timers = api.tenure().timers();
    let set = match seen(before.as_ref(), &headers) {
        TimerSeen::Never => timers.set(draft).await.map(Some),
        seen @ (TimerSeen::Absent | TimerSeen::As { .. }) => timers.set_as_seen(draft, seen).await,
    };
    let set = set.map_err(|error| in_words_of_the_wire(&name, error))?;
    answered(&api, &name, set.ok_or_else(|| changed(&name))?).await
}

/// `POST /v1/schedules`
pub(crate) async fn post(api: Api, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let (spec, loan) = body::values(&api, &headers, body, BODY_BYTES).await?;
    finish(loan, create(api, spec)).await
}

async fn create(api: Api, mut spec: ScheduleSpec) -> Result<Response, Problem> {
    let named = spec.name.take().ok_or_else(|| Invalid::new("name", "nothing", "a name"))?;
    let name = Name::new("name", &named)?;
    check_job(&api, &name, &mut spec.job).await?;
    let set = api.tenure().timers().set_as_seen(draft(&name, spec)?, TimerSeen::Absent).await;
    let set = set.map_err(|error| in_words_of_the_wire(&name, error))?;
    let Some(set) = set else {
        let detail = format!("schedule {name} already exists; change it with PUT or PATCH");
        return Err(Problem::new(ProblemType::StateConflict, detail).with("field", "name"));
    };
    answered(&api, &name, set).await
}

/// What has to be there still when it is changed: what its client has looked at, if he says so.
pub(super) fn seen(timer: Option<&Timer>, headers: &HeaderMap) -> TimerSeen {
    match timer {
        Some(timer) if headers.contains_key(IF_MATCH) => TimerSeen::of(timer),
        None if headers.contains_key(IF_NONE_MATCH) => TimerSeen::Absent,
        Some(_) | None => TimerSeen::Never,
    }
}

/// Somebody else was faster.
pub(super) fn changed(name: &Name) -> Problem {
    let detail = format!("schedule {name} has changed since it was read; read it again");
    Problem::new(ProblemType::PreconditionFailed, detail)
}

/// Does what somebody wants of a schedule, if it is as he has looked at it.
pub(super) async fn acted(
    api: &Api,
    name: &Name,
    headers: &HeaderMap,
    act: TimerAct,
) -> Result<TimerOutcome, Problem> {
    let timer = there(api, name).await?;
    check(api, Some(&timer), headers)?;
    let seen = seen(Some(&timer), headers);
    let outcome = api.tenure().timers().act_as_seen(name.as_str(), act, seen).await?;
    outcome.ok_or_else(|| changed(name))
}

/// Refuses a job that the client may not enqueue, or whose queue would be one too many.
async fn check_job(api: &Api, name: &Name, job: &mut Submit) -> Result<(), Problem> {
    let within = |problem: Problem| problem.with("field", "job");
    admit::check(api, job, &mut ShortChecks::default()).await.map_err(within)?;
    let of_job = |wrong: Invalid| Invalid { field: format!("job.{}", wrong.field), ..wrong };
    admit::check_retention(api, job).map_err(of_job)?;
    api.check_program(name, &job.kind)?;
    // An invalid name is reported with the other fields.
    let queue = job.queue.as_deref().map_or_else(|| Ok(QueueName::default()), QueueName::new);
    let (Ok(queue), Ok(kind)) = (queue, Kind::new(&job.kind)) else { return Ok(()) };
    api.admit_kind(&queue, &kind).await.map_err(within)
}

fn draft(name: &Name, spec: ScheduleSpec) -> Result<TimerDraft, Problem> {
    // The schedule of a program has the name of its kind, and a run on demand triggers the schedule of that name.
    check_kind("name", name.as_str())?;
    let (schedule, policies) = (Shape::of_spec(&spec)?.schedule()?, policies(&spec)?);
    if spec.job.id.is_some() {
        return Err(Invalid::new("job.id", "an ID", "none; each run gets its own job ID").into());
    }
    if spec.job.run_at.is_some() || spec.job.delay_seconds.is_some() {
        let field = if spec.job.run_at.is_some() { "job.run_at" } else { "job.delay_seconds" };
        return Err(Invalid::new(field, "a due time or delay", "none; the schedule sets the due time").into());
    }
    if spec.job.callback.is_some() {
        let allowed = "none; use a webhook for the jobs of a schedule";
        return Err(Invalid::new("job.callback", "a callback", allowed).into());
    }
    let within = |wrong: Invalid| Invalid { field: format!("job.{}", wrong.field), ..wrong };
    let job = spec.job.draft(None).map_err(within)?;
    let draft = TimerDraft::of(name.as_str(), schedule, job)
        .catch_up(policies.catch_up)
        .overlap(policies.overlap)
        .on_edit(policies.on_edit);
    let draft = match policies.max_lateness {
        Some(most) => draft.max_lateness(most),
        None => draft,
    };
    Ok(match spec.revision {
        Some(revision) => draft.revision(revision),
        None => draft,
    })
}

/// `PATCH /v1/schedules/{name}`
pub(crate) async fn patch(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (patch, loan) = body::values(&api, &headers, body, BODY_BYTES).await?;
    let name = Name::new("name", &name)?;
    finish(loan, change(api, name, headers, patch)).await
}

async fn change(api: Api, name: Name, headers: HeaderMap, patch: SchedulePatch) -> Result<Response, Problem> {
    // What is not said stays as it is, and so it has to be what was read.
    for _ in 0..TRIES {
        let timer = there(&api, &name).await?;
        let agreed = NewTimer::clone(&timer.agreed);
        check_not_of_program(&agreed)?;
        if let Some(args) = patch.job.as_ref().and_then(|job| job.args.as_deref()) {
            let within = |problem: Problem| problem.with("field", "job.args");
            admit::check_args(&api, &agreed.job.kind, args).await.map_err(within)?;
        }
        let changed = NewTimer {
            schedule: Shape::of_patch(&timer, &patch)?.schedule()?,
            policies: patched(agreed.policies, &patch)?,
            job: patch.job.as_ref().map_or(Ok(agreed.job.clone()), |patch| job(agreed.job.clone(), patch))?,
            ..agreed
        };
        api.check_reach(changed.job.queue.as_str(), changed.job.kind.as_str())?;
        if patch.job.is_some() {
            api.check_program(&name, changed.job.kind.as_str())?;
        }
        check(&api, Some(&timer), &headers)?;
        if changed.job.queue != timer.agreed.job.queue {
            let of_job = |problem: Problem| problem.with("field", "job");
            api.admit_kind(&changed.job.queue, &changed.job.kind).await.map_err(of_job)?;
        }
        let set = api.tenure().remote().set_timer(changed, TimerSeen::of(&timer)).await;
        if let Some(set) = set.map_err(|error| in_words_of_the_wire(&name, error))? {
            return answered(&api, &name, set).await;
        }
    }
    Err(changed(&name))
}

/// Refuses to change the schedule of a program: its host sets it from its settings, and the policies keep the program to
/// one run at a time.
fn check_not_of_program(agreed: &NewTimer) -> Result<(), Problem> {
    let is_free = check_kind("kind", agreed.job.kind.as_str())
        .and_then(|()| check_queue("queue", agreed.job.queue.as_str()));
    is_free.map_err(|_| {
        let detail = "the schedule belongs to a program; change the program's settings on its host, or pause the \
                      schedule";
        Problem::new(ProblemType::StateConflict, detail)
    })
}

/// The job of each slot with what shall be otherwise.
fn job(before: TimerJob, patch: &JobPatch) -> Result<TimerJob, Invalid> {
    let within = |wrong: Invalid| Invalid { field: format!("job.{}", wrong.field), ..wrong };
    patch.queue.as_deref().map_or(Ok(()), |queue| check_queue("queue", queue)).map_err(within)?;
    let args = patch.args.as_deref().map(|args| Args::new(args.get().as_bytes().to_vec()));
    Ok(TimerJob {
        args: args.transpose().map_err(within)?.unwrap_or(before.args),
        queue: patch
            .queue
            .as_deref()
            .map(QueueName::new)
            .transpose()
            .map_err(within)?
            .unwrap_or(before.queue),
        priority: patch.priority.map(Priority::new).transpose().map_err(within)?.unwrap_or(before.priority),
        kind: before.kind,
        terms: Arc::clone(&before.terms),
    })
}

/// `DELETE /v1/schedules/{name}`
pub(crate) async fn delete(api: Api, Named(name): Named, headers: HeaderMap) -> Result<Response, Problem> {
    let name = Name::new("name", &name)?;
    match acted(&api, &name, &headers, TimerAct::Remove).await? {
        TimerOutcome::NotFound => Err(super::look::missing(&name)),
        TimerOutcome::Done
        | TimerOutcome::Triggered(_)
        | TimerOutcome::Backfilled { .. }
        | TimerOutcome::Busy(_)
        | TimerOutcome::IdTaken(_) => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

async fn answered(api: &Api, name: &Name, set: TimerSet) -> Result<Response, Problem> {
    let status = match set {
        TimerSet::New => StatusCode::CREATED,
        // Over would have been an error.
        TimerSet::Same | TimerSet::Changed | TimerSet::Over { .. } => StatusCode::OK,
        TimerSet::Outdated { by } => {
            let detail = format!(
                "schedule {name} is declared by revision {by} of a program; a lower revision cannot change it"
            );
            return Err(Problem::new(ProblemType::StateConflict, detail).with("revision", by));
        }
    };
    Ok(shown(api, status, &there(api, name).await?))
}

/// Refuses to change what has changed since it was looked at, and to make what is to be new and is there.
pub(super) fn check(api: &Api, timer: Option<&Timer>, headers: &HeaderMap) -> Result<(), Problem> {
    let refused = |detail: String| Err(Problem::new(ProblemType::PreconditionFailed, detail));
    match timer {
        Some(timer) if tag(api, timer).is_refused(headers) => {
            refused(format!("schedule {} has changed since it was read; read it again", timer.name()))
        }
        Some(timer) if headers.contains_key(IF_NONE_MATCH) && tag(api, timer).is_known(headers) => {
            refused(format!("schedule {} already exists", timer.name()))
        }
        None if headers.contains_key(IF_MATCH) => refused("the schedule does not exist".to_owned()),
        Some(_) | None => Ok(()),
    }
}

/// What the library refuses is called as clients call it.
fn in_words_of_the_wire(name: &Name, error: Error) -> Problem {
    let Error::Invalid(wrong) = error else { return error.into() };
    let field = wrong.field.strip_prefix(&format!("timer {name}: ")).unwrap_or(&wrong.field);
    let field = match field {
        "schedule" => "spec",
        "job.after_jobs" => "job.after",
        "max_lateness" => "max_lateness_seconds",
        "job.timeout" => "job.timeout_seconds",
        // Whichever of them is out of its limits, the number is.
        "catch_up" if wrong.allowed.starts_with('1') => "catch_up_max",
        "overlap" if wrong.allowed.starts_with('1') => "overlap_max",
        other => other,
    };
    Invalid { field: field.to_owned(), ..wrong.clone() }.into()
}
