//! A job that conditions examine. Each part that takes work is prepared once, for the first condition that needs it.

use std::cell::OnceCell;

use serde_json::Value;

use crate::{Job, json_value};

/// A job that conditions examine. It parses the args once, however many conditions look into them.
#[derive(Debug)]
pub struct Candidate<'a> {
    pub(super) job: &'a Job,
    failure: Option<&'a str>,
    id: OnceCell<String>,
    args: OnceCell<Option<Value>>,
    kind: OnceCell<String>,
    failure_in_lower_case: OnceCell<String>,
}

impl<'a> Candidate<'a> {
    /// Returns the candidate for a job.
    #[must_use]
    pub fn new(job: &'a Job) -> Self {
        Self::showing(job, job.failure.as_ref().map(|failure| failure.message.as_str()))
    }

    /// Returns the candidate for a job with another error text, such as one without secrets.
    #[must_use]
    pub fn showing(job: &'a Job, failure: Option<&'a str>) -> Self {
        let (id, args, kind) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { job, failure, id, args, kind, failure_in_lower_case: OnceCell::new() }
    }

    /// Returns the job's ID, as people see it.
    pub(super) fn id(&self) -> &str {
        self.id.get_or_init(|| self.job.id.to_string())
    }

    /// Returns the job's kind in lower case.
    pub(super) fn kind(&self) -> &str {
        self.kind.get_or_init(|| self.job.kind.as_str().to_lowercase())
    }

    /// Returns the text of the last error in lower case, if there is one.
    pub(super) fn failure(&self) -> Option<&str> {
        let failure = self.failure?;
        Some(self.failure_in_lower_case.get_or_init(|| failure.to_lowercase()))
    }

    /// Returns the part of the args at a path, if they have it.
    pub(super) fn arg(&self, path: &[String]) -> Option<&Value> {
        let args = self.args.get_or_init(|| json_value(self.job.args.as_bytes()).ok());
        path.iter().try_fold(args.as_ref()?, |at, name| match at {
            Value::Array(items) => items.get(name.parse::<usize>().ok()?),
            Value::Object(fields) => fields.get(name),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        })
    }
}
