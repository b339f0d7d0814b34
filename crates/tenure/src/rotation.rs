//! Moving stored values to the current encryption key, as a job: it survives its worker, shows its progress and can be
//! cancelled.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::{Invalid, Name};
use tenure_store::{Cursor, Encryption, KeyCounts, KeyCursor};

use crate::position;
use crate::run::CutShort;
use crate::{Bulk, Enqueue, Error, Failed, Job, Run, Tenure};

/// Pause before the next attempt if this worker encrypts with another key. It spends no attempt: keys reach the hosts of a
/// fleet one by one.
const OTHER_KEY: Duration = Duration::from_secs(10);
/// Shelf of the positions of rotations.
const SHELF: &str = "reseal";
/// Maximum progress that a rotation shows before it has ended.
const NEARLY: f64 = 0.99;

/// A rotation, which is itself a job: it encrypts all values of a store with the current key.
/// [`Worker::bulk_operations`](crate::Worker::bulk_operations) runs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reseal {
    /// Name of the key that encrypts all values afterwards.
    pub to: String,
}

/// The result of a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Resealed {
    /// Jobs and schedules that were examined.
    pub examined: u64,
    /// Values that were encrypted with the new key.
    pub encrypted: u64,
    /// Values that stay as they are, because their key is missing or they are damaged.
    pub skipped: u64,
}

/// Position of a rotation.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Place {
    done: Resealed,
    jobs: Option<Cursor>,
    timers: Option<Name>,
    part: Part,
}

/// The part that a rotation works on. Schedules come first, because new jobs copy their args.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    #[default]
    Timers,
    Jobs,
    Over,
}

impl Job for Reseal {
    const KIND: &'static str = "tenure.reseal";
    const QUEUE: &'static str = Bulk::QUEUE;
    type Output = Resealed;
}

impl Tenure {
    /// Encrypts all values of the store with the current key, as a durable job. This includes values under older keys,
    /// and values from before encryption was on. A worker with [bulk operations](crate::Worker::bulk_operations) and
    /// the same keys runs it. Load the new key in all programs before you rotate to it.
    ///
    /// ```no_run
    /// # async fn example(tenure: tenure::Tenure) -> Result<(), tenure::Error> {
    /// let id = tenure.rotate_encryption()?.await?.id();
    /// let done = tenure.wait_for::<tenure::Reseal>(id).await?;
    /// assert_eq!(done.skipped, 0, "every older key can be removed");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A store that was opened without a key.
    pub fn rotate_encryption(&self) -> Result<Enqueue<'_>, Error> {
        let Some(to) = self.encryption_keys().into_iter().next() else {
            let allowed = "use OpenOptions::keyring, or --encryption-keys on the command line";
            return Err(Invalid::new("encryption keys", "none are loaded", allowed).into());
        };
        Ok(self.enqueue(Reseal { to }))
    }

    /// Returns the names of the loaded encryption keys. The first one encrypts.
    #[must_use]
    pub fn encryption_keys(&self) -> Vec<String> {
        self.store().extras().encryption.map(Encryption::key_names).unwrap_or_default()
    }

    /// Counts the values of a page by encryption key: those of schedules first, then those of jobs, newest first. Continue
    /// with the returned cursor.
    ///
    /// # Errors
    /// A fault of the store.
    pub async fn count_by_encryption_key(&self, after: Option<KeyCursor>) -> Result<KeyCounts, Error> {
        match self.store().extras().encryption {
            Some(encryption) => Ok(encryption.count_keys(after).await?),
            None => Ok(KeyCounts::default()),
        }
    }
}

/// Rotates all schedules and jobs in bounded steps, and continues where it was interrupted.
pub(crate) async fn reseal<App: Send + Sync + 'static>(
    run: Run<App>,
    job: Reseal,
) -> Result<Resealed, Failed> {
    let tenure = run.tenure();
    let current = tenure.encryption_keys().into_iter().next();
    let all: u64 = tenure.counts().await?.iter().map(|count| count.jobs).sum();
    let mut place: Place = position::read(&run, SHELF).await?;
    let Some(encryption) = tenure.store().extras().encryption.filter(|_| current.as_ref() == Some(&job.to))
    else {
        let current = current.map_or_else(|| "no key".to_owned(), |id| format!("key {id}"));
        let why =
            format!("waiting for a worker that encrypts with key {}; one encrypts with {current}", job.to);
        tracing::warn!(job = %run.id(), "rotation of encryption keys: {why}");
        run.progress(place.fraction(all), &why)?;
        return Err(Failed::snooze(OTHER_KEY));
    };
    while place.part != Part::Over {
        if let Some(why) = run.stopping() {
            return Err(CutShort(why).into());
        }
        place.step(encryption).await?;
        position::write(&run, SHELF, &place).await?;
        run.progress(place.fraction(all), &place.done.to_string())?;
    }
    Ok(place.done)
}

impl Place {
    async fn step(&mut self, encryption: &dyn Encryption) -> Result<(), Failed> {
        match self.part {
            Part::Timers => {
                let step = encryption.rotate_timers(self.timers.take()).await?;
                self.done.add((step.looked_at, step.encrypted, step.skipped));
                self.part = if step.next.is_some() { Part::Timers } else { Part::Jobs };
                self.timers = step.next;
            }
            Part::Jobs => {
                let step = encryption.rotate_jobs(self.jobs.take()).await?;
                self.done.add((step.looked_at, step.encrypted, step.skipped));
                self.part = if step.next.is_some() { Part::Jobs } else { Part::Over };
                self.jobs = step.next;
            }
            Part::Over => {}
        }
        Ok(())
    }

    fn fraction(&self, all: u64) -> f64 {
        match (self.part, all) {
            (Part::Over, _) => 1.0,
            (Part::Timers | Part::Jobs, 0) => 0.0,
            (Part::Timers | Part::Jobs, all) => (self.done.examined as f64 / all as f64).min(NEARLY),
        }
    }
}

impl Resealed {
    fn add(&mut self, (examined, encrypted, skipped): (u64, u64, u64)) {
        self.examined += examined;
        self.encrypted += encrypted;
        self.skipped += skipped;
    }
}

impl std::fmt::Display for Resealed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} values encrypted", self.encrypted)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}
