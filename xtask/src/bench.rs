//! `bench`: the ratios of `tenure bench`, and their difference to those that the repository keeps.
//!
//! Ratios are taken within one run, against the bare driver or an empty store, so that they can be compared between
//! machines. Nothing fails here: a report of a shared machine is no test.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use crate::check::cargo;
use crate::failure::Failure;
use crate::files;
use crate::programs::lost;

/// The ratios that the repository keeps.
const KEPT: &str = "docs/benchmarks.json";
/// Figures that print a ratio, without those that take many minutes.
const FIGURES: &[&str] =
    &["--floor", "--figure", "life", "--figure", "enqueue_single", "--figure", "backlog"];
const ROUNDS: u32 = 5;

/// The options of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bench {
    /// Number of rounds.
    pub rounds: u32,
    /// Keeps the result in the repository.
    pub write: bool,
}

/// A ratio over all rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ratio {
    median: f64,
    low: f64,
    high: f64,
}

type Ratios = BTreeMap<String, Ratio>;

impl Bench {
    /// Reads `--rounds N` and `--write`, in either order, both optional.
    pub fn parse(args: &[String]) -> Result<Self, Failure> {
        let mut bench = Self { rounds: ROUNDS, write: false };
        let mut rest = args.iter();
        while let Some(name) = rest.next() {
            match name.as_str() {
                "--write" => bench.write = true,
                "--rounds" => {
                    let rounds =
                        rest.next().and_then(|value| value.parse().ok()).filter(|rounds| *rounds > 0);
                    bench.rounds =
                        rounds.ok_or_else(|| Failure::usage("--rounds needs a number of 1 or more"))?;
                }
                other => {
                    let words = format!("bench takes --rounds N and --write, but was given `{other}`");
                    return Err(Failure::usage(words));
                }
            }
        }
        Ok(bench)
    }
}

