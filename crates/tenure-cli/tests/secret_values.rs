//! Secrets in options and settings: errors never repeat them, and looking them up holds up no server.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::tempdir;

use crate::program::{Program, command, run};
use crate::served::{SOON, ask, said};

#[test]
fn no_error_repeats_the_value_of_an_option_that_names_a_database_or_a_token() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let wrong = [
        "file:/nowhere/hush@h",
        "env:postgres://me:hush@h/jobs",
        "cmd:postgres://me:hush@h/jobs",
        "cmd:false hush",
        "postgres:me:hush@h/jobs",
        "me:hush@h/jobs",
        "postgre://me:hush@h/jobs",
        "postgres://me:hush@a@h/jobs",
    ];
    for value in wrong {
        for args in [
            &["job", "list", "--db", value][..],
            &["dev", "--db", value],
            &["run", ".", "--db", value],
            &["db", "copy", "--from", value, "--to", "copy.db"],
            &["db", "copy", "--from", "jobs.db", "--to", value],
            &["serve", "--db", value],
            &["db", "status", "--db", value],
            &["encryption", "status", "--db", value],
        ] {
            let told = said(&run(args, folder));
            assert!(told.code != 0 && !told.err.is_empty(), "{args:?}");
            assert!(!told.err.contains("hush") && !told.out.contains("hush"), "{args:?}: {}", told.err);
        }
        let told = said(&command(&["run", "."], folder).env("TENURE_DATABASE_URL", value).output().unwrap());
        assert!(told.code != 0 && !told.err.contains("hush"), "{value}: {}", told.err);
    }
    let told = said(&run(&["job", "list", "--token", "hush hush"], folder));
    assert!(told.code == 2 && told.err.contains("--token") && !told.err.contains("hush"), "{}", told.err);
    let told = said(&run(&["job", "list", "--db", "env:TENURE_NOT_THERE"], folder));
    assert!(told.code == 2 && told.err.contains("TENURE_NOT_THERE is not set"), "{}", told.err);
    assert!(told.err.contains("'--db <FILE|URL>'"), "{}", told.err);
}

#[test]
fn commands_for_a_database_resolve_a_reference_to_it() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    for args in
        [&["db", "migrate", "--db", "env:JOBS_DB"][..], &["encryption", "status", "--db", "env:JOBS_DB"]]
    {
        let told = said(&command(args, folder).env("JOBS_DB", "jobs.db").output().unwrap());
        assert_eq!(told.code, 0, "{args:?}: {}", told.err);
    }
    assert!(folder.join("jobs.db").exists() && !folder.join("env:JOBS_DB").exists());
}

/// A server with one thread answers while a command looks for a secret.
#[test]
fn a_reload_that_waits_for_a_command_holds_up_no_request() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let (pipe, waits, asked) = (folder.join("pipe"), folder.join("waits"), folder.join("asked"));
    assert!(Command::new("mkfifo").args([&pipe, &waits]).stdin(Stdio::null()).status().unwrap().success());
    // The first time, at the start of the server, the command answers at once.
    let script = format!(
        "#!/bin/sh\nif [ -e '{asked}' ]; then exec 3<>'{pipe}'; echo waiting > '{waits}'; read line <&3; fi\n\
         : > '{asked}'\necho whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
        asked = asked.display(),
        waits = waits.display(),
        pipe = pipe.display()
    );
    let program = folder.join("secret");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let settings = format!(
        "[database]\nurl = \"jobs.db\"\n[server]\nbind = \"127.0.0.1:0\"\n[webhooks.oncall]\nurl = \
         \"https://hooks.example/in\"\ntypes = [\"job.failed\"]\nsecret = \"cmd:{}\"\n",
        program.display()
    );
    std::fs::write(folder.join("server.toml"), settings).unwrap();
    let mut prepared = command(&["serve", "--config", "server.toml"], folder);
    let mut server = Program::start_command(prepared.env("TOKIO_WORKER_THREADS", "1"));
    let line = server.line_with("http://", SOON);
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let id = i32::try_from(server.id()).unwrap();
    kill_process(Pid::from_raw(id).unwrap(), Signal::HUP).unwrap();
    // The pipe has a line when the command waits.
    assert_eq!(std::fs::read_to_string(&waits).unwrap(), "waiting\n");
    assert_eq!(ask(&address, "GET", "/livez", "", "").0, 200);
    // A pipe that no process reads cannot be opened in this way.
    let answer =
        open(&pipe, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()).expect("the command still waits");
    std::fs::File::from(answer).write_all(b"go\n").unwrap();
    server.line_with("settings reloaded", SOON);
    server.interrupt();
    assert_eq!(server.end(SOON), Some(0));
}
