//! Has something done with many jobs.

use axum::Form;
use axum::extract::Path;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use crate::acts::{Wish, back, done};
use crate::asking::{Trouble, encoded};
use crate::guard::{Filled, check};
use crate::layout::failed;
use crate::pages::bulk_new::{Meant, has_to_be_sure};
use crate::parts::count;
use crate::visit::Visit;

/// `POST bulk/new`
pub(crate) async fn begin(visit: Visit, headers: HeaderMap, Form(filled): Form<Filled>) -> Response {
    match begun(&visit, &headers, &filled).await {
        Ok(id) => back(&visit.at(&format!("bulk/{}?did=bulk", encoded(&id)))),
        Err(trouble) => failed(&visit, trouble).await,
    }
}

async fn begun(visit: &Visit, headers: &HeaderMap, filled: &Filled) -> Result<String, Trouble> {
    check(visit, headers, filled)?;
    visit.may_change()?;
    let said = |name: &str| filled.get(name).map(|text| text.trim()).unwrap_or_default();
    let meant = Meant {
        search: said("q").to_owned(),
        ids: said("ids").split_whitespace().map(str::to_owned).collect(),
    };
    let preview = meant.count(visit).await?;
    // How far somebody has counted who was told "or more" depends on how busy the server was; he has written the number.
    let was_cut = said("cut") == "true";
    if !was_cut {
        not_more(&preview, said("matched"))?;
    }
    if (was_cut || has_to_be_sure(&preview)) && said("typed") != said("matched") {
        let detail = "To confirm, type the number of jobs exactly as shown. Nothing was changed; go back and try again.";
        return Err(Trouble::new(StatusCode::UNPROCESSABLE_ENTITY, "Number does not match", detail));
    }
    let mut ask = meant.ask(said("action"));
    ask["params"] = params(said("action"), &said)?;
    let job = visit.ask(Method::POST, "/v1/bulk", &ask).await?;
    Ok(job["id"].as_str().unwrap_or_default().to_owned())
}

/// Refuses if more jobs are meant by now than were shown, beyond what comes and goes while somebody reads.
fn not_more(preview: &Value, shown: &str) -> Result<(), Trouble> {
    let now = preview["matched"].as_u64().unwrap_or_default();
    // Whoever says nothing has been shown nothing.
    let shown = shown.parse::<u64>().unwrap_or_default();
    if now <= shown + (shown / 10).max(10) {
        return Ok(());
    }
    let or_more = if preview["capped"] == true { " or more" } else { "" };
    let detail = format!(
        "{} jobs matched when the page was shown, and {}{or_more} match now. Nothing was changed; go back and reload the page.",
        count(shown),
        count(now)
    );
    Err(Trouble::new(StatusCode::CONFLICT, "Many more jobs match now", &detail))
}

/// What else an action needs, and nothing that it does not.
fn params<'f>(action: &str, said: &impl Fn(&str) -> &'f str) -> Result<Value, Trouble> {
    Ok(match action {
        "move" => json!({ "queue": said("queue") }),
        "reprioritize" => {
            let wrong = |_| {
                let detail = "A priority is a whole number from -100 (first) to 100 (last).";
                Trouble::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid priority", detail)
            };
            json!({ "priority": said("priority").parse::<i64>().map_err(wrong)? })
        }
        "cancel" if !said("reason").is_empty() => json!({ "reason": said("reason") }),
        _ => json!({}),
    })
}

/// `POST bulk/{id}/cancel`
pub(crate) async fn cancel(
    visit: Visit,
    Path(id): Path<String>,
    headers: HeaderMap,
    Form(filled): Form<Filled>,
) -> Response {
    let id = encoded(&id);
    let wish = Wish::post(format!("/v1/jobs/{id}/cancel"), format!("bulk/{id}"));
    done(visit, headers, filled, Some(wish), "cancel").await
}
