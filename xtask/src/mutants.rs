//! `mutants`: plants one bug after the other, and demands that the simulation finds each.
//!
//! A bug is compiled in by `--cfg mutant="NAME"`. RUSTFLAGS would rebuild every dependency for it, so this program is the
//! compiler wrapper of the workspace's crates instead, and adds the flag for the one crate that contains the bug.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::failure::Failure;
use crate::planted::{self, Planted, SIMULATION};
use crate::{check, files};

/// The default of `--seeds`.
const SEEDS: u64 = 1_000;
/// The target folder of all builds with a bug, so that each compiles only the bent crate and its dependents.
const TARGET: &str = "target/mutants";
const PROFILE: &str = "mutants";
/// Tells the compiler wrapper which bug to compile in; empty for none.
const PLANT: &str = "XTASK_PLANT";
/// Tells the compiler wrapper which crate contains it, as rustc spells the crate's name.
const PLANT_IN: &str = "XTASK_PLANT_IN";

/// Which bugs to plant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutants {
    /// Within how many seeds each has to be found.
    pub seeds: u64,
    /// Only this one, if it is given.
    pub only: Option<String>,
}

/// The result for one bug.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    /// At this seed, as a breach of this promise.
    At(u64, String),
    /// At no seed.
    Never,
    /// The program ended without saying what it found.
    Unclear(String),
}

impl Mutants {
    /// Reads `--seeds N` and `--only NAME`, in either order, both optional.
    pub fn parse(args: &[String]) -> Result<Self, Failure> {
        let mut asked = Self { seeds: SEEDS, only: None };
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
                "--only" => asked.only = Some(value()?.clone()),
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
        let Some(only) = &self.only else { return Ok(all) };
        let chosen: Vec<Planted> = all.iter().filter(|planted| planted.name == *only).cloned().collect();
        if chosen.is_empty() {
            let known: Vec<&str> = all.iter().map(|planted| planted.name.as_str()).collect();
            return Err(Failure::usage(format!(
                "unknown bug `{only}`; expected one of {}",
                known.join(", ")
            )));
        }
        Ok(chosen)
    }
}

/// Runs the simulation as it is, which has to find nothing, and then with each bug.
pub fn run(asked: &Mutants) -> Result<(), Failure> {
    let root = files::root();
    let wrapper = std::env::current_exe()
        .map_err(|error| Failure::check(format!("the path of this program is unknown: {error}")))?;
    let page = std::fs::read_to_string(root.join(planted::PAGE))
        .map_err(|error| Failure::check(format!("{} could not be read: {error}", planted::PAGE)))?;
    let all = planted::on_the_page(&page);
    // An earlier run may have been stopped with a bug compiled in.
    forget(&root, &all.iter().map(|planted| planted.bends.as_str()).collect())?;
    let chosen = asked.chosen(all)?;
    let mut rows = Vec::new();
    let clean = simulate(&root, &wrapper, None, asked.seeds)?;
    println!("{}", line("no bug", &clean));
    let mut bent = None;
    for planted in &chosen {
        forget(&root, &bent.into_iter().chain([planted.bends.as_str()]).collect())?;
        bent = Some(planted.bends.as_str());
        let found = simulate(&root, &wrapper, Some(planted), asked.seeds)?;
        println!("{}", line(&planted.name, &found));
        rows.push((planted, found));
    }
    // The next run without a bug must not find this one.
    forget(&root, &bent.into_iter().collect())?;
    println!("\n{}", table(&rows));
    verdict(asked.seeds, &clean, &rows)
}

/// Removes what was built of these crates: cargo does not know that the wrapper's flag has changed.
fn forget(root: &Path, crates: &BTreeSet<&str>) -> Result<(), Failure> {
    if crates.is_empty() {
        return Ok(());
    }
    let mut clean = check::cargo(root);
    clean.args(["clean", "--quiet", "--locked", "--profile", PROFILE, "--target-dir", TARGET]);
    clean.args(crates.iter().flat_map(|name| ["--package", name]));
    let status = clean.status().map_err(|error| Failure::check(format!("cargo did not start: {error}")))?;
    if status.success() { Ok(()) } else { Err(Failure::check("cargo clean failed")) }
}

