//! Export of the audit log to a collector, as OTLP log records.
//!
//! The log in the store is the buffer. The export keeps its position there, sends a page, and moves on once the collector
//! has accepted it. While the collector is down, entries wait in the store. After a crash between acceptance and the new
//! position, the export repeats one page; sequence numbers and hashes tell repeated entries.

mod counts;
mod position;
mod record;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tenure::{Clock, Error, Tenure, Timestamp, limits};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) use counts::ExportCounts;

use super::AuditLog;
use crate::otlp::{Collector, Sender, Sent, scope};
use crate::secret::{drawn, hex};
use position::{Known, entries_after};

/// Interval at which the export checks for entries of other servers and commands.
const LOOK: Duration = Duration::from_secs(5);
/// Waits after failed attempts; the last one repeats.
const WAITS: [u64; 6] = [1, 2, 4, 8, 16, 60];
/// Statuses that concern the entries, not the collector or its key: smaller requests find the refused entry.
const OF_ENTRIES: [u16; 3] = [400, 413, 422];
/// Time that the export has at shutdown to finish its page.
const END_WITHIN: Duration = Duration::from_secs(2);

/// A running export.
pub(crate) struct AuditExport {
    closing: CancellationToken,
    task: JoinHandle<()>,
}

impl AuditExport {
    /// Starts to export. If the store has no position yet, it starts with entries from now on.
    pub(crate) fn start(collector: Collector, tenure: &Tenure, log: &Arc<AuditLog>) -> Self {
        let closing = CancellationToken::new();
        let clock = tenure.store().clock();
        let export = Export {
            sender: Sender::new(collector, &clock),
            tenure: tenure.clone(),
            log: Arc::clone(log),
            // Without randomness two servers might send a page at once, so each entry twice.
            name: hex(&drawn::<8>().unwrap_or_default()),
            start: tenure.now(),
            most: limits::PAGE_ENTRIES,
        };
        let task = tokio::spawn(export.run(clock, closing.clone()));
        Self { closing, task }
    }

    /// Ends the export after its current page, or after a moment.
    pub(crate) async fn end(mut self, clock: &dyn Clock) {
        self.closing.cancel();
        tokio::select! {
            biased;
            _ = &mut self.task => {}
            () = clock.sleep(END_WITHIN) => self.task.abort(),
        }
    }
}

struct Export {
    sender: Sender,
    tenure: Tenure,
    log: Arc<AuditLog>,
    /// Name of this server in claims.
    name: String,
    start: Timestamp,
    /// Entries of the next request.
    most: usize,
}

/// The outcome of a step.
enum Step {
    /// A page was sent or skipped: more may wait.
    Moved,
    /// Nothing waits, or another server sends it.
    Idle,
    /// The collector took nothing.
    Failed(String),
}

impl Export {
    async fn run(mut self, clock: Arc<dyn Clock>, closing: CancellationToken) {
        let (mut failures, mut logged) = (0, String::new());
        while !closing.is_cancelled() {
            let step = self.step().await.unwrap_or_else(|error| Step::Failed(error.to_string()));
            let wait = match step {
                Step::Moved => {
                    failures = 0;
                    logged.clear();
                    continue;
                }
                Step::Idle => {
                    failures = 0;
                    LOOK
                }
                Step::Failed(why) => {
                    self.log.exported().add_failure();
                    if why != logged {
                        // Log each cause of an outage once.
                        tracing::warn!(why, "cannot export audit entries; they wait in the store");
                        logged = why;
                    }
                    failures += 1;
                    Duration::from_secs(WAITS[WAITS.len().min(failures) - 1])
                }
            };
            tokio::select! {
                biased;
                () = closing.cancelled() => return,
                // A new entry does not end the wait for a collector that is down.
                () = self.log.appended(), if failures == 0 => {}
                () = clock.sleep(wait) => {}
            }
        }
    }

    /// Sends the next page, and moves the position.
    async fn step(&mut self) -> Result<Step, Error> {
        let tenure = self.tenure.clone();
        let mut known = Known::read(&tenure, self.start).await?;
        if !known.is_stored() {
            // Before the first entry: a restart continues here.
            let number = known.position.number;
            let Some(stored) = known.advance(&tenure, number).await? else { return Ok(Step::Idle) };
            known = stored;
        }
        let page = entries_after(&tenure, known.position.number, self.most).await?;
        self.log.exported().set_waiting(page.first().map(|entry| entry.at));
        let Some(last) = page.last().map(|entry| entry.number) else { return Ok(Step::Idle) };
        if known.is_claimed(&self.name, tenure.now()) {
            return Ok(Step::Idle);
        }
        let Some(claimed) = known.claim(&tenure, &self.name).await? else { return Ok(Step::Idle) };
        let before = claimed.position.number;
        let now = tenure.now();
        let records: Vec<Json> = page.iter().filter_map(|entry| record::of(entry, now)).collect();
        let (all, written) = (page.len() as u64, records.len() as u64);
        let (step, number) = match self.sender.send(self.body(records)).await {
            Sent::Taken(answer) => {
                self.count(all, all - written + refused(&answer));
                self.most = (self.most * 2).min(limits::PAGE_ENTRIES);
                (Step::Moved, last)
            }
            Sent::Refused(status) if OF_ENTRIES.contains(&status) && page.len() > 1 => {
                self.most = page.len() / 2;
                (Step::Moved, before)
            }
            Sent::Refused(status) if OF_ENTRIES.contains(&status) => {
                tracing::error!(status, number = last, "the collector refused an audit entry; skipping it");
                self.log.exported().add_refused(1);
                (Step::Moved, last)
            }
            Sent::Refused(status) => {
                (Step::Failed(format!("the collector answered with status {status}")), before)
            }
            Sent::Later(why) => (Step::Failed(why), before),
        };
        claimed.advance(&tenure, number).await?;
        Ok(step)
    }

    fn count(&self, all: u64, refused: u64) {
        let refused = refused.min(all);
        if refused > 0 {
            tracing::error!(refused, "the collector refused audit entries");
        }
        self.log.exported().add_refused(refused);
        self.log.exported().add_sent(all - refused);
    }

    fn body(&self, records: Vec<Json>) -> Bytes {
        let document = json!({ "resourceLogs": [{
            "resource": self.sender.collector().resource(),
            "scopeLogs": [{ "scope": scope(), "logRecords": records }],
        }] });
        document.to_string().into()
    }
}

/// Returns the number of entries that the collector rejected while it accepted the others.
fn refused(answer: &[u8]) -> u64 {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        partial_success: Option<Partial>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Partial {
        #[serde(default)]
        rejected_log_records: Json,
    }
    let partial = serde_json::from_slice::<Answer>(answer).ok().and_then(|answer| answer.partial_success);
    let rejected = partial.map(|partial| partial.rejected_log_records).unwrap_or_default();
    // The JSON of protocol buffers writes numbers of 64 bits as text; some collectors do not.
    rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_success_is_counted_in_both_forms() {
        for (answer, expected) in [
            (r#"{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"too old"}}"#, 3),
            (r#"{"partialSuccess":{"rejectedLogRecords":2}}"#, 2),
            (r#"{"partialSuccess":{"errorMessage":"a warning"}}"#, 0),
            ("{}", 0),
            ("", 0),
        ] {
            assert_eq!(refused(answer.as_bytes()), expected, "{answer}");
        }
    }
}
