//! A customer who watches a job through routes of the service.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tenure::{Error, Failed, Job, JobId, JobRecord, Run, StateName, Tenure, Timestamp, Worker};
use tokio::sync::Semaphore;

use crate::Outcome;

#[derive(Serialize, Deserialize)]
struct Export {
    customer: String,
}

impl Job for Export {
    const KIND: &'static str = "export";
    const QUEUE: &'static str = "exports";
    type Output = u64;
}

/// What the customer sees.
#[derive(Debug, Serialize)]
struct Shown {
    state: &'static str,
    percent: u8,
    message: String,
    download: Option<String>,
}

impl Shown {
    fn of(job: JobRecord, now: Timestamp) -> Self {
        let (fraction, message) = job.progress.map_or((0.0, String::new()), |at| (at.fraction, at.message));
        let (state, percent) = match job.state.name(now) {
            StateName::Scheduled | StateName::Queued | StateName::Blocked => ("waiting", 0),
            StateName::Running => ("running", (fraction * 100.0) as u8),
            StateName::Succeeded => ("done", 100),
            StateName::Failed => ("failed", 0),
            StateName::Cancelled => ("cancelled", 0),
        };
        Self { state, percent, message, download: job.output.and_then(|output| output.place) }
    }
}

async fn start(
    State(tenure): State<Tenure>,
    customer: Customer,
) -> Result<(StatusCode, Json<JobId>), StatusCode> {
    let job = tenure.enqueue(Export { customer: customer.0.clone() });
    let accepted = job.meta("customer", &customer.0).unique().await;
    let id = accepted.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?.id();
    Ok((StatusCode::ACCEPTED, Json(id)))
}

async fn show(
    State(tenure): State<Tenure>,
    customer: Customer,
    Path(id): Path<JobId>,
) -> Result<Json<Shown>, StatusCode> {
    let job = export_of(&tenure, &customer, id).await?;
    Ok(Json(Shown::of(job, tenure.now())))
}

async fn cancel(
    State(tenure): State<Tenure>,
    customer: Customer,
    Path(id): Path<JobId>,
) -> Result<StatusCode, StatusCode> {
    export_of(&tenure, &customer, id).await?;
    let asked = tenure.jobs().cancel(id, Duration::from_secs(10), "the customer cancelled").await;
    asked.map(|_| StatusCode::ACCEPTED).map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}

/// Returns the job if it is an export of this customer.
async fn export_of(tenure: &Tenure, customer: &Customer, id: JobId) -> Result<JobRecord, StatusCode> {
    match tenure.jobs().get(id).await {
        Ok(job)
            if job.kind.as_str() == Export::KIND && job.terms.meta.get("customer") == Some(&customer.0) =>
        {
            Ok(job)
        }
        Ok(_) | Err(Error::NotFound(_)) => Err(StatusCode::NOT_FOUND),
        Err(_) => Err(StatusCode::SERVICE_UNAVAILABLE),
    }
}

fn routes(tenure: &Tenure) -> Router {
    Router::new()
        .route("/exports", post(start))
        .route("/exports/{id}", get(show).delete(cancel))
        .with_state(tenure.clone())
}

async fn export(run: Run<Arc<App>>, job: Export) -> Result<u64, Failed> {
    let pages = 4;
    for page in 0..pages {
        run.progress(f64::from(page) / f64::from(pages), &format!("page {} of {pages}", page + 1))?;
        run.app().write_page(&job.customer, page).await?;
    }
    run.place(&format!("/files/{}.csv", run.id()))?;
    Ok(u64::from(pages))
}

/// The signed-in customer. A service takes it from its own session.
#[derive(Clone)]
struct Customer(String);

impl<S: Sync> FromRequestParts<S> for Customer {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, StatusCode> {
        let name = parts.headers.get("x-customer").and_then(|name| name.to_str().ok());
        name.map(|name| Self(name.to_owned())).ok_or(StatusCode::UNAUTHORIZED)
    }
}

/// Writes the pages; the test lets them go on.
struct App {
    pages: Semaphore,
}

impl App {
    async fn write_page(&self, _customer: &str, _page: u32) -> Result<(), std::io::Error> {
        self.pages.acquire().await.map_err(std::io::Error::other)?.forget();
        Ok(())
    }
}

#[tokio::test]
async fn a_customer_sees_the_own_export_alone() -> Outcome {
    let tenure = Tenure::open("memory:").await?;
    drop(routes(&tenure));
    let (ann, ben) = (Customer("ann".into()), Customer("ben".into()));
    let (status, Json(id)) = start(State(tenure.clone()), ann.clone()).await.map_err(refused)?;
    assert_eq!(status, StatusCode::ACCEPTED);
    let (_, Json(again)) = start(State(tenure.clone()), ann.clone()).await.map_err(refused)?;
    assert_eq!(again, id, "one export at a time");
    let hidden = show(State(tenure.clone()), ben, Path(id)).await;
    assert!(matches!(hidden, Err(StatusCode::NOT_FOUND)));

    let app = Arc::new(App { pages: Semaphore::new(2) });
    let worker = Worker::new(&tenure, Arc::clone(&app)).queue("exports", 1).job(export);
    let watched = async {
        loop {
            let Json(shown) = show(State(tenure.clone()), ann.clone(), Path(id)).await.map_err(refused)?;
            match shown.percent {
                50 if app.pages.available_permits() == 0 => app.pages.add_permits(2),
                100 => return Ok::<Shown, std::io::Error>(shown),
                _ => {}
            }
            tokio::task::yield_now().await;
        }
    };
    let (stopped, shown) = {
        let (done, is_done) = tokio::sync::oneshot::channel::<()>();
        let watched = async {
            let shown = watched.await;
            drop(done);
            shown
        };
        tokio::join!(worker.run(is_done), watched)
    };
    stopped?;
    let shown = shown?;
    assert_eq!((shown.state, shown.download), ("done", Some(format!("/files/{id}.csv"))));
    assert_eq!(cancel(State(tenure.clone()), ann, Path(id)).await.map_err(refused)?, StatusCode::ACCEPTED);
    Ok(())
}

fn refused(status: StatusCode) -> std::io::Error {
    std::io::Error::other(status.to_string())
}
