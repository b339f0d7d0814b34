//! What can be done with webhooks.

use axum::Form;
use axum::extract::Path;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use maud::html;
use serde_json::{Value, json};

use crate::acts::{Wish, done};
use crate::asking::{Trouble, encoded};
use crate::guard::{Filled, check};
use crate::layout::{self, failed};
use crate::pages;
use crate::visit::Visit;

/// `POST webhooks`
pub(crate) async fn add(visit: Visit, headers: HeaderMap, Form(filled): Form<Filled>) -> Response {
    let made = match added(&visit, &headers, &filled).await {
        Ok(made) => made,
        Err(trouble) => return failed(&visit, trouble).await,
    };
    let text = |key: &str| made[key].as_str().unwrap_or_default();
    // Not led elsewhere: what it is signed with is told only now.
    let body = html! {
        section.card {
            h1 { "Webhook created" }
            p { "Events are sent to " code { (text("url")) } " from now on. Each delivery is signed with this secret. Copy it now: it is not shown again." }
            div.copy { h2 { "Signing secret" } button.quiet type="button" data-copy="secret" { "Copy" span.sr { " the signing secret" } } }
            pre tabindex="0" role="region" aria-label="Signing secret" { code #secret { (text("secret")) } }
            p { a href=(visit.at(&format!("webhooks/{}", encoded(text("id"))))) { "Go to the webhook" } }
        }
    };
    layout::show(&visit, "Webhook created", "Webhooks", body).await
}

async fn added(visit: &Visit, headers: &HeaderMap, filled: &Filled) -> Result<Value, Trouble> {
    check(visit, headers, filled)?;
    visit.may_change()?;
    let said = |name: &str| filled.get(name).map(String::as_str).unwrap_or_default();
    let words = |name: &str| said(name).split_whitespace().collect::<Vec<_>>();
    let ask = json!({ "url": said("url").trim(), "types": words("types"), "queues": words("queues"), "kinds": words("kinds") });
    visit.ask(Method::POST, "/v1/webhooks", &ask).await
}

/// `POST webhooks/{id}/{act}`
pub(crate) async fn act(
    visit: Visit,
    Path((id, act)): Path<(String, String)>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    let (path, page) = (format!("/v1/webhooks/{}", encoded(&id)), format!("webhooks/{}", encoded(&id)));
    let wish = match act.as_str() {
        "test" => Wish::post(format!("{path}/test"), page),
        "enable" | "disable" => {
            Wish { method: Method::PATCH, path, body: json!({ "enabled": act == "enable" }), back: page }
        }
        "remove" if filled.get("typed") == Some(&id) => {
            Wish { method: Method::DELETE, path, body: Value::Null, back: "webhooks".to_owned() }
        }
        "remove" => {
            let detail = "To delete this webhook, type its ID exactly as shown. Nothing was changed; go back and try again.";
            let trouble = Trouble::new(StatusCode::UNPROCESSABLE_ENTITY, "ID does not match", detail);
            return failed(&visit, trouble).await;
        }
        _ => return pages::nowhere(visit).await,
    };
    done(visit, headers, filled, Some(wish), &act).await
}

/// `POST webhooks/{id}/deliveries/{delivery}/redeliver`
pub(crate) async fn redeliver(
    visit: Visit,
    Path((id, delivery)): Path<(String, String)>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    let (id, delivery) = (encoded(&id), encoded(&delivery));
    let path = format!("/v1/webhooks/{id}/deliveries/{delivery}/redeliver");
    done(visit, headers, filled, Some(Wish::post(path, format!("webhooks/{id}"))), "redeliver").await
}
