//! Who follows the log of which job: one look serves all who follow it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::{JobId, Tenure, limits};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

/// A log is looked at so soon again for what came through others,
const LOOK: Duration = Duration::from_secs(1);
/// and, as long as nothing comes, ever later, up to this.
const LATEST: Duration = Duration::from_secs(4);
/// Lines that are looked for together.
const AT_ONCE: usize = limits::PAGE_JOBS;

/// Those who follow logs.
pub(crate) struct Followers {
    tenure: Tenure,
    logs: Arc<Logs>,
}

#[derive(Default)]
struct Logs {
    of: Mutex<BTreeMap<JobId, Followed>>,
}

/// A log that somebody follows.
struct Followed {
    line: Arc<Line>,
    count: usize,
    looking: AbortHandle,
}

/// What those who follow one log share.
#[derive(Default)]
struct Line {
    wanted: Notify,
    from: Mutex<LookFrom>,
    grown: watch::Sender<()>,
}

/// The line after which the shared look begins.
#[derive(Debug, Clone, Copy, Default)]
struct LookFrom {
    behind: (u32, u32),
    /// `true` if the store has this line. Each follower looks itself for the lines before it.
    is_stored: bool,
}

/// Somebody who follows a log; a line after this was made is never missed.
pub(crate) struct Follower {
    id: JobId,
    logs: Arc<Logs>,
    grown: watch::Receiver<()>,
}

impl Followers {
    pub(crate) fn new(tenure: &Tenure) -> Self {
        Self { tenure: tenure.clone(), logs: Arc::default() }
    }

    /// Begins to follow a log of which he knows what is up to this line. He looks once more himself after this.
    pub(crate) fn follow(&self, id: JobId, behind: (u32, u32)) -> Follower {
        let mut of = self.logs.lock();
        let followed = of.entry(id).or_insert_with(|| self.begin(id, behind));
        followed.count += 1;
        followed.line.lower(behind);
        Follower { id, logs: Arc::clone(&self.logs), grown: followed.line.grown.subscribe() }
    }

    /// Tells those who follow this log that lines were kept.
    pub(crate) fn tell(&self, id: JobId) {
        if let Some(followed) = self.logs.lock().get(&id) {
            followed.line.wanted.notify_one();
        }
    }

    fn begin(&self, id: JobId, behind: (u32, u32)) -> Followed {
        let line =
            Arc::new(Line { from: Mutex::new(LookFrom { behind, is_stored: false }), ..Line::default() });
        let looking = look_for_all(self.tenure.clone(), id, Arc::clone(&line));
        Followed { line, count: 0, looking: tokio::spawn(looking).abort_handle() }
    }
}

impl Line {
    fn from(&self) -> MutexGuard<'_, LookFrom> {
        self.from.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the shared look at this line if it is earlier. The first follower may have named a line that does not exist.
    fn lower(&self, to: (u32, u32)) {
        let mut from = self.from();
        if !from.is_stored {
            from.behind = to.min(from.behind);
        }
    }
}

impl Follower {
    /// Ends when the log may have grown.
    pub(crate) async fn grown(&mut self) {
        // The sender is there for as long as somebody follows.
        let _ = self.grown.changed().await;
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut of = self.logs.lock();
        let Some(followed) = of.get_mut(&self.id) else { return };
        followed.count -= 1;
        if followed.count == 0 {
            followed.looking.abort();
            of.remove(&self.id);
        }
    }
}

impl Logs {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobId, Followed>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at a log for all who follow it, until it is stopped because nobody does.
async fn look_for_all(tenure: Tenure, id: JobId, line: Arc<Line>) {
    let clock = tenure.store().clock();
    let mut next = LOOK;
    loop {
        tokio::select! {
            biased;
            () = line.wanted.notified() => {}
            () = clock.sleep(next) => {}
        }
        next = next.saturating_mul(2).min(LATEST);
        // To its end, page by page.
        loop {
            let behind = line.from().behind;
            let Ok(lines) = tenure.jobs().logs(id, behind, AT_ONCE).await else {
                // Why the store does not answer, everybody is told himself.
                line.grown.send_replace(());
                break;
            };
            let Some(last) = lines.last() else { break };
            next = LOOK;
            *line.from() = LookFrom { behind: (last.delivery, last.number), is_stored: true };
            line.grown.send_replace(());
            if lines.len() < AT_ONCE {
                break;
            }
        }
    }
}
