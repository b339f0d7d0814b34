//! The two lines that a service of its own needs: what a client asked, and the answer that the pattern wants.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use tenure::{Draft, Job, JobId, Tenure};

use crate::jobs::enqueue;
use crate::problem::Problem;

/// What a client asked beside the body of its request: how long it would rather wait, and how it addressed this server.
///
/// ```
/// use axum::{Json, Router, extract::State, response::Response, routing::post};
/// use serde::{Deserialize, Serialize};
/// use tenure::{Job, Tenure};
/// use tenure_http::{Asked, Problem};
///
/// #[derive(Serialize, Deserialize)]
/// struct BuildStar { name: String }
/// impl Job for BuildStar { const KIND: &'static str = "build_star"; type Output = u64; }
///
/// async fn create_star(State(tenure): State<Tenure>, asked: Asked, Json(star): Json<BuildStar>) -> Result<Response, Problem> {
///     asked.enqueue(&tenure, star).await          // 202, Location: /queue/…
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tenure::Error> {
/// let tenure = Tenure::open("memory:").await?;
/// let app: Router = Router::new()
///     .route("/stars", post(create_star))
///     .with_state(tenure.clone())
///     .merge(tenure_http::routes(&tenure));       // /queue/{id}: 200 while it runs, then 303
/// # drop(app); Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Asked {
    headers: HeaderMap,
    /// What was asked for: one key is for one request.
    path: String,
}

impl Asked {
    /// Enqueues a job and answers 202 with the places where it can be watched; 200 with its end if the client would rather
    /// wait and it has ended by then.
    ///
    /// # Errors
    /// A value beyond its limits, a refusal, or a fault of the store, as the document that tells it to the client.
    pub async fn enqueue<J: Job>(&self, tenure: &Tenure, job: J) -> Result<Response, Problem> {
        self.enqueue_draft(tenure, Draft::of(&job)).await
    }

    /// The same for a job of which more was said.
    ///
    /// # Errors
    /// As [`enqueue`](Self::enqueue).
    pub async fn enqueue_draft(&self, tenure: &Tenure, draft: Draft) -> Result<Response, Problem> {
        enqueue::enqueue(tenure, (&self.headers, &self.path), draft).await.inspect_err(|problem| {
            // This route is the service's own: nobody else writes it down.
            if let Some(trouble) = problem.trouble() {
                trouble.tell(0);
            }
        })
    }

    /// Answers in the same way for a job that was accepted already, such as one that was enqueued within a transaction of the
    /// service's own together with what it is about (`tenure.enqueue(…).within(&mut tx)`, on PostgreSQL): to be asked for once that
    /// has committed. An `Idempotency-Key` of the client counts for nothing here: what makes the request harmless to repeat is the
    /// service's own, such as an id that it draws from the key.
    ///
    /// ```
    /// # use axum::response::Response;
    /// # use tenure::{Draft, Tenure};
    /// # use tenure_http::{Asked, Problem};
    /// async fn create_star(tenure: Tenure, asked: Asked) -> Result<Response, Problem> {
    ///     let accepted = tenure.enqueue_draft(Draft::raw("build_star", &serde_json::json!("Vega"))).await?;
    ///     Ok(asked.accepted(&tenure, accepted.id()).await)          // 202, Location: /queue/…
    /// }
    /// ```
    pub async fn accepted(&self, tenure: &Tenure, job: JobId) -> Response {
        enqueue::told_of(tenure, &self.headers, job).await
    }
}

impl<S: Sync> FromRequestParts<S> for Asked {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self { headers: parts.headers.clone(), path: parts.uri.path().to_owned() })
    }
}
