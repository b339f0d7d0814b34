//! Changing what was agreed about a job that waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Due, Invalid, Job, Name, Priority, QueueName, State, Terms};

/// What shall be otherwise about a job that waits. What is not said stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Edit {
    /// The job as whoever wants this has seen it: one that is not as it was then is left alone.
    pub seen: Option<Box<Job>>,
    /// Where it waits.
    pub queue: Option<QueueName>,
    /// Its place among the due jobs of its queue.
    pub priority: Option<Priority>,
    /// When it is due.
    pub due: Option<Due>,
    /// The words by which it is found, in place of those that it has.
    pub tags: Option<Vec<Name>>,
    /// The notes on it, in place of those that it has.
    pub meta: Option<BTreeMap<String, String>>,
    /// How many attempts it has in all.
    pub attempts: Option<u32>,
}

impl Edit {
    /// Accepts an edit within the limits.
    ///
    /// # Errors
    /// Names the first field that breaks its limit.
    pub fn check(&self) -> Result<(), Invalid> {
        self.edited(&Terms::default()).check()
    }

    /// Whether the job is not as it was seen. What alone keeps it from being claimed may have changed.
    #[must_use]
    pub fn comes_too_late(&self, job: &Job) -> bool {
        self.seen.as_ref().is_some_and(|seen| {
            // Whether it is blocked, and by what, is not a part of the job.
            let waits = |state: State| match state {
                State::Waiting { due, why } | State::Blocked { due, why, .. } => State::Waiting { due, why },
                State::Running { .. } | State::Finished { .. } => state,
            };
            let job = Job { state: waits(job.state), ..job.clone() };
            job != Job { state: waits(seen.state), ..(**seen).clone() }
        })
    }

    /// The terms of a job when this is done; `None` if they stay as they are.
    #[must_use]
    pub fn terms(&self, terms: &Terms) -> Option<Arc<Terms>> {
        let edited = self.edited(terms);
        (edited != *terms).then(|| Arc::new(edited))
    }

    fn edited(&self, terms: &Terms) -> Terms {
        let mut edited = terms.clone();
        if let Some(tags) = &self.tags {
            edited.tags.clone_from(tags);
        }
        if let Some(meta) = &self.meta {
            edited.meta.clone_from(meta);
        }
        edited.attempts = self.attempts.or(edited.attempts);
        edited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    fn tags(names: &[&str]) -> Option<Vec<Name>> {
        Some(names.iter().map(|name| Name::new("tag", name).unwrap()).collect())
    }

    #[test]
    fn what_is_not_said_stays_and_what_is_the_same_is_no_edit() {
        let terms = Terms { tags: tags(&["a"]).unwrap(), attempts: Some(3), ..Terms::default() };
        assert_eq!(Edit::default().terms(&terms), None);
        assert_eq!(Edit { tags: tags(&["a"]), attempts: Some(3), ..Edit::default() }.terms(&terms), None);
        let edited = Edit { tags: tags(&["b"]), ..Edit::default() }.terms(&terms).unwrap();
        assert_eq!((edited.tags.clone(), edited.attempts), (tags(&["b"]).unwrap(), Some(3)));
        let emptied = Edit { tags: tags(&[]), meta: Some(BTreeMap::new()), ..Edit::default() };
        assert!(emptied.terms(&terms).unwrap().tags.is_empty());
    }

    #[test]
    fn an_edit_beyond_a_limit_is_refused_by_field() {
        let many: Vec<String> = (0..=limits::TAGS).map(|number| format!("t{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let wrong = Edit { tags: tags(&many), ..Edit::default() }.check().unwrap_err();
        assert_eq!(wrong.field, "tags");
        assert!(Edit { attempts: Some(0), ..Edit::default() }.check().is_err());
        let nul = [("a".to_owned(), "\0".to_owned())].into();
        assert_eq!(Edit { meta: Some(nul), ..Edit::default() }.check().unwrap_err().field, "meta");
        Edit::default().check().unwrap();
    }
}
