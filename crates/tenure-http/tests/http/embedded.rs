//! Routes in a service that has its own: under a prefix, for its own users, until it shuts down.

#![allow(clippy::disallowed_methods, reason = "a real connection is waited for in real time")]

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use serde_json::Value;
use tenure::{Draft, JobId, PageAsk, Tenure, Worker};
use tenure_http::{Asked, Items, Problem};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::asking::Asker;

fn draft() -> Draft {
    Draft::raw("charge", &serde_json::json!({ "card": "4711" })).meta("customer", "ada")
}

async fn create(State(tenure): State<Tenure>, asked: Asked) -> Result<Response, Problem> {
    asked.enqueue_draft(&tenure, draft()).await
}

fn charges(tenure: &Tenure, items: Items) -> Router {
    Router::new().route("/charges", post(create)).with_state(tenure.clone()).merge(items.routes())
}

/// All URLs of a JSON document's links.
fn links(document: &Value) -> Vec<String> {
    let links = document["links"].as_object().unwrap().values();
    links.map(|link| link.as_str().or_else(|| link["href"].as_str()).unwrap().to_owned()).collect()
}

#[tokio::test]
async fn under_a_prefix_all_links_lead_to_routes_that_are_mounted() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let items = Items::new(&tenure, |_, _| true);
    let service = Asker::to(Router::new().nest("/api", charges(&tenure, items)));
    let told = service.ask("POST", "/api/charges", &[], "").await;
    assert_eq!(told.status, StatusCode::ACCEPTED, "{told:?}");
    let item = format!("/api/queue/{}", told.id());
    assert_eq!(told.header("location"), format!("http://localhost:8368{item}"));
    let monitor = format!("http://localhost:8368{item}?redirect=false");
    assert_eq!(told.header("operation-location"), monitor);
    let shown = service.get(&item).await;
    assert_eq!(shown.status, StatusCode::OK);
    assert_eq!(links(&shown.json()), links(&told.json()));
    assert_eq!(links(&shown.json()).len(), 4);
    for link in links(&shown.json()) {
        assert_eq!(service.get(&link).await.status, StatusCode::OK, "{link}");
    }
    // The same for a route at the prefix itself.
    let router = Router::new().route("/", post(create)).with_state(tenure.clone());
    let told = Asker::to(Router::new().nest("/api", router)).ask("POST", "/api", &[], "").await;
    assert!(told.header("location").starts_with("http://localhost:8368/api/queue/"), "{told:?}");
    // The same for the whole API.
    let service = Asker::to(Router::new().nest("/internal/", tenure_http::api(&tenure)));
    let told = service.ask("POST", "/internal/v1/jobs", &[], r#"{"kind":"charge"}"#).await;
    let id = told.id();
    assert_eq!(told.header("location"), format!("http://localhost:8368/internal/queue/{id}"));
    assert_eq!(told.header("operation-location"), format!("http://localhost:8368/internal/v1/jobs/{id}"));
    for link in links(&told.json()).iter().filter(|link| !link.ends_with("/events")) {
        assert_ne!(service.get(link).await.status, StatusCode::NOT_FOUND, "{link}");
    }
}

