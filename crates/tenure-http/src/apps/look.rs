//! Looking at apps.

use axum::extract::OriginalUri;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use tenure::apps::{Apps, Info, Sort};

use super::wire::{AppDocument, AppLinesList, AppList};
use crate::answer::json;
use crate::api::Api;
use crate::id::Named;
use crate::problem::{Problem, ProblemType};
use crate::query::Query;

/// What a set is called if nobody says it.
const SET: &str = "apps";
/// Entries of lines that one answer has.
const MOST_LINES: u64 = 500;

/// Of which sort the app is that a path means.
pub(crate) trait OfSort: Send + Sync + 'static {
    /// The sort.
    const SORT: Sort;
}

/// A path below `triggered`.
pub(crate) struct Triggered;

/// A path below `continuous`.
pub(crate) struct Continuous;

impl OfSort for Triggered {
    const SORT: Sort = Sort::Triggered;
}

impl OfSort for Continuous {
    const SORT: Sort = Sort::Continuous;
}

/// The set that is meant, where nothing else may be said.
pub(super) fn set_of<'a>(api: &'a Api, uri: &Uri) -> Result<Apps<'a>, Problem> {
    set(api, &Query::read(uri.query(), &["set"])?)
}

fn set<'a>(api: &'a Api, query: &Query) -> Result<Apps<'a>, Problem> {
    Ok(api.tenure().apps(query.text("set")?.as_deref().unwrap_or(SET))?)
}

/// The app that is meant.
pub(super) async fn there(apps: &Apps<'_>, sort: Sort, name: &str) -> Result<Info, Problem> {
    apps.kind(name)?;
    apps.get(sort, name).await?.ok_or_else(|| {
        let detail = format!("no host offers a {} {name} in the set {}", sort.word(), apps.set());
        Problem::new(ProblemType::NotFound, detail)
    })
}

/// `GET /v1/apps`
pub(crate) async fn list(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let items = set_of(&api, &uri)?.list().await?.into_iter().map(AppDocument::from).collect();
    Ok(json(StatusCode::OK, &AppList { items }))
}

/// `GET /v1/apps/triggered/{name}`, and the same of a continuous one
pub(crate) async fn shown<Which: OfSort>(
    api: Api,
    Named(name): Named,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    one(&set_of(&api, &uri)?, Which::SORT, &name).await
}

/// The document of an app.
pub(super) async fn one(apps: &Apps<'_>, sort: Sort, name: &str) -> Result<Response, Problem> {
    Ok(json(StatusCode::OK, &AppDocument::from(there(apps, sort, name).await?)))
}

/// `GET /v1/apps/continuous/{name}/lines`
pub(crate) async fn lines(
    api: Api,
    Named(name): Named,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["set", "behind", "limit"])?;
    let apps = set(&api, &query)?;
    let behind = query.maybe_number("behind", (0, i64::MAX.unsigned_abs()))?;
    let limit = usize::try_from(query.number("limit", (1, MOST_LINES), 100)?).unwrap_or(usize::MAX);
    let said = apps.said(&name, behind, limit).await?;
    if said.is_empty() {
        there(&apps, Sort::Continuous, &name).await?;
    }
    Ok(json(StatusCode::OK, &AppLinesList { items: said.into_iter().map(Into::into).collect() }))
}
