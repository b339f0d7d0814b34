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
    /// The name of this kind. It is stored with each job: renaming the type must not change it.
    const KIND: &'static str;

    /// The queue in which jobs of this kind wait, unless an enqueueing says otherwise.
    const QUEUE: &'static str = tenure_core::QueueName::DEFAULT;

    /// What the handler leaves behind.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// The terms of jobs of this kind, unless an enqueueing says otherwise.
    fn terms() -> Terms {
        Terms::default()
    }

    /// What makes an attempt of this kind the only one of its scope: it runs only while its host holds a
    /// lease. Jobs that wait for it spend no attempt. `None` is that any number may run at once.
    fn singleton() -> Option<Singleton> {
        None
    }
}
