//! What is told to somebody who cannot have a lease, or has it no longer.

use std::time::Duration;

use tenure::{LeaseInfo, LeaseName, LeaseRefusal, Timestamp};

use crate::api::Api;
use crate::hide::View;
use crate::problem::{Problem, ProblemType};
use crate::wire::HolderDocument;

/// When somebody should ask again for a lease of which nobody knows when it ends.
const AGAIN: Duration = Duration::from_secs(5);

/// And at the latest, however long it is to last: it may be given back sooner.
const AT_LEAST: Duration = Duration::from_secs(60);

/// Somebody else has it.
pub(crate) fn held(api: &Api, name: &LeaseName, refusal: &LeaseRefusal) -> Problem {
    let now = api.tenure().now();
    let problem = Problem::new(ProblemType::LeaseHeld, format!("lease {name}: {refusal}"));
    let problem = problem.with("name", name.as_str());
    let ends = |problem: Problem, until: Option<Timestamp>| {
        let Some(until) = until else { return problem.retry_after(AGAIN) };
        let left = until.since(now);
        let problem =
            problem.with("expires_at", until.to_string()).with("expires_in_seconds", left.as_secs_f64());
        problem.retry_after(left.min(AT_LEAST))
    };
    match refusal {
        LeaseRefusal::Held { by, fence, since, until, waiting } => {
            let problem = problem.with("holder", document(api, by)).with("fence", fence.to_string());
            let problem = problem.with("held_since", since.to_string()).with("waiting", *waiting);
            ends(problem, *until)
        }
        LeaseRefusal::Breaking { until } => ends(problem, Some(*until)),
        LeaseRefusal::Awaited { ahead, again } => {
            problem.with("waiting", *ahead).retry_after(again.since(now))
        }
        LeaseRefusal::WrongId
        | LeaseRefusal::Lost { .. }
        | LeaseRefusal::Lapsed { .. }
        | LeaseRefusal::Broken
        | LeaseRefusal::NotHeld => problem.retry_after(AGAIN),
    }
}

/// It is not this one's any more: who has it now is told, if somebody does.
pub(crate) async fn lost(api: &Api, name: &LeaseName, why: &str) -> Problem {
    let detail = format!("lease {name} is not held under this token: {why}");
    let problem = Problem::new(ProblemType::LeaseLost, detail).with("name", name.as_str());
    // That it is lost is told even if nobody can say who has it now.
    let Ok(Some(LeaseInfo { lease, state, .. })) = api.tenure().leases().info(name.as_str()).await else {
        return problem;
    };
    let problem = problem.with("state", state.as_str()).with("fence", lease.fence.to_string());
    match lease.held.as_ref().filter(|_| state.is_locked()) {
        Some(held) => {
            let left = lease.until().map(|until| until.since(api.tenure().now()).as_secs_f64());
            problem.with("holder", document(api, &held.by)).with("expires_in_seconds", left)
        }
        None => problem.with("holder", serde_json::Value::Null),
    }
}

fn document(api: &Api, holder: &tenure::Holder) -> serde_json::Value {
    let mut document = HolderDocument::of(holder);
    if api.view() == View::Hidden {
        api.hiding().notes(&mut document.metadata);
    }
    serde_json::to_value(document).unwrap_or_default()
}
