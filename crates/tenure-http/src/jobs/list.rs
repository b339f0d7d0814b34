//! Listing jobs, page by page.

use axum::extract::{OriginalUri, State};
use axum::http::header::LINK;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use tenure::{Cursor, Filter, PageAsk, limits};

use crate::answer::json;
use crate::api::Api;
use crate::problem::Problem;
use crate::query::Query;
use crate::wire::{JobDocument, JobPage};

/// What may stand behind the question mark.
pub(crate) const KNOWN: [&str; 8] =
    ["state", "queue", "kind", "tag", "created_from", "created_before", "cursor", "limit"];

/// `GET /v1/jobs`
pub(crate) async fn get(State(api): State<Api>, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &KNOWN)?;
    let most = query.number("limit", (1, limits::PAGE_JOBS as u64), 50)?;
    let ask = PageAsk {
        filter: filter(&query)?,
        after: query.one::<Cursor>("cursor")?,
        at_most: usize::try_from(most).unwrap_or(limits::PAGE_JOBS),
        ..PageAsk::default()
    };
    let page = api.tenure().jobs().page(ask).await?;
    let now = api.tenure().now();
    let next_cursor = page.next.map(|next| next.to_string());
    let items = page.jobs.iter().map(|job| JobDocument::of(job, now)).collect();
    let next = next_cursor.as_deref().map(|cursor| next_link(uri.query(), cursor));
    let mut response = json(StatusCode::OK, &JobPage { items, next_cursor });
    if let Some(link) = next.and_then(|link| HeaderValue::from_str(&link).ok()) {
        response.headers_mut().insert(LINK, link);
    }
    Ok(response)
}

/// Which jobs are meant.
pub(crate) fn filter(query: &Query) -> Result<Filter, Problem> {
    Ok(Filter {
        states: query.all("state")?,
        queues: query.all::<Named>("queue")?.into_iter().map(|Named(name)| name).collect(),
        kinds: query.all::<OfKind>("kind")?.into_iter().map(|OfKind(kind)| kind).collect(),
        tags: query.all::<Tagged>("tag")?.into_iter().map(|Tagged(tag)| tag).collect(),
        created_from: query.one("created_from")?,
        created_before: query.one("created_before")?,
    })
}

struct Named(tenure::QueueName);
struct OfKind(tenure::Kind);
struct Tagged(tenure::Name);

impl std::str::FromStr for Named {
    type Err = tenure::Invalid;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        tenure::QueueName::new(text).map(Self)
    }
}

impl std::str::FromStr for OfKind {
    type Err = tenure::Invalid;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        tenure::Kind::new(text).map(Self)
    }
}

impl std::str::FromStr for Tagged {
    type Err = tenure::Invalid;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        tenure::Name::new("tag", text).map(Self)
    }
}

/// The same question, from there on.
fn next_link(query: Option<&str>, cursor: &str) -> String {
    let kept =
        query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("cursor="));
    let mut pairs: Vec<&str> = kept.collect();
    let cursor = format!("cursor={cursor}");
    pairs.push(&cursor);
    format!("</v1/jobs?{}>; rel=\"next\"", pairs.join("&"))
}
