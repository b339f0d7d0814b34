//! How many jobs there are, by what is kept up to date with each change: nothing is counted here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::extract::OriginalUri;
use axum::http::StatusCode;
use axum::response::Response;
use tenure::{Count, QueueInfo, QueueName};

use super::look::{is_reached, there};
use crate::answer::{json, page};
use crate::api::Api;
use crate::id::Named;
use crate::kinds::kept::{Descriptions, Kept};
use crate::paging::Paging;
use crate::problem::Problem;
use crate::query::Query;
use crate::wire::{KindList, KindStats, LaneStats, QueueStats, Stats, StepDocument};

/// Numbers are kept for so long.
const LONGEST_WINDOW: u64 = 7 * 24 * 3600;
/// Kinds that are listed of a queue, and queues that are listed of a kind.
const MOST_PARTS: usize = 1_000;

/// `GET /v1/queues/{name}/stats`
pub(crate) async fn of_one(
    api: Api,
    Named(name): Named,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let window = Window::of(&Query::read(uri.query(), &Window::NAMES)?)?;
    let queue = there(&api, &QueueName::new(&name)?).await?;
    let counts = counted(&api).await?;
    let mut told = stats(&api, &queue, &counts);
    told.series = series(&api, Some(&queue.name), window).await?;
    Ok(json(StatusCode::OK, &told))
}

/// `GET /v1/stats`
pub(crate) async fn of_all(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let [window, step] = Window::NAMES;
    let query = Query::read(uri.query(), &[window, step, "cursor", "limit"])?;
    let (window, paging) = (Window::of(&query)?, Paging::of(&query)?);
    let (queues, counts) = (api.tenure().queues().list().await?, counted(&api).await?);
    let mut of_queue: BTreeMap<QueueName, Vec<Count>> = BTreeMap::new();
    for count in counts {
        of_queue.entry(count.queue.clone()).or_default().push(count);
    }
    let none = Vec::new();
    let queues = queues.iter().filter(|queue| is_reached(&api, queue));
    let (queues, next_cursor) = paging.cut(queues, |queue| queue.name.to_string());
    let queues = queues.into_iter();
    let items = queues.map(|queue| stats(&api, queue, of_queue.get(&queue.name).unwrap_or(&none))).collect();
    let series = series(&api, None, window.filter(|_| paging.is_first())).await?;
    Ok(page(&uri, next_cursor.clone().as_deref(), &Stats { items, next_cursor, series }))
}

/// How far back it is looked, and in which steps.
#[derive(Clone, Copy)]
struct Window {
    all: Duration,
    step: Duration,
}

impl Window {
    const NAMES: [&str; 2] = ["window_seconds", "step_seconds"];

    /// None if none is asked for.
    fn of(query: &Query) -> Result<Option<Self>, Problem> {
        let all = query.number("window_seconds", (60, LONGEST_WINDOW), 0)?;
        let step = query.number("step_seconds", (60, LONGEST_WINDOW), 60)?;
        let window = Self { all: Duration::from_secs(all), step: Duration::from_secs(step) };
        Ok((all > 0).then_some(window))
    }
}

/// How things went in a queue, or in all: told to those who reach all that is counted together there.
async fn series(
    api: &Api,
    queue: Option<&QueueName>,
    window: Option<Window>,
) -> Result<Option<Vec<StepDocument>>, Problem> {
    let Some(Window { all, step }) = window else { return Ok(None) };
    let reach = api.reach();
    if !reach.is_whole() && (queue.is_none() || !reach.has_all_kinds()) {
        return Err(api.beyond("all jobs counted here"));
    }
    let steps = api.tenure().stats().series(queue, None, all, step).await?;
    Ok(Some(steps.iter().map(StepDocument::of).collect()))
}

/// `GET /v1/kinds`
pub(crate) async fn kinds(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let paging = Paging::read(uri.query())?;
    let mut kinds: BTreeMap<String, (BTreeSet<String>, BTreeMap<&'static str, u64>)> = BTreeMap::new();
    for count in counted(&api).await? {
        let (queues, jobs) = kinds.entry(count.kind.to_string()).or_default();
        queues.insert(count.queue.to_string());
        *jobs.entry(count.state.as_str()).or_default() += count.jobs;
    }
    let described = Descriptions(api.tenure()).all().await?;
    let described = described.into_iter().filter(|said| api.reach().covers_kind(&said.kind));
    let mut described: BTreeMap<String, Kept> = described.map(|said| (said.kind, said.kept)).collect();
    for kind in described.keys() {
        kinds.entry(kind.clone()).or_default();
    }
    let of = |(kind, (queues, jobs)): (String, (BTreeSet<String>, BTreeMap<&'static str, u64>))| {
        let said = described.remove(&kind);
        let has_schema = said.as_ref().is_some_and(|said| said.schema.is_some());
        let (description, owner) = said.map(|said| (said.description, said.owner)).unwrap_or_default();
        let queues = queues.into_iter().take(MOST_PARTS).collect();
        KindStats { kind, queues, jobs, description, owner, has_schema }
    };
    let (kinds, next_cursor) = paging.cut(kinds, |(kind, _)| kind.clone());
    let items = kinds.into_iter().map(of).collect();
    Ok(page(&uri, next_cursor.clone().as_deref(), &KindList { items, next_cursor }))
}

/// How many jobs there are that whoever asks reaches.
pub(super) async fn counted(api: &Api) -> Result<Vec<Count>, Problem> {
    let mut counts = api.tenure().counts().await?;
    counts.retain(|count| api.reach().covers(count.queue.as_str(), count.kind.as_str()));
    Ok(counts)
}

fn stats(api: &Api, queue: &QueueInfo, counts: &[Count]) -> QueueStats {
    let now = api.tenure().now();
    // It is known of all jobs of the queue together.
    let oldest = queue.oldest_due.filter(|_| api.reach().has_all_kinds());
    let mut jobs: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut lanes: BTreeMap<String, BTreeMap<&'static str, u64>> = BTreeMap::new();
    for count in counts.iter().filter(|count| count.queue == queue.name) {
        *jobs.entry(count.state.as_str()).or_default() += count.jobs;
        *lanes.entry(count.kind.to_string()).or_default().entry(count.state.as_str()).or_default() +=
            count.jobs;
    }
    QueueStats {
        queue: queue.name.to_string(),
        paused: queue.paused,
        jobs,
        lanes: lanes.into_iter().take(MOST_PARTS).map(|(kind, jobs)| LaneStats { kind, jobs }).collect(),
        oldest_due_at: oldest.map(|due| due.to_string()),
        oldest_due_seconds: oldest.map(|due| now.since(due).as_secs_f64()),
        series: None,
    }
}
