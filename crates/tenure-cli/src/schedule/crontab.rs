//! A crontab, read: which of its lines say what, and which say something that nobody here understands.

use std::collections::BTreeMap;

use tenure::schedule::{Cron, Dialect, Rule, Schedule, Zone};

/// The most lines that are read.
pub(super) const MOST_LINES: usize = 10_000;

/// A crontab, read line by line.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Crontab {
    pub(super) entries: Vec<Entry>,
    /// What was not understood, or means something else here, each with its line.
    pub(super) notes: Vec<(usize, String)>,
    broken: usize,
}

/// What one line asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) line: usize,
    /// The expression as it stands there.
    pub(super) when: String,
    pub(super) schedule: Schedule,
    /// The command as it stands there, with what is not given to the shell cut off.
    pub(super) text: String,
    /// What it reads: what stands behind the first `%`, each further one a new line.
    pub(super) input: Option<String>,
    /// As whom it runs, in a crontab of the system.
    pub(super) user: Option<String>,
    /// The variables that were set above it.
    pub(super) env: BTreeMap<String, String>,
    pub(super) command: Command,
}

/// The command, as it can be run without a shell or not.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    /// A program and its arguments.
    Words(Vec<String>),
    /// It says something that only a shell understands: what.
    NeedsShell(String),
}

/// How it is read.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    /// Each line names a user before its command.
    pub(super) of_system: bool,
    /// The zone of the clocks; UTC if it is not said.
    pub(super) zone: Option<String>,
}

impl Crontab {
    /// Reads it.
    pub(super) fn read(text: &str, reading: &Reading) -> Self {
        let mut tab = Self::default();
        let (mut env, mut zone) = (BTreeMap::new(), reading.zone.clone());
        for (number, line) in (1..).zip(text.lines()) {
            if number > MOST_LINES {
                tab.note(number, format!("ignored the rest: more than {MOST_LINES} lines"));
                break;
            }
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some((name, value)) = assignment(line) {
                match name.as_str() {
                    "CRON_TZ" => zone = Some(value),
                    "MAILTO" | "MAILFROM" | "CONTENT_TYPE" | "CONTENT_TRANSFER_ENCODING" => tab.note(
                        number,
                        format!("{name} is ignored: the output of a command is in the log of its job"),
                    ),
                    "RANDOM_DELAY" | "START_HOURS_RANGE" => {
                        tab.note(number, format!("{name} is ignored"));
                    }
                    _ => drop(env.insert(name, value)),
                }
                continue;
            }
            match entry(number, line, reading.of_system, zone.as_deref()) {
                Ok(entry) => tab.entries.push(Entry { env: env.clone(), ..entry }),
                Err(why) => {
                    tab.broken += 1;
                    tab.note(number, format!("skipped: {why}"));
                }
            }
        }
        tab
    }

    fn note(&mut self, line: usize, note: String) {
        self.notes.push((line, note));
    }

    /// How many lines asked for something that is not done.
    pub(super) fn broken(&self) -> usize {
        self.broken
    }
}

/// `NAME = value`, with or without quotes.
fn assignment(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let name = unquoted(name);
    let fits = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let begins = name.chars().next().is_some_and(|sign| sign.is_ascii_alphabetic() || sign == '_');
    (begins && name.chars().all(fits)).then(|| (name.to_owned(), unquoted(value).to_owned()))
}

fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner;
        }
    }
    text
}

fn entry(line: usize, text: &str, of_system: bool, zone: Option<&str>) -> Result<Entry, String> {
    let (when, rest) = timing(text)?;
    if when == "@reboot" {
        return Err("@reboot is not supported".to_owned());
    }
    let cron = Cron::parse(Dialect::Unix, when).map_err(|bad| format!("{when}: {bad}"))?;
    let mut schedule = Schedule::new(Rule::Cron(cron));
    if let Some(zone) = zone {
        let named = Zone::named(zone).map_err(|bad| bad.to_string())?;
        schedule = schedule.in_zone(named).map_err(|bad| bad.to_string())?;
    }
    let (user, rest) = match of_system {
        true => {
            let (user, rest) = word(rest).ok_or("the user and the command are missing")?;
            (Some(user.to_owned()), rest)
        }
        false => (None, rest),
    };
    let (command, input) = percent(rest.trim());
    if command.is_empty() {
        return Err("the command is missing".to_owned());
    }
    let words = words(&command);
    Ok(Entry {
        line,
        when: when.to_owned(),
        schedule,
        text: command,
        input,
        user,
        env: BTreeMap::new(),
        command: words,
    })
}

