//! What claims jobs for push endpoints, as any worker does, and sends them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure::{HostId, Kind, Kinds, QueueName, Reserve, Serves, Want};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::budget::{Budget, Room};
use super::endpoint::{Endpoint, Endpoints};
use super::sending::{LEASE, Sending};
use crate::api::Api;
use crate::callbacks::caller::Caller;
use crate::problem::Problem;
use crate::workers::settle;

/// It looks so often whether there are endpoints now.
const LOOK: Duration = Duration::from_secs(5);
/// An endpoint looks so often for jobs, whatever is heard.
const POLL: Duration = Duration::from_secs(2);
/// After a fault it waits so long.
const AFTER_FAULT: Duration = Duration::from_secs(1);
/// What is there but was not granted is asked for again after so long.
const SOONEST: Duration = Duration::from_millis(50);
/// After so long an endpoint asks again for room that other endpoints use.
const NO_ROOM: Duration = Duration::from_millis(250);
/// For so long an endpoint counts as a worker that is alive,
const ALIVE: Duration = Duration::from_secs(90);
/// and says so this often.
const ANNOUNCED: Duration = Duration::from_secs(30);

/// Wakes the pusher of this program, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Pushing {
    changed: Arc<Notify>,
}

impl Pushing {
    /// Endpoints may have changed.
    pub(crate) fn look(&self) {
        self.changed.notify_one();
    }
}

/// The pusher of a server.
pub(crate) struct Pusher {
    api: Api,
    caller: Caller,
    budget: Budget,
    sent: TaskTracker,
    /// No more are claimed.
    no_more: CancellationToken,
    /// What is under way is given back.
    stop: CancellationToken,
}

impl Pusher {
    pub(crate) fn start(api: &Api) -> Self {
        Self::start_within(api, Budget::default())
    }

    /// Like [`start`](Self::start), with this budget for all endpoints together.
    fn start_within(api: &Api, budget: Budget) -> Self {
        let caller = Caller::new(api.allowed().clone(), api.tenure().store().clock());
        let (no_more, stop) = (CancellationToken::new(), CancellationToken::new());
        let pusher = Self { api: api.clone(), caller, budget, sent: TaskTracker::new(), no_more, stop };
        tokio::spawn(pusher.serving().run());
        pusher
    }

    fn serving(&self) -> Serving {
        Serving {
            api: self.api.clone(),
            caller: self.caller.clone(),
            budget: self.budget.clone(),
            sent: self.sent.clone(),
            no_more: self.no_more.clone(),
            stop: self.stop.clone(),
        }
    }

    /// Claims no more, waits for what is under way, and gives back what has not ended by then.
    pub(crate) async fn end(&self, grace: Duration) {
        /// What is given back has so long.
        const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(2);
        let clock = self.api.tenure().store().clock();
        self.no_more.cancel();
        self.sent.close();
        tokio::select! {
            biased;
            () = self.sent.wait() => return,
            () = clock.sleep(grace) => {}
        }
        self.stop.cancel();
        tokio::select! {
            biased;
            () = self.sent.wait() => {}
            () = clock.sleep(GIVEN_BACK_WITHIN) => {}
        }
    }
}

impl Drop for Pusher {
    fn drop(&mut self) {
        self.no_more.cancel();
        self.stop.cancel();
    }
}

/// What looks after the endpoints.
#[derive(Clone)]
struct Serving {
    api: Api,
    caller: Caller,
    budget: Budget,
    sent: TaskTracker,
    no_more: CancellationToken,
    stop: CancellationToken,
}

impl Serving {
    async fn run(self) {
        let clock = self.api.tenure().store().clock();
        // Each in the state in which it is served, and what ends that.
        let mut served: BTreeMap<String, (u64, CancellationToken)> = BTreeMap::new();
        loop {
            match Endpoints::of(self.api.tenure()).all().await {
                Ok(endpoints) => self.serve(&mut served, endpoints),
                Err(error) => tracing::warn!(%error, "failed to read push endpoints"),
            }
            tokio::select! {
                biased;
                () = self.no_more.cancelled() => return,
                () = self.api.pushing().changed.notified() => {}
                () = clock.sleep(LOOK) => {}
            }
        }
    }

    fn serve(&self, served: &mut BTreeMap<String, (u64, CancellationToken)>, endpoints: Vec<Endpoint>) {
        let enabled: BTreeMap<String, Endpoint> = endpoints
            .into_iter()
            .filter(|endpoint| endpoint.kept.disabled.is_none())
            .map(|endpoint| (endpoint.name.clone(), endpoint))
            .collect();
        served.retain(|name, (version, end)| {
            let stays = enabled.get(name).is_some_and(|endpoint| endpoint.version == *version);
            if !stays {
                end.cancel();
            }
            stays
        });
        for (name, endpoint) in enabled {
            if served.contains_key(&name) {
                continue;
            }
            let end = self.no_more.child_token();
            served.insert(name, (endpoint.version, end.clone()));
            let one = One {
                holder: self.api.tenure().remote().draw_worker(),
                name: endpoint.name.as_str().into(),
                endpoint: Arc::new(endpoint),
                serving: self.clone(),
                end,
            };
            tokio::spawn(one.run());
        }
    }
}

