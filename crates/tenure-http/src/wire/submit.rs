//! A job that a client wants to be done.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tenure::{
    Backoff, Draft, Invalid, JobId, Keep, Only, Retention, RetryPolicy, Timestamp, limits, seconds,
};

use super::shape;
use crate::callbacks::target::URL_BYTES;

/// The note that says who is told of the end of a job.
pub(crate) const CALLBACK: &str = "tenure.callback";

/// A job that somebody wants to be done.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    /// Its identity, a UUID that the client has drawn: to ask again under it is harmless. Drawn by the server if it is not
    /// said; in a request that names it in its path, it may only be repeated here.
    #[schemars(regex(pattern = shape::ID))]
    pub id: Option<String>,
    /// What sort of work it is.
    #[schemars(regex(pattern = shape::NAME))]
    pub kind: String,
    /// What its handler is given: any JSON; `null` if it is not said.
    #[schemars(with = "Option<serde_json::Value>")]
    pub args: Option<Box<RawValue>>,
    /// Where it waits; `default` if it is not said.
    #[schemars(regex(pattern = shape::NAME))]
    pub queue: Option<String>,
    /// When it is due: RFC 3339 with an offset. At once if neither this nor a delay is said.
    #[schemars(extend("format" = "date-time"), regex(pattern = shape::YEARS))]
    pub run_at: Option<String>,
    /// In how many seconds it is due, by the store's clock.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    pub delay_seconds: Option<f64>,
    /// Its place among the due jobs of its queue: from -100, the first, to 100; 0 is ordinary.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = -100, max = 100))]
    pub priority: Option<i64>,
    /// Attempts in all, whatever its policy says.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::MAX_ATTEMPTS))]
    pub max_attempts: Option<u32>,
    /// How it is tried again.
    #[serde(default, deserialize_with = "shape::object")]
    pub retry: Option<RetrySpec>,
    /// How long one attempt may take.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    pub timeout_seconds: Option<f64>,
    /// What makes it the only one.
    #[serde(default, deserialize_with = "shape::object")]
    pub unique: Option<UniqueSpec>,
    /// Jobs with the same key run one at a time, in the order in which they were enqueued.
    #[schemars(length(min = 1, max = limits::KEY_BYTES))]
    pub ordering_key: Option<String>,
    /// Jobs with the same key share a limit.
    #[schemars(length(min = 1, max = limits::KEY_BYTES))]
    pub limit_key: Option<String>,
    /// Jobs of which it waits that they have ended.
    #[serde(default)]
    #[schemars(length(max = limits::AFTER_JOBS), inner(regex(pattern = shape::ID)))]
    pub after: Vec<String>,
    /// Words to find it by.
    #[serde(default)]
    #[schemars(length(max = limits::TAGS), inner(regex(pattern = shape::NAME)))]
    pub tags: Vec<String>,
    /// Notes that are kept and not read.
    #[serde(default)]
    pub meta: BTreeMap<String, String>,
    /// How long it is kept after its end, however it ends.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    pub retain_seconds: Option<f64>,
    /// Who is told when it has ended, once.
    #[serde(default, deserialize_with = "shape::object")]
    pub callback: Option<CallbackSpec>,
}

/// Who is told when a job has ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Callback")]
pub struct CallbackSpec {
    /// Where the event is sent, signed with the secret of `GET /v1/callback-secret`.
    #[schemars(length(min = 1, max = URL_BYTES))]
    pub url: String,
}

/// How a job is tried again.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Retry")]
pub struct RetrySpec {
    /// Attempts in all.
    #[serde(default, deserialize_with = "shape::whole")]
    #[schemars(range(min = 1, max = limits::MAX_ATTEMPTS))]
    pub max_attempts: Option<u32>,
    /// The waits between attempts, one by one; the last one repeats. Without it the wait doubles.
    #[schemars(length(min = 1, max = limits::BACKOFF_STEPS), inner(range(min = 0.0, max = shape::LONGEST)))]
    pub waits_seconds: Option<Vec<f64>>,
    /// The first wait, if it doubles.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    pub first_seconds: Option<f64>,
    /// The longest wait, if it doubles.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    pub ceiling_seconds: Option<f64>,
}

/// What makes a job the only one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Unique")]
pub struct UniqueSpec {
    /// A key of its user's; if there is none, the scope alone decides.
    #[schemars(length(min = 1, max = limits::UNIQUE_KEY_BYTES))]
    pub key: Option<String>,
    /// Among which jobs.
    #[serde(default)]
    pub scope: UniqueScope,
    /// For so long from its enqueueing; until it ends if it is not said.
    #[schemars(range(min = 0.0, max = shape::LONGEST))]
    pub for_seconds: Option<f64>,
    /// What a second one meets.
    #[serde(default)]
    pub on_conflict: OnConflict,
}

