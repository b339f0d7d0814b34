//! What can be done on a page: each form is sent to one of these, and leads back to a page that says what came of it.

use axum::Form;
use axum::extract::{Path, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::Ui;
use crate::asking::{Trouble, encoded};
use crate::guard::{Filled, check};
use crate::layout::{failed, show};
use crate::oidc;
use crate::pages;
use crate::stays::{Credential, LASTS};
use crate::visit::{STAY, Visit};

/// A wish to the contract, and the page to come back to.
pub(crate) struct Wish {
    pub method: Method,
    pub path: String,
    pub body: Value,
    pub back: String,
}

impl Wish {
    pub(crate) fn post(path: String, back: String) -> Self {
        Self { method: Method::POST, path, body: json!({}), back }
    }
}

/// Asks for it, and leads back to the page that shows what came of it.
pub(crate) async fn done(
    visit: Visit,
    headers: HeaderMap,
    filled: Filled,
    wish: Option<Wish>,
    notice: &str,
) -> Response {
    let Some(wish) = wish else { return pages::nowhere(visit).await };
    let asked = match check(&visit, &headers, &filled) {
        Err(trouble) => Err(trouble),
        Ok(()) => match visit.may_change() {
            Ok(()) => visit.ask(wish.method, &wish.path, &wish.body).await,
            Err(trouble) => Err(trouble),
        },
    };
    match asked {
        Ok(_) => {
            let sign = if wish.back.contains('?') { '&' } else { '?' };
            back(&visit.at(&format!("{}{sign}did={notice}", wish.back)))
        }
        Err(trouble) => failed(&visit, trouble).await,
    }
}

/// Leads to a page.
pub(crate) fn back(to: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, to.to_owned())]).into_response()
}

/// `POST jobs/{id}/{act}`
pub(crate) async fn job(
    visit: Visit,
    Path((id, act)): Path<(String, String)>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    let id = encoded(&id);
    let (path, page) = (format!("/v1/jobs/{id}"), format!("jobs/{id}"));
    let wish = match act.as_str() {
        "cancel" | "retry" | "run-now" => Some(Wish::post(format!("{path}/{act}"), page)),
        "delete" => Some(Wish { method: Method::DELETE, path, body: Value::Null, back: "jobs".to_owned() }),
        _ => None,
    };
    done(visit, headers, filled, wish, &act).await
}

/// `GET jobs/{id}/reveal`: whoever loads that page again is led to the job.
pub(crate) async fn revealed_once(visit: Visit, Path(id): Path<String>) -> Response {
    back(&visit.at(&format!("jobs/{}", encoded(&id))))
}

/// `POST jobs/{id}/reveal`
pub(crate) async fn reveal(
    visit: Visit,
    Path(id): Path<String>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    // Whoever sends a page of somebody else's here would have it written down that he was shown something.
    match check(&visit, &headers, &filled) {
        Ok(()) => pages::job::revealed(visit, &id).await,
        Err(trouble) => failed(&visit, trouble).await,
    }
}

/// `POST queues/{name}/{act}`
pub(crate) async fn queue(
    visit: Visit,
    Path((name, act)): Path<(String, String)>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    let own = format!("/v1/queues/{}", encoded(&name));
    let page = format!("queues/{}", encoded(&name));
    let wish = match act.as_str() {
        "pause" | "resume" => Wish::post(format!("{own}/{act}"), page),
        "bounds" => match bounds(&filled) {
            Ok(body) => Wish { method: Method::PATCH, path: own, body, back: page },
            Err(trouble) => return failed(&visit, trouble).await,
        },
        // The contract compares the name with what was written.
        "purge" => {
            let typed = filled.get("typed").cloned().unwrap_or_default();
            Wish { body: json!({ "confirm": typed }), ..Wish::post(format!("{own}/purge"), page) }
        }
        _ => return pages::nowhere(visit).await,
    };
    done(visit, headers, filled, Some(wish), &act).await
}

/// What was filled in as the bounds of a queue; what is empty is lifted.
fn bounds(filled: &Filled) -> Result<Value, Trouble> {
    let number = |name: &str| -> Result<Option<f64>, Trouble> {
        let text = filled.get(name).map(|text| text.trim()).unwrap_or_default();
        let wrong = |_| {
            let detail = format!("{text:?} is not a number; nothing was changed.");
            Trouble::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid limit", &detail)
        };
        if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(wrong) }
    };
    // A whole number is written as one.
    let whole = |number: Option<f64>| {
        number.map(|number| if number.fract() == 0.0 { json!(number as i64) } else { json!(number) })
    };
    let (most, limit, per) = (number("max_running")?, number("limit")?, number("per_seconds")?);
    let rate = limit.map(|_| json!({ "limit": whole(limit), "per_seconds": per.unwrap_or(1.0) }));
    Ok(json!({ "max_running": whole(most), "rate": rate }))
}

