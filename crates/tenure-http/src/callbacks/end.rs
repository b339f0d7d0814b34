//! Telling one URL of the end of one job. Who tells is a job that waits for the end of the other: it comes in with it, or
//! not at all, and so nobody has to notice the end.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tenure::records::{Document, NewValue, Only, Put, Record, RecordKey, Writes, Written};
use tenure::{Draft, Error, Failed, Invalid, Job, JobId, Name, Run, Tenure, Terms};

use super::delivery::{Deliver, Delivered, Deliverer, SLOTS_EACH, Telling, limit_key, told, wait};
use super::signature::Secret;
use super::sources;
use super::target::Target;
use super::webhook::{KeptSecret, no_secret, rotated, secrets};

/// Kind and queue of callbacks. Older servers enqueue them in the queue of deliveries.
pub(crate) const KIND: &str = "tenure.callback";
pub(crate) const QUEUE: &str = "tenure.callbacks";
/// Shelf and key of the secret that signs callbacks.
const SHELF: &str = "callback-secret";
const KEY: &str = "all";
/// Tries to change it while others do.
const TRIES: u32 = 10;

/// Args of a callback: the job that ends, and the URL that gets the report.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TellEnd {
    job: JobId,
    url: String,
}

impl Job for TellEnd {
    const KIND: &'static str = KIND;
    const QUEUE: &'static str = QUEUE;
    type Output = Delivered;

    fn terms() -> Terms {
        Deliver::terms()
    }
}

/// Returns the job that reports the end of another job; each job has at most one. It has the owner of that job, and counts
/// against the owner's quota. Callbacks of an owner share a limit, and owners take turns.
pub(crate) fn draft(job: JobId, url: &str, owner: Option<&str>) -> Result<Draft, Error> {
    let args = serde_json::to_vec(&TellEnd { job, url: url.to_owned() })
        .map_err(|source| Error::Json { what: "callback", source })?;
    let host = Target::read(url)?.host;
    let draft = Draft::encoded(KIND, args).queue(QUEUE).terms(TellEnd::terms());
    let draft = draft.derived_id(id(job)).after_jobs([job]).even_if_failed();
    Ok(match owner {
        Some(owner) => {
            let key = limit_key(&format!("callback.owner.{owner}"));
            draft.owner(owner).share(&key).limited(&key, SLOTS_EACH)
        }
        None => draft.limited(&limit_key(&format!("callback.host.{host}")), SLOTS_EACH),
    })
}

/// An id that follows from whose end is told.
fn id(job: JobId) -> JobId {
    let digest = Sha256::digest(format!("tenure callback\0{job}"));
    JobId::derived(std::array::from_fn(|at| digest[at]))
}

pub(crate) async fn tell(run: Run<Deliverer>, job: TellEnd) -> Result<Delivered, Failed> {
    let (tenure, usual) = (run.tenure(), wait(run.id(), run.attempt()));
    let event = sources::one((tenure, run.app().hiding()), job.job).await?;
    let Some(event) = event else {
        return Err(match tenure.store().job(job.job).await? {
            // Somebody has had it done again meanwhile: its new end will be told.
            Some(_) => Failed::retry_after("the job has not ended", usual),
            None => Failed::for_good("the job was deleted before the callback was sent"),
        });
    };
    let body = serde_json::to_vec(&event).map_err(Failed::for_good)?;
    let secrets = secrets(&kept(tenure).await?.0, tenure.now());
    let heard = told(&run, Telling { url: &job.url, secrets: &secrets, event: &event.id, body }).await?;
    let status = heard.status;
    match status {
        _ if status.is_success() => Ok(Delivered { status: status.as_u16() }),
        StatusCode::GONE => Err(Failed::for_good("received 410 Gone")),
        _ => Err(heard.again(tenure.now(), usual)),
    }
}

/// The secrets with which they are signed; the first one that asks draws it.
async fn kept(tenure: &Tenure) -> Result<(Vec<KeptSecret>, Option<u64>), Error> {
    let key = RecordKey::new(KEY)?;
    for _ in 0..TRIES {
        let there = tenure.store().record(&shelf()?, &key).await?;
        if let Some(found) = there.as_ref().and_then(read) {
            return Ok(found);
        }
        let drawn = vec![KeptSecret::of(&Secret::draw().map_err(no_secret)?)];
        let only = there.map_or(Only::Absent, |there| Only::Version(there.version));
        write(tenure, &drawn, only).await?;
    }
    Err(busy())
}

/// The secret that signs now.
pub(crate) async fn secret(tenure: &Tenure) -> Result<Secret, Error> {
    let (kept, _) = kept(tenure).await?;
    secrets(&kept, tenure.now()).into_iter().next().ok_or_else(busy)
}

/// Draws another; the one before signs for a day more.
pub(crate) async fn rotate(tenure: &Tenure) -> Result<Secret, Error> {
    let new = Secret::draw().map_err(no_secret)?;
    for _ in 0..TRIES {
        let (mut all, version) = kept(tenure).await?;
        rotated(&mut all, &new, tenure.now());
        if write(tenure, &all, version.map_or(Only::Absent, Only::Version)).await? {
            return Ok(new);
        }
    }
    Err(busy())
}

/// Whether it was written: nobody else was faster.
async fn write(tenure: &Tenure, secrets: &[KeptSecret], only: Only) -> Result<bool, Error> {
    let text = serde_json::to_vec(secrets).map_err(|source| Error::Json { what: "secret", source })?;
    let value = NewValue { value: Document::new(text)?, keep: None };
    let put = Put { shelf: shelf()?, key: RecordKey::new(KEY)?, only, to: Some(value) };
    let written = tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await?;
    Ok(matches!(written, Written::Done { .. }))
}

fn read(there: &Record) -> Option<(Vec<KeptSecret>, Option<u64>)> {
    let secrets: Vec<KeptSecret> = serde_json::from_slice(there.value.as_bytes()).ok()?;
    (!secrets.is_empty()).then_some((secrets, Some(there.version)))
}

fn shelf() -> Result<Name, Invalid> {
    Name::new("shelf", SHELF)
}

fn busy() -> Error {
    tenure::Fault::Unavailable("too many concurrent changes to the callback secret".to_owned()).into()
}
