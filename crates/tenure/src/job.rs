//! What a user's type says to be a job.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Singleton, Terms};

/// A type whose values are jobs.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use tenure::Job;
///
/// #[derive(Serialize, Deserialize)]
/// struct Welcome {
///     user: u64,
/// }
///
/// impl Job for Welcome {
///     const KIND: &'static str = "welcome";
///     type Output = ();
/// }
/// ```
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// Name of the kind. It is stored with each job, so renaming the type must not change it.
    const KIND: &'static str;

    /// Default queue of this kind.
    const QUEUE: &'static str = tenure_core::QueueName::DEFAULT;

    /// Result of the handler.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// Default terms of this kind: attempts, retry policy, timeout, retention and others.
    fn terms() -> Terms {
        Terms::default()
    }

    /// Makes attempts of this kind run one at a time within a scope, under a lease. Jobs that wait for the lease
    /// spend no attempt. `None` means no such restriction.
    fn singleton() -> Option<Singleton> {
        None
    }
}
