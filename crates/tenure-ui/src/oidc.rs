//! Sign-in with an identity provider: the way there, the way back, and signing out.

use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{OriginalUri, Query, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use tenure_http::{OidcCallback, OidcError, OidcRequest};

use crate::Ui;
use crate::acts::{back, stay_cookie};
use crate::asking::Trouble;
use crate::attempt::{self, Attempt};
use crate::layout::{self, failed, onward};
use crate::pages;
use crate::stays::{Credential, SignedIn};
use crate::visit::Visit;

/// `GET sign-in/start`: a link, because a form must not lead to another site.
pub(crate) async fn start(State(ui): State<Ui>, visit: Visit) -> Response {
    let Some(oidc) = &ui.oidc else { return pages::nowhere(visit).await };
    let keys = ui.keys().await;
    let begun = attempt::begin(keys, &visit.return_page(), ui.tenure.now());
    let Some((value, attempt)) = begun else { return failed(&visit, no_chance()).await };
    match oidc.start(&attempt.secrets).await {
        Ok(url) => {
            // On the way back, the browser does not send the cookie of the old session.
            ui.stays.end(&visit.cookie);
            let cookie = attempt::set_cookie(&visit, &value, attempt::LASTS);
            ([(SET_COOKIE, cookie)], back(&url)).into_response()
        }
        Err(error) => refused(&visit, &error).await,
    }
}

/// `GET sign-in/callback`: the provider leads the browser here.
pub(crate) async fn callback(
    State(ui): State<Ui>,
    visit: Visit,
    headers: HeaderMap,
    OriginalUri(uri): OriginalUri,
    query: Result<Query<OidcCallback>, QueryRejection>,
) -> Response {
    let Some(oidc) = &ui.oidc else { return pages::nowhere(visit).await };
    let attempt = Attempt::of(&visit, ui.keys().await, &headers);
    let callback = query.map(|Query(callback)| callback).unwrap_or_default();
    let request = OidcRequest {
        remote: visit.remote,
        request_id: visit.request_id.clone(),
        path: uri.path().to_owned(),
    };
    let finished = oidc.finish(attempt.as_ref().map(|attempt| &attempt.secrets), &callback, &request).await;
    // An attempt ends with the first response, even if that is an error.
    let over = attempt::set_cookie(&visit, "", Duration::ZERO);
    let signed_in = match finished {
        Ok(signed_in) => signed_in,
        Err(error) => {
            let page = refused(&visit, &error).await;
            return (AppendHeaders([(SET_COOKIE, over)]), page).into_response();
        }
    };
    let owner = signed_in.principal.name.clone();
    let credential = Credential::Person(SignedIn {
        principal: signed_in.principal,
        label: signed_in.label,
        id_token: signed_in.id_token,
    });
    let Some(value) = ui.stays.begin(credential, &owner, ui.tenure.now()) else {
        return failed(&visit, no_chance()).await;
    };
    let page = attempt.map(|attempt| attempt.page).unwrap_or_default();
    let cookies = [(SET_COOKIE, stay_cookie(&visit, &value)), (SET_COOKIE, over)];
    // Not a redirect: the browser came from another site, and would not send a `Strict` cookie along.
    (AppendHeaders(cookies), onward("You are signed in.", &visit.at(&page))).into_response()
}

/// Returns the response to a person's sign-out. It leads to the provider, if the provider has a page for that.
pub(crate) async fn signed_out(ui: &Ui, visit: &Visit) -> Response {
    let id_token = match &visit.credential {
        Some(Credential::Person(person)) => person.id_token.as_deref(),
        Some(Credential::Token(_) | Credential::Proxied(_)) | None => return back(&visit.at("sign-in")),
    };
    let Some(oidc) = &ui.oidc else { return back(&visit.at("sign-in")) };
    match oidc.end_session(id_token).await {
        // Not a redirect: a form must not lead to another site.
        Some(url) => onward("You are signed out here. Sign out of the identity provider, too.", &url),
        None => back(&visit.at("sign-in")),
    }
}

async fn refused(visit: &Visit, error: &OidcError) -> Response {
    let page = pages::sign_in::form(visit, Some(&sentence(&error.to_string())));
    (error.status(), layout::show(visit, "Sign in", "", page).await).into_response()
}

/// Writes a message as a sentence.
fn sentence(message: &str) -> String {
    let mut signs = message.chars();
    let first = signs.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", signs.as_str())
}

/// The trouble of a system without randomness.
pub(crate) fn no_chance() -> Trouble {
    Trouble::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "Sign-in unavailable",
        "The operating system provides no random numbers, so no session can be created.",
    )
}
