//! `tenure schedule import-crontab`: what a crontab does, as programs that `tenure run` runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::crontab::{Command, Crontab, Entry, Reading};
use crate::caller::user;
use crate::exit::Failure;
use crate::files::{self, text_of};
use crate::output::safe;
use crate::screen::{print, tell};

/// The file that `tenure run` reads.
const FILE: &str = "tenure.toml";
/// What runs a command in a crontab that names no shell.
const SHELL: &str = "/bin/sh";
/// The largest crontab.
const MOST_BYTES: u64 = 1 << 20;
/// Signs of a program that its name keeps.
const NAME: usize = 40;

/// Arguments of `tenure schedule import-crontab`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Crontab file; - for standard input
    file: PathBuf,
    /// Folder to write tenure.toml to [default: print it]
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    /// Time zone of the crontab [default: CRON_TZ, else UTC]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// Expect a user before each command, as in /etc/crontab
    #[arg(long)]
    system: bool,
    /// Include lines of other users; all run as the user of `tenure run`
    #[arg(long, requires = "system")]
    all_users: bool,
    /// Run every command in a shell: SHELL of the crontab, or /bin/sh
    #[arg(long)]
    shell: bool,
    /// Print what was understood and write nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Form {
    triggered: BTreeMap<String, Said>,
}

/// What the file says of one of them. Tables come last, as the format has it.
#[derive(Serialize)]
struct Said {
    command: Vec<String>,
    schedule: String,
    /// A cron that was off brings nothing later.
    catch_up: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
}

pub(super) fn run(import: &Import) -> Result<(), Failure> {
    let reading = Reading { of_system: import.system, zone: import.zone.clone() };
    let tab = Crontab::read(&text_of(&import.file, MOST_BYTES)?, &reading);
    let mut form = Form { triggered: BTreeMap::new() };
    let (mut left_out, own) = (0, user());
    for (line, note) in &tab.notes {
        tell(&format!("line {line}: {}", safe::line(note)));
    }
    for entry in &tab.entries {
        let (when, what) = (safe::line(&entry.when), safe::line(&entry.text));
        let other = entry.user.as_deref().filter(|user| own.as_deref() != Some(*user));
        let said = match other {
            Some(user) if !import.all_users => Err(format!(
                "it belongs to user {user}; pass --all-users to include it as the user of `tenure run`"
            )),
            Some(_) | None => said(entry, import.shell),
        };
        match said {
            Ok(said) => {
                let name = free_name(entry, &form.triggered);
                let is = entry.schedule.describe();
                tell(&format!("line {}: {name}: {is} ({when}): {what}", entry.line));
                if let Some(user) = other {
                    let user = safe::line(user);
                    tell(&format!(
                        "line {}: it ran as {user}, and now runs as the user of `tenure run`",
                        entry.line
                    ));
                }
                form.triggered.insert(name, said);
            }
            Err(why) => {
                left_out += 1;
                tell(&format!("line {}: skipped: {}: {what}", entry.line, safe::line(&why)));
            }
        }
    }
    left_out += tab.broken();
    let understood = form.triggered.len();
    tell(&format!(
        "{understood} converted, {left_out} skipped; a run still active when the next is due is not doubled"
    ));
    if !import.dry_run && understood > 0 {
        let text = toml::to_string(&form)
            .map_err(|error| Failure::NotWhole(format!("cannot write tenure.toml: {error}")))?;
        match &import.to {
            None => print(text.trim_end()),
            Some(folder) => write(folder, &text)?,
        }
    }
    if left_out > 0 {
        let lines = if left_out == 1 {
            "1 line of the crontab was"
        } else {
            &format!("{left_out} lines of the crontab were")
        };
        return Err(Failure::Unsuccessful(format!("{lines} skipped")));
    }
    Ok(())
}

/// What is run, or why not.
fn said(entry: &Entry, by_shell: bool) -> Result<Said, String> {
    let mut env = entry.env.clone();
    let shell = env.remove("SHELL").unwrap_or_else(|| SHELL.to_owned());
    let command = match (&entry.command, by_shell) {
        (_, true) => vec![shell, "-c".to_owned(), entry.text.clone()],
        (Command::Words(words), false) => words.clone(),
        (Command::NeedsShell(why), false) => return Err(format!("it needs a shell ({why}); pass --shell")),
    };
    if command.iter().chain(env.values()).chain(entry.input.as_ref()).any(|word| word.contains('\0')) {
        return Err("it contains a NUL character".to_owned());
    }
    let schedule = entry.schedule.to_string();
    Ok(Said { command, schedule, catch_up: "skip", input: entry.input.clone(), env })
}

/// The name of the program, and a number if there are several.
fn free_name(entry: &Entry, taken: &BTreeMap<String, Said>) -> String {
    let program = match &entry.command {
        Command::Words(words) => words.first().map_or("", String::as_str),
        Command::NeedsShell(_) => entry.text.split_whitespace().next().unwrap_or_default(),
    };
    let file =
        Path::new(program).file_stem().map_or_else(String::new, |it| it.to_string_lossy().into_owned());
    let fits = |sign: &char| sign.is_ascii_alphanumeric() || "._-".contains(*sign);
    let name: String = file.chars().filter(fits).take(NAME).collect();
    let name = if name.is_empty() { "line".to_owned() } else { name };
    // Names that differ in case alone are one.
    let is_free = |name: &String| taken.keys().all(|known| !known.eq_ignore_ascii_case(name));
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
}

/// Writes it where nothing is yet.
fn write(folder: &Path, text: &str) -> Result<(), Failure> {
    let path = folder.join(FILE);
    let fail = |source| Failure::Output { path: path.clone(), source };
    std::fs::create_dir_all(folder).map_err(fail)?;
    // Lines of a crontab may contain passwords, and other users cannot read the original.
    match files::private_file().create_new(true).open(&path) {
        Ok(mut file) => std::io::Write::write_all(&mut file, text.as_bytes()).map_err(fail)?,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(Failure::Conflict(format!("{} already exists and was not changed", path.display())));
        }
        Err(source) => return Err(fail(source)),
    }
    tell(&format!("wrote {}; start it with `tenure run {}`", path.display(), folder.display()));
    Ok(())
}
