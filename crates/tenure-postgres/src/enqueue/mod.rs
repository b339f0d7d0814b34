//! Accepting jobs.

mod careful;
mod put;
mod rooms;
mod waiting;

pub(crate) use careful::end_replaced;
pub(crate) use put::is_ordinary;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tenure_core::{Kind, NewJob, QueueName, Timestamp};
use tenure_store::{Accepted, Enqueued, Fault, Happening};
use tokio::sync::mpsc;

use crate::command::Reply;
use crate::connection::Sent;
use crate::fault::{Effect, fault_of, is_about_others, is_about_telling};
use crate::inbox::Inbox;
use crate::link::Link;
use crate::memory::{Memory, Told};
use crate::news::News;
use crate::patience::let_others;
use crate::transaction::Gate;
use crate::writing::Writing;
use put::Put;
use waiting::{TOGETHER, Waiting, weight};

/// A batch that somebody wants stored.
pub(crate) struct Batch {
    pub jobs: Vec<NewJob>,
    pub reply: Reply<Enqueued>,
    /// Whoever closes the store waits until this is dropped.
    pub awaited: Option<mpsc::Sender<()>>,
}

/// So many jobs are worth a transaction of their own, whatever is under way.
const MANY: usize = 100;

/// So few are not worth waiting for others.
const FEW: usize = 4;

/// How often others have their turn in which whoever was answered may come back, at most and at least. On a runtime with two threads
/// nearly all of sixteen are there after three.
const TURNS: usize = 5;
const FEWEST_TURNS: usize = 2;

/// Others who take longer have more to do than to come back.
const LONG: Duration = Duration::from_micros(200);

/// What was done on a connection.
enum Done {
    /// So many batches of such weight were stored by one statement, but for some that have to be compared with what is there.
    Plain {
        came: usize,
        weighed: usize,
        left: Vec<Batch>,
    },
    Rest,
}

type UnderWay<'a> = FuturesUnordered<BoxFuture<'a, (Link, Done)>>;

/// Stores what comes in, as many batches at once as wait. While some are being stored, others are on a connection of
/// their own, if they are worth it: it is made when that happens for the first time. Others wait for the end of those, or for more,
/// so that few commits do for many who come one by one. What takes more than a statement is left to `others`, if there are any; it may
/// take long, and has one of the connections at most.
pub(crate) async fn work(links: [Link; 2], mut inbox: Inbox<Batch>, others: Option<mpsc::Sender<Batch>>) {
    let others = others.as_ref();
    let database = Arc::clone(&links[0].database);
    let mut waiting = Waiting::new(Arc::clone(&links[0].memory));
    let (mut free, mut busy) = (Vec::from(links), UnderWay::new());
    let (mut under_way, mut is_comparing, mut is_open) = (0, false, true);
    while is_open || !waiting.is_empty() || !busy.is_empty() {
        let waits = waiting.weighs_plain();
        if !waiting.rest.is_empty()
            && !is_comparing
            && let Some(link) = free.pop()
        {
            is_comparing = true;
            busy.push(Box::pin(store_rest(link, waiting.take_rest(), others)));
            continue;
        }
        if waits > 0
            && (!is_open || are_worth_it(waits, under_way))
            && let Some(link) = free.pop()
        {
            under_way += waits;
            busy.push(Box::pin(store_plain(link, waiting.take_plain(), waits)));
            continue;
        }
        free.iter_mut().for_each(Link::share);
        tokio::select! {
            biased;
            Some((link, done)) = busy.next() => {
                free.push(link);
                match done {
                    Done::Rest => is_comparing = false,
                    Done::Plain { came, weighed, left } => {
                        under_way -= weighed;
                        waiting.take_back(left);
                        if came >= FEW {
                            come_back(&mut inbox, &mut waiting, came).await;
                        }
                    }
                }
            }
            gathered = inbox.gather(TOGETHER, weight), if is_open && waiting.has_room() => match gathered {
                Some(more) => more.into_iter().for_each(|batch| waiting.take_in(batch)),
                None => is_open = false,
            },
            () = database.shortage.begun(), if free.iter().any(Link::is_connected) => {}
        }
    }
}

