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
