//! Looking at schedules, their next slots and what became of the last ones.

use axum::extract::OriginalUri;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tenure::{Error, Invalid, Name, SlotsAsk, Timer, TimersAsk, Timestamp, limits};

use super::cursor::{Place, text};
use super::search::{search, search_store};
use crate::answer::{json, not_modified, page, tagged};
use crate::api::Api;
use crate::filling::{FIRST_READ, Filling, PAGE_BYTES, weight_of_texts};
use crate::hide::View;
use crate::id::Named;
use crate::problem::{Problem, ProblemType};
use crate::query::Query;
use crate::tag::Tag;
use crate::wire::{
    NextRuns, ReasonDocument, Reasons, RunDocument, RunPage, ScheduleDocument, SchedulePage, SlotDocument,
};

/// Slots that one question may ask for.
pub(super) const MOST_SLOTS: u64 = 1_000;

/// Schedules of one read: with args of the maximum size, they take 25 MiB.
const READ_MOST: usize = 100;

/// `GET /v1/schedules`
pub(crate) async fn list(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["prefix", "order", "cursor", "limit", "reveal"])?;
    let is_by_next = is_by_next(&query)?;
    let ask = TimersAsk {
        prefix: query.text("prefix")?.unwrap_or_default(),
        behind: query.text("cursor")?.map(|name| Name::new("cursor", &name)).transpose()?,
        at_most: query.limit(limits::PAGE_TIMERS)?,
    };
    if is_by_next {
        let (timers, capped, _filling) = by_next(&api, ask).await?;
        let items = timers.into_iter().map(|timer| document(&api, &timer)).collect();
        return Ok(json(StatusCode::OK, &SchedulePage { items, next_cursor: None, capped }));
    }
    let (timers, next, _filling) = by_name(&api, ask).await?;
    let next_cursor = next.map(|name| name.to_string());
    let items = timers.into_iter().map(|timer| document(&api, &timer)).collect();
    Ok(page(&uri, next_cursor.clone().as_deref(), &SchedulePage { items, next_cursor, capped: false }))
}

/// Whether those that fire are wanted, the first to fire first. They move while they are read, so no page goes on behind another.
fn is_by_next(query: &Query) -> Result<bool, Problem> {
    match query.text("order")?.as_deref() {
        None | Some("name") => Ok(false),
        Some("next") if query.text("cursor")?.is_none() => Ok(true),
        Some("next") => {
            let allowed = "none with `order=next`, which returns one page";
            Err(Invalid::new("cursor", "one", allowed).into())
        }
        Some(other) => {
            let shown: String = other.chars().take(32).collect();
            Err(Invalid::new("order", format_args!("{shown:?}"), "name or next").into())
        }
    }
}

/// Returns schedules by name, and the last one if others follow. The page ends early if args are large.
async fn by_name(api: &Api, ask: TimersAsk) -> Result<(Vec<Timer>, Option<Name>, Filling<'_>), Problem> {
    let (mut timers, mut behind) = (Vec::new(), ask.behind.clone());
    let (mut filling, mut at_once) = (Filling::new(api), FIRST_READ);
    loop {
        let at_most = at_once.min(ask.at_most - timers.len());
        let read = TimersAsk { behind: behind.clone(), at_most, ..ask.clone() };
        let some = filling.read(api.tenure().timers().list(read)).await?;
        for timer in some.timers {
            if !filling.add(weight(&timer))? {
                // The next page goes on with this schedule.
                return Ok((timers, behind, filling));
            }
            behind = Some(timer.agreed.name.clone());
            timers.push(timer);
        }
        behind = some.next;
        if behind.is_none() || timers.len() == ask.at_most {
            return Ok((timers, behind, filling));
        }
        at_once = READ_MOST;
    }
}

/// Returns the schedules that fire next, and true if the page may lack some. The page ends early if args are large.
async fn by_next(api: &Api, ask: TimersAsk) -> Result<(Vec<Timer>, bool, Filling<'_>), Problem> {
    let (mut coming, mut behind, mut looked_at) = (Vec::new(), None, 0);
    let (mut filling, mut is_cut) = (Filling::new(api), false);
    loop {
        let read = TimersAsk { behind, at_most: READ_MOST, ..ask.clone() };
        let some = filling.read(api.tenure().timers().list(read)).await?;
        looked_at += some.timers.len();
        coming.extend(some.timers.into_iter().filter(|timer| timer.paused.is_none() && timer.next.is_some()));
        coming.sort_by_key(|timer| timer.next);
        coming.truncate(ask.at_most);
        let mut bytes = 0;
        let fits = coming.iter().take_while(|timer| {
            bytes += weight(timer);
            bytes <= PAGE_BYTES
        });
        let fits = fits.count().max(1);
        is_cut |= fits < coming.len();
        coming.truncate(fits);
        filling.set(coming.iter().map(weight).sum())?;
        if some.next.is_none() || looked_at >= limits::PAGE_EXAMINED {
            return Ok((coming, is_cut || some.next.is_some(), filling));
        }
        behind = some.next;
    }
}

