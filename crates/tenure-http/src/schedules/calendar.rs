//! The calendar of all schedules, slot by slot and by the hour.

use axum::extract::OriginalUri;
use axum::http::StatusCode;
use axum::response::Response;
use tenure::{CalendarAsk, Name, Timestamp, limits};

use super::cursor::{Place, text};
use super::search::search_store;
use crate::answer::json;
use crate::api::Api;
use crate::problem::{Problem, ProblemType};
use crate::query::Query;
use crate::wire::{CalendarDocument, CalendarHoursDocument};

/// `GET /v1/calendar`
pub(crate) async fn get(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let known = ["from", "to", "prefix", "after_schedule", "after_run", "limit"];
    let query = Query::read(uri.query(), &known)?;
    let (from, to) = (wanted(&query, "from")?, wanted(&query, "to")?);
    let most = query.number("limit", (1, limits::PAGE_SLOTS as u64), limits::PAGE_SLOTS as u64)?;
    let usual = CalendarAsk::between(from, to);
    let ask = CalendarAsk {
        prefix: query.text("prefix")?.unwrap_or_default(),
        behind_timer: query
            .text("after_schedule")?
            .map(|name| Name::new("after_schedule", &name))
            .transpose()?,
        behind_record: query.one::<Place>("after_run")?.map(|Place(place)| place),
        at_most: (usual.at_most.0, usize::try_from(most).unwrap_or(usual.at_most.1)),
        ..usual
    };
    let tenure = api.tenure().clone();
    let calendar = search_store(api.client(), async move { tenure.timers().calendar(ask).await }).await??;
    let next_run = calendar.next_record.as_ref().map(text);
    Ok(json(StatusCode::OK, &CalendarDocument::of(&calendar, next_run)))
}

/// `GET /v1/calendar/hours`
pub(crate) async fn hours(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["from", "to", "prefix", "after_schedule"])?;
    let (from, to) = (wanted(&query, "from")?, wanted(&query, "to")?);
    let behind = query.text("after_schedule")?.map(|name| Name::new("after_schedule", &name));
    let ask = CalendarAsk {
        prefix: query.text("prefix")?.unwrap_or_default(),
        behind_timer: behind.transpose()?,
        ..CalendarAsk::between(from, to)
    };
    let tenure = api.tenure().clone();
    let calendar =
        search_store(api.client(), async move { tenure.timers().calendar_hours(ask).await }).await??;
    Ok(json(StatusCode::OK, &CalendarHoursDocument::of(&calendar)))
}

fn wanted(query: &Query, name: &str) -> Result<Timestamp, Problem> {
    query.one::<Timestamp>(name)?.ok_or_else(|| {
        let detail = format!("missing query parameter {name}; expected a time such as 2026-01-01T00:00:00Z");
        Problem::new(ProblemType::Malformed, detail).with("field", name)
    })
}
