//! `mutants`: plants one bug after the other, and demands that the simulation finds each.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::planted::{self, Planted, SIMULATION};
use crate::{check, files};

/// Within how many seeds each bug has to be found when nobody says otherwise.
const SEEDS: u64 = 1_000;
/// Where the bent programs are built: all in one place, so that each builds only what its flag bends.
const TARGET: &str = "target/mutants";
const PROFILE: &str = "mutants";

/// Which bugs to plant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutants {
    /// Within how many seeds each has to be found.
    pub seeds: u64,
    /// Only this one, if it is given.
    pub only: Option<String>,
}

/// What came of one bug.
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
        let wanted = |planted: &Planted| {
            planted.flag == *only || planted.flag.strip_prefix("mutant-") == Some(only.as_str())
        };
        let chosen: Vec<Planted> = all.iter().filter(|planted| wanted(planted)).cloned().collect();
        if chosen.is_empty() {
            let known: Vec<&str> = all.iter().map(|planted| planted.flag.as_str()).collect();
            return Err(Failure::usage(format!("there is no planted bug `{only}`: {}", known.join(", "))));
        }
        Ok(chosen)
    }
}

/// Runs the simulation as it is, which has to find nothing, and then with each bug.
pub fn run(asked: &Mutants) -> Result<(), Failure> {
    let root = files::root();
    let page = std::fs::read_to_string(root.join(planted::PAGE))
        .map_err(|error| Failure::check(format!("{} could not be read: {error}", planted::PAGE)))?;
    let chosen = asked.chosen(planted::on_the_page(&page))?;
    let mut rows = Vec::new();
    let clean = simulate(&root, None, asked.seeds)?;
    println!("{}", line("no bug", &clean));
    for planted in &chosen {
        let found = simulate(&root, Some(&planted.flag), asked.seeds)?;
        println!("{}", line(&planted.flag, &found));
        rows.push((planted, found));
    }
    println!("\n{}", table(&rows));
    verdict(asked.seeds, &clean, &rows)
}

/// Builds the simulation with a flag, or without any, and runs it until it finds something.
fn simulate(root: &Path, flag: Option<&str>, seeds: u64) -> Result<Found, Failure> {
    let mut build = check::cargo(root);
    build.args(["build", "--quiet", "--locked", "--package", SIMULATION]);
    build.args(["--profile", PROFILE, "--target-dir", TARGET]);
    build.args(flag.into_iter().flat_map(|flag| ["--features", flag]));
    let built = build.status().map_err(|error| Failure::check(format!("cargo did not start: {error}")))?;
    if !built.success() {
        return Err(Failure::check(format!("the simulation could not be built with {flag:?}")));
    }
    let output = Command::new(root.join(TARGET).join(PROFILE).join(SIMULATION))
        .args(["--seeds", &seeds.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::check(format!("the simulation did not start: {error}")))?;
    let told = String::from_utf8_lossy(&output.stdout);
    Ok(found(&told, output.status.success()))
}

/// What the simulation told: see the report in `tenure-sim`.
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

/// What the page about planted bugs shows.
fn table(rows: &[(&Planted, Found)]) -> String {
    let mut table =
        String::from("| flag | crate | the mistake | found by | at seed |\n|---|---|---|---|--:|\n");
    for (Planted { flag, bends, mistake }, found) in rows {
        let (rule, seed) = match found {
            Found::At(seed, rule) => (rule.as_str(), seed.to_string()),
            Found::Never => ("**nothing**", "–".into()),
            Found::Unclear(_) => ("**unclear**", "–".into()),
        };
        table.push_str(&format!("| `{flag}` | `{bends}` | {mistake} | {rule} | {seed} |\n"));
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
        wrong.push(format!("{} {what}", planted.flag));
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

    fn bug(flag: &str) -> Planted {
        Planted { flag: flag.into(), bends: "tenure-core".into(), mistake: "it does not compare".into() }
    }

    #[test]
    fn one_bug_may_be_named_with_and_without_the_first_part_of_its_name() {
        let all = || vec![bug("mutant-a"), bug("mutant-b")];
        for name in ["mutant-b", "b"] {
            let asked = parse(&format!("--only {name} --seeds 7")).unwrap();
            assert_eq!((asked.seeds, asked.chosen(all()).unwrap()), (7, vec![bug("mutant-b")]));
        }
        assert_eq!(parse("").unwrap().chosen(all()).unwrap(), all());
        let refusal = parse("--only c").unwrap().chosen(all()).unwrap_err().to_string();
        assert!(refusal.contains("mutant-a, mutant-b"), "{refusal}");
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
        let (a, b) = (bug("mutant-a"), bug("mutant-b"));
        let at = || Found::At(1, "fences grow".into());
        assert_eq!(verdict(9, &Found::Never, &[(&a, at()), (&b, at())]), Ok(()));
        let survived = verdict(9, &Found::Never, &[(&a, at()), (&b, Found::Never)]).unwrap_err();
        assert_eq!(survived.to_string(), "mutant-b survived");
        assert!(verdict(9, &at(), &[(&a, at())]).is_err());
        assert!(verdict(9, &Found::Never, &[(&a, Found::Unclear(String::new()))]).is_err());
    }
}