#[tokio::test]
async fn routes_elsewhere_are_named_by_the_service() {
    async fn create(State(tenure): State<Tenure>, asked: Asked) -> Result<Response, Problem> {
        asked.under("/status").enqueue_draft(&tenure, draft()).await
    }
    let tenure = Tenure::open("memory:").await.unwrap();
    let router = Router::new().route("/charges", post(create)).with_state(tenure.clone());
    let service = Asker::to(router.nest("/status", Items::new(&tenure, |_, _| true).routes()));
    let told = service.ask("POST", "/charges", &[], "").await;
    assert_eq!(service.get(told.header("location")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn only_requests_that_the_service_allows_see_or_cancel_a_job() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let items = Items::new(&tenure, |request, job| {
        let user = request.headers.get("x-user").and_then(|user| user.to_str().ok());
        let is_own = user.is_some_and(|user| job.terms.meta.get("customer").is_some_and(|own| own == user));
        is_own && request.method != "DELETE" || user == Some("staff")
    });
    let service = Asker::to(charges(&tenure, items));
    let item = format!("/queue/{}", tenure.enqueue_draft(draft()).await.unwrap().id());
    let ask = async |method: &str, headers: &[&str]| service.ask(method, &item, headers, "").await.status;
    assert_eq!(ask("GET", &["x-user: ada"]).await, StatusCode::OK);
    for headers in [&["x-user: eve"][..], &[], &["x-user: eve", "accept: text/event-stream"]] {
        assert_eq!(ask("GET", headers).await, StatusCode::NOT_FOUND);
        assert_eq!(ask("DELETE", headers).await, StatusCode::NOT_FOUND);
    }
    assert_eq!(ask("DELETE", &["x-user: ada"]).await, StatusCode::NOT_FOUND);
    assert_eq!(ask("DELETE", &["x-user: staff"]).await, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_status_page_shows_no_args_and_no_metadata_unless_it_is_asked_to() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let item = format!("/queue/{}", tenure.enqueue_draft(draft()).await.unwrap().id());
    let service = Asker::to(charges(&tenure, Items::new(&tenure, |_, _| true)));
    for document in [service.get(&item).await.json(), service.ask("POST", "/charges", &[], "").await.json()] {
        let names: Vec<&String> = document.as_object().unwrap().keys().collect();
        for hidden in ["args", "meta", "lease", "limit_key", "error", "traceparent"] {
            assert!(!names.iter().any(|name| *name == hidden), "{document}");
        }
        assert_eq!(document["status"], "NotStarted");
    }
    let items = Items::new(&tenure, |_, _| true).show(&["state", "args"]);
    let shown = Asker::to(charges(&tenure, items)).get(&item).await.json();
    assert_eq!(shown, serde_json::json!({ "state": "queued", "args": { "card": "4711" } }));
}

#[tokio::test]
#[should_panic(expected = "a job has no field \"stat\"")]
async fn an_unknown_field_is_refused() {
    let tenure = Tenure::open("memory:").await.unwrap();
    drop(Items::new(&tenure, |_, _| true).show(&["stat"]));
}

#[tokio::test]
async fn all_ways_to_enqueue_in_a_traced_route_keep_the_trace_of_the_request() {
    async fn create(State(tenure): State<Tenure>, asked: Asked) -> Result<Response, Problem> {
        let job = tenure.enqueue_draft(draft()).await?;
        tenure.enqueue_all([draft()]).await?;
        tenure.enqueue_each([draft()]).await?;
        Ok(asked.accepted(&tenure, job.id()).await)
    }
    let tenure = Tenure::open("memory:").await.unwrap();
    let router = Router::new().route("/charges", post(create)).with_state(tenure.clone());
    let service = Asker::to(router.layer(axum::middleware::from_fn(tenure_http::traced)));
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let header = format!("traceparent: {parent}");
    service.ask("POST", "/charges", &[&header, "tracestate: a=1"], "").await;
    let page = tenure.jobs().page(PageAsk { at_most: 10, ..PageAsk::default() }).await.unwrap();
    assert_eq!(page.jobs.len(), 3);
    for job in page.jobs {
        assert_eq!(
            (job.terms.meta["traceparent"].as_str(), job.terms.meta["tracestate"].as_str()),
            (parent, "a=1")
        );
    }
}

/// Opens a request, and returns once the server has sent `begin`.
async fn opened(address: std::net::SocketAddr, request: &str, begin: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{request}host: localhost\r\n\r\n").as_bytes()).await.unwrap();
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(begin) {
        assert!(stream.read_buf(&mut read).await.unwrap() > 0, "it ended before");
    }
    stream
}

#[tokio::test]
async fn open_streams_and_long_polls_end_when_the_worker_of_their_service_stops() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let id: JobId = tenure.enqueue_draft(draft()).await.unwrap().id();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let app: Router = tenure_http::api(&tenure);
    let server = axum::serve(listener, app).with_graceful_shutdown(stop.clone().cancelled_owned());
    let serving = tokio::spawn(server.into_future());
    let working = tokio::spawn(Worker::new(&tenure, ()).only_timers().run(stop.clone().cancelled_owned()));

    let accept = "accept: text/event-stream\r\n";
    let item = format!("GET /queue/{id} HTTP/1.1\r\n{accept}");
    let mut streams = vec![opened(address, &item, "event: job").await];
    let log = format!("GET /v1/jobs/{id}/logs HTTP/1.1\r\n{accept}");
    streams.push(opened(address, &log, "200 OK").await);
    let feed = format!("GET /v1/events HTTP/1.1\r\n{accept}");
    streams.push(opened(address, &feed, "200 OK").await);
    let poll = format!("GET /v1/jobs/{id} HTTP/1.1\r\nprefer: wait=60\r\n");
    let poll = tokio::spawn(async move { opened(address, &poll, "200 OK").await });
    // The server takes connections in order: when this is answered, it has begun to wait for the job.
    tokio::task::yield_now().await;
    opened(address, "GET /livez HTTP/1.1\r\n", "200 OK").await;
    assert!(!poll.is_finished());

    stop.cancel();
    // By itself the poll would end after 55 seconds, and the streams never.
    timeout(Duration::from_secs(45), serving).await.expect("the server ends").unwrap().unwrap();
    timeout(Duration::from_secs(45), poll).await.expect("the poll is answered").unwrap();
    working.await.unwrap().unwrap();
    drop(streams);
}

/// The service authenticates browsers, so a foreign page can send requests with their credentials.
#[tokio::test]
async fn a_foreign_page_changes_nothing_through_the_routes_of_a_service() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let service = Asker::of(&tenure);
    tenure.enqueue_draft(Draft::raw("k", &serde_json::json!(1)).queue("mail")).await.unwrap();
    let foreign = "sec-fetch-site: cross-site";
    for path in ["/v1/queues/mail/pause", "/v1/queues/mail/resume"] {
        let told = service.ask("POST", path, &[foreign], "").await;
        assert_eq!(told.status, StatusCode::FORBIDDEN, "{told:?}");
    }
    assert!(service.ask("GET", "/v1/queues", &[foreign], "").await.status.is_success());
    let own = service.ask("POST", "/v1/queues/mail/pause", &["sec-fetch-site: same-origin"], "").await;
    assert!(own.status.is_success(), "{own:?}");
}
