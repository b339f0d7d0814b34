//! Whether a job that somebody wants may be enqueued at all: by him, and as it is.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::value::RawValue;
use tenure::{Draft, Error, Invalid, JobId, JobRecord, Kind};

use crate::api::Api;
use crate::callbacks::routes::check_url;
use crate::kinds::known::ShortChecks;
use crate::problem::{Problem, ProblemType};
use crate::wire::{CALLBACK, OnConflict, Submit, UniqueScope};

/// Where a job waits that does not say it.
const USUAL_QUEUE: &str = "default";

/// Longest retention of the jobs of an access token with quotas.
const MOST_RETAINED: Duration = Duration::from_secs(14 * 24 * 3600);

/// Jobs that a job may depend on.
const AFTER: &str =
    "IDs of existing jobs that this token can see; for jobs of other clients it needs the scope read";

/// The job as the library takes it, if whoever asks may enqueue it.
pub(crate) async fn admitted(api: &Api, submit: Submit, id: Option<JobId>) -> Result<Draft, Problem> {
    admitted_in(api, submit, id, None, &mut ShortChecks::default()).await
}

/// Does the same for one of many jobs; a refusal names its place. All of them share the checks that a request may do on its thread.
pub(crate) async fn admitted_in(
    api: &Api,
    mut submit: Submit,
    id: Option<JobId>,
    index: Option<usize>,
    short: &mut ShortChecks,
) -> Result<Draft, Problem> {
    let placed = |problem: Problem| match index {
        Some(index) => problem.with("index", index),
        None => problem,
    };
    check(api, &mut submit, short).await.map_err(placed)?;
    check_retention(api, &submit).map_err(|wrong| placed(wrong.into()))?;
    let jobs = 1 + usize::from(submit.callback.is_some());
    let mut draft = submit.draft(id).map_err(|wrong| match index {
        Some(index) => wrong.in_item(index),
        None => wrong,
    })?;
    if let Err(problem) = within_quotas(api, &draft, jobs).await {
        if stored(api, draft.given_id()).await?.is_none() {
            return Err(placed(problem));
        }
        draft = only_if_stored(draft);
    }
    Ok(owned(api, draft))
}

/// Returns the job of this client.
pub(crate) fn owned(api: &Api, draft: Draft) -> Draft {
    match api.who().name() {
        Some(name) => draft.owner(name),
        None => draft,
    }
}

/// Refuses a job that would exceed a quota.
pub(crate) async fn within_quotas(api: &Api, draft: &Draft, jobs: usize) -> Result<(), Problem> {
    if let (Some(queue), Some(kind)) = (draft.queue_name(), draft.kind_and_args().0) {
        api.admit_kind(queue, kind).await?;
    }
    api.admit_waiting(jobs).await
}

/// Refuses one more waiting job beyond the quota of the access token. If a job with this ID is stored, returns it instead: the
/// request only repeats it, or its ID is taken. Do not ask the store for such a job, because the client may have deleted the
/// stored one by then.
pub(crate) async fn waiting(api: &Api, id: Option<JobId>) -> Result<Option<JobRecord>, Problem> {
    let Err(problem) = api.admit_waiting(1).await else { return Ok(None) };
    stored(api, id).await?.map(Some).ok_or(problem)
}

