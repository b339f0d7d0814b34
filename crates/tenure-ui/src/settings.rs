//! Keeping how somebody likes the pages.

use axum::Form;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderName};
use axum::response::IntoResponse;
use axum::response::{AppendHeaders, Response};
use tenure::schedule::Zone;

use crate::acts::back;
use crate::asking::encoded;
use crate::guard::{Filled, check};
use crate::layout::failed;
use crate::likes::{self, BY_SCHEDULE, among};
use crate::visit::Visit;

/// `POST settings`
pub(crate) async fn keep(visit: Visit, headers: HeaderMap, Form(filled): Form<Filled>) -> Response {
    if let Err(trouble) = check(&visit, &headers, &filled) {
        return failed(&visit, trouble).await;
    }
    let said = |name: &str| filled.get(name).map(|text| text.trim()).unwrap_or_default();
    let by_schedule = said("clocks") == BY_SCHEDULE;
    let written = if said("zone").is_empty() { "UTC" } else { said("zone") };
    let zone = match Zone::named(written) {
        _ if by_schedule => BY_SCHEDULE.to_owned(),
        Ok(zone) => zone.name().to_owned(),
        Err(_) => return back(&visit.at(&format!("settings?zone={}", encoded(written)))),
    };
    let cookies: Vec<(HeaderName, String)> = [
        (likes::THEME, among(said("theme"), &likes::THEMES)),
        (likes::ZONE, &zone),
        (likes::DENSITY, among(said("density"), &likes::DENSITIES)),
        (likes::KEYS, among(said("keys"), &likes::SWITCH)),
        (likes::LIVE, among(said("live"), &likes::SWITCH)),
    ]
    .map(|(name, value)| (SET_COOKIE, cookie(&visit, name, value)))
    .into();
    (AppendHeaders(cookies), back(&visit.at("settings?did=keep"))).into_response()
}

/// For a year, for these pages only.
pub(crate) fn cookie(visit: &Visit, name: &str, value: &str) -> String {
    let secure = if visit.is_secure { "; Secure" } else { "" };
    format!("{name}={value}; Path={}; Max-Age=31536000; HttpOnly; SameSite=Strict{secure}", visit.home)
}
