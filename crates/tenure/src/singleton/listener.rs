//! What runs only while its host holds a lease: it stands by, runs, gives back, and stands by again.
//!
//! ```text
//!              in line                the lease is had
//!   Standby ───────────────▶ (waits) ─────────────────▶ On duty
//!      ▲                                                   │ the body ends, fails or panics: it rests first
//!      └──────────── given back, or lost ──────────────────┘
//! ```
//! One loop does all of it, one step after the other: no two tries to have the lease ever overlap, and
//! nothing begins after the stop.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::LeaseName;

use super::duty::{Duty, Reins};
use super::{Mode, Prepared, Singleton};
use crate::worker::{Backoff, Beside, Body, Ground, Panic, catching, let_go, words_of};
use crate::{Error, Failed, Held, Stopping};

/// How long the reply to giving back is waited for. After that the lease lapses by itself.
const GIVE_BACK: Duration = Duration::from_secs(1);
/// The first rest of a body that failed.
const FIRST_REST: Duration = Duration::from_secs(1);

/// What begins each stretch of duty.
pub(crate) type Begin<App> = Arc<dyn Fn(Duty<App>) -> Body<Result<(), Failed>> + Send + Sync>;

/// Something that runs only while its host holds a lease.
pub(crate) struct Listener<App> {
    pub(crate) name: String,
    pub(crate) singleton: Singleton,
    pub(crate) begin: Begin<App>,
}

impl<App: Send + Sync + 'static> Beside<App> for Listener<App> {
    fn prepare(self: Box<Self>, ground: &Ground<App>) -> Result<Body<Result<(), Error>>, Error> {
        let app = ground.tenure.need_app(&format!("singleton {}", self.name))?;
        let setting = |name: &str| (ground.setting)(name);
        let prepared = Prepared::new(&self.singleton, app, &self.name, Mode::Listener, setting)?;
        let lock = prepared.lock(&serde_json::Value::Null)?;
        let post = Post {
            name: lock.name().clone(),
            alias: Some(lock.alias().to_owned()),
            ttl: self.singleton.lease.unwrap_or(ground.options.listener_lock_period),
            acquire_within: self.singleton.acquire_within.or(ground.options.lock_acquisition_timeout),
            ready_within: self.singleton.ready_within,
            recovery: ground.options.listener_lock_recovery_polling_interval,
        };
        Ok(Box::pin(serve(post, self.begin, ground.clone())))
    }
}

/// A lease that somebody is to hold, and how.
pub(crate) struct Post {
    pub(crate) name: LeaseName,
    /// How it was printed of old.
    pub(crate) alias: Option<String>,
    pub(crate) ttl: Duration,
    pub(crate) acquire_within: Option<Duration>,
    pub(crate) ready_within: Option<Duration>,
    pub(crate) recovery: Option<Duration>,
}

/// How a stretch of duty ended.
enum Ended {
    /// The body was done.
    Done,
    /// It failed, in these words.
    Failed(String),
    /// The lease was lost.
    Lost,
    /// It was not ready in time.
    NotReady,
    /// The host stops.
    Stopped,
}

/// Holds a post until its worker stops, or until it cannot go on.
pub(crate) async fn serve<App: Send + Sync + 'static>(
    post: Post,
    begin: Begin<App>,
    ground: Ground<App>,
) -> Result<(), Error> {
    let lease = &post.name;
    let longest = post.recovery.unwrap_or(FIRST_REST);
    let mut rests = Rests { lease: lease.to_string(), failures: 0, longest };
    loop {
        let Some(held) = stand_by(&post, &ground).await? else { return Ok(()) };
        tracing::info!(%lease, fence = %held.fence(), "active");
        let began = ground.tenure.clock().moment();
        let ended = on_duty(held, &post, &begin, &ground).await;
        let lasted = ground.tenure.clock().moment().since(began);
        tracing::info!(%lease, "inactive");
        if matches!(ended, Ended::Stopped) || ground.stop.is_cancelled() {
            return Ok(());
        }
        if post.recovery.is_none() {
            return Err(Error::Singleton { name: lease.clone(), why: rests.words(&ended) });
        }
        let rest = rests.after(&ended, lasted, ground.tenure.chance().fraction());
        tokio::select! {
            biased;
            () = ground.stop.cancelled() => return Ok(()),
            () = ground.tenure.pause_for(rest) => {}
        }
    }
}

