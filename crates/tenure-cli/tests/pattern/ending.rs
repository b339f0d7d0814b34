//! How a job ends: by failing, by being cancelled, and by being kept no longer.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::pattern::stand::{header, on_each_store, until};
use crate::served::{ask, json_of};

/// T136: attempts are limited and further and further apart, the end has the error, and a person can undo it.
#[test]
fn a_job_that_fails_again_and_again_ends_with_its_error_and_can_be_done_again_by_hand() {
    on_each_store("t136", |stand| {
        let retry = json!({ "max_attempts": 3, "waits_seconds": [0.1, 0.4] });
        let id = stand.enqueue(&stand.first(), "star", json!({ "retry": retry }));
        let mut fell: Option<Instant> = None;
        for (attempt, wait) in [(1, 0.0), (2, 0.1), (3, 0.4)] {
            let granted = stand.granted(&stand.second, json!({}));
            assert_eq!(granted.attempt(), attempt);
            if let Some(fell) = fell {
                assert!(
                    fell.elapsed() >= Duration::from_secs_f64(wait * 0.5),
                    "attempt {attempt} came too early"
                );
            }
            let error = json!({ "error": { "type": "Collapse", "detail": format!("black hole {attempt}") } });
            fell = Some(Instant::now());
            let told = granted.says(&stand.first(), "fail", error);
            assert_eq!(told["state"], if attempt < 3 { "scheduled" } else { "failed" });
        }
        // To tell that it has failed is no error of the request.
        let item = ask(&stand.first(), "GET", &format!("/queue/{id}"), "", "");
        let job = json_of(&item);
        assert_eq!((item.0, &job["status"], &job["attempt"]), (200, &json!("Failed"), &json!(3)));
        assert_eq!(job["error"]["detail"], "Collapse: black hole 3");
        assert_eq!(ask(&stand.first(), "GET", &format!("/v1/jobs/{id}/result"), "", "").0, 409);
        assert_eq!(stand.outcomes(&stand.second, &id), ["retried", "retried", "failed"]);
        assert_eq!(ask(&stand.second, "POST", &format!("/v1/jobs/{id}/retry"), "", "").0, 202);
        let granted = stand.granted(&stand.first(), json!({}));
        granted.says(&stand.first(), "complete", json!({ "result": 1 }));
        let job = stand.look(&stand.second, &id);
        assert_eq!((&job["status"], &job["result"]), (&json!("Succeeded"), &json!(1)));
    });
}

/// T147: what waits ends at once, what runs is asked to and taken away after its grace, what has ended is a conflict. Each
/// is asked of a server that has not granted the job.
#[test]
fn cancelling_ends_what_waits_at_once_and_bounds_what_runs() {
    on_each_store("t147", |stand| {
        let cancel = |id: &str, grace: u32| {
            let body = json!({ "grace_seconds": grace, "reason": "no more stars" }).to_string();
            ask(&stand.second, "POST", &format!("/v1/jobs/{id}/cancel"), "", &body)
        };
        let waits = stand.enqueue(&stand.first(), "waits", json!({}));
        let ended = cancel(&waits, 30);
        assert_eq!((ended.0, &json_of(&ended)["status"]), (200, &json!("Canceled")));
        assert_eq!(stand.look(&stand.first(), &waits)["error"]["detail"], "no more stars");
        assert_eq!(cancel(&waits, 30).0, 200, "once more is no harm");

        // One holder hears of it and stops; it says so in its own time.
        let polite = stand.enqueue(&stand.first(), "polite", json!({}));
        let held = stand.granted(&stand.first(), json!({}));
        let asked = cancel(&polite, 30);
        assert!(
            asked.0 == 202 && header(&asked, "location").ends_with(&format!("/queue/{polite}")),
            "{asked:?}"
        );
        until("its holder has heard of it", || {
            held.says(&stand.first(), "heartbeat", json!({}))["cancel_requested"] == true
        });
        held.says(&stand.first(), "release", json!({}));
        assert_eq!(stand.look(&stand.second, &polite)["state"], "cancelled");

        // The other one hears nothing and does not stop.
        let deaf = stand.enqueue(&stand.first(), "deaf", json!({}));
        let held = stand.granted(&stand.first(), json!({ "lease_seconds": 60 }));
        let (begun, asked) = (Instant::now(), cancel(&deaf, 1));
        assert_eq!((asked.0, &json_of(&asked)["state"]), (202, &json!("running")));
        until("it is taken from him", || stand.look(&stand.first(), &deaf)["state"] == "cancelled");
        let took = begun.elapsed();
        println!(
            "T147 on {}: taken from a deaf holder {took:?} after it was asked, with a grace of 1 s",
            stand.name()
        );
        assert!(took >= Duration::from_millis(900), "{took:?}");
        held.is_too_late(&stand.first(), "complete", json!({}));

        let done = stand.enqueue(&stand.first(), "done", json!({}));
        stand.granted(&stand.first(), json!({})).says(&stand.first(), "complete", json!({}));
        let late = cancel(&done, 30);
        assert_eq!((late.0, &json_of(&late)["type"]), (409, &json!("urn:tenure:problem:state-conflict")));
        // By the words of the article: what has ended is removed, and is not there any more, for both servers.
        for (item, first) in [(&done, 204), (&polite, 204)] {
            assert_eq!(ask(&stand.second, "DELETE", &format!("/queue/{item}"), "", "").0, first);
            assert_eq!(ask(&stand.first(), "GET", &format!("/queue/{item}"), "", "").0, 404);
        }
    });
}

/// T144: what is to be kept for a second goes by itself; what is to be kept for two months says until when.
#[test]
fn what_has_ended_is_kept_for_as_long_as_it_says_and_no_longer() {
    on_each_store("t144", |stand| {
        let end = |retain: f64| {
            let id = stand.enqueue(&stand.first(), "star", json!({ "retain_seconds": retain }));
            stand.granted(&stand.second, json!({})).says(&stand.second, "complete", json!({}));
            id
        };
        let (short, long) = (end(1.0), end(60.0 * 24.0 * 3600.0));
        until("the short one is gone", || {
            ask(&stand.first(), "GET", &format!("/v1/jobs/{short}"), "", "").0 == 404
        });
        let job = stand.look(&stand.first(), &long);
        let (finished, expires) = (job["finished_at"].as_str().unwrap(), job["expires_at"].as_str().unwrap());
        assert!(expires[..10] > finished[..10] && job["state"] == "succeeded", "{job}");
    });
}
