//! What a person sees on a terminal, and that nothing of somebody else's steers it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;

use program::command;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;
use served::{ask, claim, json_of, say, served};
use tempfile::tempdir;

/// What a terminal is sent when the program runs at it.
fn shown(args: &[&str], folder: &Path) -> (Option<i32>, String) {
    let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&own).unwrap();
    unlockpt(&own).unwrap();
    let name = ptsname(&own, Vec::new()).unwrap().into_string().unwrap();
    let theirs = OpenOptions::new().read(true).write(true).open(name).unwrap();
    let mut command = command(args, folder);
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    let mut child = command.stdout(theirs.try_clone().unwrap()).stderr(theirs).spawn().unwrap();
    // The command holds ends of its own, which would keep the terminal open.
    drop(command);
    let (mut screen, mut part, mut own) = (Vec::new(), [0; 4096], File::from(own));
    // A terminal that nobody is at any more ends with an error.
    while let Ok(read @ 1..) = own.read(&mut part) {
        screen.extend_from_slice(&part[..read]);
    }
    (child.wait().unwrap().code(), String::from_utf8(screen).unwrap())
}

#[test]
fn a_terminal_has_columns_and_colours_and_is_not_steered_by_what_a_job_says() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let body = json!({ "kind": "k", "max_attempts": 1, "args": "a\u{9b}31m\u{202e}b" }).to_string();
    let id = json_of(&ask(&address, "POST", "/v1/jobs", "", &body))["id"].as_str().unwrap().to_owned();
    let job = claim(&address);
    let hostile = "\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}";
    say(&address, &job, "fail", json!({ "error": { "type": "error", "detail": hostile } }));
    let url = format!("http://{address}");

    let (code, list) = shown(&["job", "list", "--url", &url], folder.path());
    assert_eq!(code, Some(0), "{list:?}");
    assert!(
        list.contains("\u{1b}[31mfailed\u{1b}[0m") && !list.contains('\t') && list.contains(" ago"),
        "{list:?}"
    );
    let (_, plain) = shown(&["job", "list", "--color", "never", "--url", &url], folder.path());
    assert!(!plain.contains('\u{1b}'), "{plain:?}");

    let failed = ["job", "watch", &id, "--exit-status", "--color", "never", "--url", &url];
    let card = ["job", "get", &id, "--color", "never", "--url", &url];
    let document = ["job", "get", &id, "-o", "json", "--url", &url];
    for (args, ends) in [(&failed[..], 1), (&card, 0), (&document, 0)] {
        let (code, screen) = shown(args, folder.path());
        assert_eq!(code, Some(ends), "{screen:?}");
        let steers = |sign: char| (sign.is_control() && !"\r\n".contains(sign)) || sign == '\u{202e}';
        assert!(!screen.chars().any(steers), "{args:?}: {screen:?}");
    }
}
