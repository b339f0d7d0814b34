//! What can be done on a page: each form is sent to one of these, and leads back to a page that says what came of it.

use axum::Form;
use axum::extract::{Path, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::Ui;
use crate::asking::{Trouble, encoded};
use crate::guard::{Filled, check};
use crate::layout::{failed, show};
use crate::pages;
use crate::stays::LASTS;
use crate::visit::{STAY, THEME, Visit};

/// A wish to the contract, and the page to come back to.
struct Wish {
    method: Method,
    path: String,
    body: Value,
    back: String,
}

impl Wish {
    fn post(path: String, back: String) -> Self {
        Self { method: Method::POST, path, body: json!({}), back }
    }
}

async fn done(
    visit: Visit,
    headers: HeaderMap,
    filled: Filled,
    wish: Option<Wish>,
    notice: &str,
) -> Response {
    let Some(wish) = wish else { return pages::nowhere(visit).await };
    let asked = match check(&visit, &headers, &filled) {
        Err(trouble) => Err(trouble),
        Ok(()) if visit.ui.read_only => {
            let detail = "This server only tells; ask another one to have something changed.";
            Err(Trouble::new(StatusCode::FORBIDDEN, "Nothing is changed here", detail))
        }
        Ok(()) => visit.ask(wish.method, &wish.path, &wish.body).await,
    };
    match asked {
        Ok(_) => back(&visit.at(&format!("{}?did={notice}", wish.back))),
        Err(trouble) => failed(&visit, trouble).await,
    }
}

fn back(to: &str) -> Response {
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

/// `POST queues/{name}/{act}`
pub(crate) async fn queue(
    visit: Visit,
    Path((name, act)): Path<(String, String)>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    let known = matches!(act.as_str(), "pause" | "resume");
    let path = format!("/v1/queues/{}/{act}", encoded(&name));
    let wish = known.then(|| Wish::post(path, "queues".to_owned()));
    done(visit, headers, filled, wish, &act).await
}

/// `POST schedules/{name}/{act}`
pub(crate) async fn schedule(
    visit: Visit,
    Path((name, act)): Path<(String, String)>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    let name = encoded(&name);
    let known = matches!(act.as_str(), "pause" | "resume" | "trigger");
    let wish = known.then(|| Wish::post(format!("/v1/schedules/{name}/{act}"), format!("schedules/{name}")));
    done(visit, headers, filled, wish, &act).await
}

/// `POST leases/{name}/break`: only for whoever has written the name.
pub(crate) async fn break_lease(
    visit: Visit,
    Path(name): Path<String>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    if filled.get("typed") != Some(&name) {
        let detail = "To break a lease its name has to be written as it is; nothing was done.";
        let trouble = Trouble::new(StatusCode::UNPROCESSABLE_ENTITY, "The name is another one", detail);
        return failed(&visit, trouble).await;
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
    visit.access_token = Some(token.clone());
    if let Err(trouble) = visit.get("/v1/whoami").await {
        visit.access_token = None;
        let page = pages::sign_in::form(&visit, Some(&trouble.detail));
        return (StatusCode::UNAUTHORIZED, show(&visit, "Sign in", "", page).await).into_response();
    }
    let Some(value) = ui.stays.begin(&token, ui.tenure.now()) else {
        let trouble = Trouble::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Nobody can sign in",
            "The system gives no chance.",
        );
        return failed(&visit, trouble).await;
    };
    let cookie = stay_cookie(&visit, &value, LASTS.as_secs());
    ([(SET_COOKIE, cookie)], back(&visit.home)).into_response()
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
    let cookie = stay_cookie(&visit, "", 0);
    ([(SET_COOKIE, cookie)], back(&visit.at("sign-in"))).into_response()
}

/// With TLS the browser keeps it for this host only, and that needs the path of all.
fn stay_cookie(visit: &Visit, value: &str, lasts: u64) -> String {
    let (name, secure) = if visit.is_secure { (STAY[1], "; Secure") } else { (STAY[0], "") };
    format!("{name}={value}; Path=/; Max-Age={lasts}; HttpOnly; SameSite=Strict{secure}")
}

/// `POST theme`
pub(crate) async fn theme(visit: Visit, headers: HeaderMap, Form(filled): Form<Filled>) -> Response {
    if let Err(trouble) = check(&visit, &headers, &filled) {
        return failed(&visit, trouble).await;
    }
    let liked = filled.get("theme").map(String::as_str).unwrap_or_default();
    let liked = ["light", "dark"].into_iter().find(|known| *known == liked).unwrap_or("system");
    let cookie = format!("{THEME}={liked}; Path={}; Max-Age=31536000; HttpOnly; SameSite=Strict", visit.home);
    ([(SET_COOKIE, cookie)], back(&visit.home)).into_response()
}
