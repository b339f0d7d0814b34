//! Progress and log lines on their way to the store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::{JobId, LogLine, Progress, Timestamp};
use tenure_store::{Clock, Report, Store};
use tokio::sync::Notify;

use super::control::Control;

/// Lines of one attempt that may wait for the store; more are dropped, and that is said.
const WAITING_LINES: usize = 1_000;
/// What stands in place of lines that were dropped.
const MORE: &str = "… more lines were dropped because they came faster than they could be stored";
/// Progress and lines are written at most so often.
const APART: Duration = Duration::from_millis(100);

/// What running attempts have told and the store does not have yet. Bounded; the last progress counts.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    waiting: Mutex<BTreeMap<JobId, Waiting>>,
    told: Notify,
    // Held over a write to the store, so that the lines of one attempt arrive in their order.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Waiting {
    report: Report,
}

impl Reports {
    pub(crate) fn progress(&self, control: &Control, progress: Progress) {
        self.with(control, |waiting| waiting.report.progress = Some(progress));
    }

    pub(crate) fn line(&self, control: &Control, delivery: u32, now: Timestamp, text: &str) {
        self.with(control, |waiting| {
            if waiting.report.lines.len() > WAITING_LINES {
                return;
            }
            // The last line that fits says that more came.
            let text = if waiting.report.lines.len() == WAITING_LINES { MORE } else { text };
            waiting.report.lines.push(LogLine::new(delivery, control.next_line(), now, text));
        });
    }

    /// Writes what there is, now. What an attempt told is written before it is settled.
    pub(crate) async fn flush(&self, store: &Arc<dyn Store>) {
        if self.lock().is_empty() {
            return;
        }
        let _writing = self.writing.lock().await;
        let batch: Vec<Report> =
            std::mem::take(&mut *self.lock()).into_values().map(|waiting| waiting.report).collect();
        if batch.is_empty() {
            return;
        }
        if let Err(fault) = store.report(batch.clone()).await
            && fault.is_passing()
        {
            self.put_back(batch);
        }
    }

    /// Whether the store has all that this attempt has told.
    pub(crate) fn has_all_of(&self, control: &Control) -> bool {
        !self.lock().contains_key(&control.held().id)
    }

    /// Goes on writing while the worker lives.
    pub(crate) async fn write(self: Arc<Self>, store: Arc<dyn Store>, clock: Arc<dyn Clock>) {
        loop {
            self.told.notified().await;
            self.flush(&store).await;
            clock.sleep(APART).await;
        }
    }

    fn with(&self, control: &Control, tell: impl FnOnce(&mut Waiting)) {
        let held = control.held();
        let mut all = self.lock();
        let fresh = || Waiting { report: Report { held, progress: None, lines: Vec::new() } };
        let waiting = all.entry(held.id).or_insert_with(fresh);
        if waiting.report.held != held {
            *waiting = fresh();
        }
        tell(waiting);
        drop(all);
        self.told.notify_one();
    }

    /// The store was away: older lines come before newer ones, and newer progress counts.
    fn put_back(&self, batch: Vec<Report>) {
        let mut all = self.lock();
        for mut old in batch {
            match all.get_mut(&old.held.id) {
                None => {
                    all.insert(old.held.id, Waiting { report: old });
                }
                Some(waiting) if waiting.report.held == old.held => {
                    old.lines.append(&mut waiting.report.lines);
                    waiting.report.lines = old.lines;
                    waiting.report.progress = waiting.report.progress.take().or(old.progress);
                }
                Some(_) => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobId, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
