//! Listing jobs, page by page.

use axum::extract::OriginalUri;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tenure::{
    Condition, Cursor, Filter, JobRecord, ListedBy, Order, Page, PageAsk, State, Timestamp, limits,
};

use crate::answer;
use crate::api::Api;
use crate::filling::{FIRST_READ, Filling, weight};
use crate::hide::{self, View};
use crate::problem::{Problem, ProblemType};
use crate::query::Query;
use crate::tag::Tag;
use crate::wire::{JobDocument, JobPage, UnreadableDocument};

/// And so many are looked at for one page, if they are compared here, with so many bytes.
const LOOKED_AT: usize = 5_000;
const LOOKED_AT_BYTES: usize = limits::PAGE_EXAMINED_BYTES;

/// What may stand behind the question mark.
pub(crate) const KNOWN: [&str; 13] = [
    "q",
    "reveal",
    "state",
    "queue",
    "kind",
    "tag",
    "created_from",
    "created_before",
    "ended_from",
    "ended_before",
    "order",
    "cursor",
    "limit",
];

/// `GET /v1/jobs`
pub(crate) async fn get(
    api: Api,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &KNOWN)?;
    let (by, order) = sorted(&query)?;
    let mut filter = filter(&query, api.tenure().now())?;
    api.tenure().jobs().check_filter(&filter)?;
    let is_hidden = api.view() == View::Hidden;
    // What an error says is compared with what whoever asks is shown of it, and not by the store: where a page ends would
    // tell him what it says beyond that.
    let mut seen = Vec::new();
    if is_hidden {
        api.hiding().check(&filter)?;
        seen = hide::of_failures(&mut filter);
    }
    api.reach().narrow(&mut filter);
    let after = query.one::<Cursor>("cursor")?;
    let at_most = query.limit(limits::PAGE_JOBS)?;
    let ask = PageAsk { filter, by, order, after, at_most, ..PageAsk::default() };
    // Counted until the response counts itself.
    let (page, _filling) = page(&api, ask, &seen).await?;
    let now = api.tenure().now();
    let next_cursor = page.next.map(|next| next.to_string());
    let item = |job: JobRecord| {
        let plain = JobDocument::of(&job, now);
        let mut document = if is_hidden { plain.hidden(api.hiding()) } else { plain };
        document.address(api.site());
        document
    };
    let items = page.jobs.into_iter().map(item).collect();
    let unreadable = page.unreadable.iter().map(UnreadableDocument::of);
    let unreadable = unreadable.map(|job| if is_hidden { job.hidden() } else { job }).collect();
    let page = JobPage { items, unreadable, next_cursor: next_cursor.clone() };
    // Whoever asks again and again, and has the page, is told just that.
    let body = serde_json::to_vec(&page).unwrap_or_default();
    let tag = Tag::of(&body);
    if tag.is_known(&headers) {
        return Ok(answer::not_modified(&tag));
    }
    let mut response = answer::tagged_text(StatusCode::OK, &tag, body);
    if let Some(cursor) = next_cursor {
        answer::go_on(response.headers_mut(), &uri, ("cursor", &cursor));
    }
    Ok(response)
}

