//! Builds the program that has to find a bug, with the bug in it, and runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::found::Found;
use super::wrapper::{PLANT, PLANT_IN};
use crate::check;
use crate::failure::Failure;
use crate::planted::{Finder, LIBRARY, Planted, SIMULATION};

/// The target folder of all builds with a bug, so that each compiles only the bent crate and its dependents.
const TARGET: &str = "target/mutants";
/// Names the crate that is built with a bug at present.
const BENT: &str = "target/mutants/bent";
/// The profile of the simulation. Tests run in the profile in which everybody runs them.
const PROFILE: &str = "mutants";
/// The profiles in which a bug may have been built.
const PROFILES: [&str; 2] = [PROFILE, "dev"];

/// Builds and runs finders.
pub struct Builder {
    pub root: PathBuf,
    /// The compiler wrapper: this program.
    pub wrapper: PathBuf,
    /// Within how many seeds the simulation has to find a bug.
    pub seeds: u64,
}

impl Builder {
    /// Removes all builds of the crate that was built with a bug last, also in a run that was stopped: cargo does not know
    /// that the wrapper's flag has changed.
    pub fn forget_bent(&self) -> Result<(), Failure> {
        let note = self.root.join(BENT);
        let Ok(bent) = std::fs::read_to_string(&note) else { return Ok(()) };
        self.forget(&bent)?;
        std::fs::remove_file(&note).map_err(|error| Failure::check(format!("{BENT}: {error}")))
    }

    /// Removes the clean builds of a crate that is to be built with a bug, and notes that it is.
    pub fn bend(&self, crate_name: &str) -> Result<(), Failure> {
        self.forget_bent()?;
        self.forget(crate_name)?;
        let noted = std::fs::create_dir_all(self.root.join(TARGET))
            .and_then(|()| std::fs::write(self.root.join(BENT), crate_name));
        noted.map_err(|error| Failure::check(format!("{BENT}: {error}")))
    }

    fn forget(&self, crate_name: &str) -> Result<(), Failure> {
        for profile in PROFILES {
            let mut clean = check::cargo(&self.root);
            clean.args(["clean", "--quiet", "--locked", "--profile", profile, "--target-dir", TARGET]);
            let status = clean.args(["--package", crate_name]).status();
            if !status.map_err(|error| not_started("cargo", &error))?.success() {
                return Err(Failure::check("cargo clean failed"));
            }
        }
        Ok(())
    }

    /// Looks for a bug, or for any complaint where there is no bug.
    pub fn look(&self, finder: &Finder, bends: &str, planted: Option<&Planted>) -> Result<Found, Failure> {
        match finder {
            Finder::Simulation => self.simulate(planted),
            Finder::Tests { program, filter } => self.test(bends, program, filter, planted),
        }
    }

    /// Builds the simulation and runs it until it finds something.
    fn simulate(&self, planted: Option<&Planted>) -> Result<Found, Failure> {
        let mut build = self.cargo(planted);
        build.args(["build", "--quiet", "--locked", "--package", SIMULATION]);
        build.args(["--profile", PROFILE, "--target-dir", TARGET]);
        built(&mut build, planted)?;
        let mut run = Command::new(self.root.join(TARGET).join(PROFILE).join(SIMULATION));
        let output = output(run.args(["--seeds", &self.seeds.to_string()]), "the simulation")?;
        Ok(Found::by_simulation(&String::from_utf8_lossy(&output.stdout), output.status.success()))
    }

    /// Builds a test program of a crate and runs some of its tests.
    fn test(
        &self,
        bends: &str,
        program: &str,
        filter: &str,
        planted: Option<&Planted>,
    ) -> Result<Found, Failure> {
        let test = || {
            let mut test = self.cargo(planted);
            test.args(["test", "--locked", "--package", bends, "--target-dir", TARGET]);
            if program == LIBRARY {
                test.arg("--lib")
            } else {
                test.args(["--test", program])
            };
            test
        };
        built(test().args(["--no-run", "--quiet"]), planted)?;
        let output = output(test().args(["--", filter]), program)?;
        Ok(Found::by_tests(&String::from_utf8_lossy(&output.stdout), output.status.success()))
    }

    /// Cargo, with this program as the compiler wrapper that adds the bug's flag.
    fn cargo(&self, planted: Option<&Planted>) -> Command {
        let mut cargo = check::cargo(&self.root);
        cargo.env("RUSTC_WORKSPACE_WRAPPER", &self.wrapper).env(PLANT, name(planted));
        cargo.env(PLANT_IN, planted.map_or_else(String::new, |planted| planted.bends.replace('-', "_")));
        cargo
    }
}

fn name(planted: Option<&Planted>) -> &str {
    planted.map_or("", |planted| planted.name.as_str())
}

fn built(build: &mut Command, planted: Option<&Planted>) -> Result<(), Failure> {
    let status = build.status().map_err(|error| not_started("cargo", &error))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::check(format!("could not build with mutant `{}`", name(planted))))
}

fn output(command: &mut Command, what: &str) -> Result<Output, Failure> {
    command.stderr(Stdio::inherit()).output().map_err(|error| not_started(what, &error))
}

fn not_started(what: &str, error: &std::io::Error) -> Failure {
    Failure::check(format!("{what} did not start: {error}"))
}

/// The path of this program, which is the compiler wrapper.
pub fn this_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::check(format!("the path of this program is unknown: {error}")))
}

/// Reads the page of planted bugs.
pub fn page(root: &Path, page: &str) -> Result<String, Failure> {
    std::fs::read_to_string(root.join(page))
        .map_err(|error| Failure::check(format!("{page} could not be read: {error}")))
}
