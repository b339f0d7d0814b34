//! An audited act: its actor, object, change and outcome.

use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::change::{difference, shown};
use super::{ANONYMOUS, Target};
use crate::access::{NoGrant, Remote, Who, parts};
use crate::api::asks_to_reveal;
use crate::hide::Hiding;
use crate::oidc::OidcRequest;

/// End of the path of an entry, if the request asked for hidden values.
const REVEALS: &str = "?reveal=true";
/// Longest path of an entry, in bytes. A request head may be larger than an entry.
const PATH_BYTES: usize = 1_024;
/// Longest name, command or request ID, in bytes.
const TEXT_BYTES: usize = 256;
/// End of a text that was cut.
pub(super) const CUT: &str = "… (cut)";

/// The entry point of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "AuditSource")]
#[non_exhaustive]
pub enum Source {
    /// The HTTP API.
    #[default]
    Http,
    /// The dashboard.
    Dashboard,
    /// A command that opened the store itself.
    Cli,
}

/// The caller of an in-process request, for the audit log. A program adds it to the request as an extension.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// Entry point of the request.
    pub source: Source,
    /// Name of the actor, if the routes require no access token.
    pub actor: Option<String>,
    /// Command that sends the request, without its arguments.
    pub command: Option<String>,
}

/// The object of an act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AuditObject")]
pub(crate) struct Object {
    /// Kind of the object, such as `job` or `queue`.
    pub kind: String,
    /// Name or ID of the object.
    pub name: Option<String>,
}

/// An audited act.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AuditAct")]
pub(crate) struct Act {
    /// Name of the actor.
    pub who: String,
    /// ID of the actor's access token. In a refused request it is the ID that the client sent.
    #[serde(default)]
    pub token_id: Option<String>,
    /// Entry point of the request.
    #[serde(default)]
    pub source: Source,
    /// Address of the client.
    #[serde(default)]
    pub address: Option<String>,
    /// ID of the request, as in the header `x-request-id`.
    #[serde(default)]
    pub request_id: Option<String>,
    /// Command that sent the request, without its arguments.
    #[serde(default)]
    pub command: Option<String>,
    /// Method of the request.
    pub method: String,
    /// Path of the request.
    pub path: String,
    /// Object of the act.
    #[serde(default)]
    pub object: Option<Object>,
    /// Changed fields before the act. Hidden values are replaced, and large values are cut.
    #[serde(default)]
    pub before: Option<Map<String, Value>>,
    /// Changed fields after the act.
    #[serde(default)]
    pub after: Option<Map<String, Value>>,
    /// Status code of the response.
    #[serde(default)]
    pub status: u16,
    /// Number of requests: refused requests of one address share an entry.
    #[serde(default = "one")]
    pub count: u32,
}

fn one() -> u32 {
    1
}

impl Act {
    pub(crate) fn of(who: &Who, target: &Target, request: &Request) -> Self {
        let (method, mut path) = (request.method().to_string(), cut(request.uri().path(), PATH_BYTES));
        if asks_to_reveal(request.uri().query()) {
            path.push_str(REVEALS);
        }
        let caller = request.extensions().get::<Caller>().cloned().unwrap_or_default();
        let refused = request.extensions().get::<NoGrant>().map(|refused| refused.name.to_string());
        let actor = who.name().map(str::to_owned).or(caller.actor).or(refused);
        let header = request.headers().get("x-request-id").and_then(|id| id.to_str().ok());
        Self {
            who: cut(&actor.unwrap_or_else(|| ANONYMOUS.to_owned()), TEXT_BYTES),
            token_id: who.token_id().map(str::to_owned),
            source: caller.source,
            address: request.extensions().get::<Remote>().map(|Remote(address)| address.to_string()),
            request_id: header.map(|id| cut(id, TEXT_BYTES)),
            command: caller.command.map(|command| cut(&command, TEXT_BYTES)),
            object: Some(target.object(request.uri().path())),
            method,
            path,
            before: None,
            after: None,
            status: 0,
            count: 1,
        }
    }

    /// Returns a sign-in with the identity provider of this URL.
    pub(crate) fn sign_in(who: &str, request: &OidcRequest, issuer: &str) -> Self {
        let id = request.request_id.as_ref().and_then(|id| id.to_str().ok());
        Self {
            who: cut(who, TEXT_BYTES),
            token_id: None,
            source: Source::Dashboard,
            address: request.remote.map(|Remote(address)| address.to_string()),
            request_id: id.map(|id| cut(id, TEXT_BYTES)),
            command: None,
            object: Some(Object { kind: "sign-in".to_owned(), name: Some(cut(issuer, TEXT_BYTES)) }),
            method: "GET".to_owned(),
            path: cut(&request.path, PATH_BYTES),
            before: None,
            after: None,
            status: 0,
            count: 1,
        }
    }

    /// Returns true if it shows hidden values, which needs an entry.
    pub(crate) fn reveals(&self) -> bool {
        self.path.ends_with(REVEALS)
    }

    /// Sets the name of a new object from the document that shows it.
    pub(crate) fn name(&mut self, document: Option<&Value>) {
        let named = document.and_then(|document| document["id"].as_str().or(document["name"].as_str()));
        if let (Some(object), Some(name)) = (&mut self.object, named) {
            object.name = Some(cut(name, TEXT_BYTES));
        }
    }

    /// Sets the change from the documents of the object, without hidden values.
    pub(crate) fn change(&mut self, hiding: &Hiding, before: Option<Value>, after: Option<Value>) {
        let (before, after) = difference(before, after);
        self.before = before.map(|fields| shown(hiding, fields));
        self.after = after.map(|fields| shown(hiding, fields));
    }

    /// Adds the token ID that a refused client sent. It shows which token expired or was revoked.
    pub(crate) fn refused(mut self, headers: &HeaderMap) -> Self {
        let sent = headers.get(AUTHORIZATION).and_then(|sent| sent.to_str().ok());
        let token = sent.and_then(|sent| parts(sent.split_once(' ')?.1.trim()));
        self.token_id = token.map(|(id, _)| id.to_owned());
        self
    }

    pub(crate) fn answered(mut self, status: StatusCode) -> Self {
        self.status = status.as_u16();
        self
    }
}

/// Returns the beginning of a text, with a mark if it was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    format!("{}{CUT}", text.get(..end).unwrap_or_default())
}
