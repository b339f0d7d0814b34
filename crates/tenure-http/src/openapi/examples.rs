//! An example of each request body. A test checks them against their schemas.

use serde_json::{Value, json};

const ID: &str = "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10";
const TOKEN: &str = "k7Qm2x0d9wXb4cLr";

/// An example of the request body of an operation.
pub(super) fn of(operation: &str) -> Value {
    of_jobs(operation)
        .or_else(|| of_workers(operation))
        .or_else(|| of_settings(operation))
        .unwrap_or_else(|| json!({}))
}

fn of_jobs(operation: &str) -> Option<Value> {
    let job = json!({ "kind": "resize", "args": { "photo": 7 }, "queue": "images", "max_attempts": 3 });
    Some(match operation {
        "enqueue_job" | "put_job" => job,
        "enqueue_job_of_kind" => json!({ "args": { "photo": 7 }, "queue": "images" }),
        "enqueue_jobs" => json!({ "jobs": [job, { "kind": "resize", "args": { "photo": 8 } }] }),
        "patch_job" => json!({ "priority": -10, "tags": ["urgent"] }),
        "cancel_job" => json!({ "reason": "the order was withdrawn", "grace_seconds": 10.0 }),
        "operate_on_jobs" => {
            json!({ "action": "retry", "filter": { "q": "state:failed kind:resize" }, "dry_run": true })
        }
        "run_app" => json!({ "arguments": ["--full"], "by": "Ada" }),
        "stop_triggered_app" | "stop_continuous_app" => json!({ "reason": "maintenance" }),
        "rotate_token" => json!({ "overlap_seconds": 3600 }),
        _ => return None,
    })
}

fn of_workers(operation: &str) -> Option<Value> {
    let claim = json!({ "queues": ["images"], "kinds": ["resize"], "limit": 4, "lease_seconds": 30.0 });
    let progress = json!({ "fraction": 0.5, "message": "resizing" });
    let lost = json!({ "type": "ValueError", "detail": "not a photo" });
    Some(match operation {
        "claim_jobs" => claim,
        "settle_jobs" => json!({
            "items": [{ "job_id": ID, "token": TOKEN, "outcome": "complete", "result": { "width": 640 } }],
            "claim": claim,
        }),
        "extend_jobs" => json!({ "running": [{ "job_id": ID, "token": TOKEN, "progress": progress }] }),
        "extend_job" => json!({ "token": TOKEN, "progress": progress }),
        "log_lines" => json!({ "token": TOKEN, "lines": ["read 7.jpg", "wrote 7-small.jpg"] }),
        "complete_job" => {
            json!({ "token": TOKEN, "result": { "width": 640 }, "resource_location": "/photos/7" })
        }
        "fail_job" => json!({ "token": TOKEN, "error": lost, "retryable": false }),
        "release_job" => json!({ "token": TOKEN, "delay_seconds": 60.0 }),
        "acquire_lease" => json!({ "owner": "web-3", "ttl_seconds": 15.0 }),
        "renew_lease" | "release_lease" => json!({ "token": TOKEN }),
        "break_lease" => json!({ "reason": "web-3 does not respond", "after_seconds": 0.0 }),
        _ => return None,
    })
}

fn of_settings(operation: &str) -> Option<Value> {
    let schema = json!({ "type": "object", "required": ["photo"] });
    let spec = json!({ "cron": "0 2 * * *" });
    let webhook =
        json!({ "url": "https://example.com/hooks", "types": ["job.failed"], "queues": ["images"] });
    Some(match operation {
        "put_queue" => json!({ "max_running": 4, "rate": { "limit": 100, "per_seconds": 60.0 } }),
        "patch_queue" => json!({ "max_running": 8 }),
        "purge_queue" => json!({ "confirm": "images", "states": ["queued"] }),
        "put_limit" => json!({ "max_running": 2, "rate": { "limit": 20, "per_seconds": 1.0, "burst": 1 } }),
        "put_kind" => {
            json!({ "description": "Resizes a photo", "default_queue": "images", "schema": schema })
        }
        "create_schedule" => json!({ "name": "nightly", "spec": spec, "job": { "kind": "report" } }),
        "put_schedule" => {
            json!({ "spec": spec, "time_zone": "Europe/Copenhagen", "job": { "kind": "report" } })
        }
        "patch_schedule" => json!({ "spec": { "every_seconds": 900.0 } }),
        "preview_schedule" => json!({ "spec": spec, "time_zone": "Europe/Copenhagen", "count": 3 }),
        "pause_schedule" => json!({ "reason": "maintenance" }),
        "trigger_schedule" => json!({ "args": { "full": true } }),
        "backfill_schedule" => {
            json!({ "from": "2026-01-01T00:00:00Z", "to": "2026-01-08T00:00:00Z", "dry_run": true })
        }
        "create_webhook" | "put_webhook" => webhook,
        "patch_webhook" | "patch_endpoint" => json!({ "enabled": true }),
        "create_endpoint" => {
            json!({ "name": "resizer", "url": "https://example.com/jobs", "queues": ["images"] })
        }
        "create_token" => json!({ "name": "web", "scopes": ["enqueue"], "queues": ["images"] }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::{Described, Words, document};

    #[test]
    fn every_body_has_an_example_that_its_schema_allows() {
        let document = document(Words::New, &Described::default());
        let paths = document["paths"].as_object().unwrap();
        let operations = paths.values().flat_map(|path| path.as_object().unwrap().values());
        let bodies: Vec<&Value> = operations.filter(|one| one.get("requestBody").is_some()).collect();
        assert!(bodies.len() >= 40, "{} bodies", bodies.len());
        for operation in bodies {
            let name = operation["operationId"].as_str().unwrap();
            let content = &operation["requestBody"]["content"]["application/json"];
            let schema = json!({ "allOf": [content["schema"]], "components": document["components"] });
            let validator = jsonschema::validator_for(&schema).unwrap();
            let wrong: Vec<String> =
                validator.iter_errors(&content["example"]).map(|wrong| wrong.to_string()).collect();
            assert!(wrong.is_empty(), "{name}: {wrong:?}");
            let takes_nothing = content["schema"]["$ref"] == "#/components/schemas/Nothing";
            assert_eq!(content["example"] == json!({}), takes_nothing, "{name} has no example");
        }
    }
}
