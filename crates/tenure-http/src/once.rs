//! Idempotent requests: the header `Idempotency-Key`.
//!
//! Before a request enqueues jobs, the server stores their IDs under its key. A repeated request uses the same IDs. So no job
//! is enqueued twice, even if the first request was interrupted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tenure::records::{Document, NewValue, Only, Put, Record, RecordKey, Writes, Written};
use tenure::{Accepted, Draft, Error, JobId, Name, Refusal, Tenure};

use crate::api::Api;
use crate::canonical::canonical;
use crate::jobs::each::{Each, enqueue_each};
use crate::jobs::told;
use crate::problem::{Problem, ProblemType};
use crate::secret::hex;

/// Name of the header.
pub(crate) const HEADER: &str = "idempotency-key";
/// Retention of a key.
pub(crate) const KEEP: Duration = Duration::from_secs(24 * 3600);
/// Longest key, in bytes.
pub(crate) const KEY_BYTES: usize = 200;
/// On which shelf keys are.
const SHELF: &str = "idempotency";

/// A request that is to be done once.
pub(crate) struct Once {
    key: RecordKey,
    /// What tells it from another request under the same key.
    fingerprint: String,
}

/// The outcome of a request.
pub(crate) struct Did {
    /// The outcome of each job.
    pub accepted: Vec<Accepted>,
    /// `true` if an earlier request with the key had enqueued the jobs.
    pub replayed: bool,
}

/// The record of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Note {
    fingerprint: String,
    jobs: Vec<JobId>,
    /// `true` if the jobs are enqueued. Until then, each request with the key enqueues them.
    done: bool,
    /// Positions of refused jobs, in a request that allows partial success.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused: Vec<usize>,
}

/// The client of a request. Each has keys of its own: another client's must neither block its requests nor swallow them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Client<'a> {
    /// A client that the API has authenticated, by the name of its access token. The name outlasts a rotation.
    Token(&'a str),
    /// Any client of an API without authentication.
    Anyone,
    /// A client of another service, by the name that the service gives it, if it gives one.
    OfService(Option<&'a str>),
}

impl Client<'_> {
    /// Returns the namespace of the client's keys; `None` if nothing tells it from other clients.
    fn keys(self, headers: &HeaderMap) -> Option<String> {
        match (self, headers.contains_key(AUTHORIZATION)) {
            (Self::Token(name), _) => Some(digest([b"token".as_slice(), name.as_bytes()].into_iter())),
            (Self::OfService(Some(name)), _) => {
                Some(digest([b"client".as_slice(), name.as_bytes()].into_iter()))
            }
            // The service may have authenticated it by this header.
            (Self::Anyone | Self::OfService(None), true) => {
                Some(digest(headers.get_all(AUTHORIZATION).iter().map(|said| said.as_bytes())))
            }
            (Self::Anyone, false) => Some(digest([].into_iter())),
            (Self::OfService(None), false) => None,
        }
    }
}

impl Once {
    /// Returns the key of a request to the API, if it has one. A repeated request must have the same `what`; the notation of JSON
    /// does not matter.
    pub(crate) fn of(api: &Api, headers: &HeaderMap, what: &[&[u8]]) -> Result<Option<Self>, Problem> {
        Self::of_client(api.who().name().map_or(Client::Anyone, Client::Token), headers, what)
    }

