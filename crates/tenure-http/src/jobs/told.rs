//! Enqueueing jobs whose end is told to somebody: each with the job that does so, all or none.

use tenure::{Accepted, Draft, Error, Invalid, Tenure};

use crate::callbacks::end;
use crate::wire::CALLBACK;

/// Whether somebody is to be told of its end.
pub(crate) fn is_told(draft: &Draft) -> bool {
    callback(draft).is_some()
}

/// Returns the URL of the callback. A job that only repeats a stored one has an empty one.
fn callback(draft: &Draft) -> Option<&str> {
    draft.note(CALLBACK).filter(|url| !url.is_empty())
}

/// Enqueues one.
pub(crate) async fn enqueue_one(tenure: &Tenure, draft: Draft) -> Result<Accepted, Error> {
    if !is_told(&draft) {
        return tenure.enqueue_draft(draft).await.map_err(in_wire_names);
    }
    // What is wrong with it is told of it alone.
    match enqueue_all(tenure, vec![draft]).await {
        Err(Error::Invalid(wrong)) => {
            let field = wrong.field.strip_prefix("jobs[0].").unwrap_or(&wrong.field).to_owned();
            Err(Error::Invalid(Invalid { field, ..wrong }))
        }
        done => Ok(done?[0]),
    }
}

/// Enqueues these, all or none; answers for each of them, in order.
pub(crate) async fn enqueue_all(tenure: &Tenure, drafts: Vec<Draft>) -> Result<Vec<Accepted>, Error> {
    let (count, mut all, mut tellers) = (drafts.len(), Vec::with_capacity(drafts.len()), Vec::new());
    for draft in drafts {
        match callback(&draft).map(str::to_owned) {
            Some(url) => {
                let id = draft.given_id().unwrap_or_else(|| tenure.new_id());
                tellers.push(end::draft(id, &url, draft.owner_name())?);
                all.push(draft.id(id));
            }
            None => all.push(draft),
        }
    }
    all.append(&mut tellers);
    let mut accepted = tenure.enqueue_all(all).await.map_err(in_wire_names)?;
    accepted.truncate(count);
    Ok(accepted)
}

/// Names the field of a complaint as requests name it.
pub(crate) fn in_wire_names(error: Error) -> Error {
    let Error::Invalid(wrong) = error else { return error };
    let (item, field) = match wrong.field.split_once("].") {
        Some((item, field)) if item.starts_with("jobs[") => (format!("{item}]."), field),
        _ => (String::new(), wrong.field.as_str()),
    };
    let named = match field {
        "timeout" => "timeout_seconds",
        "attempts" => "max_attempts",
        "retention" => "retain_seconds",
        "backoff" => "retry",
        "backoff.steps" => "retry.waits_seconds",
        "unique.window" => "unique.for_seconds",
        other => other,
    };
    Error::Invalid(Invalid { field: format!("{item}{named}"), ..wrong })
}
