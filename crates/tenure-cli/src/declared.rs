//! Queues, schedules and webhooks that a file declares, brought about in a store by the routes that everybody else uses.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::Value;
use tenure::Tenure;
use tenure_http::{Egress, EgressRule};
use tower::ServiceExt;

use crate::caller::caller;
use crate::client::escaped;
use crate::exit::Failure;
use crate::output::safe;
use crate::settings::{Declaration, Fault, Resolved, declarable};

/// All that is declared, by section and name.
pub(crate) type Declared = BTreeMap<(&'static str, String), Declaration>;

/// What has become of it.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// A sentence for each that is otherwise now.
    pub(crate) changed: Vec<String>,
    /// What was refused.
    pub(crate) faults: Vec<Fault>,
}

/// Why nothing more was done.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Silent(String);

impl From<Silent> for Failure {
    fn from(silent: Silent) -> Self {
        Self::Unreachable(silent.0)
    }
}

/// What would be refused of it: it is brought about in memory.
pub(crate) async fn tried(declared: &Declared, may_call: &Egress) -> Result<Vec<Fault>, Failure> {
    let tenure = Tenure::open("memory:").await?;
    let applied = apply(&tenure_http::api_that_may_call(&tenure, may_call), declared).await?;
    tenure.close().await?;
    Ok(applied.faults)
}

/// Returns the egress rules of the settings. Invalid ones were reported when the settings were read.
pub(crate) fn may_call(settings: &Resolved) -> Egress {
    let rules = |name: &str| settings.list(name).iter().filter_map(|rule| rule.parse::<EgressRule>().ok());
    let allow = rules("server.allow_callback_to").chain(rules("server.egress_allow"));
    Egress::new(allow.collect(), rules("server.egress_deny").collect())
}

/// Brings about what is declared. Doing it once more changes nothing, and what nobody declares stays as it is.
pub(crate) async fn apply(routes: &Router, declared: &Declared) -> Result<Applied, Silent> {
    let mut applied = Applied::default();
    for ((section, name), declaration) in declared {
        let one = section.strip_suffix('s').unwrap_or(section);
        let what = safe::line(&format!("{one} {name}"));
        match bring_about(routes, section, name, &declaration.body).await? {
            Brought::Same => {}
            Brought::Made => applied.changed.push(format!("created {what}")),
            Brought::Otherwise(fields) => {
                applied.changed.push(format!("updated {what}: {}", fields.join(", ")));
            }
            Brought::Refused(why) => {
                let why = format!("{section}.{name}: {why}");
                applied.faults.push(Fault { at: declaration.at.clone(), what: why });
            }
        }
    }
    Ok(applied)
}

enum Brought {
    Same,
    Made,
    /// These are otherwise than before.
    Otherwise(Vec<String>),
    Refused(String),
}

async fn bring_about(routes: &Router, section: &str, name: &str, body: &Value) -> Result<Brought, Silent> {
    let path = format!("/v1/{section}/{}", escaped(name));
    let before = ask(routes, Method::GET, &path, None).await?;
    let is_there = before.0 == 200;
    let is_patched = is_there && keeps_what_is_not_said(section);
    if is_patched && says_nothing_new(body, &before.1) {
        return Ok(Brought::Same);
    }
    let method = if is_patched { Method::PATCH } else { Method::PUT };
    let after = ask(routes, method, &path, Some(body)).await?;
    if after.0 >= 400 {
        return Ok(Brought::Refused(refusal(&after.1)));
    }
    if !is_there {
        return Ok(Brought::Made);
    }
    let is_otherwise = |field: &&&str| !is_same(&before.1[**field], &after.1[**field]);
    let fields = declarable(section).iter().filter(is_otherwise).map(|field| (*field).to_owned());
    let fields: Vec<String> = fields.collect();
    Ok(if fields.is_empty() { Brought::Same } else { Brought::Otherwise(fields) })
}

/// What is not said of a queue is left as somebody has set it, such as a pause; what else there is is what its file
/// says.
pub(crate) fn keeps_what_is_not_said(section: &str) -> bool {
    section == "queues"
}

