//! An attempt to sign in with an identity provider, bound to one browser by a cookie.
//!
//! The cookie holds a random value, the time and the page to return to. State, nonce and PKCE verifier derive from it and
//! the key of all servers, so that any server can finish an attempt, and a changed cookie has another state.

use std::time::Duration;

use tenure::Timestamp;
use tenure_http::OidcAttempt;

use crate::asking::encoded;
use crate::key::Keys;
use crate::secret::drawn;
use crate::visit::{Visit, cookie};
use axum::http::HeaderMap;

/// Time in which a person must sign in at the provider.
pub(crate) const LASTS: Duration = Duration::from_secs(10 * 60);
/// Difference between the clocks of two servers.
const SKEW: Duration = Duration::from_secs(60);
/// Name of the cookie, without and with TLS.
const COOKIE: [&str; 2] = ["tenure_sign_in", "__Host-tenure_sign_in"];
/// Longest page that a browser returns to, in bytes.
const PAGE_BYTES: usize = 1_024;
/// Field of a query that shows the notice of a change.
const NOTICE: &str = "did";

/// An attempt, and the page to return to.
pub(crate) struct Attempt {
    pub secrets: OidcAttempt,
    pub page: String,
}

/// Begins an attempt, and returns it with the value of its cookie; `None` if the system gives no randomness.
pub(crate) fn begin(keys: &Keys, page: &str, now: Timestamp) -> Option<(String, Attempt)> {
    let value = format!("{}.{}.{}", drawn()?, now.as_micros(), encoded(page));
    let attempt = read(keys, &value, now)?;
    Some((value, attempt))
}

/// Returns the attempt of a cookie, unless it is too old.
fn read(keys: &Keys, value: &str, now: Timestamp) -> Option<Attempt> {
    let mut parts = value.splitn(3, '.');
    let (_, began, page) = (parts.next()?, parts.next()?, parts.next()?);
    let began = Timestamp::from_micros(began.parse().ok()?).ok()?;
    if began.since(now) > SKEW || now.since(began) >= LASTS {
        return None;
    }
    let page = percent_encoding::percent_decode_str(page).decode_utf8().ok()?;
    let secret = |what| keys.derived(what, value);
    let secrets = OidcAttempt {
        state: secret("state of a sign-in")?,
        nonce: secret("nonce of a sign-in")?,
        verifier: secret("verifier of a sign-in")?,
    };
    // The browser could change the page in its cookie; then the state differs, too.
    Some(Attempt { secrets, page: safe_page(&page) })
}

impl Attempt {
    /// Returns the attempt that a browser's cookie continues.
    pub(crate) fn of(visit: &Visit, keys: &Keys, headers: &HeaderMap) -> Option<Self> {
        let value = cookie(headers, COOKIE[usize::from(visit.is_secure)])?;
        read(keys, &value, visit.ui.tenure.now())
    }
}

/// Returns the cookie of an attempt. The provider leads the browser back from another site, so it cannot be `Strict`.
pub(crate) fn set_cookie(visit: &Visit, value: &str, lasts: Duration) -> String {
    let (name, secure) = if visit.is_secure { (COOKIE[1], "; Secure") } else { (COOKIE[0], "") };
    format!("{name}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}", lasts.as_secs())
}

/// Returns the page if it is one of the dashboard's, named from the first one; else the first one.
///
/// A browser takes a path that begins with two slashes, or with a backslash, for another server. A notice of a change is
/// left out: a link to the sign-in could show a forged one.
pub(crate) fn safe_page(page: &str) -> String {
    let is_path =
        page.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b'<' | b'>'));
    let path = page.split(['?', '#']).next().unwrap_or_default();
    let is_below =
        path.split('/').all(|part| !part.is_empty() && !begins_with_dot(part) && !part.contains(':'));
    let is_safe = page.len() <= PAGE_BYTES && is_path && is_below && !path.starts_with("sign-");
    if is_safe { without_notice(page) } else { String::new() }
}

/// Returns `true` for `.`, `..` and their encoded forms, which a browser resolves, too.
fn begins_with_dot(part: &str) -> bool {
    part.starts_with('.') || part.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case("%2e"))
}

/// Removes the notice of a change from the query of a page.
fn without_notice(page: &str) -> String {
    let Some((path, query)) = page.split_once('?') else { return page.to_owned() };
    let is_kept = |pair: &&str| pair.split('=').next() != Some(NOTICE);
    let kept: Vec<&str> = query.split('&').filter(is_kept).collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_dashboard_are_returned_to() {
        for page in
            ["jobs", "jobs?state=failed&q=a%3Ab", "jobs/01a20712-29aa?tab=log", "queues/a%20b", "kinds/a.b"]
        {
            assert_eq!(safe_page(page), page);
        }
        for page in [
            "/evil.example",
            "//evil.example",
            "\\evil.example",
            "https://evil.example",
            "https:evil.example",
            "javascript:alert(1)",
            "../../evil",
            "jobs/../..//evil",
            "jobs//evil.example",
            ".",
            "jobs\r\nset-cookie: a=b",
            "jobs \"",
            "sign-out",
            "%2e%2e/evil",
            "jobs/%2E%2E/evil",
            "jobs/%2e./evil",
            "",
        ] {
            assert_eq!(safe_page(page), "", "{page:?}");
        }
        assert_eq!(safe_page(&"a".repeat(PAGE_BYTES + 1)), "");
    }

    #[test]
    fn a_page_to_return_to_shows_no_notice_of_a_change() {
        for (page, safe) in [
            ("queues/a?did=resume", "queues/a"),
            ("queues/a?did=resume&did=pause", "queues/a"),
            ("jobs?state=failed&did=retry&page=2", "jobs?state=failed&page=2"),
            ("jobs?did", "jobs"),
            ("jobs?q=did=resume&candid=1", "jobs?q=did=resume&candid=1"),
        ] {
            assert_eq!(safe_page(page), safe);
        }
    }

    #[test]
    fn an_attempt_is_of_one_cookie_and_one_key_and_ends_soon() {
        let (keys, now) = (Keys::with("key"), Timestamp::EPOCH.after(LASTS * 5));
        let (value, attempt) = begin(&keys, "jobs?state=failed", now).unwrap();
        let again = read(&keys, &value, now.after(LASTS / 2)).unwrap();
        assert_eq!(
            (&again.secrets.state, again.page.as_str()),
            (&attempt.secrets.state, "jobs?state=failed")
        );
        assert_ne!(attempt.secrets.state, attempt.secrets.nonce);
        assert!(attempt.secrets.verifier.len() >= 43);
        assert!(read(&keys, &value, now.after(LASTS)).is_none(), "too old");
        assert!(read(&keys, &value, now.before(LASTS)).is_none(), "from the future");
        let other = read(&Keys::with("other"), &value, now).unwrap();
        assert_ne!(other.secrets.state, attempt.secrets.state, "of another store");
        let changed = value.replace("failed", "queued");
        assert_ne!(read(&keys, &changed, now).unwrap().secrets.state, attempt.secrets.state, "another page");
        for odd in ["", "a", "a.b.c", "a.9999999999999999999.c", "..", "a.1.%ff"] {
            assert!(read(&keys, odd, now).is_none(), "{odd:?}");
        }
    }
}