/// Among which jobs a job is the only one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UniqueScope {
    /// Those of its kind.
    #[default]
    Kind,
    /// Those of its kind with the same args.
    Args,
    /// Those of its kind in its queue.
    Queue,
    /// All.
    Any,
}

/// What a second job meets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// The one that is there is answered.
    #[default]
    Return,
    /// It is refused.
    Reject,
    /// A waiting one makes room for it.
    Replace,
}

impl Submit {
    /// The job as the library takes it.
    ///
    /// # Errors
    /// Names the field that cannot be read. Limits are checked when it is enqueued.
    pub fn draft(self, id: Option<JobId>) -> Result<Draft, Invalid> {
        let said = self
            .id
            .as_deref()
            .map(|said| said.parse::<JobId>().map_err(|wrong| Invalid { field: "id".to_owned(), ..wrong }));
        let id = match (id, said.transpose()?) {
            (Some(id), Some(said)) if id != said => {
                return Err(Invalid::new("id", said, format_args!("{id}, as the path says, or nothing")));
            }
            (id, said) => id.or(said),
        };
        not_own("kind", &self.kind)?;
        self.queue.as_deref().map_or(Ok(()), |queue| not_own("queue", queue))?;
        let args = self.args.map_or_else(|| b"null".to_vec(), |args| args.get().as_bytes().to_vec());
        let mut draft = Draft::encoded(&self.kind, args);
        if let Some(queue) = &self.queue {
            draft = draft.queue(queue);
        }
        draft = match (self.run_at, self.delay_seconds) {
            (None, None) => draft,
            (Some(at), None) => draft.at(instant("run_at", &at)?),
            (None, Some(delay)) => draft.after(seconds("delay_seconds", delay)?),
            (Some(_), Some(_)) => {
                return Err(Invalid::new("delay_seconds", "both it and run_at", "one of the two"));
            }
        };
        if let Some(priority) = self.priority {
            draft = draft.priority(priority);
        }
        if let Some(retry) = self.retry {
            draft = draft.retry(retry.policy()?);
        }
        if let Some(most) = self.max_attempts {
            draft = draft.attempts(most);
        }
        if let Some(timeout) = self.timeout_seconds {
            draft = draft.timeout(seconds("timeout_seconds", timeout)?);
        }
        if let Some(span) = self.retain_seconds {
            let keep = Keep::For(seconds("retain_seconds", span)?);
            draft = draft.retain(Retention { succeeded: keep, failed: keep });
        }
        let is_unique = self.unique.is_some();
        if let Some(unique) = self.unique {
            draft = draft.unique(unique.only()?);
        }
        if let Some(key) = &self.ordering_key {
            draft = draft.ordered(key);
        }
        if let Some(key) = &self.limit_key {
            draft = draft.limit_key(key);
        }
        if !self.after.is_empty() {
            let after: Result<Vec<JobId>, Invalid> = self.after.iter().map(|id| id.parse()).collect();
            draft = draft.after_jobs(after?);
        }
        draft = self.tags.iter().fold(draft, |draft, tag| draft.tag(tag));
        draft = self.meta.iter().fold(draft, |draft, (key, value)| draft.meta(key, value));
        if self.meta.contains_key(CALLBACK) {
            let allowed = "another name: this one is kept for `callback`";
            return Err(Invalid::new("meta", CALLBACK, allowed));
        }
        if let Some(callback) = &self.callback {
            if is_unique {
                let allowed = "one of the two: of a job that was there already it would be told to nobody";
                return Err(Invalid::new("callback", "both it and unique", allowed));
            }
            draft = draft.meta(CALLBACK, &callback.url);
        }
        Ok(match id {
            Some(id) => draft.id(id),
            None => draft,
        })
    }
}

impl RetrySpec {
    pub(super) fn policy(self) -> Result<RetryPolicy, Invalid> {
        let usual = RetryPolicy::default();
        let max_attempts = self.max_attempts.unwrap_or(usual.max_attempts);
        let backoff = match (self.waits_seconds, self.first_seconds, self.ceiling_seconds) {
            (None, None, None) => usual.backoff,
            (Some(waits), None, None) => {
                let waits: Result<Vec<_>, _> =
                    waits.into_iter().map(|wait| seconds("retry.waits_seconds", wait)).collect();
                Backoff::Steps(waits?)
            }
            (None, first, ceiling) => Backoff::Exponential {
                first: seconds("retry.first_seconds", first.unwrap_or(2.0))?,
                ceiling: seconds("retry.ceiling_seconds", ceiling.unwrap_or(3600.0))?,
            },
            (Some(_), _, _) => {
                let found = "a list of waits and one that doubles";
                return Err(Invalid::new("retry.waits_seconds", found, "one of the two"));
            }
        };
        Ok(RetryPolicy { backoff, max_attempts, ..usual })
    }
}

