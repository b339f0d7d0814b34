//! Jobs for slots that have passed.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tenure::{Error, Invalid, Name};

use super::look::{MOST_SLOTS, there};
use super::search::search_store;
use crate::answer::json;
use crate::api::Api;
use crate::audit::NotAudited;
use crate::body;
use crate::id::Named;
use crate::problem::{Problem, ProblemType};
use crate::wire::{BackfillAnswer, BackfillAsk, BackfillPreview, SlotDocument, instant};

const BODY_BYTES: usize = 16 * 1024;
/// Steps of one request: each brings up to a thousand jobs. Who wants more goes on.
const STEPS: usize = 10;

/// `POST /v1/schedules/{name}/backfill`
pub(crate) async fn post(
    api: Api,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let ask: BackfillAsk = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let (from, to) = (instant("from", &ask.from)?, instant("to", &ask.to)?);
    let name = Name::new("name", &name)?;
    let timer = there(&api, &name).await?;
    if ask.dry_run {
        let most = usize::try_from(MOST_SLOTS).unwrap_or(usize::MAX);
        let (tenure, again) = (api.tenure().clone(), ask.again);
        let found = search_store(api.client(), async move {
            let backfill = tenure.timers().backfill(name.as_str(), from, to).await?;
            let backfill = if again { backfill.again() } else { backfill };
            backfill.slots(most + 1).await
        });
        let mut slots = found.await?.map_err(named)?;
        let capped = slots.len() > most;
        slots.truncate(most);
        let zone = timer.agreed.schedule.zone();
        let slots = slots.iter().map(|slot| SlotDocument::of(slot, zone)).collect();
        let mut response = json(StatusCode::OK, &BackfillPreview { slots, capped });
        response.extensions_mut().insert(NotAudited);
        return Ok(response);
    }
    // The runs belong to the schedule, so the quota could not count them.
    if api.who().waiting_quota().is_some() {
        let detail = "an access token with a quota of waiting jobs cannot backfill a schedule; trigger the schedule, or use a \
                      token without max_waiting_jobs";
        return Err(Problem::new(ProblemType::Forbidden, detail));
    }
    let backfill = api.tenure().timers().backfill(name.as_str(), from, to).await.map_err(named)?;
    let mut backfill = if ask.again { backfill.again() } else { backfill };
    let mut answer = BackfillAnswer { jobs: 0, next_from: None };
    for _ in 0..STEPS {
        let Some(step) = backfill.step().await? else { break };
        answer = BackfillAnswer { jobs: step.so_far, next_from: step.next.map(|next| next.to_string()) };
    }
    Ok(json(StatusCode::ACCEPTED, &answer))
}

/// A timer that follows its runs has no slots of the past.
fn named(error: Error) -> Problem {
    let Error::Invalid(wrong) = error else { return error.into() };
    let field = if wrong.field == "timer" { "name".to_owned() } else { wrong.field };
    Invalid { field, ..wrong }.into()
}
