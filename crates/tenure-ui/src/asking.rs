//! The pages ask the routes of the contract, in the same program: what those hide or refuse is hidden and refused here.

use std::sync::PoisonError;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::request::Builder;
use axum::http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tenure_http::{Caller, HeldMemory, Problem, ResponseMemory, Source};
use tower::ServiceExt;

use crate::parts::list;
use crate::stays::Credential;
use crate::tree::{self, Tree};
use crate::visit::Visit;

/// Why something could not be shown or done.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub status: StatusCode,
    pub title: String,
    pub detail: String,
}

impl Trouble {
    pub(crate) fn new(status: StatusCode, title: &str, detail: &str) -> Self {
        Self { status, title: title.to_owned(), detail: detail.to_owned() }
    }
}

impl From<Problem> for Trouble {
    fn from(problem: Problem) -> Self {
        let (status, document) = (problem.problem_type().status(), problem.document());
        let said = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
        Self { status, title: said("title"), detail: said("detail") }
    }
}

/// The memory of the tree of an answer, which counts against the client until this is dropped.
pub(crate) struct Held(Option<HeldMemory>);

impl Held {
    /// Gives memory back, except for that of a part of the tree or of its text.
    pub(crate) fn shrink(mut self, bytes: usize) -> Self {
        if let Some(tree) = &mut self.0 {
            tree.shrink(bytes);
        }
        self
    }
}

/// Entries of one page of a list.
const PAGE: usize = 1_000;
/// Pages of one list.
const PAGES: usize = 10;

/// What is written in another way within an address: all but letters, digits and what never means anything there.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A name as part of an address.
pub(crate) fn encoded(name: &str) -> String {
    utf8_percent_encode(name, ESCAPED).to_string()
}

impl Visit {
    /// What the contract answers to a look.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Trouble> {
        self.ask(Method::GET, path, &Value::Null).await
    }

    /// Returns a list as a whole, page by page, up to a bound that no page of the dashboard could show.
    pub(crate) async fn all(&self, path: &str) -> Result<Value, Trouble> {
        let sign = if path.contains('?') { '&' } else { '?' };
        let first = format!("{path}{sign}limit={PAGE}");
        let mut all = self.get(&first).await?;
        for _ in 1..PAGES {
            let Some(next) = all["next_cursor"].as_str().map(encoded) else { break };
            let mut page = self.get(&format!("{first}&cursor={next}")).await?;
            all["next_cursor"] = page["next_cursor"].take();
            if let (Some(items), Some(more)) = (all["items"].as_array_mut(), page["items"].as_array_mut()) {
                items.append(more);
            }
        }
        Ok(all)
    }

    /// What the contract answers to a wish.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<Value, Trouble> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(method, path, body).await
    }

    /// The same, with a body of JSON that is sent as it is written, if there is one.
    pub(crate) async fn send(&self, method: Method, path: &str, body: String) -> Result<Value, Trouble> {
        let (told, held) = self.fetch(method, path, body).await?;
        self.hold(held);
        Ok(told)
    }

    /// Takes so many bytes of the client's memory until the page is made, before the page grows by as much.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Trouble> {
        let Some(memory) = self.memory.get() else { return Ok(()) };
        self.hold(Held(Some(memory.take(bytes)?)));
        Ok(())
    }

    /// Counts an answer as memory of the client until the page is made.
    pub(crate) fn hold(&self, held: Held) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(held);
    }

    /// Returns an answer and its memory.
    pub(crate) async fn fetch(
        &self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<(Value, Held), Trouble> {
        let is_change = method != Method::GET;
        let mut request = Request::builder().method(method).uri(path);
        let caller = Caller { source: Source::Dashboard, ..Caller::default() };
        request = request.extension(caller);
        if let Some(id) = &self.request_id {
            request = request.header("x-request-id", id);
        }
        if let Some(remote) = self.remote {
            request = request.extension(remote);
        }
        if let Some(client) = &self.client {
            request = request.extension(client.clone());
        }
        match &self.credential {
            Some(Credential::Token(token)) => {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            }
            Some(person) => {
                request = person.principal().cloned().into_iter().fold(request, Builder::extension);
            }
            None => {}
        }
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let broken = |detail: &str| Trouble::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal error", detail);
        let request = request.body(Body::from(body)).map_err(|error| broken(&error.to_string()))?;
        let Ok(response) = self.ui.api.clone().oneshot(request).await;
        let (status, memory) = (response.status(), response.extensions().get::<ResponseMemory>().cloned());
        if let Some(memory) = &memory {
            self.memory.get_or_init(|| memory.clone());
        }
        let bytes = response.into_body().collect().await.map_err(|error| broken(&error.to_string()))?;
        let bytes = bytes.to_bytes();
        let Tree { value: told, bytes: size } = tree::read(&bytes);
        // What is held back until a job has ended is told with 303; its body is there all the same.
        if status.is_client_error() || status.is_server_error() {
            let said = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
            return Err(Trouble { status, title: said("title"), detail: said("detail") });
        }
        let tree = match memory {
            Some(memory) if is_change => Some(memory.take_for_change(size)),
            Some(memory) => Some(memory.take(size)?),
            None => None,
        };
        Ok((told, Held(tree)))
    }

    /// Refuses to change anything on a server that only tells.
    pub(crate) fn may_change(&self) -> Result<(), Trouble> {
        if self.ui.read_only {
            let detail = "This server is read-only. Use another server of the same store to make changes.";
            return Err(Trouble::new(StatusCode::FORBIDDEN, "Server is read-only", detail));
        }
        Ok(())
    }

    /// Whether whoever looks may change things that others began: decided here for what is shown, and by the contract for
    /// what is done.
    pub(crate) async fn may(&self, right: &str) -> bool {
        !self.ui.read_only && self.has(right).await
    }

    /// Whether whoever looks has a right, though this server may only tell.
    pub(crate) async fn has(&self, right: &str) -> bool {
        let Ok(who) = self.who.get_or_try_init(|| self.get("/v1/whoami")).await else { return false };
        let scopes = [list(&who["token"], "scopes"), list(&who["principal"], "scopes")].concat();
        who["open"] == true || scopes.iter().any(|scope| scope == right || scope == "admin")
    }
}
