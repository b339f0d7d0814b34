//! What was agreed about a queue.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Invalid, Limit, Retention, RetryPolicy, Terms, limits};

/// The settings of a queue.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueueAgreed {
    /// `true` if the queue is paused.
    pub paused: bool,
    /// The limit on its running jobs and starts.
    pub limit: Limit,
    /// The maximum number of waiting jobs, and the defaults of jobs that set none.
    pub terms: QueueTerms,
}

/// The maximum number of waiting jobs in a queue, and the defaults of jobs that set none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueTerms {
    /// Maximum number of waiting jobs; `None` means no limit. Running and finished jobs do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u64>,
    /// Retry policy of jobs that set none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// Retention of jobs that set none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// Lease duration of jobs granted to remote workers that request none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<Duration>,
}

impl QueueTerms {
    /// Whether these are the terms of a queue about which nothing was agreed.
    #[must_use]
    pub fn are_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a queue in which so many jobs wait takes no more.
    #[must_use]
    pub fn is_full(&self, waiting: u64) -> bool {
        self.max_depth.is_some_and(|most| waiting >= most)
    }

    /// The terms of a job that comes into the queue; `None` if they stay as they are.
    #[must_use]
    pub fn filled(&self, terms: &Terms) -> Option<Arc<Terms>> {
        let retry = terms.retry.is_none() && self.retry.is_some();
        let retention = terms.retention == Retention::default()
            && self.retention.is_some_and(|retention| retention != Retention::default());
        if !retry && !retention {
            return None;
        }
        let mut filled = terms.clone();
        if retry {
            filled.retry.clone_from(&self.retry);
        }
        filled.retention = self.retention.filter(|_| retention).unwrap_or(filled.retention);
        Some(Arc::new(filled))
    }

    /// Accepts terms within the limits.
    ///
    /// # Errors
    /// Names the first field that breaks its limit.
    pub fn check(&self) -> Result<(), Invalid> {
        if let Some(most) = self.max_depth
            && !(1..=limits::QUEUE_DEPTH).contains(&most)
        {
            return Err(Invalid::new("max_depth", most, format_args!("1 to {}", limits::QUEUE_DEPTH)));
        }
        self.retry.as_ref().map_or(Ok(()), RetryPolicy::check)?;
        self.retention.as_ref().map_or(Ok(()), Retention::check)?;
        let bounds = limits::SHORTEST_LEASE..=limits::LONGEST_LEASE;
        match self.lease {
            Some(span) if !bounds.contains(&span) => {
                let allowed = format!("{} to {} seconds", bounds.start().as_secs(), bounds.end().as_secs());
                Err(Invalid::new("lease", format_args!("{} seconds", span.as_secs_f64()), allowed))
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keep;

    fn hour() -> Retention {
        Retention::always(Keep::For(Duration::from_secs(3600)))
    }

    fn few() -> RetryPolicy {
        RetryPolicy { max_attempts: 3, ..RetryPolicy::default() }
    }

    #[test]
    fn a_job_takes_from_its_queue_only_what_it_does_not_say() {
        let queue = QueueTerms { retry: Some(few()), retention: Some(hour()), ..QueueTerms::default() };
        let filled = queue.filled(&Terms::default()).unwrap();
        assert_eq!((filled.max_attempts(), filled.retention), (3, hour()));
        let own = Retention::always(Keep::Forever);
        let said = Terms { attempts: Some(7), retention: own, ..Terms::default() };
        let filled = queue.filled(&said).unwrap();
        assert_eq!((filled.max_attempts(), filled.retention), (7, own));
        let all = Terms { retry: Some(RetryPolicy::default()), retention: own, ..Terms::default() };
        assert_eq!(queue.filled(&all), None);
        assert_eq!(QueueTerms::default().filled(&Terms::default()), None);
    }

    #[test]
    fn a_queue_is_full_with_as_many_as_may_wait_and_otherwise_never() {
        let two = QueueTerms { max_depth: Some(2), ..QueueTerms::default() };
        assert_eq!([0, 1, 2, 3].map(|waiting| two.is_full(waiting)), [false, false, true, true]);
        assert!(!QueueTerms::default().is_full(u64::MAX));
    }

    #[test]
    fn terms_beyond_a_limit_are_refused_by_field() {
        let field = |terms: QueueTerms| terms.check().unwrap_err().field;
        assert_eq!(field(QueueTerms { max_depth: Some(0), ..QueueTerms::default() }), "max_depth");
        let none = RetryPolicy { max_attempts: 0, ..RetryPolicy::default() };
        assert_eq!(field(QueueTerms { retry: Some(none), ..QueueTerms::default() }), "attempts");
        let endless = Retention::always(Keep::For(Duration::MAX));
        assert_eq!(field(QueueTerms { retention: Some(endless), ..QueueTerms::default() }), "retention");
        assert_eq!(field(QueueTerms { lease: Some(Duration::ZERO), ..QueueTerms::default() }), "lease");
        QueueTerms { max_depth: Some(1), lease: Some(limits::LONGEST_LEASE), ..QueueTerms::default() }
            .check()
            .unwrap();
    }

    #[test]
    fn terms_of_which_nothing_was_agreed_are_written_as_nothing() {
        assert_eq!(serde_json::to_string(&QueueTerms::default()).unwrap(), "{}");
        assert!(serde_json::from_str::<QueueTerms>("{}").unwrap().are_default());
    }
}
