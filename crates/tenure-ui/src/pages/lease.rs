//! A lease: its holder, who held it before, and how it is taken from him.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::Value;

use crate::asking::{Trouble, encoded};
use crate::guard::Filled;
use crate::layout;
use crate::parts::{list, part, proof, short, text, time};
use crate::visit::Visit;

/// `GET leases/{name}`
pub(crate) async fn page(visit: Visit, Path(name): Path<String>) -> Response {
    let body = body(&visit, &name, None).await;
    layout::page(&visit, &format!("Lease {name}"), "Leases", body).await
}

/// The page once more, for a form to break the lease that has another name in it. Nothing that was written is lost.
pub(crate) async fn mistyped(visit: &Visit, name: &str, filled: &Filled) -> Response {
    match body(visit, name, Some(filled)).await {
        Ok(body) => {
            let page = layout::show(visit, &format!("Error: lease {name}"), "Leases", body).await;
            (StatusCode::UNPROCESSABLE_ENTITY, page).into_response()
        }
        Err(trouble) => layout::failed(visit, trouble).await,
    }
}

async fn body(visit: &Visit, name: &str, mistyped: Option<&Filled>) -> Result<Markup, Trouble> {
    let path = format!("/v1/leases/{}", encoded(name));
    let lease = visit.get(&path).await?;
    let cursor = visit.said("cursor");
    let behind = if cursor.is_empty() { String::new() } else { format!("&cursor={}", encoded(&cursor)) };
    let history = visit.get(&format!("{path}/history?limit=50{behind}")).await;
    let held = lease["locked"] == true;
    Ok(html! {
        h1 { (name) }
        dl.facts #lease data-live {
            div { dt { "State" } dd { (text(&lease, "state")) } }
            div { dt { "Holder" } dd { @if held { (text(&lease["holder"], "owner")) } @else { "none" } } }
            @if let Some(host) = lease["holder"]["host_id"].as_str() { div { dt { "Host" } dd.id { (short(host)) } } }
            div { dt { "Fencing token" } dd { (text(&lease, "fence")) } }
            div { dt { "Held since" } dd { (time(visit, text(&lease, "held_since"))) } }
            div { dt { "Expires" } dd { (time(visit, text(&lease, "expires_at"))) } }
            div { dt { "Waiting" } dd { (lease["waiting"]) } }
        }
        section.card #history data-live {
            (part(&history, |history| entries(visit, history)))
        }
        @if let Some(next) = history.as_ref().ok().and_then(|history| history["next_cursor"].as_str()) {
            p.more { a rel="next" href=(visit.at(&format!("leases/{}?cursor={}", encoded(name), encoded(next)))) { "Older entries →" } }
        }
        @if held && visit.may("admin").await {
            section.card {
                h2 { "Break this lease" }
                p { "The holder loses the lease at once. Its later writes are rejected wherever the fencing token is checked." }
                form.stack method="post" action=(visit.at(&format!("leases/{}/break", encoded(name)))) {
                    (proof(visit))
                    @let filled = |field: &str| mistyped.and_then(|filled| filled.get(field)).map(String::as_str).unwrap_or_default();
                    @if mistyped.is_some() {
                        p.why #wrong role="alert" { "Expected the name " code { (name) } ", not " code { (filled("typed")) } ". Nothing was changed." }
                    }
                    label { span { "To confirm, type " code { (name) } }
                        input name="typed" required autocomplete="off" value=(filled("typed")) autofocus[mistyped.is_some()]
                            aria-invalid=[mistyped.map(|_| "true")] aria-describedby=[mistyped.map(|_| "wrong")]; }
                    label { "Reason, recorded in the history" input name="reason" autocomplete="off" value=(filled("reason")); }
                    button.danger { "Break " (name) }
                }
            }
        }
    })
}

/// An event of the history as people call it.
fn event(what: &str) -> String {
    match what {
        "broke" => "broken".to_owned(),
        "changed" => "holder ID changed".to_owned(),
        "forgotten" => "deleted".to_owned(),
        "lapsed" => "expired".to_owned(),
        "took_over" => "taken over".to_owned(),
        other => other.replace('_', " "),
    }
}

fn entries(visit: &Visit, history: &Value) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="History" { table {
            caption { "History, latest first" }
            thead { tr {
                th scope="col" { "Time" } th scope="col" { "Event" } th scope="col" { "Owner" } th.number scope="col" { "Fencing token" }
                th scope="col" { "Note" }
            } }
            tbody { @for entry in list(history, "items") {
                tr {
                    td.slot { (visit.exact(text(entry, "at"))) }
                    td { (event(text(entry, "what"))) }
                    td { (text(&entry["by"], "owner")) }
                    td.number { (text(entry, "fence")) }
                    td.says { (text(entry, "note")) }
                }
            } }
        } }
    }
}
