//! What a schedule would come to, before anybody sets it.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tenure::{Invalid, Timestamp};

use super::look::MOST_SLOTS;
use super::search::search;
use super::shape::Shape;
use crate::answer::json;
use crate::api::Api;
use crate::body;
use crate::problem::Problem;
use crate::wire::{PreviewAnswer, PreviewAsk, SlotDocument, instant};

const BODY_BYTES: usize = 256 * 1024;

/// `POST /v1/schedules/preview`
pub(crate) async fn post(api: Api, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let ask: PreviewAsk = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let count = ask.count.unwrap_or(10);
    if !(1..=MOST_SLOTS).contains(&count) {
        return Err(Invalid::new("count", count, format_args!("1 to {MOST_SLOTS}")).into());
    }
    let from = ask.from.as_deref().map_or(Ok(api.tenure().now()), |from| instant("from", from))?;
    let found = search(move || answer(&ask, from, usize::try_from(count).unwrap_or(usize::MAX)));
    Ok(json(StatusCode::OK, &found.await??))
}

fn answer(ask: &PreviewAsk, from: Timestamp, count: usize) -> Result<PreviewAnswer, Problem> {
    let schedule = Shape::of_preview(ask)?.schedule()?;
    let preview = schedule.preview(from, count);
    Ok(PreviewAnswer {
        description: preview.description,
        schedule: schedule.to_string(),
        next: preview.next.iter().map(|slot| SlotDocument::of(slot, schedule.zone())).collect(),
        warnings: preview.warnings,
    })
}
