//! Workers that this server has heard of: a bounded record of the jobs that each of them takes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tenure::{HostId, Kind, Kinds, Moment, QueueName, Reserve, Serves, Want};

use super::roll::{ALIVE, APART, is_within};
use crate::access::Reach;
use crate::quota::{Exceeded, Quotas};

/// Time that a live worker counts as serving a queue after its last claim from it.
const KNOWN: Duration = Duration::from_secs(3_600);
/// Maximum number of remembered claims of one worker, from different queues.
const CLAIMS: usize = 32;
/// Share of each worker in the bytes of its token. Workers that serve few queues leave room for those that serve many.
pub(super) const BYTES_PER_WORKER: usize = 8 * 1024;
/// Maximum size of one worker's description: room for 1,000 queues with a few kinds each.
pub(super) const BYTES_OF_ONE: usize = 1024 * 1024;
/// Quotas of all tokens together, as a multiple of the quotas of one token.
pub(super) const SHARES: usize = 10;
/// Setting that raises the quotas.
pub(super) const SETTING: &str = "--workers-per-token";

/// The workers that this server has heard of, and their number and size by access token.
#[derive(Debug, Default)]
pub(super) struct WorkerBook {
    workers: BTreeMap<HostId, Heard>,
    of_tokens: BTreeMap<Arc<str>, Usage>,
    of_all: Usage,
    /// Workers with a task that announces them, also after they were removed; `true` if their last state is not announced yet.
    announcing: BTreeMap<HostId, bool>,
}

/// Number and size of some workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usage {
    workers: usize,
    bytes: usize,
}

/// A worker as it describes itself.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    /// Time at which its last announcement to the store was due.
    told: Moment,
    pub(super) name: String,
    /// The access token with which it claimed first, if any.
    pub(super) token: Option<Arc<str>>,
    /// The access token of its last claim, whose quota it counts against.
    payer: Option<Arc<str>>,
    /// Its last claims. Some workers claim from one queue at a time and serve all of them.
    claims: Vec<Claimed>,
}

/// Queues from which a worker claims together.
#[derive(Debug, Clone)]
struct Claimed {
    at: Moment,
    /// Number of jobs that it runs at once from them, as far as known.
    slots: u32,
    serves: Vec<Serves>,
}

/// The worker that sends a claim.
pub(super) struct Claimant<'a> {
    pub token: Option<&'a str>,
    pub name: &'a str,
    /// Number of jobs that it can run at once, if it says so.
    pub slots: Option<u32>,
}

/// A queue and the kinds taken from it; `None` means all kinds.
type Line<'a> = (&'a QueueName, Option<&'a [Kind]>);

impl WorkerBook {
    /// Records a claim; returns `true` if it is time to announce the worker to the store.
    pub(super) fn note(
        &mut self,
        quotas: Quotas,
        claimant: &Claimant<'_>,
        ask: &Reserve,
        now: Moment,
    ) -> Result<bool, Exceeded> {
        let payer = claimant.token.map(Arc::<str>::from);
        let before = self.remove(ask.holder);
        let bytes = bytes_with(before.as_ref().filter(|heard| heard.payer == payer), claimant, ask, now);
        if let Err(exceeded) = self.make_room(quotas, payer.as_deref(), bytes, now) {
            before.into_iter().for_each(|heard| self.insert(ask.holder, heard));
            return Err(exceeded);
        }
        let new = || Heard {
            told: now,
            name: String::new(),
            token: payer.clone(),
            payer: None,
            claims: Vec::new(),
        };
        let mut heard = before.unwrap_or_else(new);
        if heard.payer != payer {
            // Claims with one token must not fill the quota of another.
            heard.claims.clear();
            heard.payer = payer;
        }
        let is_new = heard.take(Claimed::of(ask, now), claimant.slots);
        let is_due = is_new || now.since(heard.told) >= APART;
        if is_due {
            (heard.told, heard.name) = (now, claimant.name.to_owned());
        }
        self.insert(ask.holder, heard);
        Ok(is_due)
    }

    /// Returns `true` if it is time to announce a live worker again and the caller reaches all that it takes.
    pub(super) fn again(&mut self, id: HostId, now: Moment, reach: &Reach) -> bool {
        let is_due = |heard: &&mut Heard| now.since(heard.told) >= APART && heard.is_within(reach);
        let Some(heard) = self.workers.get_mut(&id).filter(is_due) else { return false };
        heard.told = now;
        true
    }

    /// Marks the state of a worker as not announced yet. Returns `true` if there is no task that announces it.
    pub(super) fn begin_announcing(&mut self, id: HostId) -> bool {
        self.announcing.insert(id, true).is_none()
    }

