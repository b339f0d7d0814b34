//! The database server is killed under load, again and again, and replicas are promoted, some of which have fallen
//! behind. Nobody looks after the programs meanwhile: they go on by themselves.
//!
//! They enqueue, work, and hold leases, write in transactions of their own, and note what they asked for, when, and what
//! they heard. In the end two checkers look at these notes and at what the database has: the [total
//! queue](total_queue) and [fencing](fencing). Both are functions of a [history](history::History), each with a test for
//! every violation that it is there to find.
//!
//! The long one takes about a quarter of an hour, or three minutes with `hurried_clock`:
//!
//! ```sh
//! cargo test -p tenure --test it -- --ignored --nocapture servers_clock
//! ```

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that unwraps fails where it stands")]

mod effects;
mod fencing;
mod given;
mod history;
mod holders;
mod host;
mod pace;
mod servers;
mod total_queue;

use std::sync::Arc;
use std::time::Duration;

use tenure::{Chance, Clock, Count, JobId, PageAsk, StateName, SystemClock, Tenure};
use tenure_store::Moment;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use history::{Call, History};
use host::{Place, Program};
use servers::Servers;

/// Between two looks.
pub const MOMENT: Duration = Duration::from_millis(5);
/// Programs that share the servers.
const PROGRAMS: u64 = 2;
/// Nobody has to wait longer than this after an outage, by the clock on the wall.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy)]
enum Promotion {
    /// Of a replica that has everything which was acknowledged.
    Synchronous,
    /// Of one that has not heard of what was acknowledged last.
    Lagging,
}

/// How long the load lasts between one thing and the next.
struct Spans {
    /// Before the server is killed, at the most.
    load: Duration,
    /// Before it is started again, at the most.
    down: Duration,
    /// For how long a replica falls behind.
    lag: Duration,
}

struct Fleet {
    servers: Servers,
    place: Place,
    programs: Vec<Arc<Program>>,
    tasks: Vec<JoinHandle<()>>,
    chance: Chance,
    spans: Spans,
}

impl Fleet {
    /// By the server's clock, or by one that all of them share.
    async fn start(servers: Servers, spans: Spans, shared: Option<Arc<dyn Clock>>) -> Self {
        let place = Place {
            url: servers.url(),
            book: Arc::default(),
            is_of_store: shared.is_some(),
            clock: shared.unwrap_or_else(|| Arc::new(SystemClock)),
            enough: CancellationToken::new(),
            stop: CancellationToken::new(),
        };
        effects::Effects::new(&place.url).prepare().await;
        let (mut programs, mut tasks) = (Vec::new(), Vec::new());
        for number in 1..=PROGRAMS {
            let (program, running) = place.start(number).await;
            programs.push(program);
            tasks.extend(running);
        }
        Self { servers, place, programs, tasks, chance: Chance::seeded(20_261_122), spans }
    }

    fn now(&self) -> Moment {
        self.place.clock.moment()
    }

    async fn load(&self, longest: Duration) {
        let least = longest / 3;
        let more = self.chance.below(u64::try_from((longest - least).as_millis()).unwrap());
        SystemClock.sleep(least + Duration::from_millis(more)).await;
    }

    /// Waits until jobs are accepted, jobs end and leases are granted that were asked for from now on.
    async fn goes_on(&self) {
        let (now, began) = (self.now(), SystemClock.moment());
        loop {
            let done = self.place.book.since(now);
            if done.iter().all(|count| *count > 0) {
                return;
            }
            let ended = self.tasks.iter().filter(|task| task.is_finished()).count();
            assert_eq!(ended, 0, "a program has ended by itself");
            let waited = SystemClock.moment().since(began);
            assert!(waited < PATIENCE, "jobs accepted, jobs ended, leases granted since an outage: {done:?}");
            SystemClock.sleep(MOMENT * 4).await;
        }
    }

    async fn kill(&self) {
        self.load(self.spans.load).await;
        let down = self.chance.below(u64::try_from(self.spans.down.as_millis()).unwrap());
        self.servers.kill(Duration::from_millis(down)).await;
        self.goes_on().await;
    }

    async fn promote(&mut self, promotion: Promotion) {
        match promotion {
            Promotion::Synchronous => {
                self.servers.synchronise().await;
                self.load(self.spans.load).await;
                self.servers.fail_over();
            }
            Promotion::Lagging => {
                self.load(self.spans.load).await;
                let known = self.now();
                self.servers.catch_up().await;
                self.servers.follower().hold().unwrap();
                SystemClock.sleep(self.spans.lag).await;
                self.servers.fail_over();
                let lag = Call { asked: known, heard: self.now() };
                let mut history = self.place.book.open();
                let forgotten = history.accepted.values().filter(|call| lag.meets(**call)).count();
                assert!(forgotten > 0, "something was acknowledged of which the replica does not know");
                history.lags.push(lag);
            }
        }
        self.goes_on().await;
    }

