//! The help of all commands: groups, examples, notes, global options, and where options may stand.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;

use clap::{Arg, ArgAction, Args, Command};

use crate::client::Connect;
use crate::output::Output;
use crate::screen;
use crate::span::span;

mod pages;

use pages::PAGES;

/// The text that `tenure` prints without a command.
pub(crate) const START: &str = "\
Tenure is a durable job queue, scheduler and lock service for Rust, on SQLite or PostgreSQL.

Start here:
  tenure dev                      Try it: server, worker, dashboard and sample jobs
  tenure serve --db jobs.db       Start a server on a SQLite file
  tenure submit KIND '{\"n\": 1}'   Enqueue a job on that server
  tenure --help                   List all commands";

/// Headings of the options that many commands have in common.
const GLOBAL: [&str; 2] = ["Server", "Output"];

/// The commands by purpose, as `tenure --help` lists them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Start", &["dev", "open"]),
    (
        "Jobs",
        &[
            "submit", "ps", "logs", "job", "bulk", "queue", "limit", "kind", "top", "stats", "event",
            "webhook",
        ],
    ),
    ("Schedules", &["schedule"]),
    ("Leases", &["lease"]),
    ("Programs", &["exec", "worker", "run", "app"]),
    ("Operate", &["doctor", "selftest", "db", "encryption", "bench"]),
    ("Server", &["serve", "token", "audit", "config", "context", "openapi"]),
    ("Other", &["completions", "man", "version", "help"]),
];

/// Columns of help that is not printed to a terminal, and the most on one.
const WIDTH: usize = 100;

/// The help of a command besides its options.
pub(super) struct Page {
    /// Its place, such as `job list`.
    path: &'static str,
    examples: &'static [&'static str],
    /// Paragraphs below the examples, or nothing.
    notes: &'static str,
}

/// The command with groups, examples and notes: what manual pages and completions are made of.
pub(crate) fn whole(program: Command) -> Command {
    let groups = groups(&program);
    let program = described(program, "");
    program.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// The same for a reader at a terminal: options that many commands share are named in one place.
pub(crate) fn short(program: Command) -> Command {
    let is_terminal = std::io::stdout().is_terminal();
    let width = is_terminal.then(screen::width).flatten().map_or(WIDTH, |columns| columns.clamp(60, WIDTH));
    folded(whole(program), [false; 2], width)
}

/// Every option that many commands share, with its meaning.
pub(crate) fn global_options() -> String {
    let command = Command::new("tenure").disable_help_flag(true).help_template("{all-args}");
    let command = Output::augment_args(Connect::augment_args(command));
    let listed = laid_out(command, WIDTH).render_help().to_string();
    format!(
        "These options are accepted by every command that asks a server, before or after the command.\n\n{}",
        listed.trim_end()
    )
}

fn groups(program: &Command) -> String {
    let about = |name: &str| {
        let command = program.find_subcommand(name);
        let about = command.and_then(|command| command.get_about().map(ToString::to_string));
        about.unwrap_or_else(|| "Print the help of a command or topic".to_owned())
    };
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text.push_str(&format!("{heading}:\n"));
        for name in *names {
            text.push_str(&format!("  {name:<12} {}\n", about(name)));
        }
        text.push('\n');
    }
    text.truncate(text.trim_end_matches('\n').len() + 1);
    text
}

/// Adds examples and notes to a command and all below it.
fn described(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    let command = names.into_iter().fold(command, |command, name| {
        let below = if path.is_empty() { name.clone() } else { format!("{path} {name}") };
        command.mut_subcommand(name, |it| described(it, &below))
    });
    let Some(page) = PAGES.iter().find(|page| page.path == path) else { return command };
    let heading = if page.examples.len() == 1 { "Example" } else { "Examples" };
    let examples: Vec<String> = page.examples.iter().map(|example| format!("  {example}")).collect();
    let notes = if page.notes.is_empty() { String::new() } else { format!("\n\n{}", page.notes) };
    command.after_help(format!("{heading}:\n{}{notes}", examples.join("\n")))
}

/// Hides the shared options of a command and all below it, names them in its last lines, and wraps the rest.
fn folded(command: Command, above: [bool; 2], width: usize) -> Command {
    let has = |heading: &str| command.get_arguments().any(|arg| arg.get_help_heading() == Some(heading));
    let [server, output] = [above[0] || has(GLOBAL[0]), above[1] || has(GLOBAL[1])];
    let names: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    let command = names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |it| folded(it, [server, output], width))
    });
    let is_shared = |arg: &Arg| arg.get_help_heading().is_some_and(|heading| GLOBAL.contains(&heading));
    let command = command.mut_args(|arg| if is_shared(&arg) { arg.hide(true) } else { arg });
    let command = laid_out(command, width);
    if !server && !output {
        return command;
    }
    let mut lines = vec!["Global options (all of them: tenure help options):"];
    lines.extend(
        server.then_some("  --url URL, --context NAME, --token-file FILE, --config FILE, --db FILE|URL"),
    );
    lines.extend(output.then_some("  -o FORM, --json FIELDS, --jq EXPR, --columns NAMES, --color WHEN, -q"));
    let before = command.get_after_help().map_or_else(String::new, |text| format!("{text}\n\n"));
    command.after_help(format!("{before}{}", lines.join("\n")))
}