    /// Returns the key of a request, if it has one. Ignores it if nothing tells the client from others.
    pub(crate) fn of_client(
        client: Client<'_>,
        headers: &HeaderMap,
        what: &[&[u8]],
    ) -> Result<Option<Self>, Problem> {
        let Some(whose) = client.keys(headers) else { return Ok(None) };
        let mut said = headers.get_all(HEADER).iter();
        let Some(key) = said.next() else { return Ok(None) };
        let wrong = |why: &str| {
            let allowed = format!(
                "one value of 1 to {KEY_BYTES} visible ASCII characters, preferably in double quotes"
            );
            Problem::new(
                ProblemType::Malformed,
                format!("the header Idempotency-Key {why}; expected {allowed}"),
            )
            .with("field", "Idempotency-Key")
        };
        if said.next().is_some() {
            return Err(wrong("occurs more than once"));
        }
        let key = key.to_str().map_err(|_| wrong("contains other characters"))?.trim();
        let bare = key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key);
        if bare.len() == key.len() && (key.starts_with('"') || key.ends_with('"')) {
            return Err(wrong("has a quote at one end only"));
        }
        if !(1..=KEY_BYTES).contains(&bare.len()) {
            return Err(wrong(&format!("has {} bytes", bare.len())));
        }
        Ok(Some(Self { key: RecordKey::new(&format!("{whose}:{bare}"))?, fingerprint: fingerprint(what) }))
    }

    /// Enqueues these, all or none, unless that was done before.
    pub(crate) async fn enqueue(&self, tenure: &Tenure, drafts: Vec<Draft>) -> Result<Did, Problem> {
        let ids = drafts.iter().map(|draft| id_of(tenure, draft)).collect();
        let (note, version, is_first) = self.begin(tenure, ids).await?;
        if note.done {
            return Ok(note.replay());
        }
        let are_drawn = drafts.iter().all(|draft| draft.given_id().is_none());
        let drafts = drafts.into_iter().zip(&note.jobs).map(|(draft, id)| draft.id(*id));
        let accepted = match told::enqueue_all(tenure, drafts.collect()).await {
            Ok(accepted) => accepted,
            Err(Error::Refused { refusal: Refusal::IdTaken(_), .. }) if are_drawn && !is_first => {
                // The same request had made them. What it comes to now may be another thing: what a search meant then, or the
                // queue where a kind waits.
                note.jobs.iter().copied().map(Accepted::Repeated).collect()
            }
            Err(Error::Refused { refusal: Refusal::IdTaken(_), .. }) => return Err(reused()),
            Err(error) => {
                // No request with this input can have enqueued anything.
                if is_first && matches!(error, Error::Invalid(_)) {
                    self.forget(tenure, version).await;
                }
                return Err(error.into());
            }
        };
        let jobs = accepted.iter().map(|accepted| accepted.id()).collect();
        self.end(tenure, Note { jobs, done: true, ..note }, version).await;
        Ok(Did { accepted, replayed: !is_first })
    }

    /// What a request that is not admitted has made, if it was admitted and done before: rules change.
    pub(crate) async fn done_before(&self, tenure: &Tenure, problem: Problem) -> Result<Did, Problem> {
        if problem.problem_type().status().is_server_error() {
            return Err(problem);
        }
        match self.find(tenure).await? {
            Some(note) if note.done && note.fingerprint == self.fingerprint => Ok(note.replay()),
            Some(_) | None => Err(problem),
        }
    }

    /// Returns the record of a request with the key.
    async fn find(&self, tenure: &Tenure) -> Result<Option<Note>, Problem> {
        let found = tenure.store().record(&Name::new("shelf", SHELF)?, &self.key).await?;
        Ok(found.as_ref().and_then(read).map(|(note, _)| note))
    }

    /// Enqueues each of these by itself, unless that was done before; one that was refused then is tried again. One that is
    /// not admitted keeps its place as well: what is admitted may be another thing when all of them are sent again.
    pub(crate) async fn enqueue_each(
        &self,
        tenure: &Tenure,
        drafts: Vec<Result<Draft, Problem>>,
    ) -> Result<(Each, bool), Problem> {
        // A request that enqueues nothing needs no record.
        if drafts.iter().all(Result::is_err) && self.find(tenure).await?.is_none() {
            return Ok((drafts.into_iter().filter_map(Result::err).map(Err).collect(), false));
        }
        let ids = drafts.iter().map(|draft| match draft {
            Ok(draft) => id_of(tenure, draft),
            Err(_) => tenure.new_id(),
        });
        let (note, version, is_first) = self.begin(tenure, ids.collect()).await?;
        let (mut answers, mut open) = (BTreeMap::new(), Vec::new());
        for (place, (draft, id)) in drafts.into_iter().zip(&note.jobs).enumerate() {
            match draft {
                _ if note.has_made(place) => _ = answers.insert(place, Ok(Accepted::Repeated(*id))),
                Ok(draft) => open.push((place, draft)),
                // Whoever was cut off may have made it.
                Err(_) if !is_first && tenure.jobs().get(*id).await.is_ok() => {
                    answers.insert(place, Ok(Accepted::Repeated(*id)));
                }
                Err(problem) => _ = answers.insert(place, Err(problem)),
            }
        }
        let drawn: Vec<bool> = open.iter().map(|(_, draft)| draft.given_id().is_none()).collect();
        let places: Vec<usize> = open.iter().map(|(place, _)| *place).collect();
        let drafts = open.into_iter().map(|(place, draft)| Ok(draft.id(note.jobs[place]))).collect();
        let tried = enqueue_each(tenure, drafts).await?;
        for ((place, is_drawn), told) in places.into_iter().zip(drawn).zip(tried) {
            // The same request had made it, and what it comes to now is another thing.
            let is_made =
                |problem: &Problem| is_drawn && !is_first && problem.problem_type() == ProblemType::IdTaken;
            answers.insert(
                place,
                match told {
                    Err(problem) if is_made(&problem) => Ok(Accepted::Repeated(note.jobs[place])),
                    told => told,
                },
            );
        }
        let answers: Each = answers.into_values().collect();
        // No request with this input can have enqueued anything.
        if is_first && answers.iter().all(is_invalid) {
            self.forget(tenure, version).await;
            return Ok((answers, false));
        }
        let refused = (0..answers.len()).filter(|index| answers[*index].is_err()).collect();
        let id =
            |(answer, id): (&Result<Accepted, Problem>, &JobId)| answer.as_ref().map_or(*id, |it| it.id());
        let jobs = answers.iter().zip(&note.jobs).map(id).collect();
        self.end(tenure, Note { jobs, refused, done: true, ..note }, version).await;
        Ok((answers, !is_first))
    }

    /// Writes down what it will make, or finds what was written down of it.
    async fn begin(&self, tenure: &Tenure, jobs: Vec<JobId>) -> Result<(Note, u64, bool), Problem> {
        let count = jobs.len();
        let note = Note { fingerprint: self.fingerprint.clone(), jobs, done: false, refused: Vec::new() };
        let put = self.put(&note, Only::Absent)?;
        match tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await? {
            Written::Done { versions, .. } => {
                Ok((note, versions.into_iter().flatten().next().unwrap_or_default(), true))
            }
            Written::Refused(unmet) => {
                let there = unmet.into_iter().find_map(|unmet| unmet.there);
                let (note, version) = there.and_then(|there| read(&there)).ok_or_else(|| {
                    // It was there, and it has been forgotten in this instant.
                    Problem::new(
                        ProblemType::StorageUnavailable,
                        "the request that held this idempotency key was just abandoned; retry",
                    )
                })?;
                if note.fingerprint != self.fingerprint || note.jobs.len() != count {
                    return Err(reused());
                }
                Ok((note, version, false))
            }
        }
    }

    /// Writes down that it was done. If that is lost, whoever comes finds the jobs by their ids, unless somebody has removed
    /// them meanwhile.
    async fn end(&self, tenure: &Tenure, note: Note, version: u64) {
        let Ok(put) = self.put(&note, Only::Version(version)) else { return };
        if let Err(fault) =
            tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await
        {
            tracing::warn!(%fault, "failed to record a completed idempotent request");
        }
    }

    /// Deletes the record. Otherwise it would stay for its retention.
    async fn forget(&self, tenure: &Tenure, version: u64) {
        let Ok(shelf) = Name::new("shelf", SHELF) else { return };
        let put = Put { shelf, key: self.key.clone(), only: Only::Version(version), to: None };
        if let Err(fault) =
            tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await
        {
            tracing::warn!(%fault, "failed to delete the record of a refused request");
        }
    }

    fn put(&self, note: &Note, only: Only) -> Result<Put, Problem> {
        let text = serde_json::to_vec(note).map_err(|source| Error::Json { what: "key", source })?;
        let value = NewValue { value: Document::new(text)?, keep: Some(KEEP) };
        Ok(Put { shelf: Name::new("shelf", SHELF)?, key: self.key.clone(), only, to: Some(value) })
    }
}

