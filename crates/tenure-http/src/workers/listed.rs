//! The store's list of workers, live and lost. Requests share reads of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::{Error, HostId, Moment, Serves, Tenure};

use crate::problem::Problem;

/// Age until which a copy proves that a worker is listed.
const BELIEVED: Duration = Duration::from_secs(2);
/// Pause after a read, as a multiple of its duration: reading takes at most a fifth of the time.
const PAUSES: u32 = 4;
/// Longest pause after a read.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The workers that the store lists.
#[derive(Debug)]
pub(super) struct Listed {
    /// Live workers, and the jobs that they take.
    pub live: BTreeMap<HostId, Vec<Serves>>,
    pub lost: BTreeSet<HostId>,
}

/// The last read of the list, and the number of reads.
#[derive(Debug, Default)]
pub(super) struct ListedWorkers {
    last: Mutex<Option<Read>>,
    begun: AtomicU64,
    /// Held by the request that reads. One read at a time, so that claims with ever new IDs do not load the store.
    turn: tokio::sync::Mutex<()>,
}

/// A read that has ended.
#[derive(Debug, Clone)]
struct Read {
    number: u64,
    ended: Moment,
    /// Earliest time of the next read.
    not_before: Moment,
    found: Result<Arc<Listed>, Problem>,
}

impl Listed {
    async fn read(tenure: &Tenure) -> Result<Self, Error> {
        let (hosts, lost) = (tenure.hosts().await?, tenure.lost_hosts().await?);
        let live = hosts.into_iter().map(|host| (host.id, host.serves)).collect();
        Ok(Self { live, lost: lost.into_iter().map(|lost| lost.host.id).collect() })
    }

    /// Returns `true` if the worker is listed as live or lost.
    pub(super) fn has(&self, worker: HostId) -> bool {
        self.live.contains_key(&worker) || self.lost.contains(&worker)
    }
}

impl ListedWorkers {
    /// Returns a recent list with this worker, or a list that the server began to read after this call. An older list without
    /// the worker proves nothing: a program may have started since then.
    pub(super) async fn find(&self, tenure: &Tenure, worker: HostId) -> Result<Arc<Listed>, Problem> {
        let clock = tenure.store().clock();
        let begun = self.begun.load(Ordering::SeqCst);
        let is_recent = |read: &Read| clock.moment().since(read.ended) < BELIEVED;
        let recent = self.last().clone().filter(is_recent).and_then(|read| read.found.ok());
        if let Some(listed) = recent.filter(|listed| listed.has(worker)) {
            return Ok(listed);
        }
        let _turn = self.turn.lock().await;
        let last = self.last().clone();
        if let Some(read) = last.as_ref().filter(|read| read.number > begun) {
            return read.found.clone();
        }
        let wait = last.map(|last| last.not_before.since(clock.moment())).unwrap_or_default();
        if !wait.is_zero() {
            clock.sleep(wait).await;
        }
        // Only now: this read also serves the requests that came during the pause.
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let began = clock.moment();
        let found = Listed::read(tenure).await.map(Arc::new).map_err(Problem::from);
        let ended = clock.moment();
        let pause = ended.since(began).saturating_mul(PAUSES).min(LONGEST_PAUSE);
        *self.last() = Some(Read { number, ended, not_before: ended.after(pause), found: found.clone() });
        found
    }

    fn last(&self) -> MutexGuard<'_, Option<Read>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