impl UniqueSpec {
    fn only(self) -> Result<Only, Invalid> {
        let only = match (self.key, self.scope) {
            (Some(_), UniqueScope::Args) => {
                let found = "a key and the scope `args`";
                return Err(Invalid::new(
                    "unique.key",
                    found,
                    "no key: with this scope the args are the key",
                ));
            }
            (None, UniqueScope::Args) => Only::same_args(),
            (None, UniqueScope::Any) => {
                let found = "no key and the scope `any`";
                return Err(Invalid::new(
                    "unique.key",
                    found,
                    "a key: otherwise there could be one job in all",
                ));
            }
            (None, UniqueScope::Kind) => Only::of_kind(),
            (None, UniqueScope::Queue) => Only::of_kind().in_this_queue(),
            (Some(key), UniqueScope::Kind) => Only::one(key),
            (Some(key), UniqueScope::Queue) => Only::one(key).in_this_queue(),
            (Some(key), UniqueScope::Any) => Only::one(key).of_any_kind(),
        };
        let only = match self.for_seconds {
            None => only,
            Some(span) => only.within(seconds("unique.for_seconds", span)?),
        };
        Ok(match self.on_conflict {
            OnConflict::Return => only,
            OnConflict::Reject => only.or_reject(),
            OnConflict::Replace => only.or_replace(),
        })
    }
}

/// What is Tenure's own is asked for by routes of its own: by any other name no client comes to it.
pub(crate) fn not_own(field: &str, name: &str) -> Result<(), Invalid> {
    if name.starts_with(tenure::OWN) {
        let allowed = format!("a name that does not begin with {}, as Tenure's own do", tenure::OWN);
        return Err(Invalid::new(field, format_args!("{name:?}"), allowed));
    }
    Ok(())
}

/// An instant in a field.
pub(crate) fn instant(field: &str, text: &str) -> Result<Timestamp, Invalid> {
    text.parse().map_err(|wrong: Invalid| Invalid { field: field.to_owned(), ..wrong })
}

/// The largest body of one job: its args, and what else is said about it.
pub(crate) const BODY_BYTES: usize = limits::ARGS_BYTES + 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> String {
        let submit: Submit = serde_json::from_str(body).unwrap();
        submit.draft(None).unwrap_err().field
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_field() {
        assert_eq!(refused(r#"{"kind":"k","run_at":"tomorrow"}"#), "run_at");
        assert_eq!(
            refused(r#"{"kind":"k","run_at":"2026-01-01T00:00:00Z","delay_seconds":1}"#),
            "delay_seconds"
        );
        assert_eq!(refused(r#"{"kind":"k","delay_seconds":-1}"#), "delay_seconds");
        assert_eq!(refused(r#"{"kind":"k","unique":{"scope":"any"}}"#), "unique.key");
        assert_eq!(refused(r#"{"kind":"k","unique":{"key":"a","scope":"args"}}"#), "unique.key");
        assert_eq!(
            refused(r#"{"kind":"k","retry":{"waits_seconds":[1],"first_seconds":2}}"#),
            "retry.waits_seconds"
        );
        assert_eq!(refused(r#"{"kind":"k","after":["7"]}"#), "job id");
        assert_eq!(refused(r#"{"kind":"k","id":"7"}"#), "id");
        assert_eq!(refused(r#"{"kind":"tenure.bulk"}"#), "kind");
        assert_eq!(refused(r#"{"kind":"k","queue":"tenure.bulk"}"#), "queue");
    }

    #[test]
    fn an_id_may_be_said_in_the_path_or_in_the_body_but_not_two() {
        let one: JobId = "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10".parse().unwrap();
        let other: JobId = "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b11".parse().unwrap();
        let draft = |path: Option<JobId>| {
            let body = format!(r#"{{"kind":"k","id":"{one}"}}"#);
            serde_json::from_str::<Submit>(&body).unwrap().draft(path)
        };
        assert!(draft(None).is_ok() && draft(Some(one)).is_ok());
        assert_eq!(draft(Some(other)).unwrap_err().field, "id");
    }

    #[test]
    fn a_field_that_is_not_known_is_refused_and_a_wrong_word_as_well() {
        assert!(serde_json::from_str::<Submit>(r#"{"kind":"k","que":"mail"}"#).is_err());
        assert!(serde_json::from_str::<Submit>(r#"{"kind":"k","unique":{"on_conflict":"drop"}}"#).is_err());
    }
}
