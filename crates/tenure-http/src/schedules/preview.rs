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
    let text = body::read(&api, body, BODY_BYTES).await?;
    let now = api.tenure().now();
    let found = search(api.client(), move || answer(&headers, &text, now));
    Ok(json(StatusCode::OK, &found.await??))
}

/// Parses the request here: many previews can wait for a thread.
fn answer(headers: &HeaderMap, text: &[u8], now: Timestamp) -> Result<PreviewAnswer, Problem> {
    let ask: PreviewAsk = body::json(headers, text)?;
    let count = ask.count.unwrap_or(10);
    if !(1..=MOST_SLOTS).contains(&count) {
        return Err(Invalid::new("count", count, format_args!("1 to {MOST_SLOTS}")).into());
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let from = ask.from.as_deref().map_or(Ok(now), |from| instant("from", from))?;
    let schedule = Shape::of_preview(&ask)?.schedule()?;
    let preview = schedule.preview(from, count);
    Ok(PreviewAnswer {
        description: preview.description,
        schedule: schedule.to_string(),
        next: preview.next.iter().map(|slot| SlotDocument::of(slot, schedule.zone())).collect(),
        warnings: preview.warnings,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::access::{Access, Who};
    use crate::api::Rules;
    use crate::memory::FREE_BYTES;

    #[tokio::test]
    async fn a_preview_that_waits_for_a_thread_counts_against_its_client() {
        let rules = Rules { access: Access::Tokens, ..Rules::default() };
        let api = Api::new(&tenure::Tenure::open("memory:").await.unwrap(), rules).for_client(Who::auditor());
        let ((end, ended), client) = (mpsc::channel::<()>(), api.client().clone());
        let busy = tokio::spawn(async move { search(&client, move || ended.recv().is_ok()).await });
        tokio::task::yield_now().await;
        let headers =
            HeaderMap::from_iter([("content-type".parse().unwrap(), "application/json".parse().unwrap())]);
        let body = format!("{{\"spec\":{{\"cron\":\"0 2 * * *\"}}{}}}", " ".repeat(100_000));
        let bytes = body.len();
        let sent = tokio::spawn(post(api.clone(), headers, Body::from(body)));
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        assert!(!sent.is_finished(), "each client has one turn");
        assert_eq!(api.transfer().requests.used(), bytes - FREE_BYTES);
        drop(end);
        assert!(busy.await.unwrap().is_ok());
        assert_eq!(sent.await.unwrap().unwrap().status(), 200);
        assert_eq!(api.transfer().requests.used(), 0);
    }
}
