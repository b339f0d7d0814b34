//! Limits of limit keys: listing, setting and removing them.

use axum::body::Body;
use axum::extract::OriginalUri;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tenure::{Key, LimitInfo, limits};

use crate::answer::{json, page};
use crate::api::Api;
use crate::body;
use crate::id::Named;
use crate::problem::{Problem, ProblemType};
use crate::query::Query;
use crate::wire::{LimitDocument, LimitPage, LimitSpec};

const BODY_BYTES: usize = 16 * 1024;

/// `GET /v1/limits`
pub(crate) async fn list(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["cursor", "limit"])?;
    let behind = query.text("cursor")?.map(|key| Key::new("cursor", &key)).transpose()?;
    let found = api.tenure().limits().page(behind, query.limit(limits::PAGE_LIMITS)?).await?;
    let items = found.limits.iter().map(LimitDocument::of).collect();
    let next_cursor = found.next.map(|key| key.to_string());
    Ok(page(&uri, next_cursor.clone().as_deref(), &LimitPage { items, next_cursor }))
}

/// `GET /v1/limits/{key}`
pub(crate) async fn get(api: Api, Named(key): Named) -> Result<Response, Problem> {
    Ok(json(StatusCode::OK, &LimitDocument::of(&there(&api, &key).await?)))
}

/// `PUT /v1/limits/{key}`
pub(crate) async fn put(
    api: Api,
    Named(key): Named,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let spec: LimitSpec = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    api.tenure().limits().set(&key, spec.limit()?).await?;
    Ok(json(StatusCode::OK, &LimitDocument::of(&there(&api, &key).await?)))
}

/// `DELETE /v1/limits/{key}`
pub(crate) async fn delete(api: Api, Named(key): Named) -> Result<Response, Problem> {
    if !there(&api, &key).await?.set {
        let detail = format!("the limit of key {key:?} is not set; its jobs set the number");
        return Err(Problem::new(ProblemType::NotFound, detail));
    }
    api.tenure().limits().clear(&key).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn there(api: &Api, key: &str) -> Result<LimitInfo, Problem> {
    let missing = || Problem::new(ProblemType::NotFound, format!("no limit is set or used with key {key:?}"));
    api.tenure().limits().get(key).await?.ok_or_else(missing)
}
