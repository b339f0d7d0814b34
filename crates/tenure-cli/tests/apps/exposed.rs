//! Files of a host that lie where every sandbox can read.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::apps::sandbox::can;
use crate::apps::stand::{Said, Stand, said};
use crate::program::run;

fn words(said: &Said) -> String {
    format!("{} {}", said.out, said.err)
}

/// A path below `/usr` that does not exist: a check creates nothing.
const STATE: &str = "/usr/tenure-not-there";
const STORE: &str = "/opt/tenure-not-there/jobs.db";

#[test]
fn a_required_sandbox_that_cannot_hide_the_files_of_its_host_is_refused() {
    if !can("Landlock for files") {
        return;
    }
    let stand = Stand::of(&[("triggered/in/run.sh", "cat $WEBJOBS_DATA_PATH/../../../apps.db")]);
    symlink("/usr", stand.root.path().join("link")).unwrap();
    for more in [["--state", STATE], ["--state", "link/tenure-not-there"], ["--db", STORE]] {
        let checked = |mode: &[&str]| stand.host_refused(&[&["--check"], mode, &more[..]].concat());
        let refused = checked(&["--sandbox", "required"]);
        assert_eq!(refused.code, 2, "{}", words(&refused));
        assert!(refused.err.contains("cannot hide") && refused.err.contains(more[0]), "{}", words(&refused));
        let warned = checked(&["--sandbox", "best_effort"]);
        assert_eq!(warned.code, 0, "{}", words(&warned));
        assert!(warned.err.contains("cannot hide") && warned.err.contains(more[0]), "{}", words(&warned));
        let without = checked(&[]);
        assert!(without.code == 0 && !words(&without).contains("cannot hide"), "{}", words(&without));
    }
    let elsewhere = stand.host_refused(&["--check", "--sandbox", "required"]);
    assert_eq!(elsewhere.code, 0, "{}", words(&elsewhere));
}

