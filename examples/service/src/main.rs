//! How does a web service store its data and enqueue a job in one transaction?

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use sqlx::{PgPool, Postgres, Transaction};
use tenure::{Clock, Failed, Job, OpenOptions, Run, SystemClock, Tenure, Terms, Worker};
use tenure_sqlx::take_part;
use tenure_ui::Dashboard;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[cfg(test)]
mod tests;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// How long open requests may take after the signal to stop.
const DRAIN: Duration = Duration::from_secs(20);

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS account (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email text NOT NULL UNIQUE,
    welcomed_at timestamptz
)";

/// The state that requests and jobs share.
#[derive(Clone)]
struct App {
    tenure: Tenure,
    pool: PgPool,
}

impl App {
    /// Opens the database once for your tables and once for the job queue.
    async fn open(database: &str) -> Result<Self, AnyError> {
        let pool = PgPool::connect(database).await?;
        let mut tx = pool.begin().await?;
        // Two instances may start at once, and then `CREATE TABLE IF NOT EXISTS` alone can fail.
        sqlx::query("SELECT pg_advisory_xact_lock(1)").execute(&mut *tx).await?;
        sqlx::query(SCHEMA).execute(&mut *tx).await?;
        tx.commit().await?;
        let tenure = OpenOptions::new().measured().open(database).await?;
        Ok(Self { tenure, pool })
    }
}

/// A job: send the welcome mail of an account.
#[derive(Serialize, Deserialize)]
struct SendWelcome {
    account: i64,
}

impl Job for SendWelcome {
    const KIND: &'static str = "send_welcome";
    const QUEUE: &'static str = "mail";
    type Output = ();

    fn terms() -> Terms {
        Terms { timeout: Some(Duration::from_secs(30)), ..Terms::default() }
    }
}

#[derive(Serialize, Deserialize)]
struct NewAccount {
    email: String,
}

#[derive(Serialize, Deserialize)]
struct Account {
    id: i64,
    welcomed: bool,
}

/// Stores the account and enqueues its job, both or neither. Returns `None` if the address is taken.
async fn sign_up(
    app: &App,
    tx: &mut Transaction<'_, Postgres>,
    email: &str,
) -> Result<Option<i64>, AnyError> {
    let insert = "INSERT INTO account (email) VALUES ($1) ON CONFLICT DO NOTHING RETURNING id";
    let Some(account) = sqlx::query_scalar(insert).bind(email).fetch_optional(&mut **tx).await? else {
        return Ok(None);
    };
    app.tenure.enqueue(SendWelcome { account }).within(take_part(tx)).await?;
    Ok(Some(account))
}

async fn create_account(State(app): State<App>, Json(new): Json<NewAccount>) -> Result<Response, Failure> {
    let mut tx = app.pool.begin().await?;
    let Some(id) = sign_up(&app, &mut tx, &new.email).await? else {
        return Ok((StatusCode::CONFLICT, "this address has an account").into_response());
    };
    tx.commit().await?;
    Ok((StatusCode::CREATED, Json(Account { id, welcomed: false })).into_response())
}

async fn account(State(app): State<App>, Path(id): Path<i64>) -> Result<Response, Failure> {
    let select = "SELECT welcomed_at IS NOT NULL FROM account WHERE id = $1";
    let welcomed: Option<bool> = sqlx::query_scalar(select).bind(id).fetch_optional(&app.pool).await?;
    Ok(match welcomed {
        Some(welcomed) => Json(Account { id, welcomed }).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    })
}

/// Handles the job. The note in the account and the end of the job commit together.
async fn send_welcome(run: Run<App>, job: SendWelcome) -> Result<(), Failed> {
    let pool = &run.app().pool;
    let select = "SELECT email FROM account WHERE id = $1";
    let email: Option<String> = sqlx::query_scalar(select).bind(job.account).fetch_optional(pool).await?;
    let Some(email) = email else { return Err(Failed::for_good("the account was deleted")) };
    // Call your mail provider here. The job's id is the same in every attempt: use it as the idempotency key.
    tracing::info!(email, key = %run.id(), "sending the welcome mail");
    let mut tx = pool.begin().await?;
    let update = "UPDATE account SET welcomed_at = now() WHERE id = $1";
    sqlx::query(update).bind(job.account).execute(&mut *tx).await?;
    run.complete_in(take_part(&mut tx)).await?;
    Ok(tx.commit().await?)
}

fn worker(app: &App) -> Worker<App> {
    Worker::new(&app.tenure, app.clone()).queue("mail", 8).job(send_welcome)
}

fn router(app: &App) -> Router {
    // Both require an access token of the store. Your own routes do what you decide.
    let api: Router = tenure_http::guarded_api(&app.tenure);
    let dashboard: Router = Dashboard::over(&app.tenure, api.clone()).at("/admin/jobs");
    Router::new()
        .route("/accounts", post(create_account))
        .route("/accounts/{id}", get(account))
        .with_state(app.clone())
        // Jobs belong to the trace of the request that enqueues them.
        .layer(middleware::from_fn(tenure_http::traced))
        .merge(api)
        .merge(dashboard)
}

/// Serves requests and runs jobs until `shutdown` resolves, then stops both.
async fn run(app: App, listener: TcpListener, shutdown: impl Future<Output = ()>) -> Result<(), AnyError> {
    let stop = CancellationToken::new();
    let working = async {
        let signal = async {
            shutdown.await;
            stop.cancel();
        };
        let stopped = worker(&app).run(signal).await?;
        // `tenure worker stop` also ends a worker: the server ends with it.
        stop.cancel();
        Ok::<_, AnyError>(stopped)
    };
    let serving = async {
        let stopping = stop.clone().cancelled_owned();
        let server = axum::serve(listener, router(&app)).with_graceful_shutdown(stopping);
        let late = async {
            stop.cancelled().await;
            SystemClock.sleep(DRAIN).await;
        };
        tokio::select! {
            served = server.into_future() => served?,
            // A client may read its response slowly, or not at all.
            () = late => tracing::info!("closing the connections that are still open"),
        }
        Ok::<_, AnyError>(())
    };
    let (stopped, ()) = tokio::try_join!(working, serving)?;
    tracing::info!(settled = stopped.settled, unsettled = stopped.unsettled, "stopped");
    app.pool.close().await;
    Ok(app.tenure.close().await?)
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    tracing_subscriber::fmt().init();
    let app = App::open(&std::env::var("DATABASE_URL")?).await?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    run(app, listener, tenure::shutdown_signal()).await
}

/// An error of a request: logged, and answered with status 500.
struct Failure(AnyError);

impl<E: Into<AnyError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        tracing::error!(error = %self.0, "a request failed");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}
