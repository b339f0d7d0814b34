//! The routes of the contract, asked in the same program as a team in another language would ask them.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use serde_json::Value;
use tower::ServiceExt;

use crate::exit::Failure;

/// What an answer may be long: a thousand jobs.
const ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// The routes.
#[derive(Debug, Clone)]
pub(super) struct Contract(pub Router);

impl Contract {
    pub(super) async fn post(&self, path: &str, body: Value) -> Result<Value, Failure> {
        self.ask(Method::POST, path, &body, "").await
    }

    pub(super) async fn put(&self, path: &str, body: Value) -> Result<Value, Failure> {
        self.ask(Method::PUT, path, &body, "").await
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.ask(Method::GET, path, &Value::Null, "").await
    }

    /// What is answered, if it is what was wanted.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: &Value,
        prefer: &str,
    ) -> Result<Value, Failure> {
        let wrong = |why: &str| Failure::Invalid(format!("cannot load the sample data: {path}: {why}"));
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request = if prefer.is_empty() { request } else { request.header("prefer", prefer) };
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let request = request.body(body).map_err(|error| wrong(&error.to_string()))?;
        let Ok(response) = self.0.clone().oneshot(request).await;
        let status = response.status();
        let bytes =
            to_bytes(response.into_body(), ANSWER_BYTES).await.map_err(|error| wrong(&error.to_string()))?;
        if status.is_client_error() || status.is_server_error() {
            return Err(wrong(&String::from_utf8_lossy(&bytes)));
        }
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }
}