#[test]
fn a_program_whose_own_sandbox_cannot_hide_the_files_of_its_host_does_not_run() {
    if !can("Landlock for files") {
        return;
    }
    let stand = Stand::of(&[
        ("triggered/strict/run.sh", "true"),
        ("triggered/strict/settings.job", r#"{"sandbox":"required"}"#),
        ("triggered/loose/run.sh", "true"),
        ("triggered/loose/settings.job", r#"{"sandbox":"best_effort"}"#),
        ("triggered/free/run.sh", "true"),
    ]);
    let checked = words(&stand.host_refused(&["--check", "--state", STATE]));
    assert!(checked.contains("1 program cannot run"), "{checked}");
    assert_eq!(checked.matches("cannot hide").count(), 2, "{checked}");
}

/// The default state of a host, in a folder of programs that every sandbox can read.
#[test]
fn a_folder_of_programs_below_opt_is_refused_with_what_to_do() {
    let opt = Path::new("/opt");
    let Ok(root) = tempfile::Builder::new().prefix("tenure-test-").tempdir_in(opt) else {
        println!("skipped: cannot write to {}", opt.display());
        return;
    };
    if !can("Landlock for files") {
        return;
    }
    fs::create_dir_all(root.path().join("triggered/in")).unwrap();
    fs::write(root.path().join("triggered/in/run.sh"), "cat ../../.tenure/apps.db").unwrap();
    let folder = root.path().to_str().unwrap();
    let refused = said(&run(&["run", folder, "--sandbox", "required"], root.path()));
    assert_eq!(refused.code, 2, "{}", words(&refused));
    for part in ["--state", "move the folder of programs"] {
        assert!(refused.err.contains(part), "{part}: {}", words(&refused));
    }
    assert!(!root.path().join(".tenure").exists());
}

#[test]
fn a_worker_whose_store_no_sandbox_can_hide_is_refused() {
    if !can("Landlock for files") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let args = ["worker", "--db", STORE, "--sandbox", "required", "--exec", "true"];
    let refused = said(&run(&args, folder.path()));
    assert_eq!(refused.code, 2, "{}", words(&refused));
    assert!(refused.err.contains("cannot hide") && refused.err.contains("--db"), "{}", words(&refused));
    let args = ["worker", "--db", STORE, "--sandbox", "best_effort", "--exec", "true"];
    let warned = said(&run(&args, folder.path()));
    assert!(warned.code != 2 && warned.err.contains("cannot hide"), "{}", words(&warned));
}

const PLAIN: &str = "[triggered.look]\ncommand = [\"cat\", \"jobs.db\"]\n";

/// Without a folder in `tenure.toml`, the folder of a program is that of the host.
#[test]
fn a_store_in_the_folder_of_a_program_is_refused_for_a_required_sandbox() {
    if !can("Landlock for files") {
        return;
    }
    let copied = format!("{PLAIN}is_in_place = false\n");
    let own = format!("{PLAIN}sandbox = \"MODE\"\n");
    let checked = |toml: &str, more: &[&str]| {
        let stand = Stand::of(&[("tenure.toml", toml)]);
        let db = stand.folder().join("jobs.db").display().to_string();
        let elsewhere = stand.root.path().join("state").display().to_string();
        stand.host_refused(&[&["--check", "--db", &db, "--state", &elsewhere], more].concat())
    };
    let on = |toml: &str, mode: &str| match toml.contains("MODE") {
        true => checked(&toml.replace("MODE", mode), &[]),
        false => checked(toml, &["--sandbox", mode]),
    };
    for toml in [PLAIN, &copied, &own] {
        let refused = on(toml, "required");
        let words = words(&refused);
        assert!(refused.code != 0 && words.contains("cannot hide") && words.contains("--db"), "{words}");
        assert_eq!(words.matches("cannot hide").count(), 1, "{words}");
        let warned = on(toml, "best_effort");
        let words = self::words(&warned);
        assert!(warned.code == 0 && words.contains("cannot hide"), "{words}");
    }
    let without = checked(PLAIN, &[]);
    assert!(without.code == 0 && !words(&without).contains("cannot hide"), "{}", words(&without));
    let stand = Stand::of(&[("tenure.toml", PLAIN)]);
    let usual = stand.host_refused(&["--check", "--sandbox", "required"]);
    assert_eq!(usual.code, 0, "the sandbox hides a store in the state: {}", words(&usual));
}

/// The folder of a program can become a link after its host has started.
#[test]
fn a_program_whose_folder_comes_to_hold_the_store_does_not_run() {
    if !can("Landlock for files") {
        return;
    }
    let stand = Stand::of(&[("triggered/in/run.sh", "true"), ("run.sh", "cat jobs.db")]);
    let db = stand.folder().join("jobs.db").display().to_string();
    let _host = stand.host(&["--sandbox", "required", "--db", &db]);
    let folder = stand.folder().join("triggered/in");
    fs::rename(&folder, folder.with_extension("old")).unwrap();
    symlink("..", &folder).unwrap();
    let ran = words(&stand.app_at(&db, &["run", "--wait", "in"]));
    assert!(ran.contains("cannot hide") && !ran.contains("SQLite format"), "{ran}");
}

#[test]
fn a_listed_path_that_shows_the_files_of_the_host_is_refused() {
    if !can("Landlock for files") {
        return;
    }
    let stand = Stand::of(&[("triggered/in/run.sh", "true")]);
    for (name, advice) in [
        ("jobs", "--state"),
        ("jobs/.tenure", "--state"),
        ("jobs/.tenure/apps.db-wal", "--state"),
        ("db", "--db"),
    ] {
        stand.write(".tenure/apps.db-wal", "");
        fs::create_dir_all(stand.root.path().join("db")).unwrap();
        let db = stand.root.path().join("db/jobs.db").display().to_string();
        let more: &[&str] = if advice == "--db" { &["--db", &db] } else { &[] };
        for flag in ["--sandbox-read", "--sandbox-write"] {
            let checked =
                |mode| stand.host_refused(&[&["--check", "--sandbox", mode, flag, name], more].concat());
            let refused = checked("required");
            assert_eq!(refused.code, 2, "{name}: {}", words(&refused));
            assert!(refused.err.contains("cannot hide") && refused.err.contains(advice), "{}", refused.err);
            let warned = checked("best_effort");
            assert!(warned.code == 0 && warned.err.contains("cannot hide"), "{name}: {}", words(&warned));
        }
        // In the settings of the program, whose author does not choose what the host shows.
        let path = stand.root.path().join(name).display().to_string();
        let settings = format!(r#"{{"sandbox":{{"read":["{path}"]}}}}"#);
        stand.write("triggered/in/settings.job", &settings);
        let own = stand.host_refused(&[&["--check"], more].concat());
        assert!(own.code != 0 && words(&own).contains("cannot hide"), "{name}: {}", words(&own));
        let within = stand.host_refused(&[&["--check", "--sandbox", "required"], more].concat());
        assert_eq!(within.code, 0, "the sandbox of the host hides it: {}", words(&within));
        fs::remove_file(stand.folder().join("triggered/in/settings.job")).unwrap();
    }
}

#[test]
fn a_worker_whose_listed_paths_show_its_store_is_refused() {
    if !can("Landlock for files") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("jobs.db-shm"), "").unwrap();
    for (flag, path) in [("--sandbox-read", "."), ("--sandbox-write", "."), ("--sandbox-read", "jobs.db-shm")]
    {
        let args = ["worker", "--db", "jobs.db", "--sandbox", "required", flag, path, "--exec", "true"];
        let refused = said(&run(&args, folder.path()));
        assert_eq!(refused.code, 2, "{}", words(&refused));
        assert!(refused.err.contains("cannot hide") && refused.err.contains("--db"), "{}", words(&refused));
        assert!(!folder.path().join("jobs.db").exists());
    }
}