/// Whether so many jobs that wait are worth a commit of their own while so many are under way. A disk takes one commit after
/// the other: two that are alike are done no sooner than one of both.
fn are_worth_it(waits: usize, under_way: usize) -> bool {
    let enough = if under_way < FEW { under_way } else { under_way * 2 };
    waits >= enough || waits >= MANY || under_way >= MANY
}

/// Lets so many come back who were just answered, as most do who enqueue one job after the other: they are stored together, and
/// not one first and all others when that one is. Nobody waits for that where others have more to do, or do not come.
async fn come_back(inbox: &mut Inbox<Batch>, waiting: &mut Waiting, came: usize) {
    for turn in 1..=TURNS {
        let (took, before) = (let_others().await, waiting.plain.len());
        while waiting.has_room()
            && let Some(more) = inbox.at_hand()
        {
            waiting.take_in(more);
        }
        let nobody_comes = turn >= FEWEST_TURNS && waiting.plain.len() == before;
        if waiting.plain.len() >= came || took > LONG || nobody_comes {
            return;
        }
    }
}

/// Whether these jobs need no more than a statement, as far as is known.
pub(crate) fn are_plain(memory: &Memory, jobs: &[NewJob]) -> bool {
    put::is_plain(memory, jobs)
}

/// Stores batches that have to be compared with what is there.
async fn store_rest(mut link: Link, rest: Vec<Batch>, others: Option<&mpsc::Sender<Batch>>) -> (Link, Done) {
    for batch in rest {
        store_carefully(&mut link, batch, others).await;
    }
    (link, Done::Rest)
}

/// Stores batches that need no more than a statement and weigh so much.
async fn store_plain(mut link: Link, plain: Vec<Batch>, weighed: usize) -> (Link, Done) {
    let came = plain.len();
    let left = store_at_once(&mut link, plain).await;
    (link, Done::Plain { came: came - left.len(), weighed, left })
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
    let Some(batch) = store_in_new_lanes(link, batch).await else { return };
    let stored = careful::enqueue(link, &batch.jobs).await;
    batch.reply.send(stored);
}

/// Stores a batch in one statement that only waits because its lanes are new, if it is large: to make them first takes less time than
/// to look at each of its jobs. What could not be stored so is left.
async fn store_in_new_lanes(link: &mut Link, batch: Batch) -> Option<Batch> {
    let names = if batch.jobs.len() < MANY { None } else { put::new_lanes(&link.memory, &batch.jobs) };
    let Some(names) = names.filter(|names| !names.is_empty()) else { return Some(batch) };
    if let Err(fault) = make_lanes(link, names).await {
        tracing::debug!(%fault, "lanes could not be created in advance");
        return Some(batch);
    }
    store_at_once(link, vec![batch]).await.pop()
}

async fn make_lanes(link: &mut Link, names: Vec<(QueueName, Kind)>) -> Result<(), Fault> {
    let (mut writing, _) = Writing::begin(link, Gate::Open, Vec::new()).await?;
    writing.make_lanes(names).await?;
    writing.commit().await
}

/// Stores batches that ask nothing of the jobs that are there: in one statement. What could not be stored so is left.
async fn store_at_once(link: &mut Link, batches: Vec<Batch>) -> Vec<Batch> {
    match try_at_once(link, batches, true).await {
        Left::ToOthers(left) => left,
        Left::Untold(left) => match try_at_once(link, left, false).await {
            Left::ToOthers(left) | Left::Untold(left) => left,
        },
    }
}

/// What was not stored by a statement.
enum Left {
    /// It has to be compared with what is there.
    ToOthers(Vec<Batch>),
    /// Others could not be told by that statement: they are to be told later.
    Untold(Vec<Batch>),
}

