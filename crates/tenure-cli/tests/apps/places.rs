//! Attacks by the user of programs on the folders of a host that runs as root.
#![cfg(target_os = "linux")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use crate::apps::accounts::{is_root, open};
use crate::apps::stand::{Said, Stand};

const NOBODY: u32 = 65534;

/// Runs a script as the user of the programs.
fn as_nobody(folder: &Path, script: &str) {
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all",
        "sh",
        "-ec",
        script,
    ]);
    let done = command.current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

fn give(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn words(said: &Said) -> String {
    format!("{} {}", said.out, said.err)
}

/// The user puts a link in the place of the default state folder, and the host gives its target away.
#[test]
fn a_user_that_replaces_the_state_folder_of_its_host_gets_no_other_folder() {
    if !is_root() {
        return;
    }
    let stand = Stand::of(&[("triggered/cron.d/run.sh", "echo ran")]);
    open(&stand);
    let (etc, db) = (stand.root.path().join("etc"), stand.root.path().join("other.db"));
    fs::create_dir_all(etc.join("cron.d")).unwrap();
    let db = db.to_str().unwrap();
    let _host = stand.host(&["--user", "nobody", "--db", db]);
    let ran = stand.app_at(db, &["run", "--wait", "cron.d"]);
    assert_eq!(ran.code, 0, "{}", words(&ran));
    // The administrator gives the folder away while the host runs.
    give(&stand.folder());
    let attack = format!(
        "mv .tenure old; mkdir -p .tenure/data .tenure/work; ln -s {} .tenure/data/triggered",
        etc.display()
    );
    as_nobody(&stand.folder(), &attack);
    let ran = stand.app_at(db, &["run", "--wait", "cron.d"]);
    for (folder, mode) in [(etc.clone(), 0o755), (etc.join("cron.d"), 0o755)] {
        let found = folder.metadata().unwrap();
        assert_eq!((found.uid(), found.mode() & 0o7777), (0, mode), "{}", folder.display());
    }
    assert!(ran.code != 0 && words(&ran).contains("Pass --state"), "{}", words(&ran));
}

#[test]
fn a_host_that_runs_programs_as_another_user_refuses_a_state_folder_that_others_can_replace() {
    if !is_root() {
        return;
    }
    let stand = Stand::of(&[
        ("triggered/work/run.sh", "id -un; echo x > $WEBJOBS_DATA_PATH/kept"),
        ("triggered/work/settings.job", r#"{"user":"nobody"}"#),
    ]);
    open(&stand);
    give(&stand.folder());
    for more in [&[][..], &["--check"]] {
        let refused = stand.host_refused(more);
        let words = words(&refused);
        assert!(refused.code != 0 && words.contains("belongs to user 65534"), "{words}");
        assert!(words.contains("Pass --state"), "{words}");
    }
    assert!(!stand.folder().join(".tenure").exists());
    let state = stand.root.path().join("state");
    let link = stand.folder().join("link");
    std::os::unix::fs::symlink(&state, &link).unwrap();
    give(&stand.out);
    for refused in [&link, &stand.out] {
        let refused = stand.host_refused(&["--state", refused.to_str().unwrap()]);
        assert!(refused.code != 0 && words(&refused).contains("Pass --state"), "{}", words(&refused));
    }
    let db = stand.root.path().join("other.db");
    let db = db.to_str().unwrap();
    let _host = stand.host(&["--db", db, "--state", state.to_str().unwrap()]);
    let ran = stand.app_at(db, &["run", "--wait", "work"]);
    assert!(ran.code == 0 && ran.out.contains("nobody"), "{}", words(&ran));
}

/// A rename needs rights on the folders alone.
#[test]
fn a_file_that_only_root_can_read_is_not_copied_for_another_user() {
    if !is_root() {
        return;
    }
    let stand = Stand::of(&[
        ("triggered/rep/run.sh", "cat admin.key sub/* 2> /dev/null; echo end"),
        ("triggered/rep/settings.job", r#"{"user":"nobody"}"#),
    ]);
    open(&stand);
    let (program, home) = (stand.folder().join("triggered/rep"), stand.root.path().join("home"));
    fs::create_dir_all(home.join("sub")).unwrap();
    fs::write(home.join("admin.key"), "canary").unwrap();
    fs::write(home.join("sub/key"), "canary").unwrap();
    mode(&home.join("admin.key"), 0o600);
    mode(&home.join("sub"), 0o700);
    [&program, &home].into_iter().for_each(|path| give(path));
    let _host = stand.host(&[]);
    let move_in = format!("mv {}/admin.key .", home.display());
    as_nobody(&program, &move_in);
    let ran = stand.app(&["run", "--wait", "rep"]);
    let all = words(&ran);
    assert!(ran.code != 0 && !all.contains("canary"), "{all}");
    assert!(all.contains("rep/admin.key: Permission denied") && all.contains("user \"nobody\""), "{all}");
    // Root's group is not one of the user's.
    mode(&program.join("admin.key"), 0o640);
    let ran = stand.app(&["run", "--wait", "rep"]);
    assert!(ran.code != 0 && !words(&ran).contains("canary"), "{}", words(&ran));
    mode(&program.join("admin.key"), 0o644);
    fs::rename(home.join("sub"), program.join("sub")).unwrap();
    let ran = stand.app(&["run", "--wait", "rep"]);
    assert!(ran.code != 0 && words(&ran).contains("rep/sub: Permission denied"), "{}", words(&ran));
    mode(&program.join("sub"), 0o755);
    let ran = stand.app(&["run", "--wait", "rep"]);
    assert!(ran.code == 0 && ran.out.matches("canary").count() == 2, "{}", words(&ran));
}

/// The user moves the state of an earlier host to another name, and has it copied as a program.
#[test]
fn the_state_of_a_host_under_another_name_is_not_copied_for_another_user() {
    if !is_root() {
        return;
    }
    let toml = "[triggered.leak]\nfolder = \"old\"\nis_in_place = false\ncommand = [\"cat\", \"apps.db\"]\n";
    let stand = Stand::of(&[("triggered/work/run.sh", "id -un"), ("tenure.toml", toml)]);
    open(&stand);
    drop(stand.host(&[]));
    assert!(stand.folder().join(".tenure/apps.db").exists());
    give(&stand.folder());
    as_nobody(&stand.folder(), "mv .tenure old");
    let (state, db) = (stand.root.path().join("state"), stand.root.path().join("other.db"));
    let db = db.to_str().unwrap();
    let _host = stand.host(&["--user", "nobody", "--db", db, "--state", state.to_str().unwrap()]);
    let ran = stand.app_at(db, &["run", "--wait", "leak"]);
    let all = words(&ran);
    assert!(ran.code != 0 && !all.contains("SQLite") && all.contains("old: Permission denied"), "{all}");
    let ran = stand.app_at(db, &["run", "--wait", "work"]);
    assert!(ran.code == 0 && ran.out.contains("nobody"), "{}", words(&ran));
}

/// Root enters the folder of a program before the program gets its user.
#[test]
fn a_program_in_place_does_not_start_in_a_folder_that_its_user_cannot_reach() {
    if !is_root() {
        return;
    }
    let toml = "[triggered.leak]\nfolder = \"y\"\ncommand = [\"cat\", \"key\"]\n";
    let stand = Stand::of(&[("triggered/work/run.sh", "id -un"), ("tenure.toml", toml)]);
    open(&stand);
    let closed = stand.root.path().join("closed");
    fs::create_dir_all(closed.join("app")).unwrap();
    fs::write(closed.join("app/key"), "canary").unwrap();
    std::os::unix::fs::symlink(closed.join("app"), stand.folder().join("y")).unwrap();
    let _host = stand.host(&["--user", "nobody"]);
    let ran = stand.app(&["run", "--wait", "leak"]);
    assert!(ran.code == 0 && words(&ran).contains("canary"), "a reachable folder: {}", words(&ran));
    mode(&closed, 0o700);
    let ran = stand.app(&["run", "--wait", "leak"]);
    let all = words(&ran);
    assert!(ran.code != 0 && !all.contains("canary") && all.contains("cannot enter"), "{all}");
}