/// Returns the job that is stored under this ID. The store repeats its answer or refuses the ID, and no job is added, so no
/// quota applies.
async fn stored(api: &Api, id: Option<JobId>) -> Result<Option<JobRecord>, Problem> {
    let Some(id) = id else { return Ok(None) };
    match api.tenure().jobs().get(id).await {
        Ok(job) => Ok(Some(job)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the ID of a job that is never stored: clients cannot choose derived IDs.
pub(crate) fn never_stored() -> JobId {
    JobId::derived(*b"no job is stored")
}

/// Makes the store refuse a job unless one with its ID is stored: the client may delete that one meanwhile. Stores look for
/// the ID of a job before they look for its dependencies, and this job depends on one that does not exist.
fn only_if_stored(draft: Draft) -> Draft {
    // Its callback would be a new job.
    let draft = if draft.note(CALLBACK).is_some() { draft.meta(CALLBACK, "") } else { draft };
    draft.after_jobs([never_stored()])
}

/// Refuses to keep jobs of a token with quotas, or their unique keys, longer than failed jobs are kept by default: neither ended
/// jobs nor keys count against a quota.
pub(crate) fn check_retention(api: &Api, submit: &Submit) -> Result<(), Invalid> {
    let within = |field: &str, span: Option<f64>| match span {
        Some(span) if api.who().has_quotas() && span > MOST_RETAINED.as_secs_f64() => {
            let allowed = format!("at most {} for an access token with quotas", MOST_RETAINED.as_secs());
            Err(Invalid::new(field, span, allowed))
        }
        Some(_) | None => Ok(()),
    };
    within("retain_seconds", submit.retain_seconds)?;
    within("unique.for_seconds", submit.unique.as_ref().and_then(|unique| unique.for_seconds))
}

/// Has the job keep to what is said about its kind, and refuses what whoever asks does not reach, or whose args break the
/// schema.
pub(crate) async fn check(api: &Api, submit: &mut Submit, short: &mut ShortChecks) -> Result<(), Problem> {
    // An invalid kind is reported with the other fields, and `reached` refuses kinds beyond the caller's reach.
    let rules = match Kind::new(&submit.kind) {
        Ok(kind) if api.reach().covers_kind(&submit.kind) => {
            api.kinds().rules(api.tenure(), api.client(), &kind).await?
        }
        Ok(_) | Err(_) => None,
    };
    let names_queue = submit.queue.is_some();
    if let (None, Some(rules)) = (&submit.queue, &rules) {
        submit.queue.clone_from(&rules.default_queue);
    }
    reached(api, submit, names_queue).await?;
    if let Some(callback) = &submit.callback {
        let within = |wrong: Invalid| Invalid { field: format!("callback.{}", wrong.field), ..wrong };
        check_url(api, &callback.url).map_err(within)?;
    }
    match rules {
        Some(rules) => rules.check(api.client(), &submit.kind, submit.args.as_deref(), short).await,
        None => Ok(()),
    }
}

/// Refuses args that break the schema of a kind, where only args are said.
pub(crate) async fn check_args(api: &Api, kind: &Kind, args: &RawValue) -> Result<(), Problem> {
    match api.kinds().rules(api.tenure(), api.client(), kind).await? {
        Some(rules) => {
            rules.check(api.client(), kind.as_str(), Some(args), &mut ShortChecks::default()).await
        }
        None => Ok(()),
    }
}

/// Refuses what whoever asks does not reach: the job itself, jobs that it would replace, and jobs that it waits for.
/// A refusal names the queue only if the client did: only clients that reach a kind may learn its default queue.
async fn reached(api: &Api, submit: &Submit, names_queue: bool) -> Result<(), Problem> {
    let reach = api.reach();
    if reach.is_whole() && !api.sees_own_only() {
        return Ok(());
    }
    let queue = submit.queue.as_deref().unwrap_or(USUAL_QUEUE);
    if !names_queue && !reach.covers(queue, &submit.kind) {
        let jobs = format!("jobs of kind {:?} in the queue that they wait in by default", submit.kind);
        return Err(api.beyond(&jobs));
    }
    api.check_reach(queue, &submit.kind)?;
    if let Some(unique) = submit.unique.as_ref().filter(|unique| unique.on_conflict == OnConflict::Replace) {
        let is_within = match unique.scope {
            UniqueScope::Queue => true,
            UniqueScope::Kind | UniqueScope::Args => reach.has_all_queues(),
            UniqueScope::Any => reach.is_whole(),
        };
        if !is_within {
            return Err(api.beyond("the jobs that this one could replace").with("field", "unique.scope"));
        }
    }
    // A repeated ID is looked up once.
    for id in submit.after.iter().collect::<BTreeSet<_>>() {
        // What cannot be read is told of with the other fields.
        let Ok(id) = id.parse::<JobId>() else { continue };
        match api.job(id).await {
            Ok(_) => {}
            Err(problem) if problem.problem_type() == ProblemType::NotFound => {
                return Err(Invalid::new("after", id, AFTER).into());
            }
            Err(problem) => return Err(problem),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenure::Tenure;

    use super::*;
    use crate::access::{Access, Who};
    use crate::api::Rules;
    use crate::jobs::told;
    use crate::quota::Quotas;

    #[tokio::test]
    async fn a_job_beyond_a_quota_is_not_stored_if_the_one_with_its_id_is_deleted_meanwhile() {
        let quotas = Quotas { kinds_per_token: 0, ..Quotas::default() };
        let rules = Rules { access: Access::Tokens, quotas, ..Rules::default() };
        let tenure = Tenure::open("memory:").await.unwrap();
        let api = Api::new(&tenure, rules).for_client(Who::auditor());
        let id = tenure.new_id();
        let there = Draft::raw("there", &json!(1)).id(id).tag("mine");
        tenure.enqueue_draft(owned(&api, there)).await.unwrap();
        let submit = |callback: bool| -> Submit {
            let callback = callback.then(|| json!({ "url": "https://example.com" }));
            serde_json::from_value(json!({ "kind": "new", "callback": callback })).unwrap()
        };
        let refused = admitted(&api, submit(false), Some(tenure.new_id())).await.unwrap_err();
        assert_eq!(refused.problem_type(), ProblemType::QuotaExceeded);
        let mut drafts = Vec::new();
        for callback in [false, false, true] {
            drafts.push(admitted(&api, submit(callback), Some(id)).await.unwrap());
        }
        let enqueue =
            async |draft: Draft| Problem::from(told::enqueue_one(&tenure, draft).await.unwrap_err());
        assert_eq!(enqueue(drafts.remove(0)).await.problem_type(), ProblemType::IdTaken);
        tenure.jobs().cancel(id, Duration::ZERO, "").await.unwrap();
        tenure.jobs().delete(id).await.unwrap();
        for draft in drafts {
            assert_eq!(enqueue(draft).await.problem_type(), ProblemType::QuotaExceeded);
        }
        let page = tenure.jobs().page(tenure::PageAsk::default()).await.unwrap();
        assert!(page.jobs.is_empty(), "neither the job nor its callback");
    }
}