/// Stores them, and `speaks` along with that if it may.
async fn try_at_once(link: &mut Link, batches: Vec<Batch>, speaks: bool) -> Left {
    let (memory, time) = (Arc::clone(&link.memory), link.database.time.clone());
    let connection = match link.connection().await {
        Ok(connection) => connection,
        Err(fault) => return refuse(batches, &fault),
    };
    // Behind a pooler all that is sent together is one transaction: it would last only by chance.
    let speaks = speaks && !connection.is_pooled();
    let jobs: Vec<&NewJob> = batches.iter().flat_map(|batch| &batch.jobs).collect();
    // Others need not wait until this program has heard of the commit.
    let Put { queries, are_told, lasts_at } = match put::statements(&memory, &jobs, time.told(), speaks) {
        Ok(put) => put,
        Err(fault) => return refuse(batches, &fault),
    };
    let (mut waiting, mut answers) = (batches, 0);
    // Whoever closes the store waits until others are told.
    let _awaited: Vec<_> = waiting.iter().filter(|_| are_told).map(|batch| batch.awaited.clone()).collect();
    let answered_at = if cfg!(mutant = "postgres-answered-before-it-lasts") { 0 } else { lasts_at };
    let mut each = |_| {
        if answers == 0 {
            tell(&memory, time.now(), &waiting, are_told);
        }
        if answers == answered_at {
            accept(std::mem::take(&mut waiting));
        }
        answers += 1;
    };
    match connection.send(&queries, Effect::Commits, &mut each).await {
        Sent::Done => Left::ToOthers(Vec::new()),
        // The jobs are stored; only the hint was not.
        Sent::Refused(_) | Sent::Lost(_) if waiting.is_empty() => {
            memory.tell_others(Told::DUE);
            Left::ToOthers(Vec::new())
        }
        Sent::Refused(error) if answers > 0 => refuse(waiting, &may_not_last(&error)),
        Sent::Refused(error) if lasts_at > 0 && is_about_telling(&error) => Left::Untold(waiting),
        // An id is there already, perhaps because a batch was sent twice. Whose it is has to be seen.
        Sent::Refused(error) if is_about_others(&error) => Left::ToOthers(waiting),
        Sent::Refused(error) => refuse(waiting, &fault_of(&error, Effect::Commits)),
        Sent::Lost(fault) => {
            if answers == 0 && are_told {
                // They may be there, and then all others have been told.
                memory.bulletin.call_due();
                memory.bulletin.call_others();
            }
            refuse(waiting, &fault)
        }
    }
}

/// Tells that these jobs are there.
fn tell(memory: &Memory, now: Timestamp, batches: &[Batch], are_told: bool) {
    put::join(memory, batches.iter().flat_map(|batch| &batch.jobs));
    let mut news = News::for_whom(&memory.bulletin);
    for job in batches.iter().flat_map(|batch| &batch.jobs) {
        news.note(now, job.id, (&job.queue, &job.kind), || Happening::Enqueued);
    }
    news.due = true;
    if are_told {
        memory.publish_here(news);
    } else {
        memory.publish(news);
    }
}

/// Answers whose jobs are stored for good.
fn accept(batches: Vec<Batch>) {
    for batch in batches {
        let stored = batch.jobs.iter().map(|job| Accepted::New(job.id)).collect();
        batch.reply.send(Ok(Enqueued::Stored(stored)));
    }
}

/// What to say of jobs that are there, while it is not known for how long.
fn may_not_last(error: &tokio_postgres::Error) -> Fault {
    let why = fault_of(error, Effect::Commits);
    Fault::Unknown(format!("the jobs were stored, but may be lost if the server fails ({why})"))
}

/// Tells whoever waits that nothing was stored, as far as is known. Nothing is left to do.
fn refuse(batches: Vec<Batch>, fault: &Fault) -> Left {
    batches.into_iter().for_each(|batch| batch.reply.send(Err(fault.clone())));
    Left::ToOthers(Vec::new())
}

