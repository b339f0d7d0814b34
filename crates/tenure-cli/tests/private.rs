//! Access to what the program writes: its owner's alone, also where the umask gives it to all users.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::apps::stand::{SOON, Stand, said};
use crate::program::{Program, command, run};

/// The command in a process whose umask takes nothing away.
fn without_umask(args: &[&str], folder: &Path) -> Command {
    let usual = command(args, folder);
    let mut free = Command::new("sh");
    free.args(["-c", "umask 000; exec \"$@\"", "sh"]).arg(usual.get_program()).args(usual.get_args());
    for (name, value) in usual.get_envs() {
        match value {
            Some(value) => free.env(name, value),
            None => free.env_remove(name),
        };
    }
    free.current_dir(folder).stdin(Stdio::null());
    free
}

/// Everything below a folder that others than its owner can open, and its mode; a folder that they cannot open hides the rest.
fn open_to_others(path: PathBuf, found: &mut Vec<String>) {
    let metadata = path.symlink_metadata().unwrap();
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        found.push(format!("{} {mode:o}", path.display()));
    }
    // Files of programs are theirs: their folders are closed.
    if metadata.is_dir() && !path.ends_with("data") {
        fs::read_dir(path).unwrap().for_each(|entry| open_to_others(entry.unwrap().path(), found));
    }
}

#[test]
fn all_that_is_written_is_readable_by_its_owner_alone_under_any_umask() {
    // The run folder is there only during the run.
    let look = "stat -c '%n %a' ${JOB_RESULT_FILE%/*} > $OUT/run; echo x > $WEBJOBS_DATA_PATH/kept";
    let stand = Stand::of(&[("triggered/look/run.sh", look)]);
    let root = stand.root.path();
    let mut host = Program::start_command(without_umask(&["run", "jobs"], root).env("OUT", &stand.out));
    host.line_with("Ctrl-C stops", SOON);
    assert_eq!(stand.app(&["run", "--wait", "look"]).code, 0);
    assert!(stand.left("run").trim_end().ends_with(" 700"), "{}", stand.left("run"));
    let db = stand.db();
    let mut server = Program::start_command(&mut without_umask(
        &["serve", "--db", "served/jobs.db", "--bind", "127.0.0.1:0"],
        {
            fs::create_dir(root.join("served")).unwrap();
            fs::set_permissions(root.join("served"), PermissionsExt::from_mode(0o700)).unwrap();
            root
        },
    ));
    server.line_with("http://", SOON);
    fs::write(root.join("crontab"), "* * * * * true\n").unwrap();
    for args in [
        &["db", "backup", "--db", &db, "backup.db"][..],
        &["db", "copy", "--from", "backup.db", "--to", "copy.db"],
        &["context", "add", "here", "--url", "http://127.0.0.1:1"],
        &["schedule", "import-crontab", "crontab", "--to", "imported"],
    ] {
        let done = said(&without_umask(args, root).output().unwrap());
        assert_eq!(done.code, 0, "{args:?}: {}", done.err);
    }
    let mut found = Vec::new();
    for path in ["jobs/.tenure", "served", "backup.db", "copy.db", "tenure", "imported/tenure.toml"] {
        open_to_others(root.join(path), &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
    for name in
        ["jobs/.tenure/apps.db-wal", "jobs/.tenure/apps.db-shm", "jobs/.tenure/data", "served/jobs.db-wal"]
    {
        assert!(root.join(name).exists(), "{name}");
    }
}

#[test]
fn a_database_that_all_users_can_open_is_told_with_the_command_that_ends_it() {
    let stand = Stand::of(&[]);
    let root = stand.root.path();
    assert!(run(&["db", "migrate", "--db", "jobs.db"], root).status.success());
    fs::set_permissions(root, PermissionsExt::from_mode(0o755)).unwrap();
    fs::set_permissions(root.join("jobs.db"), PermissionsExt::from_mode(0o644)).unwrap();
    let told = "all users of this machine can open jobs.db (mode 644)";
    let fix = "chmod o-rwx jobs.db jobs.db-*";
    for args in [&["db", "status", "--db", "jobs.db"][..], &["doctor", "--db", "jobs.db"]] {
        let said = said(&run(args, root));
        assert!(
            said.code == 0 && said.out.contains(told) && said.out.contains(fix),
            "{} {}",
            said.out,
            said.err
        );
    }
    let warned = said(&run(&["job", "list", "--db", "jobs.db"], root));
    assert!(warned.code == 0 && warned.err.contains(told) && warned.err.contains(fix), "{}", warned.err);
    Command::new("sh").args(["-c", &format!("{fix}; true")]).current_dir(root).output().unwrap();
    let silent = said(&run(&["job", "list", "--db", "jobs.db"], root));
    assert!(silent.code == 0 && silent.err.is_empty(), "{}", silent.err);
    let doctor = said(&run(&["doctor", "--db", "jobs.db"], root));
    assert!(!doctor.out.contains("all users"), "{}", doctor.out);
}
