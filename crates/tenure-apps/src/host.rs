//! Which file of an app is run, and by what.

use std::ffi::OsString;
use std::path::Path;

/// What Kudu says where nothing can be run.
pub const NOTHING_TO_RUN: &str = "No runnable script file was found.";

/// What runs the files of some extensions. Kudu asks them in this order.
struct ScriptHost {
    extensions: &'static [&'static str],
    /// The interpreters that will do, each with its first arguments; the first that is there is taken. None for files that
    /// only another system runs.
    by: &'static [&'static [&'static str]],
}

const HOSTS: [ScriptHost; 9] = [
    ScriptHost { extensions: &["cmd", "bat", "exe"], by: &[] },
    ScriptHost {
        extensions: &["ps1"],
        by: &[
            &["pwsh", "-ExecutionPolicy", "RemoteSigned", "-File"],
            &["powershell", "-ExecutionPolicy", "RemoteSigned", "-File"],
        ],
    },
    ScriptHost { extensions: &["sh"], by: &[&["bash"], &["sh"]] },
    ScriptHost { extensions: &["py"], by: &[&["python3"], &["python"]] },
    ScriptHost { extensions: &["php"], by: &[&["php"]] },
    ScriptHost { extensions: &["js"], by: &[&["node"], &["nodejs"]] },
    // The code of Kudu does not have it, its documentation does.
    ScriptHost { extensions: &["jar"], by: &[&["java", "-jar"]] },
    ScriptHost { extensions: &["fsx"], by: &[&["dotnet", "fsi"]] },
    ScriptHost { extensions: &["dll"], by: &[&["dotnet"]] },
];

/// Whether a program of this name can be run on this machine.
pub type Installed<'a> = &'a dyn Fn(&str) -> bool;

/// What was chosen of the files of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The interpreter with its arguments, and the file.
    pub command: Vec<OsString>,
    /// Whether it runs in its own folder unless something else is said.
    pub is_in_place: bool,
    /// What was passed over.
    pub notes: Vec<String>,
}

/// Chooses among the files of a folder as Kudu does: `run.*` before any other name, and among these by the order of the
/// hosts, and of names if there are several. On systems that are not Windows the files of its own shell are passed over.
///
/// # Errors
/// In words, why there is nothing to run.
pub fn choose(files: &[String], installed: Installed<'_>) -> Result<Chosen, String> {
    let mut files: Vec<&String> = files.iter().collect();
    files.sort();
    let mut notes: Vec<String> = Vec::new();
    for only_run in [true, false] {
        for host in &HOSTS {
            let Some(file) = host.file(&files, only_run) else { continue };
            if host.by.is_empty() {
                notes.push(format!("ignored {file}: it runs on Windows only"));
                continue;
            }
            let Some(by) = host.by.iter().find(|by| installed(by[0])) else {
                // Where it is installed this file runs: two hosts must not differ in what they do.
                return Err(format!("{file} needs {}, which is not installed here", host.by[0][0]));
            };
            let mut command: Vec<OsString> = by.iter().map(OsString::from).collect();
            // What begins like an option is a file all the same.
            command.push(if file.starts_with('-') { format!("./{file}").into() } else { file.into() });
            notes.dedup();
            return Ok(Chosen { command, is_in_place: host.extensions == ["js"], notes });
        }
    }
    notes.dedup();
    if notes.is_empty() {
        return Err(NOTHING_TO_RUN.to_owned());
    }
    Err(format!("{NOTHING_TO_RUN} {}", notes.join("; ")))
}

impl ScriptHost {
    fn file<'a>(&self, files: &[&'a String], only_run: bool) -> Option<&'a str> {
        self.extensions.iter().find_map(|extension| {
            files.iter().map(|file| file.as_str()).find(|file| {
                let path = Path::new(file);
                let fits = path.extension().is_some_and(|it| it.eq_ignore_ascii_case(extension));
                let is_run = path.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case("run"));
                // A library beside a program is not one; only what calls itself `run` is meant.
                let is_meant = only_run || *extension != "dll";
                fits && is_meant && (is_run || !only_run)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(files: &[&str]) -> String {
        of(files, &|_| true)
    }

    fn of(files: &[&str], installed: Installed<'_>) -> String {
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        match choose(&files, installed) {
            Ok(chosen) => {
                chosen.command.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
            }
            Err(why) => why,
        }
    }

    /// T070: which file is run, with the order of Kudu's code (`.py` before `.php`) and not that of its documentation.
    #[test]
    fn t070_run_wins_then_the_order_of_the_hosts_then_names() {
        assert_eq!(chosen(&["a.sh", "run.js"]), "node run.js");
        assert_eq!(chosen(&["run.js", "run.php", "run.py", "run.sh"]), "bash run.sh");
        assert_eq!(chosen(&["run.js", "run.php", "run.py"]), "python3 run.py");
        assert_eq!(chosen(&["x.php", "y.py"]), "python3 y.py");
        assert_eq!(chosen(&["b.sh", "a.sh", "c.py"]), "bash a.sh");
        assert_eq!(chosen(&["Run.SH"]), "bash Run.SH");
        assert_eq!(chosen(&["job.jar"]), "java -jar job.jar");
        assert_eq!(chosen(&["run.ps1", "run.sh"]), "pwsh -ExecutionPolicy RemoteSigned -File run.ps1");
        assert_eq!(chosen(&["readme.md", "runner", "some.dll"]), NOTHING_TO_RUN);
        assert_eq!(chosen(&[]), NOTHING_TO_RUN);
    }

    #[test]
    fn a_script_whose_name_looks_like_an_option_is_a_file() {
        assert_eq!(chosen(&["-c.sh"]), "bash ./-c.sh");
        assert_eq!(chosen(&["--version.py"]), "python3 ./--version.py");
        assert_eq!(chosen(&["-e.js"]), "node ./-e.js");
    }

    #[test]
    fn what_only_windows_runs_is_passed_over_and_told() {
        let files = ["run.cmd", "run.sh"].map(str::to_owned);
        let chosen = choose(&files, &|_| true).unwrap();
        assert_eq!(chosen.command, ["bash", "run.sh"]);
        assert_eq!(chosen.notes, ["ignored run.cmd: it runs on Windows only"]);
        assert!(of(&["run.exe"], &|_| true).contains("Windows"));
    }

    #[test]
    fn a_machine_without_the_interpreter_runs_nothing_else_in_its_place() {
        let no_python = |name: &str| !name.starts_with("python");
        assert_eq!(
            of(&["run.py", "run.js"], &no_python),
            "run.py needs python3, which is not installed here"
        );
        assert_eq!(of(&["run.py"], &|name| name == "python"), "python run.py");
        assert_eq!(of(&["run.sh"], &|name| name == "sh"), "sh run.sh");
    }

    #[test]
    fn only_node_runs_in_place_by_itself() {
        let is_in_place = |file: &str| choose(&[file.to_owned()], &|_| true).unwrap().is_in_place;
        assert!(is_in_place("run.js") && !is_in_place("run.py"));
    }
}
