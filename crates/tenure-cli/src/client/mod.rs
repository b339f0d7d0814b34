//! The server, as the commands ask it: one request after the other, each with an end.

mod connect;
mod events;
mod follow;
#[cfg(test)]
mod fuzz;
mod interrupt;
mod near;
mod own;
mod problem;
mod servers;
mod socket;
mod tail;
mod tls;

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Body;
use serde_json::Value;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::http::{Method, Request, Uri};
use ureq::tls::TlsConfig;
use ureq::typestate::AgentScope;

pub(crate) use connect::{Connect, Secret, USUAL, base, bases, secret_in};
pub(crate) use follow::{AGAIN, Followed, Patience, follow, pause};
pub(crate) use interrupt::{Goes, interruptible};
pub(crate) use own::{Place, Purpose};
pub(crate) use problem::{ReadOnly, Refused, Trouble};
pub(crate) use socket::is_socket;
pub(crate) use tail::{Told, tail};
pub(crate) use tls::TlsFiles;

use crate::caller::caller;
use crate::exit::Failure;
use crate::screen::complain;
use events::Events;
use own::OwnStore;
use servers::Servers;

/// How long an ordinary answer may take to come.
const WITHIN: Duration = Duration::from_secs(60);
/// How long somebody who only looks whether all is well waits.
const LOOK_WITHIN: Duration = Duration::from_secs(15);
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// A server says something at least every fifteen seconds: after this there is none any more.
const SILENCE: Duration = Duration::from_secs(45);
/// The largest answer that is read: a page of a thousand jobs with large args.
const ANSWER_BYTES: u64 = 1 << 30;

/// Returns true if requests to this server are not encrypted and leave this machine.
pub(crate) fn is_exposed(base: &str) -> bool {
    !is_own(base) && !is_socket(base) && !is_encrypted(base)
}

/// Returns true if requests to this server are encrypted.
pub(crate) fn is_encrypted(base: &str) -> bool {
    base.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
}

/// Whether a server is on this machine.
fn is_own(base: &str) -> bool {
    let uri = base.parse::<Uri>();
    let host = uri.as_ref().ok().and_then(Uri::host).unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// Begins the configuration of an agent for this server or service. It returns error statuses and redirects as they are.
pub(crate) fn agent_config(base: &str) -> ConfigBuilder<AgentScope> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("tenure/", env!("CARGO_PKG_VERSION")));
    // A proxy that the environment names is for other machines.
    if is_own(base) || is_socket(base) { config.proxy(None) } else { config }
}

/// Creates the HTTP agent for one server.
fn agent(base: &str, connect_within: Duration, tls: &TlsConfig) -> Agent {
    let config =
        agent_config(base).timeout_connect(Some(connect_within)).timeout_per_read(Some(SILENCE.max(WITHIN)));
    let config = if is_encrypted(base) { config.tls_config(tls.clone()) } else { config };
    match socket::path_of(base) {
        Some(path) => socket::agent(config.build(), path),
        None => config.build().new_agent(),
    }
}

/// Who is asked, and how.
#[derive(Debug)]
pub(crate) struct Client {
    way: Way,
    /// Why nothing may be changed, if nothing may.
    read_only: Option<ReadOnly>,
}

/// Who is asked.
#[derive(Debug)]
enum Way {
    Servers(Servers),
    /// A store that this program has opened.
    Store(OwnStore),
}

