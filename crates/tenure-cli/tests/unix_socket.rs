//! A server on a Unix socket, and commands that use it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::{program, served};

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Output;

use program::{Program, command, run};
use rustix::process::Signal;
use served::SOON;
use tempfile::tempdir;

/// A user who exists nowhere, and is not the one that runs the tests.
const STRANGER: u32 = 3_999_999;

fn start(folder: &Path, more: &[&str]) -> Program {
    let args = ["serve", "--db", "jobs.db", "--bind", "none", "--auth", "tokens", "--socket", "t.sock"];
    let mut server = Program::start(&[&args[..], more].concat(), folder);
    server.line_with("unix:", SOON);
    server.line_with("schedules", SOON);
    server
}

fn url(folder: &Path) -> String {
    format!("unix:{}", folder.join("t.sock").display())
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn commands_workers_and_programs_use_a_socket_without_a_token() {
    let folder = tempdir().unwrap();
    let _server = start(folder.path(), &[]);
    let url = url(folder.path());
    let tenure = |args: &[&str]| command(args, folder.path()).env("TENURE_URL", &url).output().unwrap();
    let mut worker = command(&["worker", "--kind", "greet", "--exec", "true"], folder.path());
    let _worker = Program::start_command(worker.env("TENURE_URL", &url));
    for args in [
        &["doctor"][..],
        &["submit", "greet", "{}", "--wait"],
        &["ps"],
        &["token", "create", "--name", "ci", "--scope", "read"],
        &["exec", "--", "true"],
        &["selftest"],
    ] {
        let ended = tenure(args);
        assert_eq!(ended.status.code(), Some(0), "{args:?}: {}", text(&ended));
    }
    let audit = tenure(&["audit"]);
    assert!(text(&audit).contains("unix:"), "{audit:?}");
    let listed = tenure(&["job", "list"]);
    assert!(text(&listed).contains("greet"), "{listed:?}");
}

#[test]
fn a_killed_server_is_followed_by_another_and_a_running_one_is_not() {
    let folder = tempdir().unwrap();
    let mut server = start(folder.path(), &[]);
    let args = ["serve", "--db", "b.db", "--bind", "none", "--auth", "tokens", "--socket", "t.sock"];
    let second = run(&args, folder.path());
    assert_eq!(second.status.code(), Some(1), "{second:?}");
    assert!(text(&second).contains("a running server listens on this socket"), "{second:?}");
    server.signal(Signal::KILL);
    server.end(SOON);
    assert!(folder.path().join("t.sock").exists());
    let unanswered = run(&["ps", "--url", &url(folder.path())], folder.path());
    assert!(text(&unanswered).contains("no server answers at unix:"), "{unanswered:?}");
    let mut server = start(folder.path(), &[]);
    assert_eq!(run(&["ps", "--url", &url(folder.path())], folder.path()).status.code(), Some(0));
    server.terminate();
    assert_eq!(server.end(SOON), Some(0));
    assert!(!folder.path().join("t.sock").exists());
    let gone = run(&["ps", "--url", &url(folder.path())], folder.path());
    assert!(text(&gone).contains("no server answers at unix:"), "{gone:?}");
}

#[test]
fn a_socket_needs_tokens_and_a_server_needs_somewhere_to_listen() {
    let folder = tempdir().unwrap();
    for (args, why) in [
        (&["--socket", "t.sock"][..], "--auth tokens"),
        (&["--bind", "none", "--auth", "tokens"], "no address and no Unix socket"),
        (&["--socket", "t.sock", "--auth", "tokens", "--socket-mode", "rw"], "invalid mode"),
        (&["--socket", "jobs.txt", "--auth", "tokens"], "not a socket"),
        (&["--grant", "deploy=manage"], "unix-user:deploy=manage"),
        (&["--grant", "unix-user:deploy=manage"], "--auth tokens"),
    ] {
        std::fs::write(folder.path().join("jobs.txt"), "kept").unwrap();
        let refused = run(&[&["serve", "--db", "memory:"], args].concat(), folder.path());
        assert_ne!(refused.status.code(), Some(0), "{args:?}");
        assert!(text(&refused).contains(why), "{args:?}: {}", text(&refused));
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("jobs.txt")).unwrap(), "kept");
}

/// Root can run a command as another user. Others test the grants of the user that they are.
#[test]
fn another_user_is_refused_without_a_grant_and_has_the_scopes_of_one() {
    let folder = tempdir().unwrap();
    if std::fs::metadata(folder.path()).unwrap().uid() != 0 {
        return;
    }
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    // The program itself may be where another user cannot read it.
    let program = folder.path().join("tenure");
    std::fs::copy(env!("CARGO_BIN_EXE_tenure"), &program).unwrap();
    let url = url(folder.path());
    let as_stranger = |args: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.args(args).current_dir("/").env_clear().env("TENURE_URL", &url).uid(STRANGER).gid(STRANGER);
        command.output().unwrap()
    };
    {
        let mut server = start(folder.path(), &["--socket-mode", "0666"]);
        server.complaint_with("every local user can connect", SOON);
        let refused = as_stranger(&["ps"]);
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        assert!(text(&refused).contains(&format!("user {STRANGER} has no grant")), "{refused:?}");
    }
    {
        let grant = format!("unix-user:{STRANGER}=read+enqueue");
        let _server = start(folder.path(), &["--socket-mode", "0666", "--grant", &grant]);
        assert_eq!(as_stranger(&["submit", "k", "{}"]).status.code(), Some(0));
        assert_eq!(as_stranger(&["ps"]).status.code(), Some(0));
        let refused = as_stranger(&["queue", "pause", "default"]);
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    }
    let _server = start(folder.path(), &["--grant", &format!("unix-user:{STRANGER}=admin")]);
    let refused = as_stranger(&["ps"]);
    assert!(text(&refused).contains("Permission denied"), "the mode is 0600: {refused:?}");
}