/// Waits in line for the lease; `None` if the worker stops first.
async fn stand_by<App>(post: &Post, ground: &Ground<App>) -> Result<Option<Held>, Error> {
    let mut faults = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
    loop {
        let hold = ground.tenure.leases().hold_own(&post.name);
        let hold = hold.ttl(post.ttl).who(&ground.who);
        let hold = if let Some(alias) = &post.alias { hold.note("alias", alias) } else { hold };
        // Who comes back by itself goes on waiting; who does not gives up when its time is over.
        let within = post.acquire_within.filter(|_| post.recovery.is_none());
        let hold = if let Some(within) = within { hold.within(within) } else { hold };
        let held = tokio::select! {
            biased;
            () = ground.stop.cancelled() => return Ok(None),
            held = hold => held,
        };
        match held {
            Ok(held) => return Ok(Some(held)),
            Err(Error::Fault(fault)) if fault.is_passing() => {
                let pause = faults.next(ground.tenure.chance(), "standing by", &fault);
                tokio::select! {
                    biased;
                    () = ground.stop.cancelled() => return Ok(None),
                    () = ground.tenure.pause_for(pause) => {}
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Runs the body while the lease is held. The lease is given back only after the body has ended or was
/// dropped.
async fn on_duty<App: Send + Sync + 'static>(
    held: Held,
    post: &Post,
    begin: &Begin<App>,
    ground: &Ground<App>,
) -> Ended {
    let reins = Arc::new(Reins::default());
    let duty = Duty::new(Arc::clone(&ground.app), ground.tenure.clone(), held.pass(), Arc::clone(&reins));
    let begin = Arc::clone(begin);
    let mut body: Body<_> = Box::pin(async move { begin(duty).await });
    let told = tokio::select! {
        biased;
        done = catching(&mut body) => Err(done),
        _ = held.lost() => Ok((Stopping::Lost, Ended::Lost)),
        () = ground.stop.cancelled() => Ok((Stopping::HostStops, Ended::Stopped)),
        () = not_ready(post, &reins, ground) => Ok((Stopping::TimedOut, Ended::NotReady)),
    };
    let ended = match told {
        Err(done) => ended_by_itself(done),
        Ok((why, ended)) => {
            reins.stop(why);
            tokio::select! {
                biased;
                // Whatever it still answers: it was told to stop, and has.
                _ = catching(&mut body) => {}
                () = ground.tenure.pause_for(ground.grace) => {
                    tracing::warn!(lease = %post.name, "a singleton did not stop in time and was aborted");
                }
            }
            ended
        }
    };
    let_go(body, "a singleton");
    give_back(held, ground).await;
    ended
}

pub(crate) async fn give_back<App>(held: Held, ground: &Ground<App>) {
    let lease = held.name().clone();
    tokio::select! {
        biased;
        given = held.release() => if let Err(error) = given {
            tracing::debug!(%lease, %error, "failed to release the lease of a singleton");
        },
        () = ground.tenure.pause_for(GIVE_BACK) => {}
    }
}

fn ended_by_itself(done: Result<Result<(), Failed>, Panic>) -> Ended {
    match done {
        Ok(Ok(())) => Ended::Done,
        Ok(Err(failed)) => Ended::Failed(failed.to_string()),
        Err(panic) => Ended::Failed(format!("panic: {}", words_of(&*panic))),
    }
}

async fn not_ready<App>(post: &Post, reins: &Reins, ground: &Ground<App>) {
    let Some(within) = post.ready_within else { return std::future::pending().await };
    tokio::select! {
        biased;
        () = reins.is_ready() => std::future::pending().await,
        () = ground.tenure.pause_for(within) => {}
    }
}

/// How long to rest between two stretches of duty. One that fails again and again rests longer, and lets
/// those who stand by try.
struct Rests {
    lease: String,
    failures: u32,
    longest: Duration,
}

impl Rests {
    fn after(&mut self, ended: &Ended, lasted: Duration, chance: f64) -> Duration {
        if lasted >= self.longest {
            self.failures = 0;
        }
        match ended {
            // Whoever lost its lease waits in line for it.
            Ended::Lost | Ended::Stopped => return Duration::ZERO,
            Ended::Done => {}
            Ended::Failed(_) | Ended::NotReady => {
                tracing::warn!(lease = self.lease, "{}", self.words(ended));
            }
        }
        let plain = FIRST_REST.saturating_mul(1 << self.failures.min(16)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        plain.mul_f64(0.5 + 0.5 * chance)
    }

    fn words(&self, ended: &Ended) -> String {
        match ended {
            Ended::Done => "it ended by itself".to_owned(),
            Ended::Failed(why) => format!("it failed: {why}"),
            Ended::Lost => "its lease was lost".to_owned(),
            Ended::NotReady => "it was not ready in time".to_owned(),
            Ended::Stopped => "the host is shutting down".to_owned(),
        }
    }
}
