//! Saying what makes a job the only one.

use std::time::Duration;

use sha2::{Digest, Sha256};
use tenure_core::{Invalid, NewJob, OnConflict, Unique, UniqueKey, Window, json_value, limits};

/// A uniqueness constraint: its scope, its duration, and the policy for a conflicting job.
///
/// ```
/// use std::time::Duration;
/// use tenure::Only;
///
/// let one_reminder = Only::one("reminder-7");                       // of this kind, until it ends
/// let one_an_hour = Only::same_args().within(Duration::from_secs(3600));
/// let the_latest = Only::one("reindex").or_replace();
/// let in_any_kind = Only::one("tenant-7").of_any_kind().in_this_queue().or_reject();
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Only {
    key: Option<String>,
    kind: bool,
    queue: bool,
    args: bool,
    window: Window,
    on_conflict: OnConflict,
}

impl Only {
    const ANY: Self = Self {
        key: None,
        kind: true,
        queue: false,
        args: false,
        window: Window::WhileUnfinished,
        on_conflict: OnConflict::Return,
    };

    /// Allows one job of this kind with this key.
    pub fn one(key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..Self::ANY }
    }

    /// Allows one job of this kind, whatever its args.
    pub fn of_kind() -> Self {
        Self::ANY
    }

    /// Allows one job of this kind with the same args.
    pub fn same_args() -> Self {
        Self { args: true, ..Self::ANY }
    }

    /// Extends the constraint to jobs of all kinds.
    pub fn of_any_kind(mut self) -> Self {
        self.kind = false;
        self
    }

    /// Restricts the constraint to jobs in the same queue.
    pub fn in_this_queue(mut self) -> Self {
        self.queue = true;
        self
    }

    /// Keeps the constraint for this time after enqueueing, even if the job ends sooner. Default: until the job ends.
    pub fn within(mut self, span: Duration) -> Self {
        self.window = Window::For(span);
        self
    }

    /// Refuses a conflicting job with an error, and its whole batch with it.
    pub fn or_reject(mut self) -> Self {
        self.on_conflict = OnConflict::Reject;
        self
    }

    /// Lets a conflicting job replace a waiting first one; a running one finishes.
    pub fn or_replace(mut self) -> Self {
        self.on_conflict = OnConflict::Replace;
        self
    }

    /// The key of `job` under these terms.
    pub(crate) fn of(&self, job: &NewJob) -> Result<Unique, Invalid> {
        if let Some(key) = &self.key
            && (key.is_empty() || key.len() > limits::UNIQUE_KEY_BYTES)
        {
            let allowed = format!("1 to {} bytes", limits::UNIQUE_KEY_BYTES);
            return Err(Invalid::new("unique", format_args!("a key of {} bytes", key.len()), allowed));
        }
        let mut digest = Sha256::new();
        let mut part = |label: &[u8], value: Option<&[u8]>| {
            // Each part with its length: no two scopes can be written alike.
            let Some(value) = value else { return };
            digest.update(label);
            digest.update((value.len() as u64).to_be_bytes());
            digest.update(value);
        };
        part(b"kind", self.kind.then(|| job.kind.as_str().as_bytes()));
        part(b"queue", self.queue.then(|| job.queue.as_str().as_bytes()));
        let args = if self.args { Some(canonical(job.args.as_bytes())) } else { None };
        part(b"args", args.as_deref());
        part(b"key", self.key.as_deref().map(str::as_bytes));
        let full = digest.finalize();
        let mut key = [0; 16];
        key.copy_from_slice(&full[..16]);
        if self.kind && job.kind.is_reserved() {
            key[..UniqueKey::RESERVED.len()].copy_from_slice(&UniqueKey::RESERVED);
        }
        Ok(Unique { key: UniqueKey(key), window: self.window, on_conflict: self.on_conflict })
    }
}

/// The same JSON value is always written alike: a map's entries come sorted, not as they were hashed.
fn canonical(json: &[u8]) -> Vec<u8> {
    let sorted = json_value(json).and_then(|value| serde_json::to_vec(&value));
    sorted.unwrap_or_else(|_| json.to_vec())
}

#[cfg(test)]
mod tests {
    use tenure_core::{Args, Due, JobId, Kind, Priority, QueueName, Timestamp};

    use super::*;

    #[test]
    fn only_jobs_of_reserved_kinds_have_a_reserved_key() {
        let key = |kind: &str, only: Only| {
            let job = NewJob {
                id: JobId::new(Timestamp::EPOCH, 1),
                kind: Kind::new(kind).unwrap(),
                queue: QueueName::default(),
                args: Args::new(b"{}".to_vec()).unwrap(),
                priority: Priority::default(),
                due: Due::Now,
                terms: std::sync::Arc::default(),
            };
            only.of(&job).unwrap().key.0
        };
        let [first, second] = ["apps.a", "apps.b"].map(|kind| key(kind, Only::of_kind()));
        assert!(first.starts_with(&UniqueKey::RESERVED) && second.starts_with(&UniqueKey::RESERVED));
        assert_ne!(first, second);
        assert!(!key("apps", Only::of_kind()).starts_with(&UniqueKey::RESERVED));
        let shared = || Only::one("k").of_any_kind();
        assert_eq!(key("apps.a", shared()), key("pay", shared()), "this key is not of a kind");
    }
}