#[cfg(test)]
mod tests {
    use own_postgres::Server;
    use tenure_core::{Args, Due, JobId, Priority};
    use tokio::runtime::Builder;
    use tokio::sync::{oneshot, watch};

    use super::*;
    use crate::plans::fresh;

    const CLIENTS: usize = 8;

    #[test]
    fn few_go_at_once_and_many_when_they_are_worth_it() {
        let goes = [(1, 0), (1, 1), (3, 3), (8, 4), (16, 8), (100, 99), (1, 100)];
        assert!(goes.iter().all(|(waits, under_way)| are_worth_it(*waits, *under_way)));
        let wait = [(1, 2), (4, 4), (8, 8), (15, 8), (1, 99), (99, 50)];
        assert!(!wait.iter().any(|(waits, under_way)| are_worth_it(*waits, *under_way)));
    }

    /// What is sent together is one transaction there, and the whole of it would not wait for the disk.
    #[tokio::test]
    async fn nobody_is_told_along_with_what_is_stored_behind_a_pooler_that_was_found_late() {
        let server = Server::start_hasty().unwrap();
        let mut link = fresh(&server).await;
        let kind = Kind::new("echo").unwrap();
        make_lanes(&mut link, vec![(QueueName::default(), kind.clone())]).await.unwrap();
        link.database.found_pooler();
        link.memory.let_speak(7);
        let job = NewJob {
            id: JobId::new(Timestamp::EPOCH, 1),
            kind,
            queue: QueueName::default(),
            args: Args::new(b"{}".to_vec()).unwrap(),
            priority: Priority::default(),
            due: Due::Now,
            terms: Arc::default(),
        };
        let (reply, answer) = Reply::new();
        let left = store_at_once(&mut link, vec![Batch { jobs: vec![job], reply, awaited: None }]).await;
        assert!(left.is_empty() && matches!(answer.await, Ok(Ok(Enqueued::Stored(_)))));
        assert!(link.memory.speak_up(Told::DUE).is_some(), "nobody has spoken");
    }

    /// How many of those who are answered now are there again when they have had time.
    async fn returned() -> usize {
        let (task, inbox) = mpsc::channel(CLIENTS);
        let (_closed, closing) = watch::channel(false);
        let mut waiting = Waiting::new(Arc::default());
        let (mut inbox, mut answers) = (Inbox::new(inbox, closing), Vec::new());
        for _ in 0..CLIENTS {
            let ((answer, answered), task) = (oneshot::channel(), task.clone());
            answers.push(answer);
            tokio::spawn(async move {
                answered.await.unwrap();
                let batch = Batch { jobs: Vec::new(), reply: Reply::new().0, awaited: None };
                task.send(batch).await.unwrap_or_else(|_| panic!("the task has ended"));
            });
        }
        tokio::task::yield_now().await;
        answers.into_iter().for_each(|answer| answer.send(()).unwrap());
        come_back(&mut inbox, &mut waiting, CLIENTS).await;
        waiting.plain.len()
    }

    #[tokio::test]
    async fn many_who_were_answered_come_back_before_more_is_stored() {
        assert_eq!(returned().await, CLIENTS);
    }

    #[test]
    fn whoever_blocks_a_thread_of_the_runtime_keeps_no_other_from_going_on() {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (went_on, heard) = std::sync::mpsc::channel();
        let blocked = runtime.spawn(async move {
            // It is the next on this thread, and keeps it.
            let blocked = tokio::spawn(async move { heard.recv_timeout(Duration::from_secs(60)) });
            let_others().await;
            // Whoever waits no longer fails below.
            let _ = went_on.send(());
            blocked.await.unwrap()
        });
        assert_eq!(runtime.block_on(blocked).unwrap(), Ok(()));
    }
}
