//! Rules, dashboards and the page about metrics ask for what there is, and each rule fires when it shall and only then.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::asking::Service;

const PAGE: &str = include_str!("../../../../docs/guide/metrics.md");
const RULES: &str = include_str!("../../../../contrib/prometheus/alerts.yaml");
const SHOWN: &str = include_str!("../../../../contrib/prometheus/alerts.test.yaml");
const DASHBOARD: &str = include_str!("../../../../contrib/grafana/tenure.json");

/// Labels that every series has from whoever collects it, and that of buckets.
const ALWAYS: [&str; 3] = ["instance", "job", "le"];

fn contrib(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(path)
}

/// The labels of each metric, as the page tells them; that it tells of each is tested where the table is.
fn metrics() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let labels = |rest: &'static str| rest.split(" | ").next().unwrap_or_default();
    rows.map(|(name, rest)| (name, labels(rest).split('`').skip(1).step_by(2).collect())).collect()
}

/// What an expression asks for that there is not, each with a sentence.
fn unknown(expression: &str, metrics: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let mut unknown = Vec::new();
    let is_of_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let mut known: BTreeSet<&str> = ALWAYS.into();
    let begins = |at: usize| !expression[..at].chars().next_back().is_some_and(is_of_name);
    for prefix in ["tenure_", "http_server_", "process_"] {
        for (at, _) in expression.match_indices(prefix).filter(|(at, _)| begins(*at)) {
            let name = expression[at..].split(|sign| !is_of_name(sign)).next().unwrap_or_default();
            let whole =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            let Some(labels) = metrics.get(name).or(metrics.get(whole)) else {
                unknown.push(format!("there is no metric {name}"));
                continue;
            };
            known.extend(labels);
            let Some(selected) = expression[at + name.len()..].strip_prefix('{') else { continue };
            for pair in selected.split('}').next().unwrap_or_default().split(',') {
                let label = pair.split(['=', '!']).next().unwrap_or_default().trim();
                if !labels.contains(label) && !ALWAYS.contains(&label) {
                    unknown.push(format!("{name} has no label {label:?}"));
                }
            }
        }
    }
    for word in ["by (", "on ("] {
        for (at, _) in expression.match_indices(word).filter(|(at, _)| begins(*at)) {
            let named = expression[at + word.len()..].split(')').next().unwrap_or_default();
            let labels = named.split(',').map(str::trim).filter(|label| !label.is_empty());
            unknown.extend(
                labels
                    .filter(|label| !known.contains(label))
                    .map(|label| format!("nothing in {expression:?} has the label {label:?}")),
            );
        }
    }
    unknown
}

/// The names of the rules, and what each asks.
fn rules() -> Vec<(&'static str, String)> {
    let each = RULES.split("- alert: ").skip(1).map(|rule| {
        let name = rule.lines().next().unwrap_or_default();
        let expr = rule.split("expr: ").nth(1).and_then(|rest| rest.split("\n        for:").next());
        let expr = expr.and_then(|rest| rest.split("\n        labels:").next()).unwrap_or_default();
        (name, expr.trim_start_matches(">-").split_whitespace().collect::<Vec<_>>().join(" "))
    });
    each.collect()
}

#[test]
fn the_rules_ask_for_metrics_and_labels_that_there_are() {
    let (metrics, rules) = (metrics(), rules());
    assert!(metrics.len() > 30 && rules.len() >= 13, "{} metrics, {} rules", metrics.len(), rules.len());
    for (name, expression) in &rules {
        assert!(expression.contains("tenure_") || expression.contains("http_"), "{name}: {expression}");
        assert_eq!(unknown(expression, &metrics), Vec::<String>::new(), "{name}");
    }
    let asked: BTreeSet<&str> = rules.iter().map(|(name, _)| *name).collect();
    assert_eq!(asked.len(), rules.len(), "names are different");
}

#[test]
fn workers_are_scaled_by_a_metric_that_there_is() {
    let scaled = include_str!("../../../../contrib/kubernetes/scaledobject.yaml");
    let query = scaled.split("query: ").nth(1).unwrap().lines().next().unwrap();
    assert!(query.contains("tenure_") && unknown(query, &metrics()).is_empty(), "{query}");
}