/// One endpoint that is served.
struct One {
    serving: Serving,
    endpoint: Arc<Endpoint>,
    name: Arc<str>,
    holder: HostId,
    end: CancellationToken,
}

impl One {
    async fn run(self) {
        let tenure = self.serving.api.tenure().clone();
        let clock = tenure.store().clock();
        let room = Arc::new(Semaphore::new(usize::try_from(self.endpoint.kept.slots).unwrap_or(1)));
        let mut due = tenure.store().due();
        let mut announced = None;
        loop {
            let first = tokio::select! {
                biased;
                () = self.end.cancelled() => break,
                permit = Arc::clone(&room).acquire_owned() => permit,
            };
            let Ok(first) = first else { break };
            let now = clock.moment();
            if announced.is_none_or(|last| now.since(last) >= ANNOUNCED) {
                self.announce().await;
                announced = Some(now);
            }
            due.mark_unchanged();
            let most = room.available_permits() + 1;
            drop(first);
            let Some(budget) = self.serving.budget.room(&self.name, most) else {
                tokio::select! {
                    biased;
                    () = self.end.cancelled() => break,
                    () = clock.sleep(NO_ROOM) => continue,
                }
            };
            let nap = match self.claim(budget, &room).await {
                Ok((0, due_in)) => due_in.unwrap_or(POLL).clamp(SOONEST, POLL),
                Ok(_) => Duration::ZERO,
                Err(problem) => {
                    tracing::warn!(
                        ?problem,
                        endpoint = self.endpoint.name,
                        "failed to claim jobs for a push endpoint"
                    );
                    AFTER_FAULT
                }
            };
            if nap.is_zero() {
                continue;
            }
            tokio::select! {
                biased;
                () = self.end.cancelled() => break,
                Ok(()) = due.changed() => {}
                () = clock.sleep(nap) => {}
            }
        }
        if let Err(fault) = tenure.store().retire(self.holder).await {
            tracing::debug!(%fault, "failed to unregister a push endpoint");
        }
    }

    /// Claims jobs and sends them; answers how many, and in how long there may be more.
    async fn claim(
        &self,
        mut budget: Room,
        room: &Arc<Semaphore>,
    ) -> Result<(usize, Option<Duration>), Problem> {
        let ask = self.ask(budget.jobs)?;
        let grant = settle::grant(&self.serving.api, ask).await?;
        let due_in = grant.due_in();
        let jobs = grant.told().0.jobs;
        let count = jobs.len();
        for job in jobs {
            let Serving { api, caller, budget: all, stop, sent, .. } = self.serving.clone();
            let large = Arc::new(all.response(&self.name, api.tenure().store().clock()));
            let job_room = budget.of(&job);
            let sending = Sending { api, caller, endpoint: Arc::clone(&self.endpoint), job, large, stop };
            // There was room for each when it was claimed.
            let permit = Arc::clone(room).acquire_owned().await;
            sent.spawn(async move {
                sending.run().await;
                drop((permit, job_room));
            });
        }
        Ok((count, due_in))
    }

    fn ask(&self, most: usize) -> Result<Reserve, Problem> {
        let kept = &self.endpoint.kept;
        let kinds: Result<Arc<[Kind]>, _> = kept.kinds.iter().map(|kind| Kind::new(kind)).collect();
        let kinds = if kept.kinds.is_empty() { Kinds::All } else { Kinds::Only(kinds?) };
        let want = |queue: &String| -> Result<Want, Problem> {
            Ok(Want { queue: QueueName::new(queue)?, kinds: kinds.clone(), at_most: most })
        };
        let wants: Result<Vec<Want>, Problem> = kept.queues.iter().map(want).collect();
        Ok(Reserve { holder: self.holder, ttl: LEASE, wants: wants?, at_most: most })
    }

    /// Tells the store who takes these jobs, so that people can be told. Nothing else depends on it.
    async fn announce(&self) {
        let Ok(ask) = self.ask(1) else { return };
        let slots = self.endpoint.kept.slots;
        let serves = ask.wants.into_iter().map(|want| {
            let kinds = match want.kinds {
                Kinds::All => None,
                Kinds::Only(kinds) => Some(kinds.to_vec()),
            };
            Serves { queue: want.queue, kinds, slots, all_waiting: false }
        });
        let (name, serves) = (format!("endpoint {}", self.endpoint.name), serves.collect::<Vec<_>>());
        let store = self.serving.api.tenure().store();
        if let Err(fault) = store.announce(self.holder, &name, slots, &serves, ALIVE).await {
            tracing::debug!(%fault, "failed to register a push endpoint");
        }
    }
}

#[cfg(test)]
#[path = "pusher_tests.rs"]
mod tests;
