//! The dashboard that asks the database itself asks for what there is, and may be asked by a role that only reads.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that unwraps fails where it stands"
)]

use crate::given;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use tenure_core::{Args, Due, JobId, Kind, NewJob, Priority, QueueName};
use tenure_store::{Jobs, ManualClock, Timers, Views};
use tokio_postgres::SimpleQueryMessage;

use given::timers::timer;
use given::{open, schema, server, user};

const DASHBOARD: &str = include_str!("../../../contrib/grafana/tenure-sql.json");

/// What Grafana makes of a question before it asks it.
fn asked(question: &str, schema: &str) -> String {
    let mut asked = question.replace("${schema}", schema);
    while let Some((before, rest)) = asked.split_once("$__timeFilter(") {
        let (column, after) = rest.split_once(')').unwrap();
        asked = format!("{before}{column} BETWEEN now() - interval '6 hours' AND now(){after}");
    }
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn every_panel_is_answered() {
    let (schema, clock) = (schema(), ManualClock::new());
    let store = open(&schema, &clock).await;
    let job = NewJob {
        id: JobId::from_bytes([7; 16]),
        kind: Kind::new("mail").unwrap(),
        queue: QueueName::default(),
        args: Args::new(b"{}".as_slice()).unwrap(),
        priority: Priority::default(),
        due: Due::Now,
        terms: Arc::default(),
    };
    store.enqueue(vec![job]).await.unwrap();
    store.set_timers(vec![timer("nightly", "every 1m")], None).await.unwrap();
    let sizes = store.sizes().await.unwrap();
    assert!(sizes.parts.iter().any(|(part, bytes)| part == "job" && *bytes > 0), "{sizes:?}");
    assert_eq!(sizes.disk_free, None);
    let admin = user(&server().url()).await;
    let reader = format!("{schema}_reader");
    let grants = format!(
        "CREATE ROLE {reader}; GRANT USAGE ON SCHEMA {schema} TO {reader};
         GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {reader}; SET ROLE {reader}"
    );
    admin.batch_execute(&grants).await.unwrap();
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let (mut questions, mut taken) = (0, BTreeSet::new());
    for panel in panels {
        let (title, place) = (panel["title"].as_str().unwrap(), &panel["gridPos"]);
        let side = |name: &str| place[name].as_u64().unwrap();
        for x in side("x")..side("x") + side("w") {
            assert!(x < 24 && taken.insert((x, side("y"))), "{title} lies on another, or is too wide");
        }
        for target in panel["targets"].as_array().into_iter().flatten() {
            let question = target["rawSql"].as_str().unwrap();
            assert!(
                question.contains("LIMIT") || question.contains("sum(scheduled), 0)"),
                "{title}: no bound"
            );
            let answer = admin.simple_query(&asked(question, &schema)).await;
            let answer = answer.unwrap_or_else(|error| panic!("{title}: {error:?}"));
            let rows = answer.iter().filter(|told| matches!(told, SimpleQueryMessage::Row(_))).count();
            let is_full = title.starts_with("Jobs by") || title == "Schedules" || title == "Size by table";
            assert!(rows > 0 || !is_full, "{title} shows nothing");
            questions += 1;
        }
    }
    assert!(questions >= 12, "{questions} questions");
}
