//! `GET /v1/events`: what happens, as it happens, or page by page.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::extract::OriginalUri;
use axum::http::header::{CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use tenure::Invalid;

use super::event::{EventDocument, check_pattern, means};
use super::follower::stream;
use super::journal::{self, Place, Told};
use super::position;
use super::recorder::Follow;
use super::webhook::last_number;
use super::wire::NAMES;
use crate::accept;
use crate::answer::{go_on, json};
use crate::api::Api;
use crate::prefer::Prefer;
use crate::problem::{Problem, ProblemType};
use crate::query::Query;

/// When a client that was cut off should come back.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// Pages of the journal that are looked at for one page: who wants little of much goes on behind it.
const PAGES: usize = 50;
/// Events of a page at most.
const PAGE: usize = 200;
/// A batch of CloudEvents.
const BATCH: &str = "application/cloudevents-batch+json";

/// A page of events, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EventPage {
    items: Vec<EventDocument>,
    /// Cursor to pass as `since` for the events after these.
    next_cursor: String,
}

/// In which form events are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Page,
    Batch,
    Stream,
}

/// Parameters that say which events are wanted. A stream keeps their values and compares each event with them, so all of
/// them together have a bound.
const FILTERS: [&str; 4] = ["types", "queue", "kind", "subject"];

/// What is wanted.
#[derive(Debug, Clone, Default)]
pub(super) struct Ask {
    types: BTreeSet<String>,
    queues: BTreeSet<String>,
    kinds: BTreeSet<String>,
    /// What they are about: a job, a lease, a schedule or a queue.
    subjects: BTreeSet<String>,
}

impl Ask {
    /// Wants all events of some types.
    #[cfg(test)]
    pub(super) fn of_types(types: &[&str]) -> Self {
        Self { types: types.iter().copied().map(str::to_owned).collect(), ..Self::default() }
    }

    fn wants(&self, event: &EventDocument) -> bool {
        let named = |names: &BTreeSet<String>, name: Option<&String>| {
            names.is_empty() || name.is_some_and(|name| names.contains(name))
        };
        (self.types.is_empty() || self.types.iter().any(|pattern| means(pattern, &event.event_type)))
            && named(&self.queues, event.queue.as_ref())
            && named(&self.kinds, event.kind.as_ref())
            && named(&self.subjects, Some(&event.subject))
    }
}

struct Pattern(String);
struct Word(String);

impl std::str::FromStr for Pattern {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        check_pattern(text).map(|()| Self(text.to_owned()))
    }
}

impl std::str::FromStr for Word {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        tenure::Name::new("name", text).map(|name| Self(name.as_str().to_owned()))
    }
}

/// What an event may be about: names of leases are any text.
struct Subject(String);

/// The longest of them, in bytes.
const SUBJECT_BYTES: usize = 1_000;

impl std::str::FromStr for Subject {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if !(1..=SUBJECT_BYTES).contains(&text.len()) {
            let found = format!("{} bytes", text.len());
            return Err(Invalid::new("subject", found, format_args!("1 to {SUBJECT_BYTES}")));
        }
        Ok(Self(text.to_owned()))
    }
}

/// `GET /v1/events`
pub(crate) async fn get(
    api: Api,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["types", "queue", "kind", "subject", "since", "limit"])?;
    query.check_number(&FILTERS, NAMES)?;
    let words = |name: &str| -> Result<BTreeSet<String>, Problem> {
        Ok(query.all::<Word>(name)?.into_iter().map(|Word(word)| word).collect())
    };
    let types = query.all::<Pattern>("types")?.into_iter().map(|Pattern(pattern)| pattern).collect();
    let subjects = query.all::<Subject>("subject")?.into_iter().map(|Subject(subject)| subject).collect();
    let ask = Ask { types, queues: words("queue")?, kinds: words("kind")?, subjects };
    let since = query.one::<Place>("since")?;
    let most = query.limit(PAGE)?;
    let form = accept::best(
        &headers,
        &[("application/json", Form::Page), ("text/event-stream", Form::Stream), (BATCH, Form::Batch)],
        Form::Page,
    );
    // Before anything is looked at: what happens from now on is written down.
    let follow = (!api.is_read_only()).then(|| api.recorder().follow(api.tenure()));
    if form == Form::Stream {
        let seen = headers.get("last-event-id").and_then(|seen| seen.to_str().ok());
        let seen = seen.and_then(|seen| seen.trim().parse().ok());
        return stream(api, ask, seen.or(since), follow, &headers).await;
    }
    let wait = Prefer::of(&headers).wait.unwrap_or(Duration::ZERO);
    let (found, next) = page(&api, &ask, since, (most, wait), follow).await?;
    Ok(shown(&uri, found, next, form == Form::Batch))
}

