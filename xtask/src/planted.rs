//! The list of planted bugs: compares the page that lists them with the sources.

use std::collections::BTreeSet;

use crate::files::{self, TextFile};

/// The page that lists them.
pub const PAGE: &str = "docs/decisions/0015-planted-bugs.md";
/// The crate that is built with one of them at a time.
pub const SIMULATION: &str = "tenure-sim";
/// The start of the condition that turns a bug on in the code; the name follows in quotes.
const CONDITION: &str = "mutant = \"";

/// A bug that is planted on purpose, compiled in by `--cfg mutant="NAME"` alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planted {
    /// The value of the cfg.
    pub name: String,
    /// The crate that contains it.
    pub bends: String,
    /// The mistake, in words.
    pub mistake: String,
}

/// Reads the rows of the page's table: name, crate, mistake. Further columns are ignored.
pub fn on_the_page(page: &str) -> Vec<Planted> {
    page.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Planted> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
    let (bends, mistake) = (cells.next()?.trim_matches('`'), cells.next()?);
    Some(Planted { name: name.into(), bends: bends.into(), mistake: mistake.into() })
}

/// Returns a sentence for every disagreement between the page and the sources of the crates.
pub fn refused(page: &str, sources: &[TextFile]) -> Vec<String> {
    let listed = on_the_page(page);
    let planted: BTreeSet<(String, String)> = sources.iter().flat_map(in_source).collect();
    let mut refused = Vec::new();
    for Planted { name, bends, mistake } in &listed {
        if mistake.is_empty() {
            refused.push(format!("{PAGE}: `{name}` has no sentence"));
        }
        if !planted.contains(&(bends.clone(), name.clone())) {
            refused.push(format!("crates/{bends}/src has no `cfg!({CONDITION}{name}\")`"));
        }
    }
    let known: BTreeSet<(String, String)> =
        listed.iter().map(|planted| (planted.bends.clone(), planted.name.clone())).collect();
    let names: BTreeSet<&str> = listed.iter().map(|planted| planted.name.as_str()).collect();
    if names.len() != listed.len() {
        refused.push(format!("{PAGE} lists a name twice"));
    }
    refused.extend(
        planted.difference(&known).map(|(bends, name)| format!("{PAGE} does not list `{name}` of {bends}")),
    );
    refused
}

/// The crate and the name of each bug that a source file contains.
fn in_source(file: &TextFile) -> Vec<(String, String)> {
    if !files::is_crate_source(&file.path) {
        return Vec::new();
    }
    let bends = file.path.split('/').nth(1).unwrap_or_default();
    let names = file.text.split(CONDITION).skip(1).filter_map(|rest| rest.split('"').next());
    names.map(|name| (bends.to_owned(), name.to_owned())).collect()
}
