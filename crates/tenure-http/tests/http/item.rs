//! The item in the queue, from beginning to end.

use std::time::Duration;

use axum::http::StatusCode;

use crate::asking::Service;

async fn enqueued(service: &Service, name: &str) -> String {
    service.post("/v1/jobs", &format!(r#"{{"kind":"build_star","args":{{"name":"{name}"}}}}"#)).await.id()
}

/// T132: where it stands while it waits and runs, and then the way to what was made.
#[tokio::test]
async fn it_tells_where_the_job_stands_and_then_leads_to_what_it_made() {
    let mut service = Service::new();
    let id = enqueued(&service, "Sol").await;
    let item = format!("/queue/{id}");
    let waiting = service.get(&item).await;
    assert_eq!((waiting.status, waiting.json()["status"].as_str()), (StatusCode::OK, Some("NotStarted")));
    assert_eq!(waiting.json()["links"]["cancel"]["method"], "DELETE");
    service.work().await;
    let made = service.get(&item).await;
    assert_eq!((made.status, made.header("location")), (StatusCode::SEE_OTHER, "/stars/7"));
    // Clients of long-running operations ask for it as it is told, whatever it was that told them.
    let whole = "http://localhost:8368/stars/7";
    assert_eq!(
        (&made.json()["resource_location"], &made.json()["resourceLocation"]),
        (&"/stars/7".into(), &whole.into())
    );
    let events = service.get(&format!("/v1/jobs/{id}/events")).await.text;
    let list = service.get("/v1/jobs").await.json();
    assert!(events.contains(whole) && list["items"][0]["resourceLocation"] == whole, "{events} {list}");
    // By its tag it is the same document for whoever asks in another way.
    let proxied = service.ask("GET", &format!("/v1/jobs/{id}"), &["x-forwarded-proto: https"], "").await;
    assert_eq!(proxied.json()["resourceLocation"], "https://localhost:8368/stars/7");
    assert_eq!(proxied.header("etag"), made.header("etag"));
    assert_eq!(service.get(&format!("{item}?redirect=false")).await.status, StatusCode::OK);
    assert_eq!(service.get(&format!("/v1/jobs/{id}")).await.status, StatusCode::OK);
    assert_eq!(service.get(&format!("{item}?redirect=maybe")).await.json()["field"], "redirect");
}

#[tokio::test]
async fn one_that_made_nothing_shows_what_it_returned() {
    let mut service = Service::new();
    let id = enqueued(&service, "nameless").await;
    service.work().await;
    let told = service.get(&format!("/queue/{id}")).await;
    assert_eq!((told.status, told.json()["result"].as_u64()), (StatusCode::OK, Some(7)));
}

#[tokio::test]
async fn a_job_that_failed_is_told_of_without_an_error_of_the_request() {
    let mut service = Service::new();
    let id = service.post("/v1/jobs", r#"{"kind":"fall"}"#).await.id();
    service.work().await;
    let told = service.get(&format!("/queue/{id}")).await;
    assert_eq!((told.status, told.json()["status"].as_str()), (StatusCode::OK, Some("Failed")));
    assert_eq!(told.json()["error"]["detail"], "it fell");
}

/// T147: a job that waits ends at once; asked again, it is removed; and then it is not there.
#[tokio::test]
async fn deleting_it_cancels_the_job_and_then_removes_it() {
    let service = Service::new();
    let id = enqueued(&service, "Sol").await;
    let item = format!("/queue/{id}");
    assert_eq!(service.ask("DELETE", &item, &[], "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(service.get(&item).await.json()["status"], "Canceled");
    assert_eq!(service.ask("DELETE", &item, &[], "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(service.get(&item).await.status, StatusCode::NOT_FOUND);
    assert_eq!(service.ask("DELETE", &item, &[], "").await.status, StatusCode::NOT_FOUND);
}

/// T143: a job that is no longer kept is not found.
#[tokio::test]
async fn one_whose_time_is_over_is_not_found() {
    let mut service = Service::new();
    let id = enqueued(&service, "Sol").await;
    service.work().await;
    service.advance(Duration::from_secs(24 * 3600 + 1));
    service.tenure().store().tend().await.unwrap();
    assert_eq!(service.get(&format!("/queue/{id}")).await.status, StatusCode::NOT_FOUND);
    let young = service.tenure().new_id();
    assert_eq!(
        service.get(&format!("/v1/jobs/{young}")).await.json()["type"],
        "urn:tenure:problem:not-found"
    );
    assert_eq!(service.get("/queue/7").await.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn whoever_knows_it_already_is_told_only_that() {
    let mut service = Service::new();
    let id = enqueued(&service, "Sol").await;
    let path = format!("/v1/jobs/{id}");
    let tag = format!("if-none-match: {}", service.get(&path).await.header("etag"));
    let told = service.ask("GET", &path, &[&tag], "").await;
    assert_eq!((told.status, told.text.as_str()), (StatusCode::NOT_MODIFIED, ""));
    let asked = service.asker();
    let waiting = {
        let (path, tag) = (path.clone(), tag.clone());
        tokio::spawn(async move { asked.ask("GET", &path, &[&tag, "prefer: wait=20"], "").await })
    };
    tokio::task::yield_now().await;
    service.work().await;
    assert_eq!(waiting.await.unwrap().json()["state"], "succeeded");
    let told = service.ask("DELETE", &path, &["if-match: \"another\""], "").await;
    assert_eq!(told.status, StatusCode::PRECONDITION_FAILED);
}

#[tokio::test]
async fn whoever_waits_in_vain_is_answered_when_his_time_is_over() {
    let mut service = Service::new();
    let id = enqueued(&service, "Sol").await;
    let (asked, path) = (service.asker(), format!("/queue/{id}"));
    let waiting = tokio::spawn(async move { asked.ask("GET", &path, &["prefer: wait=20"], "").await });
    while !waiting.is_finished() {
        service.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    let told = waiting.await.unwrap();
    assert_eq!((told.status, told.json()["state"].as_str()), (StatusCode::OK, Some("queued")));
}
