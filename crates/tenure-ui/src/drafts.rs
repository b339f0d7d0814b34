//! Enqueues what somebody has filled in.

use axum::Form;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

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
            // Whoever went back and wrote something else means another job.
            let is_taken = wrong.status == StatusCode::CONFLICT;
            let drafted = if is_taken { drafted.anew(&visit) } else { drafted };
            let body = form(&visit, &drafted, Some(&wrong)).await;
            (wrong.status, show(&visit, "New job", "Jobs", body).await).into_response()
        }
        Err(trouble) => failed(&visit, trouble).await,
    }
}

async fn enqueue(visit: &Visit, drafted: &Drafted) -> Result<String, Trouble> {
    let ask = drafted.ask(visit)?;
    if drafted.id.is_empty() {
        return visit.ask(Method::POST, "/v1/jobs", &ask).await.map(|made| text(&made, "id").to_owned());
    }
    let asked = visit.ask(Method::PUT, &format!("/v1/jobs/{}", encoded(&drafted.id)), &ask).await;
    match asked {
        Ok(made) if is_asked_for(&made, &ask) => Ok(drafted.id.clone()),
        Ok(_) => Err(another()),
        Err(refused) if refused.status == StatusCode::CONFLICT => Err(another()),
        Err(trouble) => Err(trouble),
    }
}

/// Whether a job is what was asked for: the contract takes one of the same kind and args as the same.
fn is_asked_for(made: &Value, ask: &Value) -> bool {
    let is_so = |key: &str| ask[key].is_null() || ask[key] == made[key];
    ["queue", "priority", "tags", "run_at"].into_iter().all(is_so)
}

fn another() -> Trouble {
    let detail = "With this form a job was enqueued before it was changed. To have this one as well, send it once more.";
    Trouble::new(StatusCode::CONFLICT, "It is another job", detail)
}