/// Builds the simulation with a bug, or without any, and runs it until it finds something.
fn simulate(root: &Path, wrapper: &Path, planted: Option<&Planted>, seeds: u64) -> Result<Found, Failure> {
    let name = planted.map_or("", |planted| planted.name.as_str());
    let mut build = check::cargo(root);
    build.args(["build", "--quiet", "--locked", "--package", SIMULATION]);
    build.args(["--profile", PROFILE, "--target-dir", TARGET]);
    build.env("RUSTC_WORKSPACE_WRAPPER", wrapper).env(PLANT, name);
    build.env(PLANT_IN, planted.map_or_else(String::new, |planted| planted.bends.replace('-', "_")));
    let built = build.status().map_err(|error| Failure::check(format!("cargo did not start: {error}")))?;
    if !built.success() {
        return Err(Failure::check(format!("the simulation could not be built with mutant `{name}`")));
    }
    let output = Command::new(root.join(TARGET).join(PROFILE).join(SIMULATION))
        .args(["--seeds", &seeds.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::check(format!("the simulation did not start: {error}")))?;
    let report = String::from_utf8_lossy(&output.stdout);
    Ok(found(&report, output.status.success()))
}

/// Compiles a crate if this program was started as the compiler wrapper of [`run`]; `args` is rustc and its arguments.
pub fn compile_as_wrapper(args: &[String]) -> Option<ExitCode> {
    let variable = |name| std::env::var(name).ok();
    let (name, bends) = (variable(PLANT)?, variable(PLANT_IN)?);
    let (rustc, args) = args.split_first()?;
    let status = Command::new(rustc).args(args).args(cfg_for(args, &name, &bends)).status();
    let is_compiled = status.is_ok_and(|status| status.success());
    Some(if is_compiled { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The flag that compiles the bug in, if these are the arguments for the crate that contains it.
fn cfg_for(args: &[String], name: &str, bends: &str) -> Vec<String> {
    let is_bent = args.windows(2).any(|pair| pair[0] == "--crate-name" && pair[1] == bends);
    let flag = || vec!["--cfg".to_owned(), format!("mutant=\"{name}\"")];
    if is_bent && !name.is_empty() { flag() } else { Vec::new() }
}

/// Reads the report of `tenure-sim`.
fn found(told: &str, is_good: bool) -> Found {
    if is_good {
        return Found::Never;
    }
    let mut lines = told.lines().skip_while(|line| !line.starts_with("SEED="));
    let seed = lines.next().and_then(|line| line.strip_prefix("SEED=")?.split(' ').next()?.parse().ok());
    let rule = lines.next().and_then(|line| line.split(": ").next());
    match (seed, rule) {
        (Some(seed), Some(rule)) => Found::At(seed, rule.to_owned()),
        _ => Found::Unclear(told.lines().last().unwrap_or("it said nothing").to_owned()),
    }
}

fn line(name: &str, found: &Found) -> String {
    match found {
        Found::At(seed, rule) => format!("{name:<44} found at seed {seed}: {rule}"),
        Found::Never => format!("{name:<44} nothing found"),
        Found::Unclear(told) => format!("{name:<44} ended without a verdict: {told}"),
    }
}

/// Prints the table of the page.
fn table(rows: &[(&Planted, Found)]) -> String {
    let mut table =
        String::from("| name | crate | the mistake | found by | at seed |\n|---|---|---|---|--:|\n");
    for (Planted { name, bends, mistake }, found) in rows {
        let (rule, seed) = match found {
            Found::At(seed, rule) => (rule.as_str(), seed.to_string()),
            Found::Never => ("**nothing**", "–".into()),
            Found::Unclear(_) => ("**unclear**", "–".into()),
        };
        table.push_str(&format!("| `{name}` | `{bends}` | {mistake} | {rule} | {seed} |\n"));
    }
    table
}

fn verdict(seeds: u64, clean: &Found, rows: &[(&Planted, Found)]) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    if *clean != Found::Never {
        wrong.push(format!("without any bug: {}", line("", clean).trim_start()));
    }
    for (planted, found) in rows.iter().filter(|(_, found)| !matches!(found, Found::At(..))) {
        let what = if *found == Found::Never { "survived" } else { "ended without a verdict" };
        wrong.push(format!("{} {what}", planted.name));
    }
    match wrong.as_slice() {
        [] => {
            println!("{} bugs planted, each found within {seeds} seeds", rows.len());
            Ok(())
        }
        wrong => Err(Failure::check(wrong.join("\n"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Mutants, Failure> {
        Mutants::parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    fn bug(name: &str) -> Planted {
        Planted { name: name.into(), bends: "tenure-core".into(), mistake: "it does not compare".into() }
    }

    #[test]
    fn one_bug_may_be_chosen_by_name() {
        let all = || vec![bug("a"), bug("b")];
        let asked = parse("--only b --seeds 7").unwrap();
        assert_eq!((asked.seeds, asked.chosen(all()).unwrap()), (7, vec![bug("b")]));
        assert_eq!(parse("").unwrap().chosen(all()).unwrap(), all());
        let refusal = parse("--only c").unwrap().chosen(all()).unwrap_err().to_string();
        assert!(refusal.contains("one of a, b"), "{refusal}");
    }

    #[test]
    fn only_the_crate_with_the_bug_is_compiled_with_it() {
        let args = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        let of = |line: &str, name: &str| cfg_for(&args(line), name, "tenure_core");
        assert_eq!(of("--crate-name tenure_core src/lib.rs", "a"), ["--cfg", "mutant=\"a\""]);
        assert_eq!(of("--crate-name tenure_core src/lib.rs", ""), [""; 0]);
        assert_eq!(of("--crate-name tenure --extern tenure_core", "a"), [""; 0]);
        assert_eq!(of("-vV", "a"), [""; 0]);
    }

    #[test]
    fn a_bad_number_is_refused_by_name() {
        for line in ["--seeds", "--seeds none", "--seeds 0", "--all"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_seed_and_the_promise_are_read_from_the_report() {
        let told = "9 seeds, 1.0 a second\n\nSEED=17 broke a promise\nfences grow: #1 went back\n  at 1.0\n";
        assert_eq!(found(told, false), Found::At(17, "fences grow".into()));
        assert_eq!(found("1000 seeds\n", true), Found::Never);
        assert!(matches!(found("thread panicked", false), Found::Unclear(_)));
    }

    #[test]
    fn a_bug_that_survives_and_a_clean_run_that_complains_fail() {
        let (a, b) = (bug("a"), bug("b"));
        let at = || Found::At(1, "fences grow".into());
        assert_eq!(verdict(9, &Found::Never, &[(&a, at()), (&b, at())]), Ok(()));
        let survived = verdict(9, &Found::Never, &[(&a, at()), (&b, Found::Never)]).unwrap_err();
        assert_eq!(survived.to_string(), "b survived");
        assert!(verdict(9, &at(), &[(&a, at())]).is_err());
        assert!(verdict(9, &Found::Never, &[(&a, Found::Unclear(String::new()))]).is_err());
    }
}
