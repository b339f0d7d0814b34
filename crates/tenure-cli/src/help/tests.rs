//! The help of every command, walked as a tree.

use clap::{CommandFactory, Parser};

use super::*;
use crate::Program;

/// Words with which a summary may begin.
const VERBS: [&str; 64] = [
    "Acquire", "Add", "Allow", "Ask", "Back", "Break", "Cancel", "Change", "Check", "Choose", "Convert",
    "Copy", "Create", "Delete", "Deploy", "Describe", "Diagnose", "Enqueue", "Explain", "Export", "Inspect",
    "List", "Manage", "Measure", "Migrate", "Name", "Open", "Pause", "Print", "Release", "Remove", "Renew",
    "Replace", "Resume", "Retry", "Revoke", "Rotate", "Run", "Send", "Set", "Show", "Shrink", "Start",
    "Stop", "Stream", "Test", "Watch", "Disable", "Enable", "Edit", "Find", "Follow", "Import", "Load",
    "Move", "Purge", "Encrypt", "Read", "Reload", "Reset", "Restore", "Submit", "Update", "Write",
];
/// Words that the writing standard does not allow.
const BANNED: [&str; 12] = [
    "whoever",
    "whatever",
    "whom",
    "somebody",
    "nobody",
    " he ",
    " his ",
    "is told",
    "are told",
    "of its own accord",
    "may be said",
    "all the same",
];

/// Every command with its path.
fn all() -> Vec<(String, Command)> {
    fn below(command: &Command, path: &str, into: &mut Vec<(String, Command)>) {
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            let path = format!("{path} {}", one.get_name()).trim().to_owned();
            below(one, &path, into);
            into.push((path, one.clone()));
        }
    }
    let (program, mut into) = (folded(whole(Program::command()), [false; 2], WIDTH), Vec::new());
    below(&program, "", &mut into);
    into.push((String::new(), program));
    into
}

#[test]
fn every_command_has_a_short_imperative_summary_and_an_example() {
    for (path, command) in all() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let first = about.split([' ', ',']).next().unwrap_or_default();
        assert!(path.is_empty() || VERBS.contains(&first), "{path}: {about}");
        assert!(!about.is_empty() && about.chars().count() <= 60, "{path}: {about}");
        assert!(!about.ends_with('.'), "{path}: {about}");
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(after.contains("Example"), "{path} has no example");
    }
}

#[test]
fn help_is_narrow_plain_and_the_same_whichever_way_it_is_asked_for() {
    let program = folded(whole(Program::command()), [false; 2], WIDTH);
    for (path, _) in all() {
        let asked = |how: &str| {
            let line = format!("tenure {path} {how}");
            program.clone().try_get_matches_from(line.split_whitespace()).unwrap_err().to_string()
        };
        let short = asked("-h");
        assert_eq!(short, asked("--help"), "{path}");
        for line in short.lines().filter(|line| !line.trim_start().starts_with("Usage:")) {
            // An example is one line, however long.
            let is_example = line.trim_start().starts_with("tenure ");
            assert!(is_example || line.chars().count() <= WIDTH + 2, "{path}: {line}");
        }
        let text = format!(" {} ", short.to_lowercase().replace(['\n', ','], " "));
        for word in BANNED {
            assert!(!text.contains(word), "{path}: {word}");
        }
    }
    let options = global_options();
    assert!(
        options.contains("--url") && options.contains("--jq") && options.contains("[env: TENURE_URL]"),
        "{options}"
    );
}

#[test]
fn groups_name_every_command_once() {
    let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let program = Program::command();
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        let times = grouped.iter().filter(|name| **name == command.get_name()).count();
        assert_eq!(times, 1, "{}", command.get_name());
    }
    assert_eq!(grouped.len(), program.get_subcommands().filter(|command| !command.is_hide_set()).count() + 1);
    let known: Vec<String> = all().into_iter().map(|(path, _)| path).collect();
    for page in PAGES {
        assert!(known.iter().any(|path| path == page.path), "there is no command {:?}", page.path);
    }
}

