//! Why the jobs of a queue do not run.

use axum::http::StatusCode;
use axum::response::Response;
use tenure::{Count, Host, QueueInfo, QueueName, StateName};

use super::look::there;
use super::stats::counted;
use crate::answer::json;
use crate::api::Api;
use crate::id::Named;
use crate::problem::Problem;
use crate::wire::{ReasonDocument, Reasons};

/// Kinds that one reason names.
const MOST_KINDS: usize = 20;

/// `GET /v1/queues/{name}/explain`
pub(crate) async fn get(api: Api, Named(name): Named) -> Result<Response, Problem> {
    let queue = there(&api, &QueueName::new(&name)?).await?;
    let (counts, hosts) = (counted(&api).await?, api.tenure().hosts().await?);
    Ok(json(StatusCode::OK, &Reasons { items: reasons(&queue, &counts, &hosts) }))
}

/// All that keeps its jobs from running, the weightiest first; none if nothing does.
fn reasons(queue: &QueueInfo, counts: &[Count], hosts: &[Host]) -> Vec<ReasonDocument> {
    let name = &queue.name;
    let in_state = |state: StateName| -> u64 {
        let of_it = counts.iter().filter(|count| count.queue == *name && count.state == state);
        of_it.map(|count| count.jobs).sum()
    };
    let (queued, running) = (in_state(StateName::Queued), in_state(StateName::Running));
    let (scheduled, blocked) = (in_state(StateName::Scheduled), in_state(StateName::Blocked));
    let mut reasons = Vec::new();
    let mut say = |reason: &str, detail: String| {
        reasons.push(ReasonDocument { reason: reason.to_owned(), detail });
    };
    if queue.paused {
        say("paused", format!("queue {name} is paused; resume it to run its jobs"));
    }
    let serve: Vec<&Host> =
        hosts.iter().filter(|host| host.serves.iter().any(|serves| serves.queue == *name)).collect();
    if serve.is_empty() {
        say("not_served", format!("no registered live worker serves queue {name}"));
    } else {
        // Of kinds that nobody takes.
        let waits = |count: &&Count| {
            count.queue == *name && matches!(count.state, StateName::Queued | StateName::Scheduled)
        };
        let takes = |count: &Count| {
            serve.iter().flat_map(|host| &host.serves).any(|serves| {
                let kinds = serves.kinds.as_ref();
                serves.queue == *name && kinds.is_none_or(|kinds| kinds.contains(&count.kind))
            })
        };
        let mut untaken: Vec<String> = counts
            .iter()
            .filter(waits)
            .filter(|count| !takes(count))
            .map(|count| count.kind.to_string())
            .collect();
        untaken.sort_unstable();
        untaken.dedup();
        if !untaken.is_empty() {
            let more = untaken.len().saturating_sub(MOST_KINDS);
            untaken.truncate(MOST_KINDS);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let detail =
                format!("no registered live worker has a handler for kind {}{more}", untaken.join(", "));
            say("kind_not_served", detail);
        }
    }
    if let Some(most) = queue.limit.most.filter(|most| running >= u64::from(*most)) {
        say("limit_full", format!("{running} jobs of queue {name} are running, and its limit is {most}"));
    }
    if blocked > 0 {
        let detail =
            format!("{blocked} jobs wait for other jobs, for their turn in an ordering key, or for a limit");
        say("blocked", format!("{detail}; see `GET /v1/jobs/{{id}}/explain` for one job"));
    }
    if queued == 0 && scheduled > 0 {
        say("due_later", format!("no due jobs in queue {name}; {scheduled} are scheduled"));
    }
    if queued == 0 && scheduled == 0 && blocked == 0 {
        say("nothing_waits", format!("no waiting jobs in queue {name}; {running} are running"));
    }
    reasons
}