/// Returns the size of the parts of a schedule that can be large.
fn weight(timer: &Timer) -> usize {
    timer.agreed.job.args.as_bytes().len() + weight_of_texts(&timer.agreed.job.terms.meta)
}

/// `GET /v1/schedules/{name}`
pub(crate) async fn get(api: Api, Named(name): Named, headers: HeaderMap) -> Result<Response, Problem> {
    let timer = there(&api, &Name::new("name", &name)?).await?;
    let tag = tag(&api, &timer);
    Ok(if tag.is_known(&headers) { not_modified(&tag) } else { shown(&api, StatusCode::OK, &timer) })
}

/// `GET /v1/schedules/{name}/next`
pub(crate) async fn next(
    api: Api,
    Named(name): Named,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["count", "from"])?;
    let count = usize::try_from(query.number("count", (1, MOST_SLOTS), 10)?).unwrap_or(usize::MAX);
    let from = query.one::<Timestamp>("from")?;
    let timer = there(&api, &Name::new("name", &name)?).await?;
    let schedule = timer.agreed.schedule.clone();
    let zone = schedule.zone().clone();
    let tenure = api.tenure().clone();
    let slots = match from {
        // How many jobs it may still bring then is not known.
        Some(from) => search(api.client(), move || schedule.between(from, Timestamp::LAST, count)).await?,
        None => search_store(api.client(), async move { tenure.timers().next(&name, count).await }).await??,
    };
    let items = slots.iter().map(|slot| SlotDocument::of(slot, &zone)).collect();
    Ok(json(StatusCode::OK, &NextRuns { items }))
}

/// `GET /v1/schedules/{name}/explain`
pub(crate) async fn explain(api: Api, Named(name): Named) -> Result<Response, Problem> {
    let name = Name::new("name", &name)?;
    there(&api, &name).await?;
    let reasons = api.tenure().timers().explain(name.as_str()).await?;
    let items =
        reasons.iter().map(|why| ReasonDocument { reason: why.name().to_owned(), detail: why.to_string() });
    Ok(json(StatusCode::OK, &Reasons { items: items.collect() }))
}

/// `GET /v1/schedules/{name}/runs`
pub(crate) async fn runs(
    api: Api,
    Named(name): Named,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["cursor", "limit"])?;
    let name = Name::new("name", &name)?;
    if !api.reach().is_whole() {
        there(&api, &name).await?;
    }
    let behind = query.one::<Place>("cursor")?.map(|Place(place)| place);
    let is_first = behind.is_none();
    let at_most = query.limit(limits::PAGE_SLOTS)?;
    let ask = SlotsAsk { timer: Some(name.clone()), behind, at_most, ..SlotsAsk::default() };
    let found = api.tenure().timers().slots(ask).await?;
    // The records of one that was removed stay.
    if is_first && found.slots.is_empty() && found.next.is_none() {
        there(&api, &name).await?;
    }
    let next_cursor = found.next.as_ref().map(text);
    let items = found.slots.iter().map(RunDocument::of).collect();
    Ok(page(&uri, next_cursor.clone().as_deref(), &RunPage { items, next_cursor }))
}

/// The timer of this name, if there is one whose jobs whoever asks reaches.
pub(super) async fn find(api: &Api, name: &Name) -> Result<Option<Timer>, Problem> {
    let is_reached = |timer: &Timer| {
        let job = &timer.agreed.job;
        api.reach().covers(job.queue.as_str(), job.kind.as_str())
    };
    Ok(any(api, name).await?.filter(is_reached))
}

/// The timer of this name, whichever jobs it brings.
pub(super) async fn any(api: &Api, name: &Name) -> Result<Option<Timer>, Problem> {
    match api.tenure().timers().get(name.as_str()).await {
        Ok(timer) => Ok(Some(timer)),
        Err(Error::NoTimer(_)) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// The timer of this name.
pub(super) async fn there(api: &Api, name: &Name) -> Result<Timer, Problem> {
    find(api, name).await?.ok_or_else(|| missing(name))
}

/// What is told of a schedule that is not there.
pub(super) fn missing(name: &Name) -> Problem {
    Problem::new(ProblemType::NotFound, format!("schedule {name} not found"))
}

/// It tells what was agreed apart from how it stands: that it fires undoes nobody's look at what was agreed.
/// Its digest has no hidden values: a client could find them by guessing. A change of them is a new version.
pub(super) fn tag(api: &Api, timer: &Timer) -> Tag {
    let pause = timer.paused.as_ref().map(|pause| (pause.since, &pause.reason));
    let agreed = serde_json::to_vec(&(timer.created, timer.version, pause)).unwrap_or_default();
    Tag::of_two(
        &agreed,
        &serde_json::to_vec(&ScheduleDocument::of(timer).hidden(api.hiding())).unwrap_or_default(),
    )
}

/// The answer that shows it.
pub(super) fn shown(api: &Api, status: StatusCode, timer: &Timer) -> Response {
    tagged(status, &tag(api, timer), &document(api, timer))
}

fn document(api: &Api, timer: &Timer) -> ScheduleDocument {
    let document = ScheduleDocument::of(timer);
    if api.view() == View::Hidden { document.hidden(api.hiding()) } else { document }
}
