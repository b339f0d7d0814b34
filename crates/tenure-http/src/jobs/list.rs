//! Listing jobs, page by page.

use axum::extract::{OriginalUri, State};
use axum::http::HeaderMap;
use axum::response::Response;
use tenure::{Cursor, Filter, PageAsk, limits};

use crate::answer;
use crate::api::Api;
use crate::problem::Problem;
use crate::query::Query;
use crate::wire::{JobDocument, JobPage};

/// What may stand behind the question mark.
pub(crate) const KNOWN: [&str; 8] =
    ["state", "queue", "kind", "tag", "created_from", "created_before", "cursor", "limit"];

/// `GET /v1/jobs`
pub(crate) async fn get(
    State(api): State<Api>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &KNOWN)?;
    let ask = PageAsk {
        filter: filter(&query)?,
        after: query.one::<Cursor>("cursor")?,
        at_most: query.limit(limits::PAGE_JOBS)?,
        ..PageAsk::default()
    };
    let page = api.tenure().jobs().page(ask).await?;
    let now = api.tenure().now();
    let next_cursor = page.next.map(|next| next.to_string());
    let base = answer::base(&headers);
    let item = |job| {
        let mut document = JobDocument::of(job, now);
        document.address(&base);
        document
    };
    let items = page.jobs.iter().map(item).collect();
    Ok(answer::page(&uri, next_cursor.clone().as_deref(), &JobPage { items, next_cursor }))
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
