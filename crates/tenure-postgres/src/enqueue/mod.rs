//! Accepting jobs.

mod careful;
mod put;
mod rooms;

pub(crate) use careful::end_replaced;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tenure_core::NewJob;
use tenure_store::{Accepted, Enqueued, Fault, Happening};
use tokio::sync::mpsc;

use crate::command::Reply;
use crate::connection::Sent;
use crate::fault::{Effect, fault_of, is_about_others};
use crate::inbox::Inbox;
use crate::link::Link;
use crate::memory::{Memory, Told};
use crate::news::News;

/// Jobs that are stored together, if so many wait.
const TOGETHER: usize = 20_000;

/// A batch that somebody wants stored.
pub(crate) struct Batch {
    pub jobs: Vec<NewJob>,
    pub reply: Reply<Enqueued>,
    /// Whoever closes the store waits until this is dropped.
    #[expect(dead_code, reason = "it is kept, and nobody reads it")]
    pub awaited: Option<mpsc::Sender<()>>,
}

/// So many jobs are worth a transaction of their own, whatever is under way.
const MANY: usize = 100;

/// Stores what comes in, as many batches at once as wait. While some are being stored, others are on a connection of
/// their own, if they are many or not fewer than those: it is made when that happens for the first time. Fewer wait for
/// the end of those, or for more, so that few commits do for many who come one by one. What takes more than a statement is
/// left to `others`, if there are any.
pub(crate) async fn work(links: [Link; 2], mut inbox: Inbox<Batch>, others: Option<mpsc::Sender<Batch>>) {
    let others = others.as_ref();
    let (mut free, mut busy) = (Vec::from(links), FuturesUnordered::new());
    let (mut waiting, mut under_way, mut is_open) = (Vec::new(), 0, true);
    while is_open || !waiting.is_empty() || !busy.is_empty() {
        let waits = waiting.iter().map(weight).sum::<usize>();
        let goes = !is_open || waits >= under_way || waits >= MANY || under_way >= MANY;
        if waits > 0
            && goes
            && let Some(mut link) = free.pop()
        {
            let batches = std::mem::take(&mut waiting);
            under_way += waits;
            busy.push(Box::pin(async move {
                store(&mut link, batches, others).await;
                (link, waits)
            }));
            continue;
        }
        tokio::select! {
            biased;
            Some((link, stored)) = busy.next() => {
                free.push(link);
                under_way -= stored;
            }
            gathered = inbox.gather(TOGETHER, weight), if is_open && waits < TOGETHER => match gathered {
                Some(more) => waiting.extend(more),
                None => is_open = false,
            },
        }
    }
}

/// Whether these jobs need no more than a statement, as far as is known.
pub(crate) fn are_plain(memory: &Memory, jobs: &[NewJob]) -> bool {
    put::is_plain(memory, jobs)
}

fn weight(batch: &Batch) -> usize {
    batch.jobs.len().max(1)
}

async fn store(link: &mut Link, batches: Vec<Batch>, others: Option<&mpsc::Sender<Batch>>) {
    let (plain, rest): (Vec<_>, Vec<_>) =
        batches.into_iter().partition(|batch| put::is_plain(&link.memory, &batch.jobs));
    let left = store_plain(link, plain).await;
    for batch in left.into_iter().chain(rest) {
        store_carefully(link, batch, others).await;
    }
}

/// Stores a batch that is compared with what is there, or leaves it to others. If they have ended, the store is being closed.
async fn store_carefully(link: &mut Link, batch: Batch, others: Option<&mpsc::Sender<Batch>>) {
    let batch = match others {
        None => batch,
        Some(others) => match others.send(batch).await {
            Ok(()) => return,
            Err(mpsc::error::SendError(batch)) => batch,
        },
    };
    let stored = careful::enqueue(link, &batch.jobs).await;
    batch.reply.send(stored);
}

/// Stores batches that ask nothing of the jobs that are there: in one statement. What could not be stored so is left.
async fn store_plain(link: &mut Link, batches: Vec<Batch>) -> Vec<Batch> {
    if batches.is_empty() {
        return batches;
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
        Ok(false) => return batches,
        Err(fault) => batches.into_iter().for_each(|batch| batch.reply.send(Err(fault.clone()))),
    }
    Vec::new()
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
