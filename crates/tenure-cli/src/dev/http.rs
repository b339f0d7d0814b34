//! The demo over HTTP: all of the contract, and stars that can be asked for.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::Value;
use tenure::{Error, Filter, Job, PageAsk, StateName, Tenure};
use tenure_http::{Asked, Egress, Network, Options, Problem, ProblemType, ServeError, Server, deliveries};
use tenure_ui::Dashboard;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::kinds::{BuildStar, Star};
use crate::exit::Failure;
use crate::screen::complain;

/// Where it listens unless somebody says otherwise.
pub(crate) const PORT: u16 = 8368;
/// Together with the worker's, a stop takes less than five seconds.
const GRACE: Duration = Duration::from_secs(2);
/// Takes what a webhook is told.
pub(super) const HOOK: &str = "/demo/hook";
/// How long somebody who asked for a star waits for it.
const STAR_WITHIN: Duration = Duration::from_secs(30);

/// A server that listens; none if nobody said where and the usual port is in use.
pub(super) async fn server(tenure: &Tenure, port: Option<u16>) -> Result<Option<Server>, Failure> {
    let mut options = Options::default();
    options.bind = SocketAddr::from(([127, 0, 0, 1], port.unwrap_or(PORT)));
    options.grace = GRACE;
    options.egress = Egress::to(&Network::loopback());
    match Server::bind(tenure, options).await {
        Ok(server) => {
            let pages = Dashboard::over(tenure, server.contract()).mounted();
            Ok(Some(server.merge(stars(tenure)).merge(pages)))
        }
        Err(ServeError::Bind { .. }) if port.is_none() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Serves and delivers to webhooks, if there is a server, until what is answered beside the task is dropped.
pub(super) fn serve(tenure: &Tenure, server: Option<Server>) -> (JoinHandle<()>, oneshot::Sender<()>) {
    let (serving, stop) = oneshot::channel::<()>();
    // The timers are fired by the worker of the demo.
    let worker = deliveries(tenure, &Network::loopback()).no_timers().name("tenure dev, webhooks");
    let worker = worker.bulk_operations(1).finish_within(GRACE).stop_grace(GRACE);
    let served = tokio::spawn(async move {
        let Some(server) = server else { return };
        let stopping = CancellationToken::new();
        let serve = server.run(async {
            drop(stop.await);
            stopping.cancel();
        });
        let ((), delivered) = tokio::join!(serve, worker.run(stopping.cancelled()));
        if let Err(error) = delivered {
            complain(&format!("webhooks are no longer delivered: {error}"));
        }
    });
    (served, serving)
}

fn stars(tenure: &Tenure) -> Router {
    Router::new()
        .route(HOOK, post(|| async { StatusCode::NO_CONTENT }))
        .route("/demo/stars", get(shown_when_built).post(accepted))
        .route("/stars/{number}", get(star))
        .with_state(tenure.clone())
}

fn a_star() -> BuildStar {
    BuildStar { name: "Sol".to_owned() }
}

/// The pattern: 202, and the place where it can be watched. A body may name the star.
async fn accepted(State(tenure): State<Tenure>, asked: Asked, body: Bytes) -> Result<Response, Problem> {
    asked.enqueue(&tenure, wanted(&body)?).await
}

/// The star that a body asks for; one without a name if it is empty or names none.
fn wanted(body: &[u8]) -> Result<BuildStar, Problem> {
    const EXPECTED: &str = r#"{"name": "Vega"}"#;
    if body.trim_ascii().is_empty() {
        return Ok(a_star());
    }
    let body: Value = serde_json::from_slice(body).map_err(|error| {
        Problem::new(ProblemType::Malformed, format!("the body is not JSON: {error}; expected {EXPECTED}"))
    })?;
    match &body["name"] {
        Value::Null => Ok(a_star()),
        Value::String(name) => Ok(BuildStar { name: name.clone() }),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(Problem::new(
                ProblemType::Validation,
                format!("invalid name {other}; expected a text, as in {EXPECTED}"),
            ))
        }
    }
}

/// For whoever follows wherever he is led: the way to the star, once it is there.
async fn shown_when_built(State(tenure): State<Tenure>) -> Result<Response, Problem> {
    let id = tenure.enqueue(a_star()).await?.id();
    let clock = tenure.store().clock();
    let place = tokio::select! {
        biased;
        ended = tenure.wait(id) => ended?.job.output.and_then(|output| output.place),
        () = clock.sleep(STAR_WITHIN) => None,
    };
    Ok(Redirect::to(&place.unwrap_or_else(|| format!("/queue/{id}"))).into_response())
}

/// A star that was built: what its job has returned.
async fn star(State(tenure): State<Tenure>, Path(number): Path<u64>) -> Result<Json<Star>, Problem> {
    let missing = || Problem::new(ProblemType::NotFound, format!("star {number} not found"));
    // The number of a star is the place of its job in the order of acceptance.
    let ask = PageAsk {
        filter: Filter {
            states: vec![StateName::Succeeded],
            kinds: vec![tenure::Kind::new(BuildStar::KIND).map_err(Error::from)?],
            ..Filter::default()
        },
        after: Some(tenure::Cursor::behind(number.saturating_add(1))),
        at_most: 1,
        ..PageAsk::default()
    };
    let found = tenure.jobs().page(ask).await?.jobs.into_iter().find(|job| job.seq == number);
    let id = found.ok_or_else(missing)?.id;
    Ok(Json(tenure.wait_for::<BuildStar>(id).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_has_the_name_that_was_asked_for() {
        let name = |body: &str| wanted(body.as_bytes()).map(|star| star.name).ok();
        assert_eq!(name(r#"{"name":"Vega"}"#).as_deref(), Some("Vega"));
        assert_eq!((name(" ").as_deref(), name("{}").as_deref()), (Some("Sol"), Some("Sol")));
        assert_eq!((name("Vega"), name(r#"{"name":7}"#)), (None, None));
    }
}
