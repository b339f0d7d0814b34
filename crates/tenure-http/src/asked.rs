//! The two lines that a service of its own needs: what a client asked, and the answer that the pattern wants.

use std::convert::Infallible;
use std::fmt;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use tenure::{Draft, Job, JobId, Tenure};

use crate::items;
use crate::jobs::enqueue;
use crate::once::Client;
use crate::problem::Problem;
use crate::site::Site;

/// Extractor for the request headers that control the response: the preferred wait and the address of this server.
///
/// ```
/// use axum::{Json, Router, extract::State, response::Response, routing::post};
/// use serde::{Deserialize, Serialize};
/// use tenure::{Job, Tenure};
/// use tenure_http::{Asked, Items, Problem};
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
///     .merge(Items::new(&tenure, |_, _| true).routes()); // /queue/{id}: 200 while it runs, then 303
/// # drop(app); Ok(()) }
/// ```
#[derive(Clone)]
pub struct Asked {
    headers: HeaderMap,
    /// What was asked for: one key is for one request.
    path: String,
    site: Site,
    client: Option<String>,
}

/// Omits the headers, which hold the client's credentials.
impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Asked {
    /// Sets the prefix under which the status pages are mounted. By default it is the prefix of the router in which your
    /// route is nested, such as `/api`.
    #[must_use]
    pub fn under(self, prefix: &str) -> Self {
        Self { site: self.site.under(prefix), ..self }
    }

    /// Names the client that your service has authenticated, such as by a user ID. Each name has its own idempotency keys.
    ///
    /// Without a name, the header `Authorization` tells clients apart. A request with neither ignores the header
    /// `Idempotency-Key`: clients that sign in with cookies would share their keys, and could block each other's requests.
    #[must_use]
    pub fn client(self, name: &str) -> Self {
        Self { client: Some(name.to_owned()), ..self }
    }

    /// Enqueues a job and returns 202 with its status URLs, or 200 with the finished job if it ends within the
    /// preferred wait.
    ///
    /// # Errors
    /// An invalid value, a refusal, or a fault of the store, as a problem document for the client.
    pub async fn enqueue<J: Job>(&self, tenure: &Tenure, job: J) -> Result<Response, Problem> {
        self.enqueue_draft(tenure, Draft::of(&job)).await
    }

    /// Enqueues a job with options; otherwise like [`enqueue`](Self::enqueue).
    ///
    /// # Errors
    /// Like [`enqueue`](Self::enqueue).
    pub async fn enqueue_draft(&self, tenure: &Tenure, draft: Draft) -> Result<Response, Problem> {
        let client = Client::OfService(self.client.as_deref());
        let asked = (&self.headers, self.path.as_str(), &self.site);
        enqueue::enqueue(tenure, client, asked, draft).await.inspect_err(|problem| {
            // This route belongs to the service, so no middleware of this crate logs it.
            if let Some(trouble) = problem.trouble() {
                trouble.tell(0);
            }
        })
    }

    /// Returns the same response for a job that is already accepted, such as one enqueued in your own PostgreSQL
    /// transaction with `tenure.enqueue(…).within(&mut tx)`. Call it after the commit. It ignores the header
    /// `Idempotency-Key`; make the request safe to repeat yourself, for instance with a job ID derived from that key.
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
        enqueue::told_of(tenure, (&self.headers, &self.site), job).await
    }
}

impl<S: Sync> FromRequestParts<S> for Asked {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let site = Site::of(parts, Some(items::shown()));
        let path = parts.uri.path().to_owned();
        Ok(Self { headers: parts.headers.clone(), path, site, client: None })
    }
}