    /// Returns the state of a worker if it is not announced yet. Otherwise, its task must end.
    pub(super) fn next_announcement(&mut self, id: HostId) -> Option<Heard> {
        let is_newer = self.announcing.insert(id, false).unwrap_or_default();
        let heard = self.workers.get(&id).filter(|_| is_newer).cloned();
        if heard.is_none() {
            self.announcing.remove(&id);
        }
        heard
    }

    /// Returns a worker that was heard of lately.
    pub(super) fn live(&self, id: HostId, now: Moment) -> Option<&Heard> {
        self.workers.get(&id).filter(|heard| now.since(heard.told) < ALIVE)
    }

    /// Removes a worker, and returns it if it is known and serves nothing outside the caller's reach.
    pub(super) fn forget(&mut self, id: HostId, reach: &Reach) -> Option<Heard> {
        self.workers.get(&id).filter(|heard| heard.is_within(reach))?;
        self.remove(id)
    }

    /// Forgets silent workers if a worker of this size would exceed a quota, and refuses it if it still would.
    fn make_room(
        &mut self,
        quotas: Quotas,
        token: Option<&str>,
        bytes: usize,
        now: Moment,
    ) -> Result<(), Exceeded> {
        if self.check(quotas, token, bytes).is_ok() {
            return Ok(());
        }
        let is_silent = |(_, heard): &(&HostId, &Heard)| now.since(heard.told) >= ALIVE;
        let silent: Vec<HostId> = self.workers.iter().filter(is_silent).map(|(id, _)| *id).collect();
        silent.into_iter().for_each(|id| drop(self.remove(id)));
        self.check(quotas, token, bytes)
    }

    /// Refuses one more worker of this size if it would exceed a quota.
    fn check(&self, quotas: Quotas, token: Option<&str>, bytes: usize) -> Result<(), Exceeded> {
        let most = Usage {
            workers: quotas.workers_per_token,
            bytes: quotas.workers_per_token.saturating_mul(BYTES_PER_WORKER).max(BYTES_OF_ONE),
        };
        let all =
            Usage { workers: most.workers.saturating_mul(SHARES), bytes: most.bytes.saturating_mul(SHARES) };
        let exceeded = |quota, about, limit| Exceeded {
            quota,
            about,
            limit,
            setting: Some(SETTING),
            retry_after: Some(ALIVE),
        };
        if bytes > BYTES_OF_ONE {
            let about = "the claims of this worker within an hour name too many queues and kinds";
            let fixed = exceeded("bytes_per_worker", about, BYTES_OF_ONE);
            return Err(Exceeded { setting: None, retry_after: None, ..fixed });
        }
        if let Some(token) = token {
            let used = self.of_tokens.get(token).copied().unwrap_or_default();
            if used.workers >= most.workers {
                let about = "this access token has too many workers";
                return Err(exceeded("workers_per_token", about, most.workers));
            }
            if used.bytes.saturating_add(bytes) > most.bytes {
                let about = "the workers of this access token name too many queues and kinds";
                return Err(exceeded("worker_bytes_per_token", about, most.bytes));
            }
        }
        if self.of_all.workers >= all.workers {
            return Err(exceeded("workers", "this server has too many workers", all.workers));
        }
        if self.of_all.bytes.saturating_add(bytes) > all.bytes {
            let about = "the workers of this server name too many queues and kinds";
            return Err(exceeded("worker_bytes", about, all.bytes));
        }
        Ok(())
    }

    fn insert(&mut self, id: HostId, heard: Heard) {
        let bytes = heard.bytes();
        if let Some(payer) = &heard.payer {
            self.of_tokens.entry(Arc::clone(payer)).or_default().add(bytes);
        }
        self.of_all.add(bytes);
        self.workers.insert(id, heard);
    }

    fn remove(&mut self, id: HostId) -> Option<Heard> {
        let heard = self.workers.remove(&id)?;
        let bytes = heard.bytes();
        if let Some(payer) = &heard.payer
            && let Some(usage) = self.of_tokens.get_mut(payer)
        {
            usage.take_off(bytes);
            if usage.workers == 0 {
                self.of_tokens.remove(payer);
            }
        }
        self.of_all.take_off(bytes);
        Some(heard)
    }
}

impl Usage {
    fn add(&mut self, bytes: usize) {
        (self.workers, self.bytes) = (self.workers.saturating_add(1), self.bytes.saturating_add(bytes));
    }

    fn take_off(&mut self, bytes: usize) {
        (self.workers, self.bytes) = (self.workers.saturating_sub(1), self.bytes.saturating_sub(bytes));
    }
}