fn says_nothing_new(said: &Value, there: &Value) -> bool {
    said.as_object().is_some_and(|fields| fields.iter().all(|(name, value)| is_same(value, &there[name])))
}

/// Numbers are the same however they are written; what is not said is the same as nothing.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().chain(other.keys());
            let of = |fields: &serde_json::Map<String, Value>, name: &String| fields.get(name).cloned();
            names
                .into_iter()
                .all(|name| is_same(&of(one, name).unwrap_or_default(), &of(other, name).unwrap_or_default()))
        }
        (one, other) => one == other,
    }
}

fn refusal(problem: &Value) -> String {
    let said = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
    let (field, detail) = (said("field"), said("detail"));
    if field.is_empty() || detail.contains(&field) { detail } else { format!("{field}: {detail}") }
}

/// What the contract answers; a store that cannot is no refusal.
async fn ask(
    routes: &Router,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<(u16, Value), Silent> {
    let silent = |why: &str| Silent(format!("cannot apply the settings file: {why}"));
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.extension(caller()).body(body).map_err(|error| silent(&error.to_string()))?;
    let Ok(response) = routes.clone().oneshot(request).await;
    let status = response.status();
    let bytes = response.into_body().collect().await.map_err(|error| silent(&error.to_string()))?;
    let told: Value = serde_json::from_slice(&bytes.to_bytes()).unwrap_or_default();
    if status.is_server_error() {
        return Err(silent(told["detail"].as_str().unwrap_or("the database does not answer")));
    }
    Ok((status.as_u16(), told))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenure::Tenure;

    use super::*;

    fn declared(section: &'static str, name: &str, body: Value) -> Declared {
        [((section, name.to_owned()), Declaration { body, at: "tenure.toml:1".to_owned() })].into()
    }

    #[tokio::test]
    async fn what_is_declared_comes_about_once_and_leaves_the_rest_as_it_is() {
        let tenure = Tenure::open("memory:").await.unwrap();
        let routes: Router = tenure_http::api(&tenure);
        let mail = |body| declared("queues", "mail", body);
        let first = apply(&routes, &mail(json!({ "max_running": 5 }))).await.unwrap();
        assert_eq!((first.changed, first.faults), (vec!["created queue mail".to_owned()], vec![]));
        tenure.queues().pause("mail").await.unwrap();
        let again = apply(&routes, &mail(json!({ "max_running": 5 }))).await.unwrap();
        assert_eq!(again.changed, [""; 0]);
        let more = mail(json!({ "max_running": 7, "rate": { "limit": 3, "per_seconds": 60 } }));
        let more = apply(&routes, &more).await.unwrap();
        assert_eq!(more.changed, ["updated queue mail: max_running, rate"]);
        let queues = tenure.queues().list().await.unwrap();
        let mail = queues.iter().find(|queue| queue.name.as_str() == "mail").unwrap();
        assert!(mail.paused, "nobody has said that it resumes");
    }

    #[tokio::test]
    async fn a_schedule_is_what_its_file_says_and_a_wrong_one_is_told_with_its_line() {
        let tenure = Tenure::open("memory:").await.unwrap();
        let routes: Router = tenure_http::api(&tenure);
        let nightly = |cron: &str| {
            declared("schedules", "nightly", json!({ "spec": { "cron": cron }, "job": { "kind": "report" } }))
        };
        assert_eq!(
            apply(&routes, &nightly("0 2 * * *")).await.unwrap().changed,
            ["created schedule nightly"]
        );
        assert_eq!(apply(&routes, &nightly("0 2 * * *")).await.unwrap().changed, [""; 0]);
        let changed = apply(&routes, &nightly("0 3 * * *")).await.unwrap().changed;
        assert_eq!(changed, ["updated schedule nightly: spec"]);
        let wrong = apply(&routes, &nightly("0 27 * * *")).await.unwrap().faults;
        assert!(wrong[0].to_string().starts_with("tenure.toml:1: schedules.nightly: "), "{wrong:?}");
    }
}
