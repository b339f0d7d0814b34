//! What a person sees on a terminal, and that nothing of somebody else's steers it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test that unwraps fails where it stands")]

use crate::program;
use crate::served;

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;

use program::command;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;
use served::{ask, claim, json_of, say, served};
use tempfile::tempdir;

/// Columns and lines of a terminal.
const SIZE: (u16, u16) = (80, 24);

/// What a terminal is sent when the program runs at it.
fn shown(args: &[&str], folder: &Path) -> (Option<i32>, String) {
    shown_at((0, 0), args, folder, &mut |_, _| {})
}

/// The same at a terminal of this size; `each` is given the process, and what came so far, whenever more has come.
fn shown_at(
    (columns, lines): (u16, u16),
    args: &[&str],
    folder: &Path,
    each: &mut dyn FnMut(u32, &str),
) -> (Option<i32>, String) {
    let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&own).unwrap();
    unlockpt(&own).unwrap();
    let name = ptsname(&own, Vec::new()).unwrap().into_string().unwrap();
    let theirs = OpenOptions::new().read(true).write(true).open(name).unwrap();
    let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&own, size).unwrap();
    let mut command = command(args, folder);
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    let mut child = command.stdout(theirs.try_clone().unwrap()).stderr(theirs).spawn().unwrap();
    // The command holds ends of its own, which would keep the terminal open.
    drop(command);
    let (mut screen, mut part, mut own) = (Vec::new(), [0; 4096], File::from(own));
    // A terminal that nobody is at any more ends with an error.
    while let Ok(read @ 1..) = own.read(&mut part) {
        screen.extend_from_slice(&part[..read]);
        each(child.id(), &String::from_utf8_lossy(&screen));
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

/// What stands on a terminal that was sent this, with what has scrolled away above it.
fn lines_of(sent: &str) -> Vec<String> {
    let (mut lines, mut row, mut column) = (vec![String::new()], 0_usize, 0_usize);
    let mut signs = sent.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\r' => column = 0,
            '\n' => {
                row += 1;
                if row == lines.len() {
                    lines.push(String::new());
                }
            }
            '\u{1b}' => {
                assert_eq!(signs.next(), Some('['));
                let mut number = String::new();
                let what = loop {
                    match signs.next() {
                        Some(sign) if sign.is_ascii_alphabetic() => break sign,
                        Some(sign) => number.push(sign),
                        // It was cut off.
                        None => return lines,
                    }
                };
                match what {
                    'A' => row -= number.parse::<usize>().unwrap(),
                    'J' => {
                        lines.truncate(row + 1);
                        lines[row] = lines[row].chars().take(column).collect();
                    }
                    'K' => lines[row] = lines[row].chars().take(column).collect(),
                    'm' => {}
                    other => panic!("{other}"),
                }
            }
            sign => {
                lines[row] = lines[row].chars().take(column).chain([sign]).collect();
                column += 1;
            }
        }
    }
    lines
}

#[test]
fn the_dashboard_and_the_next_commands_stay_in_sight_while_jobs_end_above_them() {
    let folder = tempdir().unwrap();
    let args = ["dev", "--memory", "--port", "0", "--jobs-per-second", "20"];
    let mut seen = None;
    let (code, sent) = shown_at(SIZE, &args, folder.path(), &mut |process, sent| {
        let is_enough = sent.matches("succeeded").count() > 60 && sent.ends_with("Ctrl-C stops\r\n");
        if seen.is_none() && is_enough {
            seen = Some(lines_of(sent));
            kill_process(Pid::from_raw(i32::try_from(process).unwrap()).unwrap(), Signal::INT).unwrap();
        }
    });
    assert_eq!(code, Some(0), "{sent:?}");
    let lines = seen.expect("many jobs have ended");
    assert!(lines.len() > usize::from(SIZE.1), "what is pinned would have scrolled away: {lines:#?}");
    let in_sight = &lines[lines.len() - 10..];
    for what in ["Dashboard  http://127.0.0.1:", "tenure submit", "tenure job list", "tenure top"] {
        assert_eq!(lines.iter().filter(|line| line.contains(what)).count(), 1, "{what}: {lines:#?}");
        assert!(in_sight.iter().any(|line| line.contains(what)), "{what}: {in_sight:#?}");
    }
    let above = &lines[..lines.len() - 10];
    assert!(
        !above
            .iter()
            .any(|line| line.contains(" enqueued ") || line.contains(" started ") || line.contains('█')),
        "{above:#?}"
    );
    assert!(lines.iter().all(|line| !line.contains("──") || line.contains("succeeded")), "{lines:#?}");
    assert!(!sent.contains("attempt failed"), "each failure is shown once: {sent}");
    let end = lines_of(&sent);
    assert!(end.iter().any(|line| line.starts_with("stopped: ")), "{end:#?}");
    assert!(!end.iter().any(|line| line.contains("Ctrl-C stops")), "{end:#?}");
}

#[test]
fn a_table_is_cut_to_the_width_of_its_terminal_and_ids_to_their_ends() {
    let folder = tempdir().unwrap();
    let (_server, address) = served(folder.path());
    let kind = "a_kind_with_a_name_that_is_longer_than_others";
    let body = json!({ "kind": kind, "queue": "a-queue-with-a-long-name" }).to_string();
    let id = json_of(&ask(&address, "POST", "/v1/jobs", "", &body))["id"].as_str().unwrap().to_owned();
    let args = ["job", "list", "--color", "never", "--url", &format!("http://{address}")];
    let at = |columns| shown_at((columns, 24), &args, folder.path(), &mut |_, _| {}).1;
    assert!(at(300).contains(&id) && at(300).contains(kind));
    for columns in [80, 120] {
        let list = at(columns);
        assert!(list.lines().all(|line| line.chars().count() <= usize::from(columns)), "{list}");
        assert!(list.contains('…') && list.contains(&id[28..]), "{list}");
    }
    let (code, got) = shown(&["job", "get", &id[28..], "--url", &format!("http://{address}")], folder.path());
    assert!(code == Some(0) && got.contains(&id), "{got}");
}
