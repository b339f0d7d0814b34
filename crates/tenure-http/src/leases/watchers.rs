//! Who waits for which lease: one look at a name serves all who wait for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::{LeaseInfo, LeaseName, Tenure};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

/// A lease that somebody waits for is looked at so often: that it was taken is not called out, and what is may be lost.
const LOOK: Duration = Duration::from_secs(2);
/// And never sooner again than this because it was about to lapse.
const SOONEST: Duration = Duration::from_millis(50);
/// That some lease was freed does not tell which: because of it a name is looked at at most so often,
const APART: Duration = Duration::from_millis(50);
/// and no more often than this for each name, so that many names that are waited for cost no more than few.
const APART_EACH: Duration = Duration::from_micros(500);

/// Those who wait for leases.
pub(crate) struct LeaseWatchers {
    tenure: Tenure,
    waiting: Arc<Waiting>,
}

#[derive(Default)]
struct Waiting {
    of: Mutex<BTreeMap<LeaseName, Waited>>,
}

/// A name that somebody waits for.
struct Waited {
    line: Arc<Line>,
    count: usize,
    looking: AbortHandle,
}

/// What those who wait for one name share.
#[derive(Default)]
struct Line {
    /// How many looks have begun.
    begun: AtomicU64,
    wanted: Notify,
    looks: watch::Sender<Look>,
}

/// What was found, and by which look.
#[derive(Clone, Default)]
struct Look {
    number: u64,
    found: Found,
}

/// How the lease is, if the name is known; nothing if the store did not answer.
pub(crate) type Found = Option<Option<Arc<LeaseInfo>>>;

/// Somebody who waits for a lease.
pub(crate) struct LeaseWatcher {
    name: LeaseName,
    waiting: Arc<Waiting>,
    looks: watch::Receiver<Look>,
    /// The first look that tells him something: those before it may have begun before he came.
    least: u64,
}

impl LeaseWatchers {
    pub(crate) fn new(tenure: &Tenure) -> Self {
        Self { tenure: tenure.clone(), waiting: Arc::default() }
    }

    /// Begins to wait for a lease.
    pub(crate) fn watch(&self, name: &LeaseName) -> LeaseWatcher {
        let mut of = self.waiting.lock();
        let waited = of.entry(name.clone()).or_insert_with(|| self.begin(name));
        waited.count += 1;
        let least = waited.line.begun.load(Ordering::SeqCst) + 1;
        waited.line.wanted.notify_one();
        let looks = waited.line.looks.subscribe();
        LeaseWatcher { name: name.clone(), waiting: Arc::clone(&self.waiting), looks, least }
    }

    /// Tells those who wait for this name that it may be free.
    pub(crate) fn tell(&self, name: &LeaseName) {
        if let Some(waited) = self.waiting.lock().get(name) {
            waited.line.wanted.notify_one();
        }
    }

    fn begin(&self, name: &LeaseName) -> Waited {
        let line = Arc::<Line>::default();
        // It hears from here on, and so before anything is looked at.
        let freed = self.tenure.store().freed();
        let (tenure, waiting) = (self.tenure.clone(), Arc::clone(&self.waiting));
        let looking = look_for_all(tenure, waiting, name.clone(), Arc::clone(&line), freed);
        Waited { line, count: 0, looking: tokio::spawn(looking).abort_handle() }
    }
}

impl LeaseWatcher {
    /// What the next look finds that began after the last one that he was told of, and after he came.
    pub(crate) async fn next(&mut self) -> Found {
        let least = self.least;
        let found = self.looks.wait_for(|look| look.number >= least).await;
        // The sender is there for as long as somebody waits.
        let Ok(look) = found.map(|look| look.clone()) else { return None };
        self.least = look.number + 1;
        look.found
    }
}

impl Drop for LeaseWatcher {
    fn drop(&mut self) {
        let mut of = self.waiting.lock();
        let Some(waited) = of.get_mut(&self.name) else { return };
        waited.count -= 1;
        if waited.count == 0 {
            waited.looking.abort();
            of.remove(&self.name);
        }
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<LeaseName, Waited>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far apart looks are for whose sake nobody was named.
    fn apart(&self) -> Duration {
        let names = u32::try_from(self.lock().len()).unwrap_or(u32::MAX);
        APART.max(APART_EACH.saturating_mul(names))
    }
}

/// Looks at a lease for all who wait for it, until it is stopped because nobody does.
async fn look_for_all(
    tenure: Tenure,
    waiting: Arc<Waiting>,
    name: LeaseName,
    line: Arc<Line>,
    mut freed: watch::Receiver<u64>,
) {
    let clock = tenure.store().clock();
    let mut hinted = None;
    loop {
        // Both before it is looked at: what comes in between is looked at again.
        freed.mark_unchanged();
        let number = line.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let found: Found = tenure.leases().info(name.as_str()).await.ok().map(|info| info.map(Arc::new));
        let next = found.as_ref().and_then(Option::as_ref).map_or(LOOK, |info| {
            let ends = info.lease.until().filter(|_| info.state.is_locked());
            ends.map_or(LOOK, |until| until.since(tenure.now()).clamp(SOONEST, LOOK))
        });
        line.looks.send_replace(Look { number, found });
        let hint = async {
            if freed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            let rest = hinted.map(|at| waiting.apart().saturating_sub(clock.moment().since(at)));
            if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
                clock.sleep(rest).await;
            }
        };
        tokio::select! {
            biased;
            () = line.wanted.notified() => {}
            () = hint => hinted = Some(clock.moment()),
            () = clock.sleep(next) => {}
        }
    }
}