/// What looks for mistakes finds some.
#[test]
fn an_expression_that_asks_for_what_there_is_not_is_refused() {
    let metrics = metrics();
    for wrong in [
        "tenure_queue_depht > 1",
        r#"tenure_queue_depth{kind="x"} > 1"#,
        "sum by (schedule) (tenure_queue_depth) > 1",
        r#"max by (queue) (tenure_queue_oldest_age_seconds unless on (que) tenure_queue_paused == 1)"#,
    ] {
        assert_eq!(unknown(wrong, &metrics).len(), 1, "{wrong}");
    }
    assert!(unknown(r#"sum by (le) (rate(tenure_claim_duration_seconds_bucket[5m]))"#, &metrics).is_empty());
}

/// Each rule stands in the tests of rules as one that fires and as one that does not, and says what to look at.
#[test]
fn every_rule_is_shown_to_fire_and_not_to_fire() {
    let shown: Vec<&str> = SHOWN.split("  - name: ").skip(1).collect();
    for (name, _) in rules() {
        let of = || shown.iter().filter(|test| test.contains(&format!("alertname: {name}\n")));
        let fires = of().filter(|test| test.contains("exp_annotations:")).count();
        let quiet = of().filter(|test| test.contains("exp_alerts: []")).count();
        assert!(fires >= 1 && quiet >= 1, "{name}: fires {fires} times, and does not {quiet} times");
    }
    let rules = RULES.matches("- alert: ").count();
    for said in ["severity: ", "summary: ", "description: "] {
        assert_eq!(RULES.matches(said).count(), rules, "{said}");
    }
}

#[test]
fn promtool_finds_that_each_rule_fires_when_it_shall() {
    let said = Command::new(own_postgres::promtool().unwrap())
        .args(["test", "rules", "alerts.test.yaml"])
        .current_dir(contrib("prometheus"))
        .output()
        .unwrap();
    let told = [said.stdout, said.stderr].concat();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&told));
}

/// It also has an opinion about names and units.
#[tokio::test]
async fn promtool_accepts_what_is_exposed() {
    let mut service = Service::new();
    service.post("/v1/jobs", r#"{"kind":"build_star","args":{"name":"Sol"}}"#).await;
    service.work().await;
    let told = service.get("/metrics").await.text;
    let mut checking = Command::new(own_postgres::promtool().unwrap())
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    checking.stdin.take().unwrap().write_all(told.as_bytes()).unwrap();
    let said = checking.wait_with_output().unwrap();
    let text = [said.stdout, said.stderr].concat();
    assert!(said.status.success() && text.is_empty(), "{}", String::from_utf8_lossy(&text));
}

/// What a panel asks is there, its legend names labels that are left, and no two panels lie on each other.
#[test]
fn the_dashboard_asks_for_metrics_and_labels_that_there_are() {
    let metrics = metrics();
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let asking: Vec<_> = panels.iter().filter(|panel| panel["type"] != "row").collect();
    assert!(asking.len() >= 16, "{} panels", asking.len());
    let mut taken: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}: its id is another's");
        let side = |name: &str| panel["gridPos"][name].as_u64().unwrap_or_else(|| panic!("{title}: {name}"));
        assert!(side("x") + side("w") <= 24, "{title} is too wide");
        for (x, y) in (0..side("w")).flat_map(|x| (0..side("h")).map(move |y| (x, y))) {
            assert!(taken.insert((side("x") + x, side("y") + y)), "{title} lies on another");
        }
    }
    for panel in asking {
        let title = panel["title"].as_str().unwrap();
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title} has no unit");
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            assert_eq!(unknown(expression, &metrics), Vec::<String>::new(), "{title}");
            let legend = target["legendFormat"].as_str().unwrap();
            for label in legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next()) {
                let left = expression.match_indices("by (").any(|(at, _)| {
                    let named = expression[at + 4..].split(')').next().unwrap_or_default();
                    named.split(',').any(|name| name.trim() == label)
                });
                assert!(left, "{title}: nothing is left of the label {label:?} in {expression:?}");
            }
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if let Some(query) = variable["query"].as_str().filter(|query| query.contains('(')) {
            let inner = query.trim_start_matches("label_values(").trim_end_matches(')');
            let (metric, label) = inner.split_once(", ").unwrap();
            assert!(metrics[metric].contains(label), "{query}");
        }
    }
}
