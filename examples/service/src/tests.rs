//! Tests of the service. Each has an empty database on a PostgreSQL server for tests.

use std::sync::atomic::{AtomicU32, Ordering};

use axum::body::Body;
use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use sqlx::AssertSqlSafe;
use tenure::{JobId, PageAsk, StateName};
use tower::ServiceExt;

use super::*;

/// Opens the app on a new database.
async fn empty() -> App {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let server = test_server();
    let pool = PgPool::connect(&server).await.unwrap();
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&pool).await.unwrap();
    let (address, _) = server.rsplit_once('/').unwrap();
    App::open(&format!("{address}/{name}")).await.unwrap()
}

/// Sends a request to the routes, without a server.
async fn ask(app: &App, method: &str, path: &str, body: &'static str) -> StatusCode {
    let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
    let response = router(app).oneshot(request.body(Body::from(body)).unwrap()).await;
    response.unwrap().status()
}

async fn job_ids(app: &App) -> Vec<JobId> {
    let page = app.tenure.jobs().page(PageAsk { at_most: 100, ..PageAsk::default() }).await.unwrap();
    page.jobs.iter().map(|job| job.id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_enqueues_nothing() {
    let app = empty().await;
    let mut tx = app.pool.begin().await.unwrap();
    let account = sign_up(&app, &mut tx, "ada@example.com").await.unwrap();
    assert!(account.is_some());
    tx.rollback().await.unwrap();
    assert!(job_ids(&app).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_enqueues_once_and_the_job_ends_with_its_effect() {
    let app = empty().await;
    let ada = r#"{"email":"ada@example.com"}"#;
    assert_eq!(ask(&app, "POST", "/accounts", ada).await, StatusCode::CREATED);
    assert_eq!(ask(&app, "POST", "/accounts", ada).await, StatusCode::CONFLICT);
    let ids = job_ids(&app).await;
    assert_eq!(ids.len(), 1);

    let stopped = worker(&app).run(app.tenure.wait(ids[0])).await.unwrap();
    assert_eq!((stopped.settled, stopped.fenced), (1, 0));
    let job = app.tenure.jobs().get(ids[0]).await.unwrap();
    assert_eq!(job.state.name(app.tenure.now()), StateName::Succeeded);
    let select = "SELECT welcomed_at IS NOT NULL FROM account";
    let welcomed: bool = sqlx::query_scalar(select).fetch_one(&app.pool).await.unwrap();
    assert!(welcomed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_and_the_dashboard_require_a_token() {
    let app = empty().await;
    for path in ["/v1/jobs", "/metrics"] {
        assert_eq!(ask(&app, "GET", path, "").await, StatusCode::UNAUTHORIZED);
    }
    assert!(ask(&app, "GET", "/admin/jobs/", "").await.is_redirection());
    assert_eq!(ask(&app, "GET", "/livez", "").await, StatusCode::OK);
    assert_eq!(ask(&app, "GET", "/accounts/7", "").await, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_stops_when_it_is_asked_to() {
    let app = empty().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(run(app, listener, async { drop(stopped.await) }));
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

/// The URL of a server on which the tests may create databases: one that is started for them.
fn test_server() -> String {
    use own_postgres::Server;
    static SERVER: std::sync::LazyLock<Server> =
        std::sync::LazyLock::new(|| Server::start_hasty().expect("PostgreSQL starts"));
    SERVER.url()
}

mod transactions;
