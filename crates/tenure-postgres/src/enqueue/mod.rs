//! Accepting jobs.

mod careful;
mod put;

pub(crate) use careful::end_replaced;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tenure_core::NewJob;
use tenure_store::{Accepted, Enqueued, Fault, Happening};

use crate::command::Reply;
use crate::connection::Sent;
use crate::fault::{Effect, fault_of, is_about_others};
use crate::inbox::Inbox;
use crate::link::Link;
use crate::memory::Told;
use crate::news::News;

/// Jobs that are stored together, if so many wait.
const TOGETHER: usize = 20_000;

/// A batch that somebody wants stored.
pub(crate) struct Batch {
    pub jobs: Vec<NewJob>,
    pub reply: Reply<Enqueued>,
}

/// Stores what comes in, as many batches at once as wait. While some are being stored, others are on a connection of
/// their own: it is made when that happens for the first time.
pub(crate) async fn work(links: [Link; 2], mut inbox: Inbox<Batch>) {
    let (mut free, mut busy) = (Vec::from(links), FuturesUnordered::new());
    loop {
        let gathered = tokio::select! {
            biased;
            Some(link) = busy.next() => {
                free.push(link);
                continue;
            }
            gathered = inbox.gather(TOGETHER, |batch| batch.jobs.len().max(1)), if !free.is_empty() => gathered,
        };
        let (Some(batches), Some(mut link)) = (gathered, free.pop()) else { break };
        busy.push(Box::pin(async move {
            store(&mut link, batches).await;
            link
        }));
    }
    while busy.next().await.is_some() {}
}

async fn store(link: &mut Link, batches: Vec<Batch>) {
    let (plain, others): (Vec<_>, Vec<_>) =
        batches.into_iter().partition(|batch| put::is_plain(&link.memory, &batch.jobs));
    store_plain(link, plain).await;
    for batch in others {
        let stored = careful::enqueue(link, &batch.jobs).await;
        batch.reply.send(stored);
    }
}

/// Stores batches that ask nothing of the jobs that are there: in one statement.
async fn store_plain(link: &mut Link, batches: Vec<Batch>) {
    if batches.is_empty() {
        return;
    }
    let jobs: Vec<&NewJob> = batches.iter().flat_map(|batch| &batch.jobs).collect();
    match put_all(link, &jobs).await {
        Ok(true) => {
            for batch in batches {
                let stored = batch.jobs.iter().map(|job| Accepted::New(job.id)).collect();
                batch.reply.send(Ok(Enqueued::Stored(stored)));
            }
        }
        // An id is there already, perhaps because a batch was sent twice. Whose it is has to be seen.
        Ok(false) => {
            for batch in batches {
                let stored = careful::enqueue(link, &batch.jobs).await;
                batch.reply.send(stored);
            }
        }
        Err(fault) => batches.into_iter().for_each(|batch| batch.reply.send(Err(fault.clone()))),
    }
}

/// Stores jobs with one statement; `false` if an id of them is there already, and nothing was stored.
async fn put_all(link: &mut Link, jobs: &[&NewJob]) -> Result<bool, Fault> {
    let told = link.database.time.told();
    let mut queries = vec![put::statement(&link.memory, jobs, told)?];
    // Others need not wait until this program has heard of the commit.
    queries.extend(link.memory.speak_up(Told::DUE));
    let connection = link.connection().await?;
    match connection.send(&queries, Effect::Commits).await {
        Sent::Done(_) => {}
        // The jobs are stored; only the hint was refused.
        Sent::Refused(_) if connection.done > 0 => {}
        Sent::Refused(error) if is_about_others(&error) => return Ok(false),
        Sent::Refused(error) => return Err(fault_of(&error, Effect::Commits)),
        Sent::Lost(fault) => return Err(fault),
    }
    put::join(&link.memory, jobs);
    let mut news = News::for_whom(&link.memory.bulletin);
    let now = link.database.time.now();
    for job in jobs {
        news.note(now, job.id, (&job.queue, &job.kind), || Happening::Enqueued);
    }
    news.due = true;
    match queries.len() {
        1 => link.memory.publish(news),
        _ => link.memory.publish_here(news),
    }
    Ok(true)
}