impl Note {
    /// Whether the job of this place was made.
    fn has_made(&self, place: usize) -> bool {
        self.done && !self.refused.contains(&place)
    }

    /// What is told whoever asks again.
    fn replay(self) -> Did {
        Did { accepted: self.jobs.into_iter().map(Accepted::Repeated).collect(), replayed: true }
    }
}

fn is_invalid(answer: &Result<Accepted, Problem>) -> bool {
    answer.as_ref().is_err_and(|problem| problem.problem_type() == ProblemType::Validation)
}

/// Under which id a job is made.
fn id_of(tenure: &Tenure, draft: &Draft) -> JobId {
    draft.given_id().unwrap_or_else(|| tenure.new_id())
}

/// Digest that distinguishes two requests with the same key.
fn fingerprint(what: &[&[u8]]) -> String {
    let parts: Vec<Cow<'_, [u8]>> = what.iter().map(|part| canonical(part)).collect();
    digest(parts.iter().map(AsRef::as_ref))
}

/// What tells these from others.
fn digest<'p>(parts: impl Iterator<Item = &'p [u8]>) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    hex(&digest.finalize()[..16])
}

fn read(there: &Record) -> Option<(Note, u64)> {
    serde_json::from_slice(there.value.as_bytes()).ok().map(|note| (note, there.version))
}

fn reused() -> Problem {
    let detail = "this Idempotency-Key was used for a different request; use a new key for each operation";
    Problem::new(ProblemType::KeyReused, detail).with("field", "Idempotency-Key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_fields_makes_no_other_request() {
        let of = |text: &str| fingerprint(&[b"POST /v1/jobs", text.as_bytes()]);
        let one = of(r#"{"kind":"k","args":{"a":1,"b":[{"c":1,"d":2}]}}"#);
        assert_eq!(one, of("{ \"args\": {\"b\": [{\"d\": 2, \"c\": 1}], \"a\": 1},\n\"kind\": \"k\" }"));
        assert_ne!(one, of(r#"{"kind":"k","args":{"a":1,"b":[{"c":2,"d":1}]}}"#));
        assert_ne!(of(r#"{"args":[1,2]}"#), of(r#"{"args":[2,1]}"#));
        // A job a line.
        assert_eq!(of("{\"a\":1,\"b\":2}\n{\"c\":3}"), of("{\"b\":2,\"a\":1}\n\n{\"c\":3}\n"));
        assert_ne!(of("{\"a\":1}\n{\"b\":2}"), of("{\"b\":2}\n{\"a\":1}"));
        assert_ne!(of("no JSON"), of("other text"));
    }
}