/// Wraps the help of options at so many columns, with their defaults and allowed values.
fn laid_out(command: Command, width: usize) -> Command {
    let mut columns: BTreeMap<Option<String>, usize> = BTreeMap::new();
    let section = |arg: &Arg| match arg.get_help_heading() {
        Some(heading) => Some(heading.to_owned()),
        None => arg.is_positional().then(|| "Arguments".to_owned()),
    };
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let taken = taken(arg);
        let column = columns.entry(section(arg)).or_default();
        *column = (*column).max(taken);
    }
    command.mut_args(|arg| {
        let column = columns.get(&section(&arg)).copied().unwrap_or_default();
        let Some(help) = arg.get_help().map(ToString::to_string) else { return arg };
        let text = wrapped(&format!("{help}{}", values(&arg)), width.saturating_sub(column).max(30));
        let takes_value = arg.get_action().takes_values();
        let arg = arg.help(text);
        match takes_value {
            true => arg.hide_default_value(true).hide_possible_values(true).hide_env(true),
            false => arg,
        }
    })
}

/// Columns before the help of an option: its names and its value, with room around them.
fn taken(arg: &Arg) -> usize {
    let names = arg.get_value_names().unwrap_or_default();
    let value = names.first().map_or(arg.get_id().as_str().len(), |name| name.chars().count()) + 2;
    if arg.is_positional() {
        let is_list = arg.get_num_args().is_some_and(|number| number.max_values() > 1);
        return 4 + value + if is_list || matches!(arg.get_action(), ArgAction::Append) { 3 } else { 0 };
    }
    let long = arg.get_long().map_or(0, |long| long.len() + 2);
    8 + long + if arg.get_action().takes_values() { 1 + value } else { 0 }
}

/// The default of an option, its allowed values and its variable, behind its help.
fn values(arg: &Arg) -> String {
    let mut text = String::new();
    let allowed = arg.get_possible_values();
    if !allowed.is_empty() && !arg.is_hide_possible_values_set() && arg.get_action().takes_values() {
        let names: Vec<&str> =
            allowed.iter().filter(|it| !it.is_hide_set()).map(|it| it.get_name()).collect();
        text.push_str(&format!(" [values: {}]", names.join(", ")));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|it| it.to_string_lossy()).collect();
    let defaults = defaults.join(",");
    if !defaults.is_empty() && arg.get_action().takes_values() && !arg.is_hide_default_value_set() {
        text.push_str(&format!(" [default: {defaults}]"));
    }
    if let Some(name) = arg.get_env().filter(|_| !arg.is_hide_env_set()) {
        text.push_str(&format!(" [env: {}]", name.to_string_lossy()));
    }
    text
}

/// Breaks a text into lines of at most so many characters.
fn wrapped(text: &str, width: usize) -> String {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
}

/// Puts shared options that stand before the command behind it, and joins `--wait 30s`, so that they are accepted in any
/// position.
pub(crate) fn in_order(args: Vec<OsString>, program: &Command) -> Vec<OsString> {
    let shared = Output::augment_args(Connect::augment_args(Command::new("shared")));
    let (mut level, mut path, mut held, mut at) = (program, Vec::new(), Vec::new(), 1);
    path.extend(args.first().cloned());
    while let Some(arg) = args.get(at) {
        let Some(text) = arg.to_str() else { break };
        if let Some(below) = level.find_subcommand(text) {
            level = below;
            path.push(arg.clone());
            at += 1;
            continue;
        }
        let Some(takes) = values_behind(text, &shared) else { break };
        held.extend(args.get(at..=(at + takes).min(args.len() - 1)).unwrap_or_default().iter().cloned());
        at += 1 + takes;
    }
    // A command that is missing or misspelled is what has to be said, not an option that it would have taken.
    let knows = level.get_arguments().any(|arg| arg.get_long() == Some("url"));
    if !(path.len() > 1 && (knows || !level.has_subcommands())) {
        held.clear();
    }
    let rest = args.get(at.min(args.len())..).unwrap_or_default().to_vec();
    let rest = if level.get_arguments().any(|arg| arg.get_id() == "wait" && arg.is_require_equals_set()) {
        joined(rest)
    } else {
        rest
    };
    path.into_iter().chain(held).chain(rest).collect()
}

/// Returns the number of arguments of a global option.
fn values_behind(text: &str, shared: &Command) -> Option<usize> {
    let find = |is_it: &dyn Fn(&Arg) -> bool| shared.get_arguments().find(|arg| is_it(arg));
    if let Some(long) = text.strip_prefix("--") {
        let (name, is_whole) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
        let arg = find(&|arg| arg.get_long() == Some(name))?;
        return Some(usize::from(arg.get_action().takes_values() && !is_whole));
    }
    let mut signs = text.strip_prefix('-')?.chars();
    let short = signs.next()?;
    let arg = find(&|arg| arg.get_short() == Some(short))?;
    Some(usize::from(arg.get_action().takes_values() && signs.next().is_none()))
}

/// `--wait 30s` as `--wait=30s`. A number without a unit is JSON, and so is left where it is.
fn joined(args: Vec<OsString>) -> Vec<OsString> {
    let is_span = |arg: &OsString| {
        arg.to_str().is_some_and(|text| {
            text == "forever" || (text.ends_with(|it: char| it.is_ascii_alphabetic()) && span(text).is_ok())
        })
    };
    let (mut done, mut args) = (Vec::new(), args.into_iter().peekable());
    while let Some(arg) = args.next() {
        if arg == "--" {
            done.push(arg);
            done.extend(args);
            return done;
        }
        match args.next_if(|next| arg == OsStr::new("--wait") && is_span(next)) {
            Some(span) => {
                let mut whole = arg;
                whole.push("=");
                whole.push(span);
                done.push(whole);
            }
            None => done.push(arg),
        }
    }
    done
}

#[cfg(test)]
mod tests;
