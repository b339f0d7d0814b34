//! The list of planted bugs: what the page about them says, and what the manifests declare.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::files::TextFile;

/// The page that lists them.
pub const PAGE: &str = "docs/decisions/0015-planted-bugs.md";
/// The crate that is built with one of them at a time.
pub const SIMULATION: &str = "tenure-sim";
const PREFIX: &str = "mutant-";

/// A bug that is planted on purpose, behind a feature flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planted {
    /// The flag.
    pub flag: String,
    /// The crate whose code it bends.
    pub bends: String,
    /// What goes wrong.
    pub mistake: String,
}

/// The rows of the page's table: flag, crate, mistake, and whatever else it says of each.
pub fn on_the_page(page: &str) -> Vec<Planted> {
    page.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Planted> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let flag = cells.next()?.trim_matches('`');
    let (bends, mistake) = (cells.next()?.trim_matches('`'), cells.next()?);
    let planted = Planted { flag: flag.into(), bends: bends.into(), mistake: mistake.into() };
    flag.starts_with(PREFIX).then_some(planted)
}

/// Everything in which the page, the manifests and the sources do not agree, each with a sentence.
///
/// `metadata` is that of the workspace; `sources` are the files of its crates.
pub fn refused(page: &str, metadata: &Value, sources: &[TextFile]) -> Vec<String> {
    let listed = on_the_page(page);
    let features = features(metadata);
    let forwards = features.get(SIMULATION).cloned().unwrap_or_default();
    let mut refused = Vec::new();
    for Planted { flag, bends, mistake } in &listed {
        if mistake.is_empty() {
            refused.push(format!("{PAGE}: `{flag}` has no sentence"));
        }
        if forwards.get(flag) != Some(&vec![format!("{bends}/{flag}")]) {
            refused.push(format!("{SIMULATION} has to forward `{flag}` to {bends}, and to nothing else"));
        }
        if !features.get(bends).is_some_and(|declared| declared.contains_key(flag)) {
            refused.push(format!("{bends} does not declare `{flag}`"));
        }
        let condition = format!("cfg!(feature = \"{flag}\")");
        let folder = format!("crates/{bends}/src/");
        let uses = |file: &&TextFile| file.path.starts_with(&folder) && file.text.contains(&condition);
        if !sources.iter().any(|file| uses(&file)) {
            refused.push(format!("`{flag}` bends nothing in {folder}"));
        }
    }
    let known: BTreeSet<&str> = listed.iter().map(|planted| planted.flag.as_str()).collect();
    if known.len() != listed.len() {
        refused.push(format!("{PAGE} lists a flag twice"));
    }
    for (name, declared) in &features {
        for flag in declared.keys().filter(|flag| flag.starts_with(PREFIX) && !known.contains(flag.as_str()))
        {
            refused.push(format!("{PAGE} does not list `{flag}` of {name}"));
        }
        for (feature, enables) in declared.iter().filter(|(feature, _)| !feature.starts_with(PREFIX)) {
            if enables.iter().any(|enabled| enabled.contains(PREFIX)) {
                refused.push(format!("{name}: the feature `{feature}` brings a planted bug with it"));
            }
        }
    }
    refused.extend(brought_by_a_dependency(metadata));
    refused
}

/// The features of each crate, and what each brings with it.
fn features(metadata: &Value) -> BTreeMap<String, BTreeMap<String, Vec<String>>> {
    let of = |package: &Value| {
        let name = package["name"].as_str()?.to_owned();
        let features = package["features"].as_object()?.iter();
        Some((name, features.map(|(feature, brings)| (feature.clone(), texts(brings))).collect()))
    };
    metadata["packages"].as_array().into_iter().flatten().filter_map(of).collect()
}

fn brought_by_a_dependency(metadata: &Value) -> Vec<String> {
    let mut refused = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if texts(&dependency["features"]).iter().any(|feature| feature.starts_with(PREFIX)) {
                let (from, to) = (&package["name"], &dependency["name"]);
                refused.push(format!("{from} asks for {to} with a planted bug"));
            }
        }
    }
    refused
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(String::from).collect()
}
