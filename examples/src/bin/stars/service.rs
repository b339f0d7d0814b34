//! The service: your own program on axum. Two lines make the pattern: one in `create_star` and one in `app`.

use std::io::Write;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tenure::records::{Document, NewValue, Only, Put, Record, RecordKey, RecordsAsk, Writes};
use tenure::{Draft, Error, Failed, Invalid, Job, JobRecord, Name, Run, Tenure, Worker};
use tenure_http::{Asked, Items, Problem};

/// The lease of a job: if its instance dies, another one gets the job after this time.
const LEASE: Duration = Duration::from_secs(2);
/// The duration of each of the three steps of a star.
const STEP: Duration = Duration::from_millis(300);

#[derive(Serialize, Deserialize)]
pub struct BuildStar {
    name: String,
}

impl Job for BuildStar {
    const KIND: &'static str = "build_star";
    type Output = u64;
}

/// The stars. A real service has a table for them; here they are small documents in the same store.
#[derive(Clone)]
pub struct Sky {
    tenure: Tenure,
    shelf: Name,
}

async fn create_star(
    State(sky): State<Sky>,
    asked: Asked,
    Json(star): Json<BuildStar>,
) -> Result<Response, Problem> {
    // All clients share their idempotency keys here. A service with accounts names its user instead.
    asked.client("anyone").enqueue_draft(&sky.tenure, Draft::of(&star).queue(sky.shelf.as_str())).await
}

pub fn app(tenure: &Tenure, sky: Sky) -> Router {
    Router::new()
        .route("/stars", post(create_star)) // 202, Location: /queue/…
        .route("/stars/{number}", get(star))
        .with_state(sky)
        .merge(Items::new(tenure, may_follow).routes()) // /queue/{id}: 200 while it runs, then 303
}

/// Decides which requests may see or cancel a job. A service with accounts compares its user with the job's metadata.
fn may_follow(_request: &Parts, job: &JobRecord) -> bool {
    job.kind.as_str() == BuildStar::KIND
}

async fn star(State(sky): State<Sky>, Path(number): Path<u64>) -> Result<String, StatusCode> {
    let star = sky.star(number).await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let star = star.ok_or(StatusCode::NOT_FOUND)?;
    Ok(String::from_utf8_lossy(star.value.as_bytes()).into_owned())
}

pub fn worker(tenure: &Tenure, sky: Sky) -> Worker<Sky> {
    let queue = sky.shelf.clone();
    Worker::new(tenure, sky).queue(queue.as_str(), 2).lease(LEASE).job(build_star)
}

async fn build_star(run: Run<Sky>, job: BuildStar) -> Result<u64, Failed> {
    say("builds", &job.name)?;
    for (fraction, doing) in [(0.0, "gathering dust"), (0.4, "heating the core"), (0.8, "lighting it")] {
        run.progress(fraction, doing)?;
        run.sleep(STEP).await?;
    }
    // The sequence number is unique and the same in every attempt: building it twice gives one star.
    let number = run.job().seq;
    run.app().put(number, &job.name).await?;
    run.place(&format!("/stars/{number}"))?;
    say("made", &job.name)?;
    Ok(number)
}

impl Sky {
    pub fn of(tenure: &Tenure, shelf: &str) -> Result<Self, Invalid> {
        Ok(Self { tenure: tenure.clone(), shelf: Name::new("sky", shelf)? })
    }

    /// Stores a star unless it exists. If it does, an attempt that was cut off has made it.
    async fn put(&self, number: u64, name: &str) -> Result<(), Error> {
        let value = Some(NewValue { value: Document::new(name.as_bytes())?, keep: None });
        let put = Put { shelf: self.shelf.clone(), key: key(number)?, only: Only::Absent, to: value };
        self.tenure.store().write_records(Writes { records: vec![put], ..Writes::default() }).await?;
        Ok(())
    }

    async fn star(&self, number: u64) -> Result<Option<Record>, Error> {
        Ok(self.tenure.store().record(&self.shelf, &key(number)?).await?)
    }

    pub async fn stars(&self) -> Result<Vec<Record>, Error> {
        let ask = RecordsAsk { shelf: self.shelf.clone(), prefix: String::new(), behind: None, at_most: 100 };
        Ok(self.tenure.store().records(ask).await?.records)
    }
}

fn key(number: u64) -> Result<RecordKey, Invalid> {
    RecordKey::new(&number.to_string())
}

/// Prints a line for the process that started this instance.
fn say(what: &str, name: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout().lock(), "{what} {name}")
}
