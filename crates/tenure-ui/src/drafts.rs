//! Enqueues what somebody has filled in.

use axum::Form;
use axum::http::{HeaderMap, Method};
use axum::response::{IntoResponse, Response};

use crate::acts::back;
use crate::asking::{Trouble, encoded};
use crate::guard::{Filled, check};
use crate::layout::{failed, show};
use crate::pages::job_new::{Drafted, form};
use crate::parts::text;
use crate::visit::Visit;

/// `POST new-job`
pub(crate) async fn add(visit: Visit, headers: HeaderMap, Form(filled): Form<Filled>) -> Response {
    if let Err(trouble) = check(&visit, &headers, &filled).and_then(|()| visit.may_change()) {
        return failed(&visit, trouble).await;
    }
    let drafted = Drafted::of(|name| filled.get(name).cloned().unwrap_or_default());
    match enqueue(&visit, &drafted).await {
        Ok(id) => back(&visit.at(&format!("jobs/{}?did=enqueue", encoded(&id)))),
        // Nothing that was written is lost.
        Err(wrong) if wrong.status.is_client_error() => {
            let body = form(&visit, &drafted, Some(&wrong)).await;
            (wrong.status, show(&visit, "Error: new job", "Jobs", body).await).into_response()
        }
        Err(trouble) => failed(&visit, trouble).await,
    }
}

async fn enqueue(visit: &Visit, drafted: &Drafted) -> Result<String, Trouble> {
    let ask = drafted.ask(visit)?;
    let (method, path) = match drafted.job_id() {
        Some(id) => (Method::PUT, format!("/v1/jobs/{id}")),
        None => (Method::POST, "/v1/jobs".to_owned()),
    };
    visit.send(method, &path, ask).await.map(|made| text(&made, "id").to_owned())
}
