//! Appending to the audit log: several servers may write at once, and the chain never forks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::records::{Append, Document, NewValue, Only, Put, Record, RecordKey, Subject, Writes, Written};
use tenure::{Error, Fault, Name, Tenure, limits};
use tokio::sync::{Notify, oneshot};

use super::chain::{self, Head};
use super::export::ExportCounts;
use super::{Act, AuditFile, JOURNAL};

/// Retention of an entry.
pub(crate) const KEEP: Duration = Duration::from_secs(400 * 24 * 3600);
/// Key of the record of the last entry.
const HEAD: &str = "head";
/// Attempts to append while other servers append too. Each attempt fails only if another server succeeds.
const ATTEMPTS: u32 = 100;
/// Longest pause before another attempt. The pauses begin with a millisecond, and double.
const LONGEST_PAUSE: Duration = Duration::from_millis(64);
/// Longest subject of a journal entry, in bytes of a path.
const SUBJECT_BYTES: usize = 200;

/// Version and value of the head, if there is one.
type KnownHead = Option<(u64, Head)>;

/// The reason for which an entry could not be written.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NotWritten(Arc<str>);

/// The audit log as a server writes to it. Requests that come together share one write.
#[derive(Debug, Default)]
pub(crate) struct AuditLog {
    state: Mutex<State>,
    file: Option<AuditFile>,
    /// Wakes the export of this server.
    appended: Notify,
    exported: ExportCounts,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Waiting>,
    is_writing: bool,
    /// The head as last seen.
    head: KnownHead,
}

#[derive(Debug)]
struct Waiting {
    act: Act,
    tell: oneshot::Sender<Result<(), NotWritten>>,
}

impl AuditLog {
    /// Creates a log that is also appended to a file.
    pub(crate) fn with_file(file: Option<AuditFile>) -> Self {
        Self { file, ..Self::default() }
    }

    /// Appends an entry, and returns once it is durable.
    pub(crate) async fn append(self: &Arc<Self>, tenure: &Tenure, act: Act) -> Result<(), NotWritten> {
        let (tell, told) = oneshot::channel();
        let is_first = {
            let mut state = self.lock();
            state.waiting.push_back(Waiting { act, tell });
            !std::mem::replace(&mut state.is_writing, true)
        };
        if is_first {
            // A task: a client that hangs up must not stop the entries of others.
            tokio::spawn(write_all(Arc::clone(self), tenure.clone()));
        }
        told.await.unwrap_or_else(|_| Err(NotWritten("the server is shutting down".into())))
    }

    /// Waits until this server has appended entries.
    pub(super) async fn appended(&self) {
        self.appended.notified().await;
    }

    /// Returns the numbers of exported entries.
    pub(crate) fn exported(&self) -> &ExportCounts {
        &self.exported
    }

    /// Takes the next entries to write, and the head that they follow.
    fn next(&self) -> Option<(Vec<Waiting>, KnownHead)> {
        let mut state = self.lock();
        let count = state.waiting.len().min(limits::WRITE_ENTRIES);
        if count == 0 {
            state.is_writing = false;
            return None;
        }
        Some((state.waiting.drain(..count).collect(), state.head.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write_all(log: Arc<AuditLog>, tenure: Tenure) {
    while let Some((batch, head)) = log.next() {
        let acts: Vec<&Act> = batch.iter().map(|waiting| &waiting.act).collect();
        let written = write(&tenure, &acts, head).await;
        let outcome = match written {
            Ok((head, texts)) => {
                log.lock().head = Some(head);
                log.appended.notify_one();
                if let Some(file) = &log.file {
                    texts.into_iter().for_each(|text| file.append(text));
                }
                Ok(())
            }
            Err(error) => {
                log.lock().head = None;
                Err(NotWritten(error.to_string().into()))
            }
        };
        for waiting in batch {
            let _ = waiting.tell.send(outcome.clone());
        }
    }
}

/// Appends entries and moves the head in one write. If another server has moved the head, it tries again from there.
async fn write(
    tenure: &Tenure,
    acts: &[&Act],
    mut head: KnownHead,
) -> Result<((u64, Head), Vec<String>), Error> {
    for attempt in 0..ATTEMPTS {
        let (writes, last, texts) = next_writes(tenure, acts, head.as_ref())?;
        match tenure.store().write_records(writes).await? {
            Written::Done { versions, .. } => {
                let version = versions.first().copied().flatten().unwrap_or_default();
                return Ok(((version, last), texts));
            }
            Written::Refused(unmet) => {
                let there = unmet.into_iter().find_map(|unmet| unmet.there);
                let read = |there: Record| read(&there.value).map(|head| (there.version, head));
                head = there.map(read).transpose()?;
                let pause = pause(attempt, &last.hash);
                if !pause.is_zero() {
                    tenure.store().clock().sleep(pause).await;
                }
            }
        }
    }
    Err(Fault::Broken(format!("other servers wrote to the audit log during {ATTEMPTS} attempts")).into())
}

/// Returns the pause after a failed attempt. The first one usually fails because the known head is old, so the second
/// follows at once. Hashes differ between servers and attempts, so they spread the pauses as chance would.
fn pause(attempt: u32, hash: &str) -> Duration {
    if attempt == 0 {
        return Duration::ZERO;
    }
    let longest = Duration::from_millis(1).saturating_mul(1 << attempt.min(16)).min(LONGEST_PAUSE);
    let digits = u32::from_str_radix(hash.get(..4).unwrap_or_default(), 16).unwrap_or_default();
    longest.saturating_mul(digits) / (1 << 16)
}

fn next_writes(
    tenure: &Tenure,
    acts: &[&Act],
    head: Option<&(u64, Head)>,
) -> Result<(Writes, Head, Vec<String>), Error> {
    let json = |source| Error::Json { what: "audit entry", source };
    let at = tenure.now();
    let journal = Name::new("journal", JOURNAL)?;
    let (mut last, mut entries, mut texts) = (head.map(|(_, head)| head.clone()), Vec::new(), Vec::new());
    for act in acts {
        let (text, next) = chain::seal(act, (at, at.after(KEEP)), last.as_ref()).map_err(json)?;
        let subject = &act.path[..act.path.floor_char_boundary(SUBJECT_BYTES)];
        entries.push(Append {
            journal: journal.clone(),
            subject: Subject::new(subject)?,
            value: Document::new(text.clone().into_bytes())?,
            keep: Some(KEEP),
        });
        texts.push(text);
        last = Some(next);
    }
    let last = last.ok_or_else(|| Fault::Broken("no audit entry to write".to_owned()))?;
    let put = Put {
        shelf: Name::new("shelf", JOURNAL)?,
        key: RecordKey::new(HEAD)?,
        only: head.map_or(Only::Absent, |(version, _)| Only::Version(*version)),
        to: Some(NewValue { value: Document::new(serde_json::to_vec(&last).map_err(json)?)?, keep: None }),
    };
    Ok((Writes { records: vec![put], entries, asks: false }, last, texts))
}

/// Returns the head of the log in a store, with its version.
pub(super) async fn head(tenure: &Tenure) -> Result<KnownHead, Error> {
    let (shelf, key) = (Name::new("shelf", JOURNAL)?, RecordKey::new(HEAD)?);
    let found = tenure.store().record(&shelf, &key).await?;
    Ok(found.and_then(|record| Some((record.version, read(&record.value).ok()?))))
}

fn read(value: &Document) -> Result<Head, Error> {
    serde_json::from_slice(value.as_bytes())
        .map_err(|source| Error::Json { what: "head of the audit log", source })
}

#[cfg(test)]
#[path = "log_tests.rs"]
pub(super) mod tests;