/// The words of a command line, up to what a shell makes of the rest; none if it is not for this program.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let rest = &line[line.find("tenure ")?..];
    for sign in rest.chars() {
        match (quote, sign) {
            (Some(open), sign) if open == sign => quote = None,
            (None, '\'' | '"') => {
                quote = Some(sign);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | ';') => break,
            (None, ' ') => words.extend(word.take()),
            (_, sign) => word.get_or_insert_default().push(sign),
        }
    }
    words.extend(word);
    Some(words)
}

#[test]
fn every_example_is_understood() {
    let command = folded(whole(Program::command()), [false; 2], WIDTH);
    for page in PAGES {
        for example in page.examples {
            let words = words(example).unwrap_or_default();
            let args = in_order(words.iter().map(OsString::from).collect(), &command);
            if let Err(error) = Program::try_parse_from(args) {
                panic!("{example}: {error}");
            }
            let spaced = format!("{} ", words.join(" "));
            let is_its_own = spaced.contains(&format!("tenure {} ", page.path)) || page.examples.len() > 1;
            assert!(is_its_own || !command_has_no_below(&command, page.path), "{:?}: {example}", page.path);
        }
    }
}

fn command_has_no_below(program: &Command, path: &str) -> bool {
    let mut level = program;
    for name in path.split(' ') {
        level = level.find_subcommand(name).unwrap();
    }
    !level.has_subcommands()
}

fn ordered(line: &str) -> String {
    let command = Program::command();
    let args = in_order(line.split(' ').map(OsString::from).collect(), &command);
    args.iter().map(|arg| arg.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[test]
fn shared_options_stand_before_the_command_or_behind_it() {
    for (said, meant) in [
        ("tenure --url X ps", "tenure ps --url X"),
        ("tenure --url=X -o json job list a", "tenure job list --url=X -o json a"),
        ("tenure queue -q --url X list", "tenure queue list -q --url X"),
        ("tenure --db jobs.db worker --exec true", "tenure worker --db jobs.db --exec true"),
        ("tenure --url X exec -- ls --url Y", "tenure exec --url X -- ls --url Y"),
        ("tenure job list --url X", "tenure job list --url X"),
        ("tenure -ojson ps", "tenure ps -ojson"),
        // Report the mistake in the command rather than in its options.
        ("tenure --url X jbo", "tenure jbo"),
        ("tenure --url X queue lst", "tenure queue lst"),
        ("tenure --version", "tenure --version"),
        ("tenure --url", "tenure"),
    ] {
        assert_eq!(ordered(said), meant);
    }
    for line in
        ["tenure --url http://a ps", "tenure -o json --url http://a job list", "tenure --db a.db worker list"]
    {
        let args = in_order(line.split(' ').map(OsString::from).collect(), &Program::command());
        assert!(Program::try_parse_from(args).is_ok(), "{line}");
    }
}

#[test]
fn a_wait_takes_its_time_with_or_without_a_sign_if_that_is_no_json() {
    for (said, meant) in [
        ("tenure submit k --wait 30s", "tenure submit k --wait=30s"),
        ("tenure job submit k --wait 1h30m {}", "tenure job submit k --wait=1h30m {}"),
        ("tenure submit k --wait forever", "tenure submit k --wait=forever"),
        ("tenure submit k --wait 30", "tenure submit k --wait 30"),
        ("tenure submit k --wait --url X", "tenure submit k --wait --url X"),
        ("tenure lease run a --wait 30s -- true", "tenure lease run a --wait 30s -- true"),
        ("tenure exec -- x --wait 30s", "tenure exec -- x --wait 30s"),
    ] {
        assert_eq!(ordered(said), meant);
    }
}

#[test]
fn text_is_wrapped_between_words() {
    assert_eq!(wrapped("one two  three", 7), "one two\nthree");
    assert_eq!(wrapped("a-long-word b", 4), "a-long-word\nb");
}