    /// Lets the programs do what is left, stops them, and answers what all of them have seen and what there is.
    async fn end(mut self) -> History {
        self.place.enough.cancel();
        let tenure = self.programs[0].tenure.clone();
        let began = SystemClock.moment();
        while !all_succeeded(&tenure).await {
            assert!(SystemClock.moment().since(began) < PATIENCE * 2, "{:?}", tenure.counts().await);
            SystemClock.sleep(MOMENT * 20).await;
        }
        self.place.stop.cancel();
        for task in self.tasks.drain(..) {
            task.await.unwrap();
        }
        let mut history = std::mem::take(&mut *self.place.book.open());
        history.left.jobs.extend(states(&tenure).await);
        self.programs[0].effects.read(&mut history.left).await;
        history
    }
}

async fn all_succeeded(tenure: &Tenure) -> bool {
    let open = |count: &Count| count.state != StateName::Succeeded;
    tenure.counts().await.is_ok_and(|counts| !counts.iter().any(open))
}

async fn states(tenure: &Tenure) -> Vec<(JobId, StateName)> {
    let (mut states, mut after) = (Vec::new(), None);
    loop {
        let ask = PageAsk { at_most: 1_000, after, ..PageAsk::default() };
        let page = tenure.jobs().page(ask).await.unwrap();
        states.extend(page.jobs.iter().map(|job| (job.id, job.state.name(tenure.now()))));
        after = page.next;
        if after.is_none() {
            return states;
        }
    }
}

/// Nothing contradicts, and there was something to contradict.
fn check(history: &History) {
    let leases = history.grants.iter().filter(|grant| grant.is_of_lease()).count();
    let missing = history.accepted.keys().filter(|id| !history.left.jobs.contains_key(id)).count();
    println!(
        "{} jobs asked for, {} accepted, {} there in the end, {missing} accepted ones forgotten by lagging replicas; {} \
         ends acknowledged, {} effects; {} attempts and {leases} leases granted, up to fence {:?}; {} writes under leases",
        history.wanted.len(),
        history.accepted.len(),
        history.left.jobs.len(),
        history.succeeded.len(),
        history.left.effects.len(),
        history.grants.len() - leases,
        history.grants.iter().map(|grant| grant.fence).max(),
        history.writes.len(),
    );
    assert!(history.accepted.len() > 100 && history.succeeded.len() > 100 && leases > 20);
    assert!(history.writes.len() > 50 && history.left.effects.len() > 20);
    let found = total_queue::violations(history);
    assert!(found.is_empty(), "{}:\n{}", found.len(), found[..found.len().min(20)].join("\n"));
    let found = fencing::violations(history);
    assert!(found.is_empty(), "{}:\n{}", found.len(), found[..found.len().min(20)].join("\n"));
}

/// On a clock that runs faster, since nothing is granted for half a minute after a promotion; and on servers that leave the
/// disk to the system, which does not end with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn through_three_kills_and_a_lagging_promotion_no_job_is_lost_and_no_fence_is_granted_twice() {
    let spans = Spans {
        load: Duration::from_millis(600),
        down: Duration::from_millis(200),
        lag: Duration::from_millis(500),
    };
    let mut fleet = Fleet::start(Servers::start_hasty(), spans, Some(Arc::new(pace::Hurried::new()))).await;
    for _ in 0..3 {
        fleet.kill().await;
    }
    fleet.promote(Promotion::Lagging).await;
    check(&fleet.end().await);
}

/// The same at length.
async fn through_thirty_kills_and_ten_promotions(mut fleet: Fleet) {
    let began = SystemClock.moment();
    for number in 1..=30 {
        fleet.kill().await;
        println!("{:?}: killed {number} times", SystemClock.moment().since(began));
    }
    for number in 1..=10 {
        let promotion = if number % 2 == 0 { Promotion::Lagging } else { Promotion::Synchronous };
        fleet.promote(promotion).await;
        println!("{:?}: promotion {number}, {promotion:?}", SystemClock.moment().since(began));
        if number < 10 {
            fleet.servers.replace();
        }
    }
    check(&fleet.end().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes three minutes; run it when connections, epochs or the ways of writing change"]
async fn thirty_kills_and_ten_promotions_on_a_hurried_clock() {
    let spans = Spans {
        load: Duration::from_millis(900),
        down: Duration::from_millis(200),
        lag: Duration::from_millis(500),
    };
    let shared: Arc<dyn Clock> = Arc::new(pace::Hurried::new());
    through_thirty_kills_and_ten_promotions(Fleet::start(Servers::start_hasty(), spans, Some(shared)).await)
        .await;
}

/// On servers as they are installed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes a quarter of an hour; run it when connections, epochs or the ways of writing change"]
async fn thirty_kills_and_ten_promotions_on_the_servers_clock() {
    let spans = Spans {
        load: Duration::from_millis(1_500),
        down: Duration::from_millis(500),
        lag: Duration::from_millis(1_500),
    };
    through_thirty_kills_and_ten_promotions(Fleet::start(Servers::start(), spans, None).await).await;
}