/// A page, once there is something on it, or when the wait is over.
async fn page(
    api: &Api,
    ask: &Ask,
    since: Option<Place>,
    (most, wait): (usize, Duration),
    mut follow: Option<Follow>,
) -> Result<(Vec<Told>, Place), Problem> {
    let tenure = api.tenure();
    let here = Place::new(last_number(tenure).await?, tenure.now());
    let mut at = match since {
        Some(since) if misses_some(api, since, follow.as_ref()).await? => return Err(expired()),
        Some(since) => since,
        None => {
            let found = journal::last(tenure, most, |event| ask.wants(event)).await?;
            if !found.is_empty() || wait.is_zero() {
                let next = found.last().map_or(here, |told| told.at);
                return Ok((found, next));
            }
            here
        }
    };
    let over = api.over(wait);
    tokio::pin!(over);
    loop {
        let some = some(api, ask, at, (most, Until::Full)).await?;
        at = some.at;
        if !some.found.is_empty() || some.is_cut || wait.is_zero() {
            return Ok((some.found, at));
        }
        tokio::select! {
            biased;
            () = &mut over => return Ok((Vec::new(), at)),
            () = more(api, follow.as_mut()) => {}
        }
    }
}

/// Ends when there may be more.
pub(super) async fn more(api: &Api, follow: Option<&mut Follow>) {
    match follow {
        Some(follow) => follow.more().await,
        // What others write is looked at now and then.
        None => api.tenure().store().clock().sleep(RETRY).await,
    }
}

/// Some that are wanted behind a place.
pub(super) struct Found {
    pub found: Vec<Told>,
    /// Behind which place it goes on.
    pub at: Place,
    /// Whether there may be more although few were found.
    pub is_cut: bool,
}

/// When a search for events ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// As many as wanted were found.
    Full,
    /// A page of the journal had some. A stream does not keep events that do not count while it searches on.
    Found,
}

pub(super) async fn some(
    api: &Api,
    ask: &Ask,
    mut at: Place,
    (most, until): (usize, Until),
) -> Result<Found, Problem> {
    let mut found = Vec::new();
    for page in 0..PAGES {
        let looked = api.tenure().now();
        // Most clients want each event, and then a small read suffices.
        let at_most = if page == 0 { most.min(journal::PAGE) } else { journal::PAGE };
        let (events, next) = journal::behind(api.tenure(), at.number, at_most).await?;
        for told in events {
            at = told.at;
            if ask.wants(&told.event) {
                found.push(told);
            }
            if found.len() == most {
                return Ok(Found { found, at, is_cut: true });
            }
        }
        let Some(next) = next else {
            // Up to now nothing is missing, however long it has been quiet.
            return Ok(Found { found, at: Place::new(at.number, looked), is_cut: false });
        };
        at.number = at.number.max(next);
        if until == Until::Found && !found.is_empty() {
            break;
        }
    }
    Ok(Found { found, at, is_cut: true })
}

/// Whether something may have happened behind this place that is not told: it is not kept any more, or was not written down
/// because nobody wanted to know. A server that writes nothing knows nothing of that.
pub(super) async fn misses_some(api: &Api, since: Place, follow: Option<&Follow>) -> Result<bool, Problem> {
    let tenure = api.tenure();
    if since.is_expired(tenure.now()) {
        return Ok(true);
    }
    let began = match follow {
        Some(follow) => Some(follow.began().await),
        None => position::began(tenure).await?,
    };
    Ok(began.is_some_and(|began| since.is_before(began)))
}

fn expired() -> Problem {
    let detail = "events after this cursor are no longer kept, or were not recorded; start without a cursor and read the jobs themselves";
    Problem::new(ProblemType::CursorExpired, detail).with("field", "since")
}

fn shown(uri: &Uri, found: Vec<Told>, next: Place, as_batch: bool) -> Response {
    let items: Vec<EventDocument> = found.into_iter().map(|told| told.event).collect();
    let mut response = if as_batch {
        let mut response = json(StatusCode::OK, &items);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(BATCH));
        response
    } else {
        json(StatusCode::OK, &EventPage { items, next_cursor: next.to_string() })
    };
    go_on(response.headers_mut(), uri, ("since", &next.to_string()));
    response.headers_mut().insert(VARY, HeaderValue::from_static("Prefer, Accept, Authorization"));
    response
}