impl Heard {
    /// Records a claim. Returns `true` if it names a queue or kinds that are new for this worker.
    fn take(&mut self, mut claimed: Claimed, slots: Option<u32>) -> bool {
        // A worker without room claims nothing for a while, but still serves its queues.
        self.claims.retain(|before| !before.is_forgotten(claimed.at));
        let lines: BTreeSet<Line<'_>> = claimed.serves.iter().map(line).collect();
        let known: BTreeSet<Line<'_>> =
            self.claims.iter().flat_map(|before| before.serves.iter().map(line)).collect();
        let is_new = !lines.is_subset(&known);
        drop(known);
        let (met, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.claims).into_iter().partition(|before| before.meets(&lines));
        drop(lines);
        self.claims = others;
        // A worker asks for as many jobs as it has room for, so an earlier claim may show more slots.
        let most = met.iter().map(|before| before.slots).fold(claimed.slots, u32::max);
        claimed.slots = slots.unwrap_or(most);
        for serves in &mut claimed.serves {
            serves.slots = claimed.slots;
        }
        if self.claims.len() == CLAIMS {
            self.claims.remove(0);
        }
        self.claims.push(claimed);
        is_new
    }

    /// Returns all that it takes, by queue.
    pub(super) fn serves(&self) -> Vec<Serves> {
        let mut serves: Vec<Serves> = self.claims.iter().flat_map(|claimed| claimed.serves.clone()).collect();
        serves.sort_by(|one, other| one.queue.cmp(&other.queue));
        serves
    }

    pub(super) fn slots(&self) -> u32 {
        self.claims.iter().map(|claimed| claimed.slots).fold(0, u32::saturating_add)
    }

    /// Returns `true` if the caller reaches all that the worker takes.
    pub(super) fn is_within(&self, reach: &Reach) -> bool {
        self.claims.iter().all(|claimed| is_within(&claimed.serves, reach))
    }

    fn bytes(&self) -> usize {
        let token = self.token.as_ref().map_or(0, |token| token.len());
        let claims: usize = self.claims.iter().map(Claimed::bytes).sum();
        size_of::<(HostId, Self)>() + self.name.len() + token + claims
    }
}

impl Claimed {
    fn of(ask: &Reserve, at: Moment) -> Self {
        let slots = u32::try_from(ask.at_most).unwrap_or(u32::MAX);
        let serves = ask.wants.iter().map(|want| {
            let kinds = match &want.kinds {
                Kinds::All => None,
                Kinds::Only(kinds) => Some(kinds.to_vec()),
            };
            Serves { queue: want.queue.clone(), kinds, slots, all_waiting: false }
        });
        Self { at, slots, serves: serves.collect() }
    }

    fn is_forgotten(&self, now: Moment) -> bool {
        now.since(self.at) >= KNOWN
    }

    /// Returns `true` if the claim names one of these lines. A new claim with these lines replaces it.
    fn meets(&self, lines: &BTreeSet<Line<'_>>) -> bool {
        self.serves.iter().any(|serves| lines.contains(&line(serves)))
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.serves.iter().map(|serves| bytes_of(line(serves))).sum::<usize>()
    }
}

/// Returns the size of a worker with this claim. It copies nothing, because the claim may be refused.
fn bytes_with(before: Option<&Heard>, claimant: &Claimant<'_>, ask: &Reserve, now: Moment) -> usize {
    let lines: BTreeSet<Line<'_>> = ask.wants.iter().map(line_of_want).collect();
    let claims = before.into_iter().flat_map(|heard| &heard.claims);
    let kept = claims.filter(|claimed| !claimed.is_forgotten(now) && !claimed.meets(&lines));
    let head = size_of::<(HostId, Heard)>() + size_of::<Claimed>() + claimant.name.len();
    let token = claimant.token.map_or(0, str::len);
    head + token + kept.map(Claimed::bytes).sum::<usize>() + bytes_of_ask(ask)
}

/// Returns the size of a claim. Its queues usually share their kinds, which are then counted once and multiplied.
fn bytes_of_ask(ask: &Reserve) -> usize {
    let (mut sum, mut last) = (0_usize, None::<(&Kinds, usize)>);
    for want in &ask.wants {
        let kinds = match last {
            Some((Kinds::Only(before), bytes)) if matches!(&want.kinds, Kinds::Only(kinds) if Arc::ptr_eq(before, kinds)) => {
                bytes
            }
            _ => bytes_of(line_of_want(want)).saturating_sub(bytes_of((&want.queue, None))),
        };
        last = Some((&want.kinds, kinds));
        sum = sum.saturating_add(bytes_of((&want.queue, None)).saturating_add(kinds));
    }
    sum
}

fn bytes_of((queue, kinds): Line<'_>) -> usize {
    let kinds = kinds.unwrap_or_default().iter().map(|kind| size_of::<Kind>() + kind.as_str().len());
    size_of::<Serves>() + queue.as_str().len() + kinds.sum::<usize>()
}

fn line(serves: &Serves) -> Line<'_> {
    (&serves.queue, serves.kinds.as_deref())
}

fn line_of_want(want: &Want) -> Line<'_> {
    let kinds = match &want.kinds {
        Kinds::All => None,
        Kinds::Only(kinds) => Some(kinds.as_ref()),
    };
    (&want.queue, kinds)
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
