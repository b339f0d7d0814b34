//! `mutants`: plants one bug after the other, and demands that its finder finds it: the simulation, or a test program of
//! the store that contains the bug.
//!
//! A bug is compiled in by `--cfg mutant="NAME"`. RUSTFLAGS would rebuild every dependency for it, so this program is the
//! compiler wrapper of the workspace's crates instead, and adds the flag for the one crate that contains the bug.

mod build;
mod found;
mod wrapper;

use std::collections::{BTreeMap, BTreeSet};

use crate::failure::Failure;
use crate::files;
use crate::planted::{self, Finder, Planted};
use build::Builder;
use found::{Found, line, table, verdict};
pub use wrapper::compile_as_wrapper;

/// The default of `--seeds`.
const SEEDS: u64 = 1_000;

/// Which bugs to plant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutants {
    /// Within how many seeds the simulation has to find each of its bugs.
    pub seeds: u64,
    /// Only these, if any are given.
    pub only: Vec<String>,
}

impl Mutants {
    /// Reads `--seeds N` and any number of `--only NAME`.
    pub fn parse(args: &[String]) -> Result<Self, Failure> {
        let mut asked = Self { seeds: SEEDS, only: Vec::new() };
        let mut rest = args.iter();
        while let Some(name) = rest.next() {
            let mut value =
                || rest.next().ok_or_else(|| Failure::usage(format!("{name} needs something after it")));
            match name.as_str() {
                "--seeds" => {
                    let given = value()?;
                    asked.seeds = given.parse().ok().filter(|seeds| *seeds > 0).ok_or_else(|| {
                        Failure::usage(format!("--seeds needs a number above 0, but was given `{given}`"))
                    })?;
                }
                "--only" => asked.only.push(value()?.clone()),
                other => {
                    return Err(Failure::usage(format!(
                        "mutants takes --seeds N and --only NAME, but was given `{other}`"
                    )));
                }
            }
        }
        Ok(asked)
    }

    fn chosen(&self, all: Vec<Planted>) -> Result<Vec<Planted>, Failure> {
        if self.only.is_empty() {
            return Ok(all);
        }
        let known: Vec<&str> = all.iter().map(|planted| planted.name.as_str()).collect();
        if let Some(unknown) = self.only.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(Failure::usage(format!(
                "unknown bug `{unknown}`; expected one of {}",
                known.join(", ")
            )));
        }
        Ok(all.into_iter().filter(|planted| self.only.contains(&planted.name)).collect())
    }
}

/// Runs each finder without a bug, where it has to find nothing, and then with each bug.
pub fn run(asked: &Mutants) -> Result<(), Failure> {
    let root = files::root();
    let all = planted::on_the_page(&build::page(&root, planted::PAGE)?);
    let builder = Builder { root, wrapper: build::this_program()?, seeds: asked.seeds };
    // An earlier run may have been stopped with a bug compiled in.
    builder.forget_bent()?;
    let chosen = asked.chosen(all)?;
    let clean = without_bugs(&builder, &chosen)?;
    let rows = with_each_bug(&builder, &chosen)?;
    println!("\n{}", table(&rows));
    verdict(&clean, &rows)
}

/// Runs the finders of these bugs while none is planted.
fn without_bugs(builder: &Builder, chosen: &[Planted]) -> Result<Vec<(String, Found)>, Failure> {
    let mut finders: BTreeMap<&Finder, BTreeSet<&str>> = BTreeMap::new();
    for planted in chosen {
        let finder = finder_of(planted)?;
        // The simulation is the same program for the bugs of every crate.
        let bends = if *finder == Finder::Simulation { planted::SIMULATION } else { &planted.bends };
        finders.entry(finder).or_default().insert(bends);
    }
    let mut clean = Vec::new();
    for (finder, crates) in finders {
        for bends in crates {
            let name = format!("no bug, {bends} {}", finder.cell());
            let found = builder.look(finder, bends, None)?;
            println!("{}", line(&name, &found));
            clean.push((name, found));
        }
    }
    Ok(clean)
}

fn with_each_bug<'p>(builder: &Builder, chosen: &'p [Planted]) -> Result<Vec<(&'p Planted, Found)>, Failure> {
    let mut rows = Vec::new();
    for planted in chosen {
        builder.bend(&planted.bends)?;
        let found = builder.look(finder_of(planted)?, &planted.bends, Some(planted))?;
        println!("{}", line(&planted.name, &found));
        rows.push((planted, found));
    }
    // The next run without a bug must not find this one.
    builder.forget_bent()?;
    Ok(rows)
}

fn finder_of(planted: &Planted) -> Result<&Finder, Failure> {
    let none = || Failure::check(format!("{}: `{}` has no finder", planted::PAGE, planted.name));
    planted.finder.as_ref().ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Mutants, Failure> {
        Mutants::parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    fn bug(name: &str) -> Planted {
        Planted {
            name: name.into(),
            bends: "tenure-core".into(),
            mistake: "it does not compare".into(),
            finder: Some(Finder::Simulation),
        }
    }

    #[test]
    fn bugs_may_be_chosen_by_name() {
        let all = || vec![bug("a"), bug("b")];
        let asked = parse("--only b --seeds 7").unwrap();
        assert_eq!((asked.seeds, asked.chosen(all()).unwrap()), (7, vec![bug("b")]));
        assert_eq!(parse("--only b --only a").unwrap().chosen(all()).unwrap(), all());
        assert_eq!(parse("").unwrap().chosen(all()).unwrap(), all());
        let refusal = parse("--only a --only c").unwrap().chosen(all()).unwrap_err().to_string();
        assert!(refusal.contains("one of a, b"), "{refusal}");
    }

    #[test]
    fn a_bad_number_is_refused_by_name() {
        for line in ["--seeds", "--seeds none", "--seeds 0", "--all"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
