//! A program under load: it enqueues, works, and holds leases, and writes down what it sees.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{
    Backoff, Chance, Clock, Draft, Error, Failed, Fence, Happening, Job, JobId, OpenOptions, RetryPolicy,
    Run, StateName, SystemClock, Tenure, Worker,
};
use tenure_store::Moment;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::effects::Effects;
use super::history::{Book, Call, Grant, Success};
use super::{MOMENT, holders};

/// Of a job; shorter than most outages with a promotion.
const LEASE: Duration = Duration::from_secs(4);
/// Between two batches.
const PAUSE: Duration = Duration::from_millis(100);
const BATCH: u64 = 10;
/// While more than so many have not ended, no more are enqueued: what is left in the end is done soon.
const OPEN: u64 = 1_000;

#[derive(Serialize, Deserialize)]
struct Work {
    number: u64,
}

impl Job for Work {
    const KIND: &'static str = "work";
    type Output = ();
}

/// What the tasks of a program share.
pub struct Program {
    pub name: String,
    pub tenure: Tenure,
    pub book: Arc<Book>,
    pub clock: Arc<dyn Clock>,
    pub effects: Effects,
    pub chance: Chance,
    /// Nothing more is enqueued.
    pub enough: CancellationToken,
    pub stop: CancellationToken,
    /// Jobs whose handlers have returned here, when, and under which fence: whether that counts is heard later.
    returned: Mutex<HashMap<JobId, (Fence, Moment)>>,
}

/// Where programs are and what they share.
pub struct Place {
    pub url: String,
    pub book: Arc<Book>,
    /// The clock of the clients; that of the store as well if it is not the server's.
    pub clock: Arc<dyn Clock>,
    pub is_of_store: bool,
    pub enough: CancellationToken,
    pub stop: CancellationToken,
}

impl Place {
    /// Starts a program. Nobody looks after it from then on.
    pub async fn start(&self, number: u64) -> (Arc<Program>, Vec<JoinHandle<()>>) {
        let mut options = OpenOptions::new().app("outages").program("outages").seed(number);
        if self.is_of_store {
            options = options.clock(Arc::clone(&self.clock));
        }
        let program = Arc::new(Program {
            name: format!("host {number}"),
            tenure: options.open(&self.url).await.unwrap(),
            book: Arc::clone(&self.book),
            clock: Arc::clone(&self.clock),
            effects: Effects::new(&self.url),
            chance: Chance::seeded(1_000 + number),
            enough: self.enough.clone(),
            stop: self.stop.clone(),
            returned: Mutex::default(),
        });
        let tasks = vec![
            tokio::spawn(listen(Arc::clone(&program))),
            tokio::spawn(enqueue(Arc::clone(&program))),
            tokio::spawn(work(Arc::clone(&program))),
            tokio::spawn(holders::hold(Arc::clone(&program))),
            tokio::spawn(holders::hold(Arc::clone(&program))),
            tokio::spawn(holders::fall_silent(Arc::clone(&program))),
        ];
        (program, tasks)
    }
}

impl Program {
    pub fn now(&self) -> Moment {
        self.clock.moment()
    }

    /// Jobs that have not ended, as far as the store can tell now.
    async fn open_jobs(&self) -> u64 {
        let counts = self.tenure.counts().await.unwrap_or_default();
        let open = counts.iter().filter(|count| count.state != StateName::Succeeded);
        open.map(|count| count.jobs).sum()
    }

    /// What was asked for then has just been answered.
    pub fn since(&self, asked: Moment) -> Call {
        Call { asked, heard: self.now() }
    }
}

/// Enqueues batches. Of some that were not answered it never hears; the others it asks for until they are.
async fn enqueue(program: Arc<Program>) {
    while !program.enough.is_cancelled() {
        if program.open_jobs().await > OPEN {
            SystemClock.sleep(PAUSE).await;
            continue;
        }
        let some = || (program.tenure.new_id(), program.chance.below(1_000));
        let jobs: Vec<(JobId, u64)> = (0..BATCH).map(|_| some()).collect();
        program.book.open().wanted.extend(jobs.iter().map(|(id, _)| *id));
        loop {
            let asked = program.now();
            match program.tenure.enqueue_all(jobs.iter().map(draft)).await {
                Ok(_) => {
                    let call = program.since(asked);
                    program.book.open().accepted.extend(jobs.iter().map(|(id, _)| (*id, call)));
                    break;
                }
                Err(Error::Fault(fault)) if fault.is_passing() => SystemClock.sleep(MOMENT).await,
                Err(other) => panic!("{other}"),
            }
            if program.chance.below(3) == 0 {
                break;
            }
        }
        SystemClock.sleep(PAUSE).await;
    }
}

fn draft((id, number): &(JobId, u64)) -> Draft {
    let soon = Backoff::Fixed(Duration::from_millis(50));
    let often = RetryPolicy { backoff: soon, max_attempts: 10_000, ..RetryPolicy::default() };
    Draft::of(&Work { number: *number }).id(*id).retry(often)
}

async fn work(program: Arc<Program>) {
    let worker = Worker::new(&program.tenure, Arc::clone(&program)).name(&program.name);
    let worker = worker.queue("default", 4).prefetch(8).lease(LEASE).job(attempt);
    let worker = worker.singleton_with("scribe", holders::scribe_alone(), holders::scribe);
    worker.run(program.stop.cancelled()).await.unwrap();
}

/// Every other job ends together with an effect.
async fn attempt(run: Run<Arc<Program>>, job: Work) -> Result<(), Failed> {
    let program = run.app();
    let (id, fence, asked) = (run.id(), run.fence(), program.now());
    // When it was asked for is not known here. Who believes in it as it begins could as well have asked just then.
    let asked_for = if run.is_held() { asked } else { Moment::from_start(Duration::ZERO) };
    let place = program.book.granted(Grant {
        what: Grant::of_job(id),
        fence,
        holder: program.name.clone(),
        call: Call { asked: asked_for, heard: asked },
        believed: None,
    });
    for _ in 0..=job.number % 3 {
        SystemClock.sleep(Duration::from_millis(job.number % 7)).await;
        let at = program.now();
        if run.is_held() {
            program.book.believes(place, at);
        }
    }
    let asked = program.now();
    if job.number.is_multiple_of(2) {
        let mut returned = program.returned.lock().unwrap();
        let newest = returned.entry(id).or_insert((fence, asked));
        *newest = (*newest).max((fence, asked));
        return Ok(());
    }
    program.effects.complete(&run).await.map_err(Failed::retry)?;
    program.book.open().succeeded.push(Success { id, fence, call: program.since(asked) });
    Ok(())
}

/// Hears which ends were accepted.
async fn listen(program: Arc<Program>) {
    use tokio::sync::broadcast::error::RecvError;
    let mut events = program.tenure.events();
    loop {
        let event = tokio::select! {
            biased;
            event = events.recv() => event,
            () = program.stop.cancelled() => return,
        };
        let event = match event {
            Ok(event) => event,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        if !matches!(event.what, Happening::Became { state: StateName::Succeeded, .. }) {
            continue;
        }
        let returned = program.returned.lock().unwrap().remove(&event.id);
        if let Some((fence, asked)) = returned {
            let success = Success { id: event.id, fence, call: program.since(asked) };
            program.book.open().succeeded.push(success);
        }
    }
}
