//! Lists of jobs, page by page.

use std::collections::BTreeSet;

use crate::asking::Service;

/// T143: paged, filtered, and stable while jobs are added.
#[tokio::test]
async fn pages_go_on_where_the_last_one_ended_while_jobs_are_added() {
    let service = Service::new();
    for number in 0..25 {
        let queue = if number % 2 == 0 { "even" } else { "odd" };
        service.post("/v1/jobs", &format!(r#"{{"kind":"k","queue":"{queue}","args":{number}}}"#)).await;
    }
    let (mut path, mut seen) = ("/v1/jobs?queue=even&limit=5".to_owned(), Vec::new());
    loop {
        let told = service.get(&path).await;
        let page = told.json();
        seen.extend(page["items"].as_array().unwrap().iter().map(|job| job["args"].as_u64().unwrap()));
        service.post("/v1/jobs", r#"{"kind":"k","queue":"even","args":99}"#).await;
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/jobs?queue=even&limit=5&cursor={cursor}");
        assert_eq!(told.header("link"), format!("<{path}>; rel=\"next\""));
    }
    assert_eq!(seen, (0..25).rev().filter(|number| number % 2 == 0).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_is_asked_for_wrongly_is_told_by_name() {
    let service = Service::new();
    let many = format!("kind={}", vec!["k"; 33].join(","));
    for (query, field) in [
        ("state=done", "state"),
        ("limit=0", "limit"),
        ("cursor=x", "cursor"),
        ("quue=a", "quue"),
        ("tag=%20", "tag"),
        (&many, "kind"),
    ] {
        let told = service.get(&format!("/v1/jobs?{query}")).await;
        assert_eq!((told.status.as_u16(), told.json()["field"].as_str()), (400, Some(field)), "{told:?}");
    }
    let known = service.get("/v1/jobs?state=queued,failed&created_from=2026-01-01T00:00:00Z").await;
    assert_eq!(known.status, 200);
}

/// A client with the scope `read` could occupy the store with 990 values, each compared with 10,000 jobs.
#[tokio::test]
async fn a_search_with_too_many_values_is_refused() {
    let service = Service::new();
    let told = service.get(&format!("/v1/jobs?q=args.a:{}", vec!["1"; 990].join(","))).await;
    assert_eq!((told.status.as_u16(), &told.json()["field"]), (422, &"q".into()), "{told:?}");
    assert_eq!(told.json()["at"], 72);
    let detail = told.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.ends_with("990 values; expected at most 32 values in all terms together"), "{detail}");
}

#[tokio::test]
async fn the_description_tells_of_every_route_that_is_served() {
    let service = Service::new();
    let document = service.get("/openapi.json").await.json();
    let mut asked = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let path = path.replace("{id}", "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10").replace("{name}", "name");
            let told = service.ask(&method.to_uppercase(), &path, &[], "").await;
            let said = operations[method]["responses"].as_object().unwrap();
            assert!(said.contains_key(told.status.as_str()), "{method} {path}: {told:?}");
            asked.insert((method.clone(), path));
        }
    }
    assert!(asked.len() > 15);
    assert_eq!(service.get("/openapi-3.0.json").await.json()["openapi"], "3.0.3");
}

#[tokio::test]
async fn what_has_ended_is_listed_by_when_it_did() {
    let mut service = Service::new();
    let mut ids = Vec::new();
    for kind in ["fall", "build_star", "fall"] {
        let args = if kind == "fall" { "null" } else { r#"{"name":"Sol"}"# };
        ids.push(service.post("/v1/jobs", &format!(r#"{{"kind":"{kind}","args":{args}}}"#)).await.id());
        service.advance(std::time::Duration::from_secs(60));
        service.work().await;
    }
    service.post("/v1/jobs", r#"{"kind":"k"}"#).await;
    let listed = async |query: &str| {
        let told = service.get(&format!("/v1/jobs?{query}")).await;
        assert_eq!(told.status, 200, "{told:?}");
        let items = told.json()["items"].as_array().unwrap().clone();
        items.iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed("order=first_ended").await, ids);
    assert_eq!(listed("order=last_ended&state=failed").await, [ids[2].clone(), ids[0].clone()]);
    let at =
        service.get(&format!("/v1/jobs/{}", ids[1])).await.json()["finished_at"].as_str().unwrap().to_owned();
    assert_eq!(listed(&format!("order=first_ended&ended_from={at}")).await, ids[1..]);
    assert_eq!(listed(&format!("order=oldest&ended_before={at}")).await, ids[..1]);
    assert_eq!(listed("q=ended:-90s&order=last_ended").await, [ids[2].clone(), ids[1].clone()]);
    let page = service.get("/v1/jobs?order=first_ended&limit=2").await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(listed(&format!("order=first_ended&cursor={cursor}")).await, ids[2..]);
    let mixed = service.get(&format!("/v1/jobs?cursor={cursor}")).await;
    assert_eq!((mixed.status.as_u16(), mixed.json()["field"].as_str()), (422, Some("cursor")), "{mixed:?}");
    assert_eq!(service.get("/v1/jobs?order=ended").await.status, 400);
}