/// Returns a page, which is shorter than requested if its jobs are large.
async fn page<'a>(api: &'a Api, ask: PageAsk, seen: &[Condition]) -> Result<(Page, Filling<'a>), Problem> {
    let mut all = Page { jobs: Vec::new(), unreadable: Vec::new(), next: ask.after, examined: 0 };
    let (mut filling, mut looked, now) = (Filling::new(api), 0, api.tenure().now());
    let mut looked_bytes = 0_usize;
    loop {
        let at_most = (ask.at_most - all.jobs.len()).min(FIRST_READ);
        let read = PageAsk { after: all.next, at_most, ..ask.clone() };
        let some = filling.read(api.tenure().jobs().page(read)).await?;
        // One that is not full has looked at as much as one page may.
        let is_over = some.jobs.len() < at_most || some.next.is_none();
        looked += some.jobs.len();
        all.examined += some.examined;
        all.unreadable.extend(some.unreadable);
        for job in some.jobs {
            looked_bytes = looked_bytes.saturating_add(weight(&job));
            if !seen.is_empty() && job.failure.is_some() {
                // To mask an error and compare it takes a while, in which this thread serves no other client.
                tokio::task::yield_now().await;
            }
            let (place, is_meant) = (behind(&job, ask.by), api.hiding().is_meant(seen, &job, now));
            if is_meant && !filling.add(weight(&job))? {
                // The next page goes on with this job. It may name unreadable jobs again.
                return Ok((all, filling));
            }
            all.next = Some(place);
            if is_meant {
                all.jobs.push(job);
            }
        }
        all.next = some.next;
        let is_full = all.jobs.len() == ask.at_most || all.unreadable.len() >= limits::PAGE_UNREADABLE;
        let is_long = looked >= LOOKED_AT || looked_bytes >= LOOKED_AT_BYTES;
        if is_over || is_full || (is_long && !seen.is_empty()) {
            return Ok((all, filling));
        }
    }
}

/// Returns the cursor behind a job.
fn behind(job: &JobRecord, by: ListedBy) -> Cursor {
    match (by, &job.state) {
        (ListedBy::End, State::Finished { at, .. }) => Cursor::behind_end(*at, job.seq),
        (
            ListedBy::Acceptance | ListedBy::End,
            State::Finished { .. } | State::Waiting { .. } | State::Blocked { .. } | State::Running { .. },
        ) => Cursor::behind(job.seq),
    }
}

/// Which jobs are meant: those that the search means and all the others words as well.
pub(crate) fn filter(query: &Query, now: Timestamp) -> Result<Filter, Problem> {
    let mut filter =
        query.text("q")?.map_or_else(|| Ok(Filter::default()), |words| tenure::search(&words, now))?;
    let mut more = Vec::new();
    both(&mut filter.states, query.sought("state")?, Condition::State, &mut more);
    let queues = query.sought::<Named>("queue")?.into_iter().map(|Named(name)| name).collect();
    both(&mut filter.queues, queues, Condition::Queue, &mut more);
    let kinds = query.sought::<OfKind>("kind")?.into_iter().map(|OfKind(kind)| kind).collect();
    both(&mut filter.kinds, kinds, Condition::Kind, &mut more);
    filter.tags.extend(query.sought::<Tagged>("tag")?.into_iter().map(|Tagged(tag)| tag));
    filter.conditions.extend(more);
    filter.ended_from = filter.ended_from.max(query.one("ended_from")?);
    filter.ended_before = sooner(filter.ended_before, query.one("ended_before")?);
    filter.created_from = filter.created_from.max(query.one("created_from")?);
    filter.created_before = sooner(filter.created_before, query.one("created_before")?);
    Ok(filter)
}

/// The sooner of two instants that may be said.
fn sooner(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

/// In which order they are wanted: `newest` unless something else is said.
fn sorted(query: &Query) -> Result<(ListedBy, Order), Problem> {
    let Some(said) = query.text("order")? else { return Ok((ListedBy::Acceptance, Order::NewestFirst)) };
    Ok(match said.as_str() {
        "newest" => (ListedBy::Acceptance, Order::NewestFirst),
        "oldest" => (ListedBy::Acceptance, Order::OldestFirst),
        "last_ended" => (ListedBy::End, Order::NewestFirst),
        "first_ended" => (ListedBy::End, Order::OldestFirst),
        other => {
            let shown: String = other.chars().take(32).collect();
            let detail = format!("order: {shown:?}; expected newest, oldest, last_ended or first_ended");
            return Err(Problem::new(ProblemType::Malformed, detail).with("field", "order"));
        }
    })
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
