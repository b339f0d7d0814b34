//! Which crate may use which: dependencies point one way.

use serde_json::Value;

/// Every crate of the workspace and the crates of the workspace that it may use. A new edge needs a page in
/// `docs/decisions` and a line in ARCHITECTURE.md before it needs a line here.
const EDGES: &[(&str, &[&str])] = &[
    ("tenure-core", &[]),
    ("tenure-store", &["tenure-core"]),
    ("tenure-conformance", &["tenure-store", "tenure-core"]),
    ("tenure-sqlite", &["tenure-store", "tenure-core"]),
    ("tenure-postgres", &["tenure-store", "tenure-core"]),
    ("tenure", &["tenure-postgres", "tenure-sqlite", "tenure-store", "tenure-core"]),
    ("tenure-sim", &["tenure", "tenure-store", "tenure-core"]),
    ("tenure-models", &["tenure-core"]),
    ("tenure-cli", &["tenure-ui", "tenure-http", "tenure-apps", "tenure-program", "tenure"]),
    ("tenure-ui", &["tenure-http", "tenure"]),
    ("tenure-sqlx", &["tenure-sqlite", "tenure"]),
    ("tenure-apps", &["tenure-core"]),
    ("tenure-program", &[]),
    ("tenure-http", &["tenure"]),
    ("tenure-examples", &["tenure-ui", "tenure-http", "tenure"]),
    ("tenure-example-service", &["tenure-ui", "tenure-sqlx", "tenure-http", "tenure"]),
    ("own-postgres", &[]),
    ("tenure-fuzz", &[]),
    ("xtask", &[]),
];

/// Crates that any crate may use in its tests.
const IN_TESTS: &[&str] = &["tenure-conformance", "tenure-store", "tenure-fuzz", "own-postgres"];

/// Database drivers, and the crates that may use them. The program measures the bare driver as a floor.
const DRIVERS: &[(&str, &[&str])] =
    &[("rusqlite", &["tenure-sqlite", "tenure-cli"]), ("tokio-postgres", &["tenure-postgres"])];

/// What must not even be in reach of the domain: runtimes, async plumbing, chance.
const NOT_IN_CORE: &[&str] =
    &["tokio", "futures", "async", "smol", "rand", "getrandom", "fastrand", "rusqlite", "rustix", "tracing"];

struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    in_tests: bool,
}

/// Every edge of `cargo metadata --no-deps` that is not allowed, each with a sentence.
pub fn refused(metadata: &Value) -> Vec<String> {
    let names = crates(metadata);
    let mut refused: Vec<String> = names
        .iter()
        .filter(|name| !EDGES.iter().any(|(known, _)| known == *name))
        .map(|name| {
            format!("`{name}` is a new crate: give it a place in ARCHITECTURE.md and a line in xtask/src/rules/edges.rs")
        })
        .collect();
    for edge in edges(metadata) {
        if let Some(sentence) = judge(&edge, &names) {
            refused.push(sentence);
        }
    }
    refused
}

/// Every row of the list that ARCHITECTURE.md does not show in the same words, each with a sentence.
pub fn not_on_the_page(page: &str) -> Vec<String> {
    let shown: Vec<String> = page
        .lines()
        .filter(|line| line.contains(" → "))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    EDGES
        .iter()
        .map(|(from, uses)| match uses {
            [] => format!("{from} → nothing"),
            uses => format!("{from} → {}", uses.join(", ")),
        })
        .filter(|row| !shown.contains(row))
        .map(|row| format!("ARCHITECTURE.md does not show `{row}`"))
        .collect()
}

/// The crates of the workspace.
pub fn crates(metadata: &Value) -> Vec<&str> {
    packages(metadata).filter_map(|package| package["name"].as_str()).collect()
}

/// The manifests of the workspace's crates.
pub fn manifests(metadata: &Value) -> Vec<&str> {
    packages(metadata).filter_map(|package| package["manifest_path"].as_str()).collect()
}

fn judge(edge: &Edge<'_>, crates: &[&str]) -> Option<String> {
    let Edge { from, to, in_tests } = *edge;
    if from == "tenure-core" && !in_tests && is_kept_out_of_core(to) {
        return Some(format!(
            "tenure-core → {to}: the domain has no async, no I/O and no chance, see ARCHITECTURE.md"
        ));
    }
    if let Some((_, users)) = DRIVERS.iter().find(|(driver, _)| *driver == to) {
        let allowed = in_tests || users.contains(&from);
        return (!allowed).then(|| {
            format!("{from} → {to}: a database driver stays inside its store, see ARCHITECTURE.md")
        });
    }
    if !crates.contains(&to) {
        return None;
    }
    let listed = EDGES.iter().any(|(name, uses)| *name == from && uses.contains(&to));
    let allowed = listed || (in_tests && (IN_TESTS.contains(&to) || to == from));
    (!allowed).then(|| format!("{from} → {to}: this edge is not allowed, see ARCHITECTURE.md"))
}

/// `rand` keeps out `rand_core` and `async` keeps out `async-trait`, but `rand` does not keep out `random`.
fn is_kept_out_of_core(name: &str) -> bool {
    NOT_IN_CORE.iter().any(|stem| {
        name.strip_prefix(stem).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
    })
}

fn edges(metadata: &Value) -> Vec<Edge<'_>> {
    let mut edges = Vec::new();
    for package in packages(metadata) {
        let Some(from) = package["name"].as_str() else {
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let Some(to) = dependency["name"].as_str() else {
                continue;
            };
            edges.push(Edge { from, to, in_tests: dependency["kind"] == "dev" });
        }
    }
    edges
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}
