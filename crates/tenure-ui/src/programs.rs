//! Runs, stops and starts apps.

use axum::Form;
use axum::extract::Path;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::json;

use crate::acts::{Wish, done};
use crate::asking::encoded;
use crate::guard::Filled;
use crate::pages;
use crate::pages::apps::{SET, place};
use crate::visit::Visit;

/// `POST apps/{sort}/{name}/{act}`
pub(crate) async fn act(
    visit: Visit,
    Path((sort, name, act)): Path<(String, String, String)>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    let said = |field: &str| filled.get(field).map(String::as_str).unwrap_or_default();
    let set = if said("set").is_empty() { SET } else { said("set") }.to_owned();
    let path = format!("/v1/apps/{}/{}/{act}?set={}", encoded(&sort), encoded(&name), encoded(&set));
    let (body, notice) = match act.as_str() {
        "run" => {
            let words: Vec<&str> = said("arguments").lines().filter(|line| !line.is_empty()).collect();
            (json!({ "arguments": words, "by": "dashboard" }), "run-app")
        }
        "stop" => (json!({ "reason": said("reason").trim() }), "stop-app"),
        "start" => (json!({}), "start-app"),
        _ => return pages::nowhere(visit).await,
    };
    let wish = Wish { body, ..Wish::post(path, place(&set, &encoded(&sort), &name)) };
    done(visit, headers, filled, Some(wish), notice).await
}