/// The expression, and what stands behind it.
fn timing(text: &str) -> Result<(&str, &str), String> {
    if text.starts_with('@') {
        return word(text)
            .filter(|(_, rest)| !rest.is_empty())
            .ok_or_else(|| "the command is missing".to_owned());
    }
    let mut rest = text;
    for field in 1..=5 {
        let (_, after) = word(rest).ok_or_else(|| format!("{} time fields; expected 5", field - 1))?;
        rest = after;
    }
    let length = text.len() - rest.len();
    Ok((text[..length].trim_end(), rest))
}

/// The first word, and what follows the space behind it.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    if text.is_empty() {
        return None;
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    Some((&text[..end], text[end..].trim_start()))
}

/// What stands before the first `%` that has no `\` before it, and what stands behind it, where further ones are line breaks.
fn percent(text: &str) -> (String, Option<String>) {
    let (mut command, mut input) = (String::new(), None::<String>);
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        let (put, is_break) = match sign {
            '\\' if signs.peek() == Some(&'%') => {
                signs.next();
                ('%', false)
            }
            '%' => ('\n', true),
            other => (other, false),
        };
        match &mut input {
            Some(input) => input.push(put),
            None if is_break => input = Some(String::new()),
            None => command.push(put),
        }
    }
    (command.trim().to_owned(), input)
}

/// Signs that only a shell understands, outside of quotes.
const OF_A_SHELL: &str = "|&;<>()$`*?[]{}~!#\n";
/// Signs that a shell understands between double quotes.
const IN_QUOTES: &str = "$`!";
/// Words that are no programs, but commands of a shell.
const COMMANDS_OF_A_SHELL: [&str; 9] =
    [".", "cd", "source", "export", "exec", "eval", "ulimit", "umask", "if"];

/// The words of a command, if all that a shell would do with it is to cut it into words.
fn words(text: &str) -> Command {
    let (mut words, mut word, mut has_word) = (Vec::new(), String::new(), false);
    let mut quote = None;
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        match (quote, sign) {
            (None, '\'' | '"') => (quote, has_word) = (Some(sign), true),
            (Some(open), sign) if open == sign => quote = None,
            (None | Some('"'), '\\') => match (quote, signs.next()) {
                (_, None) => return Command::NeedsShell("it ends with \\".to_owned()),
                // Between quotes it stands for itself, but before what has a meaning there.
                (Some(_), Some(next)) if !"\"\\$`".contains(next) => word.extend(['\\', next]),
                (_, Some(next)) => {
                    word.push(next);
                    has_word = true;
                }
            },
            (None, sign) if OF_A_SHELL.contains(sign) => {
                return Command::NeedsShell(format!("it contains {sign:?}"));
            }
            (Some('"'), sign) if IN_QUOTES.contains(sign) => {
                return Command::NeedsShell(format!("it contains {sign:?} in quotes"));
            }
            (None, sign) if sign.is_whitespace() => {
                if std::mem::take(&mut has_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            (_, sign) => {
                word.push(sign);
                has_word = true;
            }
        }
    }
    if quote.is_some() {
        return Command::NeedsShell("unclosed quote".to_owned());
    }
    if has_word {
        words.push(word);
    }
    match words.first() {
        None => Command::NeedsShell("it is empty".to_owned()),
        Some(first) if first.contains('=') => Command::NeedsShell(format!("it sets a variable: {first}")),
        Some(first) if COMMANDS_OF_A_SHELL.contains(&first.as_str()) => {
            Command::NeedsShell(format!("{first} is a command of a shell"))
        }
        Some(_) => Command::Words(words),
    }
}

#[cfg(test)]
#[path = "crontab_tests.rs"]
mod tests;
