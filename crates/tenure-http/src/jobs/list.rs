//! Listing jobs, page by page.

use axum::extract::OriginalUri;
use axum::response::Response;
use tenure::{Condition, Cursor, Filter, PageAsk, Timestamp, limits};

use crate::answer;
use crate::api::Api;
use crate::hide::View;
use crate::problem::Problem;
use crate::query::Query;
use crate::wire::{JobDocument, JobPage};

/// What may stand behind the question mark.
pub(crate) const KNOWN: [&str; 10] =
    ["q", "reveal", "state", "queue", "kind", "tag", "created_from", "created_before", "cursor", "limit"];

/// `GET /v1/jobs`
pub(crate) async fn get(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &KNOWN)?;
    let mut filter = filter(&query, api.tenure().now())?;
    let is_hidden = api.view() == View::Hidden;
    if is_hidden {
        api.hiding().check(&filter)?;
    }
    api.reach().narrow(&mut filter);
    let ask = PageAsk {
        filter,
        after: query.one::<Cursor>("cursor")?,
        at_most: query.limit(limits::PAGE_JOBS)?,
        ..PageAsk::default()
    };
    let page = api.tenure().jobs().page(ask).await?;
    let now = api.tenure().now();
    let next_cursor = page.next.map(|next| next.to_string());
    let shown = |job| {
        let document = JobDocument::of(job, now);
        if is_hidden { document.hidden(api.hiding()) } else { document }
    };
    let items = page.jobs.iter().map(shown).collect();
    Ok(answer::page(&uri, next_cursor.clone().as_deref(), &JobPage { items, next_cursor }))
}

/// Which jobs are meant: those that the search means and all the others words as well.
pub(crate) fn filter(query: &Query, now: Timestamp) -> Result<Filter, Problem> {
    let mut filter =
        query.text("q")?.map_or_else(|| Ok(Filter::default()), |words| tenure::search(&words, now))?;
    let mut more = Vec::new();
    both(&mut filter.states, query.all("state")?, Condition::State, &mut more);
    let queues = query.all::<Named>("queue")?.into_iter().map(|Named(name)| name).collect();
    both(&mut filter.queues, queues, Condition::Queue, &mut more);
    let kinds = query.all::<OfKind>("kind")?.into_iter().map(|OfKind(kind)| kind).collect();
    both(&mut filter.kinds, kinds, Condition::Kind, &mut more);
    filter.tags.extend(query.all::<Tagged>("tag")?.into_iter().map(|Tagged(tag)| tag));
    filter.conditions.extend(more);
    filter.created_from = filter.created_from.max(query.one("created_from")?);
    let before = query.one("created_before")?;
    filter.created_before = match (filter.created_before, before) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    Ok(filter)
}

/// Narrows a list of a filter down by another one: what both say holds.
fn both<T>(list: &mut Vec<T>, said: Vec<T>, holds: fn(T) -> Condition, more: &mut Vec<Condition>) {
    if said.is_empty() {
        return;
    }
    if list.is_empty() {
        *list = said;
    } else {
        more.push(Condition::OneOf(said.into_iter().map(holds).collect()));
    }
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