/// Builds what is released, measures it, and prints the difference to the kept ratios.
pub fn run(bench: Bench) -> Result<(), Failure> {
    let root = files::root();
    let mut build = cargo(&root);
    build.args(["build", "--locked", "--profile", "dist", "--package", "tenure-cli"]);
    if !build.status().map_err(lost("cargo"))?.success() {
        return Err(Failure::check("`tenure` was not built"));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let mut rounds = Vec::new();
    for round in 1..=bench.rounds {
        println!("round {round} of {}", bench.rounds);
        rounds.push(measure(&target.join("dist/tenure"))?);
    }
    let ratios = over_rounds(&rounds);
    let kept =
        std::fs::read_to_string(root.join(KEPT)).ok().and_then(|text| serde_json::from_str(&text).ok());
    println!("\n{}", report(&ratios, kept.as_ref()));
    if bench.write {
        let text = serde_json::to_string_pretty(&document(&root, bench.rounds, &ratios)?)
            .map_err(|error| Failure::check(error.to_string()))?;
        std::fs::write(root.join(KEPT), text + "\n").map_err(lost(KEPT))?;
        println!("wrote {KEPT}");
    }
    Ok(())
}

/// Runs the benchmark once; returns its ratios by figure and key.
fn measure(tenure: &Path) -> Result<BTreeMap<String, f64>, Failure> {
    let output = Command::new(tenure).arg("bench").args(FIGURES).stderr(Stdio::inherit()).output();
    let output = output.map_err(lost("tenure bench"))?;
    if !output.status.success() {
        return Err(Failure::check("`tenure bench` failed"));
    }
    Ok(ratios_of(&String::from_utf8_lossy(&output.stdout)))
}

fn ratios_of(lines: &str) -> BTreeMap<String, f64> {
    let mut ratios = BTreeMap::new();
    for line in lines.lines().filter_map(|line| serde_json::from_str::<Map<String, Value>>(line).ok()) {
        let figure = line.get("figure").and_then(Value::as_str).unwrap_or_default();
        for (key, value) in line.iter().filter(|(key, _)| key.contains("ratio")) {
            ratios.extend(value.as_f64().map(|value| (format!("{figure}.{key}"), value)));
        }
    }
    ratios
}

fn over_rounds(rounds: &[BTreeMap<String, f64>]) -> Ratios {
    let names = rounds.iter().flat_map(BTreeMap::keys);
    names
        .filter_map(|name| {
            let mut values: Vec<f64> = rounds.iter().filter_map(|round| round.get(name).copied()).collect();
            values.sort_by(f64::total_cmp);
            let (low, high) = (*values.first()?, *values.last()?);
            Some((name.clone(), Ratio { median: values[values.len() / 2], low, high }))
        })
        .collect()
}

/// A line for each ratio, beside the kept one.
fn report(ratios: &Ratios, kept: Option<&Value>) -> String {
    let mut lines =
        vec![format!("{:<44} {:>7} {:>15} {:>7} {:>8}", "ratio", "median", "range", "kept", "change")];
    for (name, ratio) in ratios {
        let before = kept.and_then(|kept| kept["ratios"][name]["median"].as_f64());
        let change = before.map(|before| format!("{:+.0} %", (ratio.median / before - 1.0) * 100.0));
        let range = format!("{:.2} to {:.2}", ratio.low, ratio.high);
        let before = before.map_or_else(|| "-".to_owned(), |before| format!("{before:.2}"));
        let change = change.unwrap_or_else(|| "-".to_owned());
        lines.push(format!("{name:<44} {:>7.2} {range:>15} {before:>7} {change:>8}", ratio.median));
    }
    if let Some(kept) = kept {
        lines.push(format!("kept: commit {}, {}, {}", kept["commit"], kept["date"], kept["machine"]));
    }
    lines.join("\n")
}

/// The form in which the repository keeps a run.
fn document(root: &Path, rounds: u32, ratios: &Ratios) -> Result<Value, Failure> {
    let said = |program: &str, args: &[&str]| -> Result<String, Failure> {
        let output = Command::new(program).args(args).current_dir(root).output().map_err(lost(program))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let to_json = |(name, ratio): (&String, &Ratio)| {
        (name.clone(), json!({ "median": ratio.median, "low": ratio.low, "high": ratio.high }))
    };
    Ok(json!({
        "commit": said("git", &["describe", "--always", "--dirty"])?,
        "date": said("date", &["-u", "+%Y-%m-%d"])?,
        "machine": machine(),
        "profile": "dist",
        "rounds": rounds,
        "ratios": ratios.iter().map(to_json).collect::<Map<String, Value>>(),
    }))
}

/// The processor, and the number of its cores.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let cores = if cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") };
    model.map_or(cores.clone(), |(_, model)| format!("{cores}, {}", model.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_the_range_of_each_ratio_are_kept() {
        let lines = |ratio: f64| {
            ratios_of(&format!(
                "starting\n{{\"figure\":\"life\",\"jobs\":5,\"cpu_ratio_to_floor\":{ratio}}}\n{{\"figure\":\"idle\",\"ratio\":null}}"
            ))
        };
        let ratios = over_rounds(&[lines(2.0), lines(1.5), lines(1.75)]);
        let expected = Ratio { median: 1.75, low: 1.5, high: 2.0 };
        assert_eq!(ratios, Ratios::from([("life.cpu_ratio_to_floor".to_owned(), expected)]));
    }

    #[test]
    fn each_figure_is_one_that_the_program_measures() {
        let guide = std::fs::read_to_string(files::root().join("docs/guide/bench.md")).unwrap();
        for name in FIGURES.iter().filter(|word| !word.starts_with("--")) {
            assert!(guide.contains(&format!("| `{name}")), "{name}");
        }
    }

    #[test]
    fn a_report_shows_the_change_to_the_kept_ratios() {
        let ratios = Ratios::from([
            ("life.cpu_ratio_to_floor".to_owned(), Ratio { median: 2.0, low: 1.9, high: 2.2 }),
            ("new.ratio".to_owned(), Ratio { median: 1.0, low: 1.0, high: 1.0 }),
        ]);
        let kept = json!({ "commit": "abc", "ratios": { "life.cpu_ratio_to_floor": { "median": 1.6 } } });
        let report = report(&ratios, Some(&kept));
        let line = |name: &str| report.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert!(line("life").ends_with("2.00    1.90 to 2.20    1.60    +25 %"), "{report}");
        assert!(line("new").ends_with('-') && line("kept").contains("\"abc\""), "{report}");
    }

    #[test]
    fn options_are_read_in_any_order() {
        let parse =
            |text: &str| Bench::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(parse("").unwrap(), Bench { rounds: ROUNDS, write: false });
        assert_eq!(parse("--write --rounds 3").unwrap(), Bench { rounds: 3, write: true });
        for wrong in ["--rounds", "--rounds 0", "--rounds many", "--fast"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
