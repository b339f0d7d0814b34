//! A folder of programs, and hosts that run it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Program, command, run};

pub const SOON: Duration = Duration::from_secs(60);

/// A folder of programs with a store beside it.
pub struct Stand {
    pub root: TempDir,
    /// Where programs of the tests leave word; it stands in no path that is copied.
    pub out: PathBuf,
}

pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Stand {
    pub fn of(files: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let stand = Self { out: root.path().join("out"), root };
        fs::create_dir_all(&stand.out).unwrap();
        for (path, text) in files {
            stand.write(path, text);
        }
        stand
    }

    pub fn folder(&self) -> PathBuf {
        self.root.path().join("jobs")
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.folder().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn db(&self) -> String {
        self.folder().join(".tenure/apps.db").display().to_string()
    }

    /// A host, once it says that it runs.
    pub fn host(&self, more: &[&str]) -> Program {
        self.host_with(more, &[])
    }

    pub fn host_with(&self, more: &[&str], env: &[(&str, &str)]) -> Program {
        let folder = self.folder().display().to_string();
        let mut command = command(&[&["run", &folder], more].concat(), self.root.path());
        command.env("OUT", &self.out).envs(env.iter().copied());
        let mut host = Program::start_command(&mut command);
        host.line_with("Ctrl-C stops", SOON);
        host
    }

    /// A host that does not start.
    pub fn host_refused(&self, more: &[&str]) -> Said {
        let folder = self.folder().display().to_string();
        said(&run(&[&["run", &folder], more].concat(), self.root.path()))
    }

    /// Asks about the programs.
    pub fn app(&self, args: &[&str]) -> Said {
        self.app_at(&self.db(), args)
    }

    pub fn app_at(&self, db: &str, args: &[&str]) -> Said {
        said(&run(&[&["app", "--db", db], args].concat(), self.root.path()))
    }

    /// A server on the same store, and where it is.
    pub fn server(&self, more: &[&str]) -> (Program, String) {
        let db = self.db();
        let args = [&["serve", "--db", &db, "--bind", "127.0.0.1:0"], more].concat();
        let mut server = Program::start(&args, self.root.path());
        let line = server.line_with("http://", SOON);
        let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap();
        (server, format!("http://{address}"))
    }

    /// Asks a server about the programs.
    pub fn app_of(&self, url: &str, args: &[&str]) -> Said {
        said(&run(&[&["app", "--url", url], args].concat(), self.root.path()))
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let said = self.app(&[&["-o", "json"], args].concat());
        serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err))
    }

    /// How an app stands on its first host.
    pub fn standing(&self, name: &str) -> String {
        let all = self.json(&["list"]);
        let items = all["items"].as_array().unwrap();
        let app = items.iter().find(|item| item["name"] == name);
        app.and_then(|app| app["hosts"][0]["state"].as_str()).unwrap_or("gone").to_owned()
    }

    /// What a program of a test has left.
    pub fn left(&self, name: &str) -> String {
        fs::read_to_string(self.out.join(name)).unwrap_or_default()
    }

    pub fn left_lines(&self, name: &str) -> Vec<String> {
        self.left(name).lines().map(str::to_owned).collect()
    }

    /// Waits for what a program leaves.
    pub fn wait_for_lines(&self, name: &str, lines: usize, within: Duration) -> Vec<String> {
        until(&format!("{lines} lines in {name}"), within, || self.left_lines(name).len() >= lines);
        self.left_lines(name)
    }
}

pub fn said(output: &Output) -> Said {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
}

pub fn until(what: &str, within: Duration, is_so: impl Fn() -> bool) {
    let over = Instant::now() + within;
    while !is_so() {
        assert!(Instant::now() < over, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Whether a process of this number lives.
pub fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Processes whose command lines hold this.
pub fn living(mark: &str) -> Vec<String> {
    let lines = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path();
        path.file_name()?.to_str()?.parse::<u32>().ok()?;
        let line = fs::read(path.join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(mark)).collect()
}
