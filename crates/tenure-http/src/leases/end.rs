//! Taking a lease from whoever has it.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tenure::{Error, LeaseName, seconds};

use crate::answer::json;
use crate::api::Api;
use crate::body;
use crate::id::Named;
use crate::problem::{Problem, ProblemType};
use crate::wire::{BreakAsk, LeaseBreaks};

const BODY_BYTES: usize = 16 * 1024;

/// `POST /v1/leases/{name}/break`
pub(crate) async fn break_it(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let ask: BreakAsk = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let within = ask.after_seconds.map(|span| seconds("after_seconds", span)).transpose()?;
    let name = LeaseName::in_field("name", &name)?;
    let free = match api.tenure().leases().break_it(name.as_str(), within, &ask.reason).await {
        Ok(free) => free,
        Err(Error::LeaseRefused { refusal, .. }) => {
            if api.tenure().leases().info(name.as_str()).await?.is_none() {
                return Err(missing(&name));
            }
            let detail = format!("cannot break lease {name}: {refusal}");
            return Err(Problem::new(ProblemType::StateConflict, detail));
        }
        Err(other) => return Err(other.into()),
    };
    api.lease_watchers().tell(&name);
    let free_in_seconds = free.since(api.tenure().now()).as_secs_f64();
    let answer = LeaseBreaks { name: name.to_string(), free_at: free.to_string(), free_in_seconds };
    Ok(json(StatusCode::OK, &answer))
}

/// What is told of a lease that nobody has ever held.
pub(crate) fn missing(name: &LeaseName) -> Problem {
    let detail = format!("lease {name} not found");
    Problem::new(ProblemType::NotFound, detail)
}
