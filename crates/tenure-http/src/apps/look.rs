//! Looking at apps.

use axum::extract::OriginalUri;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use serde::Serialize;
use tenure::apps::{Apps, Info, Sort};

use super::wire::{AppDocument, AppLinesList, AppList};
use crate::answer::{json, not_modified, tagged};
use crate::api::Api;
use crate::hide::View;
use crate::id::Named;
use crate::problem::{Problem, ProblemType};
use crate::query::Query;
use crate::tag::Tag;

/// What a set is called if nobody says it.
const SET: &str = "apps";
/// Entries of lines that one answer has.
pub(crate) const MOST_LINES: u64 = 500;

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
        let detail = format!("no live host offers {} program {name} in set {}", sort.word(), apps.set());
        Problem::new(ProblemType::NotFound, detail)
    })
}

/// `GET /v1/apps`
pub(crate) async fn list(
    api: Api,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let items = set_of(&api, &uri)?.list().await?.into_iter().map(AppDocument::from).collect();
    Ok(unless_known(&headers, &AppList { items }))
}

/// A document, or that it is the one which the client has.
fn unless_known<T: Serialize>(headers: &HeaderMap, document: &T) -> Response {
    let tag = tag(document);
    if tag.is_known(headers) { not_modified(&tag) } else { tagged(StatusCode::OK, &tag, document) }
}

/// What hosts write down again and again is the same text: whatever server tells of it, and after a restart, too.
fn tag<T: Serialize>(document: &T) -> Tag {
    Tag::of(&serde_json::to_vec(document).unwrap_or_default())
}

/// `GET /v1/apps/triggered/{name}`, and the same of a continuous one
pub(crate) async fn shown<Which: OfSort>(
    api: Api,
    Named(name): Named,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let info = there(&set_of(&api, &uri)?, Which::SORT, &name).await?;
    Ok(unless_known(&headers, &AppDocument::from(info)))
}

/// The document of an app that was changed.
pub(super) fn changed(info: Info) -> Response {
    let document = AppDocument::from(info);
    tagged(StatusCode::OK, &tag(&document), &document)
}

/// `GET /v1/apps/continuous/{name}/lines`
pub(crate) async fn lines(
    api: Api,
    Named(name): Named,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["set", "behind", "limit", "reveal"])?;
    let apps = set(&api, &query)?;
    let behind = query.maybe_number("behind", (0, i64::MAX.unsigned_abs()))?;
    let limit = usize::try_from(query.number("limit", (1, MOST_LINES), 100)?).unwrap_or(usize::MAX);
    let mut said = apps.said(&name, behind, limit).await?;
    if api.view() == View::Hidden {
        let lines = said.iter_mut().flat_map(|said| &mut said.lines);
        lines.for_each(|line| *line = api.hiding().text(line));
    }
    if said.is_empty() {
        there(&apps, Sort::Continuous, &name).await?;
    }
    Ok(json(StatusCode::OK, &AppLinesList { items: said.into_iter().map(Into::into).collect() }))
}
