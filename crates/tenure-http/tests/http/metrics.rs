//! Metrics.

use std::time::Duration;

use crate::asking::Service;

#[tokio::test]
async fn metrics_tell_what_waits_and_how_attempts_ended() {
    let mut service = Service::new();
    // Nobody pays for counting before somebody asks for it.
    let first = service.get("/metrics").await;
    assert_eq!(first.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    for args in [r#"{"kind":"build_star","args":{"name":"Sol"}}"#, r#"{"kind":"fall","max_attempts":1}"#] {
        service.post("/v1/jobs", args).await;
    }
    service.post("/v1/jobs", r#"{"kind":"k","queue":"mail"}"#).await;
    service.post("/v1/jobs", r#"{"kind":"k","queue":"mail","delay_seconds":60}"#).await;
    service.work().await;
    service.advance(Duration::from_secs(30));
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    let told = service.get("/metrics").await.text;
    for line in [
        r#"tenure_enqueued_total{queue="default",kind="build_star"} 1"#,
        r#"tenure_attempts_total{queue="default",kind="build_star",outcome="succeeded"} 1"#,
        r#"tenure_attempts_total{queue="default",kind="fall",outcome="failed"} 1"#,
        r#"tenure_run_duration_seconds_count{queue="default",kind="fall",outcome="failed"} 1"#,
        r#"tenure_queue_depth{queue="mail",state="queued"} 1"#,
        r#"tenure_queue_depth{queue="mail",state="scheduled"} 1"#,
        r#"tenure_queue_oldest_age_seconds{queue="mail"} 30"#,
        r#"tenure_queue_paused{queue="mail"} 0"#,
        "tenure_claims_waiting 0",
        "tenure_events_missed_total 0",
    ] {
        assert!(told.lines().any(|found| found == line), "{line} is not in\n{told}");
    }
    let asker = service.asker();
    let open =
        asker.ask("GET", "/metrics", &["accept: application/openmetrics-text; version=1.0.0"], "").await;
    assert!(open.header("content-type").starts_with("application/openmetrics-text"));
    assert!(open.text.contains("# TYPE tenure_enqueued counter\n") && open.text.ends_with("# EOF\n"));
}

/// The page tells of each metric that there is, with all of its labels, and of no other.
#[tokio::test]
async fn the_page_about_metrics_tells_of_every_metric() {
    let page = include_str!("../../../../docs/guide/metrics.md");
    let told: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .filter(|name| name.contains('_'))
        .collect();
    let exposed = Service::new().get("/metrics").await.text;
    let exposed: Vec<&str> =
        exposed.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let (mut sorted, mut expected) = (exposed.clone(), told);
    sorted.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sorted, expected);
}

/// The dashboard and the rules ask for metrics that there are, and for no others.
#[tokio::test]
async fn what_is_shown_and_watched_is_exposed() {
    let exposed = Service::new().get("/metrics").await.text;
    let exposed: std::collections::BTreeSet<&str> =
        exposed.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let dashboard = include_str!("../../../../contrib/grafana/tenure.json");
    let parsed: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    assert!(parsed["panels"].as_array().unwrap().len() > 5);
    let rules = include_str!("../../../../contrib/prometheus/alerts.yaml");
    for text in [dashboard, rules] {
        let words = text.split(|sign: char| !(sign.is_ascii_lowercase() || sign == '_'));
        let named = words.filter(|word| word.starts_with("tenure_") || word.starts_with("http_server_"));
        let mut count = 0;
        for name in named {
            let of = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            assert!(exposed.contains(name) || of.is_some_and(|of| exposed.contains(of)), "{name}");
            count += 1;
        }
        assert!(count > 5, "only {count} metrics are named");
    }
}
