//! The list of planted bugs: compares the page that lists them with the sources.

use std::collections::BTreeSet;

use crate::files::{self, TextFile};

/// The page that lists them.
pub const PAGE: &str = "docs/decisions/0015-planted-bugs.md";
/// The crate that is built with one of them at a time.
pub const SIMULATION: &str = "tenure-sim";
/// The start of the condition that turns a bug on in the code; the name follows in quotes.
const CONDITION: &str = "mutant = \"";
/// The finder of a bug that the simulation has to find.
const BY_SIMULATION: &str = "simulation";
/// The test program inside a crate's library.
pub const LIBRARY: &str = "lib";

/// A bug that is planted on purpose, compiled in by `--cfg mutant="NAME"` alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planted {
    /// The value of the cfg.
    pub name: String,
    /// The crate that contains it.
    pub bends: String,
    /// The mistake, in words.
    pub mistake: String,
    /// The program that has to find it; `None` if the page does not name one.
    pub finder: Option<Finder>,
}

/// The program that has to find a bug.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finder {
    /// The simulation.
    Simulation,
    /// A test program of the crate that contains the bug.
    Tests {
        /// The test target, or [`LIBRARY`].
        program: String,
        /// Which of its tests run: those whose names contain this.
        filter: String,
    },
}

impl Finder {
    /// Reads a cell of the page: `simulation`, or a test program and a filter.
    fn read(cell: &str) -> Option<Self> {
        if cell == BY_SIMULATION {
            return Some(Self::Simulation);
        }
        let (program, filter) = cell.strip_prefix('`')?.strip_suffix('`')?.split_once(' ')?;
        Some(Self::Tests { program: program.to_owned(), filter: filter.to_owned() })
    }

    /// The cell of the page.
    pub fn cell(&self) -> String {
        match self {
            Self::Simulation => BY_SIMULATION.to_owned(),
            Self::Tests { program, filter } => format!("`{program} {filter}`"),
        }
    }

    /// The test target that it needs, beside the library.
    fn target(&self) -> Option<&str> {
        match self {
            Self::Tests { program, .. } if program != LIBRARY => Some(program),
            Self::Simulation | Self::Tests { .. } => None,
        }
    }
}

/// Reads the rows of the page's table: name, crate, mistake, finder. Further columns are ignored.
pub fn on_the_page(page: &str) -> Vec<Planted> {
    page.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Planted> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
    let (bends, mistake) = (cells.next()?.trim_matches('`'), cells.next()?);
    let finder = cells.next().and_then(Finder::read);
    Some(Planted { name: name.into(), bends: bends.into(), mistake: mistake.into(), finder })
}

/// Returns a sentence for every disagreement between the page and the sources of the crates.
pub fn refused(page: &str, sources: &[TextFile]) -> Vec<String> {
    let listed = on_the_page(page);
    let planted: BTreeSet<(String, String)> = sources.iter().flat_map(in_source).collect();
    let mut refused: Vec<String> =
        listed.iter().flat_map(|row| refused_row(row, &planted, sources)).collect();
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

fn refused_row(row: &Planted, planted: &BTreeSet<(String, String)>, sources: &[TextFile]) -> Vec<String> {
    let Planted { name, bends, mistake, finder } = row;
    let mut refused = Vec::new();
    if mistake.is_empty() {
        refused.push(format!("{PAGE}: `{name}` has no sentence"));
    }
    if !planted.contains(&(bends.clone(), name.clone())) {
        refused.push(format!("crates/{bends}/src has no `cfg!({CONDITION}{name}\")`"));
    }
    let Some(finder) = finder else {
        refused.push(format!("{PAGE}: `{name}` has no finder"));
        return refused;
    };
    if let Some(target) = finder.target()
        && !has_test(target, bends, sources)
    {
        refused.push(format!("{PAGE}: `{name}` is found by `{target}`, which is no test program of {bends}"));
    }
    refused
}

/// Returns true if the manifest of a crate names this test program.
fn has_test(program: &str, crate_name: &str, sources: &[TextFile]) -> bool {
    let manifest = format!("crates/{crate_name}/Cargo.toml");
    let manifest = sources.iter().find(|file| file.path == manifest);
    manifest.is_some_and(|file| file.text.contains(&format!("[[test]]\nname = \"{program}\"")))
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