/// What is sent.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    method: Method,
    path: String,
    body: Option<(&'static str, Vec<u8>)>,
    headers: Vec<(&'static str, String)>,
    within: Duration,
    /// Part of that time that the server was asked to wait.
    waits: Duration,
    /// `true` if a repetition has no further effect.
    is_repeatable: bool,
}

/// What came back, if it is no problem.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) tag: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// What was seen.
#[derive(Debug)]
pub(crate) struct Looked {
    pub(crate) status: u16,
    pub(crate) date: Option<String>,
    pub(crate) body: Value,
}

impl Ask {
    fn new(method: Method, path: impl Into<String>) -> Self {
        let is_repeatable = matches!(method, Method::GET | Method::PUT);
        Self {
            method,
            path: path.into(),
            body: None,
            headers: Vec::new(),
            within: WITHIN,
            waits: Duration::ZERO,
            is_repeatable,
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    pub(crate) fn post(path: impl Into<String>, body: &Value) -> Self {
        Self::post_text(path, body.to_string())
    }

    /// JSON, sign by sign as it is.
    pub(crate) fn post_text(path: impl Into<String>, body: String) -> Self {
        Self { body: Some(("application/json", body.into_bytes())), ..Self::new(Method::POST, path) }
    }

    pub(crate) fn put(path: impl Into<String>, body: Vec<u8>) -> Self {
        Self { body: Some(("application/json", body)), ..Self::new(Method::PUT, path) }
    }

    /// Makes something, if there is none.
    pub(crate) fn make(path: impl Into<String>, body: &Value) -> Self {
        let headers = vec![("if-none-match", "*".to_owned())];
        Self { headers, is_repeatable: false, ..Self::put(path, body.to_string().into_bytes()) }
    }

    /// Changes something, if it is as it was when it had this tag.
    pub(crate) fn patch(path: impl Into<String>, body: &Value, tag: Option<&str>) -> Self {
        let headers = tag.map(|tag| ("if-match", tag.to_owned())).into_iter().collect();
        let body = Some(("application/json", body.to_string().into_bytes()));
        Self { body, headers, ..Self::new(Method::PATCH, path) }
    }

    /// Jobs, one a line.
    pub(crate) fn post_lines(path: impl Into<String>, lines: Vec<u8>) -> Self {
        Self { body: Some(("application/x-ndjson", lines)), ..Self::new(Method::POST, path) }
    }

    /// Is not waited for any longer than this.
    pub(crate) fn within(self, span: Duration) -> Self {
        Self { within: span, ..self }
    }

    /// May be sent to another server if one does not answer, although that one may have carried it out.
    pub(crate) fn repeatable(self) -> Self {
        Self { is_repeatable: true, ..self }
    }

    /// Would rather wait up to so many seconds for another answer than the one with this tag.
    pub(crate) fn or_wait(mut self, seconds: u64, tag: Option<&str>) -> Self {
        self.headers.push(("prefer", format!("wait={seconds}")));
        self.waits = Duration::from_secs(seconds);
        self.headers.extend(tag.map(|tag| ("if-none-match", tag.to_owned())));
        self
    }
}

impl Answer {
    /// The body as text. It is UTF-8 wherever this program asks for it.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<Value, Trouble> {
        serde_json::from_slice(&self.body).map_err(|error| Trouble::strange(&error.to_string()))
    }
}

impl Client {
    pub(crate) fn new(
        bases: &[String],
        token: Option<Secret>,
        read_only: Option<ReadOnly>,
        tls: &TlsConfig,
    ) -> Self {
        Self { way: Way::Servers(Servers::new(bases, token, tls)), read_only }
    }

    /// Opens a store, and asks it without a server.
    pub(crate) fn of_store(place: &Place, purpose: Purpose) -> Result<Self, Failure> {
        let store = OwnStore::open(place, purpose)?;
        let read_only = (purpose == Purpose::Look).then(|| ReadOnly::Store(store.name().to_owned()));
        Ok(Self { way: Way::Store(store), read_only })
    }

    /// URL of the server that is used now, if a server is.
    pub(crate) fn base(&self) -> Option<&str> {
        match &self.way {
            Way::Servers(servers) => Some(servers.base()),
            Way::Store(_) => None,
        }
    }

    /// Whether it is a store that is only looked at.
    pub(crate) fn only_looks(&self) -> bool {
        matches!(self.read_only, Some(ReadOnly::Store(_)))
    }

    /// What is asked, for people.
    pub(crate) fn place(&self) -> &str {
        match &self.way {
            Way::Servers(servers) => servers.base(),
            Way::Store(store) => store.name(),
        }
    }

    /// Compares the stores of its servers, if there are several, and returns the URLs of those that do not answer.
    ///
    /// # Errors
    /// Two servers have different stores.
    pub(crate) fn check_servers(&self) -> Result<Vec<&str>, Failure> {
        match &self.way {
            Way::Servers(servers) => servers.check(),
            Way::Store(_) => Ok(Vec::new()),
        }
    }

    /// Does this before a program runs that may have to move to another server, and warns of those that do not answer.
    ///
    /// # Errors
    /// Two servers have different stores.
    pub(crate) fn prepare_to_move(&self) -> Result<(), Failure> {
        let silent = self.check_servers()?;
        silent.iter().for_each(|url| complain(&format!("{url} does not answer yet")));
        Ok(())
    }

    /// Looks at something, whatever the status is: that, the clock of the server, and the body.
    pub(crate) fn look(&self, path: &str) -> Result<Looked, Trouble> {
        let ask = Ask { within: LOOK_WITHIN, ..Ask::get(path) };
        let (head, body) = self.send(&ask, ask.within)?.into_parts();
        let date = head.headers.get("date").and_then(|date| Some(date.to_str().ok()?.to_owned()));
        let body = body.into_with_config().limit(ANSWER_BYTES).read_to_vec();
        let body = body.map_err(|error| Trouble::lost(self.place(), &error))?;
        Ok(Looked {
            status: head.status.as_u16(),
            date,
            body: serde_json::from_slice(&body).unwrap_or_default(),
        })
    }

    /// Asks once.
    pub(crate) fn ask(&self, ask: &Ask) -> Result<Answer, Trouble> {
        let response = self.send(ask, ask.within)?;
        let (head, body) = response.into_parts();
        let named = |name: &str| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
        let tag = named("etag");
        let body = body.into_with_config().limit(ANSWER_BYTES).read_to_vec();
        let body = body.map_err(|error| Trouble::lost(self.place(), &error))?;
        let status = head.status.as_u16();
        if status >= 400 {
            let mut refused = Refused::of(status, &body);
            if status == 404
                && let Some(near) = self.nearest(&ask.path)
            {
                refused.suggest(&near);
            }
            return Err(Trouble::Refused(refused.into()));
        }
        Ok(Answer { status, tag, body })
    }

    /// Asks for what happens to a job, from what was seen last on; none if nothing more can happen.
    fn events(
        &self,
        path: &str,
        seen: Option<&str>,
        within: Option<Duration>,
    ) -> Result<Option<Events>, Trouble> {
        let mut ask = Ask::get(path);
        ask.headers.push(("accept", "text/event-stream".to_owned()));
        ask.headers.extend(seen.map(|seen| ("last-event-id", seen.to_owned())));
        let response = self.send(&ask, within.unwrap_or(Duration::from_secs(24 * 3600)))?;
        let (head, body) = response.into_parts();
        match head.status.as_u16() {
            204 => Ok(None),
            200..=299 => Ok(Some(Events::read(body.into_reader()))),
            status => {
                let body = body.into_with_config().limit(ANSWER_BYTES).read_to_vec().unwrap_or_default();
                Err(Trouble::Refused(Refused::of(status, &body).into()))
            }
        }
    }

    fn send(&self, ask: &Ask, within: Duration) -> Result<ureq::http::Response<ureq::Body>, Trouble> {
        if let Some(why) = self.read_only.as_ref().filter(|_| ask.method != Method::GET) {
            return Err(Trouble::ReadOnly(why.clone()));
        }
        match &self.way {
            Way::Servers(servers) => servers.send(ask, within),
            Way::Store(store) => {
                let body = ask.body.as_ref().map_or_else(Body::empty, |(_, body)| Body::from(body.clone()));
                let request = ask.head("").extension(caller());
                let request = request.body(body).map_err(|error| Trouble::strange(&error.to_string()))?;
                store.ask(request, within)
            }
        }
    }
}

impl Ask {
    /// What is said before the body.
    fn head(&self, base: &str) -> ureq::http::request::Builder {
        let mut request = Request::builder().method(&self.method).uri(format!("{base}{}", self.path));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some((kind, _)) = &self.body {
            request = request.header("content-type", *kind);
        }
        request
    }
}

/// A part of a path or query, as it travels.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_settings_count_for_every_spelling_of_the_scheme() {
        let tls = TlsConfig::builder().use_sni(false).build();
        let uses_them = |base: &str| !agent(base, CONNECT_WITHIN, &tls).config().tls_config().use_sni();
        assert!(uses_them("https://a") && uses_them("HTTPS://a") && !uses_them("http://a"));
    }

    #[test]
    fn whatever_somebody_calls_a_thing_stays_one_part_of_a_path() {
        assert_eq!(escaped("0190f5c2-7b1e"), "0190f5c2-7b1e");
        assert_eq!(escaped("../a b?c#d&ü"), "..%2Fa%20b%3Fc%23d%26%C3%BC");
    }
}