/// `POST schedules/{name}/{act}`
pub(crate) async fn schedule(
    visit: Visit,
    Path((name, act)): Path<(String, String)>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    let (path, page) = (format!("/v1/schedules/{}", encoded(&name)), format!("schedules/{}", encoded(&name)));
    let wish = match act.as_str() {
        "pause" | "resume" | "trigger" => Some(Wish::post(format!("{path}/{act}"), page)),
        "backfill" => match backfill(&filled) {
            Ok(body) => Some(Wish { body, ..Wish::post(format!("{path}/backfill"), page) }),
            Err(trouble) => return failed(&visit, trouble).await,
        },
        "remove" if filled.get("typed") == Some(&name) => {
            Some(Wish { method: Method::DELETE, path, body: Value::Null, back: "schedules".to_owned() })
        }
        "remove" => {
            let detail = "To delete this schedule, type its name exactly as shown. Nothing was changed; go back and try again.";
            let trouble = Trouble::new(StatusCode::UNPROCESSABLE_ENTITY, "Name does not match", detail);
            return failed(&visit, trouble).await;
        }
        _ => None,
    };
    done(visit, headers, filled, wish, &act).await
}

/// What was filled in for slots that have passed; many of them only for whoever has written how many.
fn backfill(filled: &Filled) -> Result<Value, Trouble> {
    let said = |name: &str| filled.get(name).map(|text| text.trim()).unwrap_or_default();
    let slots = said("slots").parse::<u64>().unwrap_or_default();
    if slots > pages::bulk_new::SURE && said("typed") != said("slots") {
        let detail = "To confirm, type the number of jobs exactly as shown. Nothing was enqueued; go back and try again.";
        return Err(Trouble::new(StatusCode::UNPROCESSABLE_ENTITY, "Number does not match", detail));
    }
    Ok(json!({ "from": said("from"), "to": said("to"), "again": said("again") == "yes" }))
}

/// `POST workers/{id}/{act}`
pub(crate) async fn worker(
    visit: Visit,
    Path((id, act)): Path<(String, String)>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    let (path, page) = (format!("/v1/workers/{}/{act}", encoded(&id)), format!("workers/{}", encoded(&id)));
    let (wish, notice) = match act.as_str() {
        "quiet" => (Some(Wish::post(path, page)), "quiet"),
        "resume" => (Some(Wish::post(path, page)), "unquiet"),
        "terminate" => (Some(Wish::post(path, page)), "terminate"),
        _ => (None, ""),
    };
    done(visit, headers, filled, wish, notice).await
}

/// `POST leases/{name}/break`: only for whoever has written the name.
pub(crate) async fn break_lease(
    visit: Visit,
    Path(name): Path<String>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    if filled.get("typed") != Some(&name) {
        return pages::lease::mistyped(&visit, &name, &filled).await;
    }
    let reason = filled.get("reason").cloned().unwrap_or_default();
    let name = encoded(&name);
    let wish = Wish {
        body: json!({"after_seconds": 0.0, "reason": reason}),
        ..Wish::post(format!("/v1/leases/{name}/break"), format!("leases/{name}"))
    };
    done(visit, headers, filled, Some(wish), "break").await
}

/// `POST sign-in`
pub(crate) async fn sign_in(
    State(ui): State<Ui>,
    mut visit: Visit,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    if let Err(trouble) = check(&visit, &headers, &filled) {
        return failed(&visit, trouble).await;
    }
    let token = filled.get("access_token").map(|token| token.trim().to_owned()).unwrap_or_default();
    let credential = Credential::Token(token);
    visit.credential = Some(credential.clone());
    if let Err(trouble) = looks(&visit).await {
        visit.credential = None;
        visit.who = OnceCell::new();
        let page = pages::sign_in::form(&visit, Some(&trouble.detail));
        return (trouble.status, show(&visit, "Sign in", "", page).await).into_response();
    }
    let owner = visit.who.get().and_then(|who| who["token"]["id"].as_str()).unwrap_or_default();
    let Some(value) = ui.stays.begin(credential, owner, ui.tenure.now()) else {
        return failed(&visit, oidc::no_chance()).await;
    };
    // The browser forgets the old cookie, so its session must not go on without it.
    ui.stays.end(&visit.cookie);
    let cookie = stay_cookie(&visit, &value);
    ([(SET_COOKIE, cookie)], back(&visit.at(&visit.return_page()))).into_response()
}

/// Whether whoever signs in can look: whoever cannot would be refused on every page.
async fn looks(visit: &Visit) -> Result<(), Trouble> {
    visit.get("/v1/whoami").await?;
    if visit.has("read").await || visit.has("manage").await {
        return Ok(());
    }
    let detail = "This access token cannot open the dashboard: it needs the scope read, manage or admin.";
    Err(Trouble::new(StatusCode::FORBIDDEN, "Scope missing", detail))
}

/// `POST sign-out`
pub(crate) async fn sign_out(
    State(ui): State<Ui>,
    visit: Visit,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    if let Err(trouble) = check(&visit, &headers, &filled) {
        return failed(&visit, trouble).await;
    }
    ui.stays.end(&visit.cookie);
    let cookie = stay_cookie(&visit, "");
    ([(SET_COOKIE, cookie)], oidc::signed_out(&ui, &visit).await).into_response()
}

/// With TLS the browser keeps it for this host only, and that needs the path of all.
pub(crate) fn stay_cookie(visit: &Visit, value: &str) -> String {
    // The server ends a session earlier, if it must.
    let lasts = if value.is_empty() { 0 } else { LASTS.as_secs() };
    let (name, secure) = if visit.is_secure { (STAY[1], "; Secure") } else { (STAY[0], "") };
    format!("{name}={value}; Path=/; Max-Age={lasts}; HttpOnly; SameSite=Strict{secure}")
}
