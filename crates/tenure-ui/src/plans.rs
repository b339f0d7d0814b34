//! Sets and removes schedules.

use axum::Form;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::de::IgnoredAny;
use serde_json::json;

use crate::acts::back;
use crate::asking::{Trouble, encoded};
use crate::guard::{Filled, check};
use crate::layout::{failed, show};
use crate::pages::schedule_new::{Drafted, form};
use crate::tree::with;
use crate::visit::Visit;

/// `POST new-schedule`
pub(crate) async fn add(visit: Visit, headers: HeaderMap, Form(filled): Form<Filled>) -> Response {
    if let Err(trouble) = check(&visit, &headers, &filled).and_then(|()| visit.may_change()) {
        return failed(&visit, trouble).await;
    }
    let drafted = Drafted::of(|name| filled.get(name).cloned().unwrap_or_default());
    match set(&visit, &drafted).await {
        Ok(()) => back(&visit.at(&format!("schedules/{}?did=add", encoded(&drafted.name)))),
        // Nothing that was written is lost.
        Err(wrong) if wrong.status.is_client_error() => {
            let body = form(&visit, &drafted, Some(&wrong)).await;
            (StatusCode::UNPROCESSABLE_ENTITY, show(&visit, "New schedule", "Schedules", body).await)
                .into_response()
        }
        Err(trouble) => failed(&visit, trouble).await,
    }
}

async fn set(visit: &Visit, drafted: &Drafted) -> Result<(), Trouble> {
    let refuse =
        |title: &str, detail: &str| Err(Trouble::new(StatusCode::UNPROCESSABLE_ENTITY, title, detail));
    let path = format!("/v1/schedules/{}", encoded(&drafted.name));
    if visit.get(&path).await.is_ok() {
        return refuse("Schedule exists", "A schedule with this name already exists; choose another name.");
    }
    let args = if drafted.args.is_empty() { "null" } else { &drafted.args };
    // A tree of the values could be large.
    if serde_json::from_str::<IgnoredAny>(args).is_err() {
        return refuse("Invalid JSON", "The args are not valid JSON.");
    }
    let mut job = json!({ "kind": drafted.kind });
    if !drafted.queue.is_empty() {
        job["queue"] = json!(drafted.queue);
    }
    let ask = with(&drafted.rule(), "job", &with(&job, "args", args));
    visit.send(Method::PUT, &path, ask).await.map(drop)
}
