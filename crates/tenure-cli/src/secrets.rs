//! Secrets by reference: an operator writes where a secret is, in place of the secret.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::exit::Failure;

/// Largest secret.
const SECRET_BYTES: u64 = 64 << 10;
/// Longest time that a command may take.
const COMMAND_WITHIN: Duration = Duration::from_secs(10);
/// Beginnings of URLs with a mistake that would otherwise be paths.
const LOOKS_LIKE_URL: [&str; 4] = ["postgres:", "postgresql:", "postgres/", "postgresql/"];

/// The environment variables that references have named.
static VARIABLES: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// A reference that cannot be resolved. Its text never contains the secret.
#[derive(Debug, thiserror::Error)]
pub(crate) struct Unresolved {
    setting: String,
    why: String,
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.why)
    }
}

impl From<Unresolved> for Failure {
    fn from(wrong: Unresolved) -> Self {
        Self::Invalid(wrong.to_string())
    }
}

/// Returns true if the value of a setting names a command. A file that others can write must not run commands.
pub(crate) fn is_command(value: &str) -> bool {
    value.starts_with("cmd:")
}

/// Returns the secret that a value names with `file:PATH`, `env:NAME` or `cmd:PROGRAM ARG…`. Any other value is the
/// secret itself.
pub(crate) fn resolve(setting: &str, value: &str) -> Result<String, Unresolved> {
    let wrong = |why: String| Unresolved { setting: setting.to_owned(), why };
    let found = match value.split_once(':') {
        Some(("file", path)) => {
            of_file(Path::new(path)).map_err(|why| wrong(format!("file {}: {why}", shown(path))))?
        }
        Some(("env", name)) => of_variable(name).ok_or_else(|| {
            wrong(format!("environment variable {} is not set, or is not UTF-8", shown(name)))
        })?,
        Some(("cmd", line)) => of_command(line, COMMAND_WITHIN).map_err(|why| {
            wrong(format!("command {}: {why}", shown(line.split_whitespace().next().unwrap_or("(none)"))))
        })?,
        Some(_) | None => return Ok(value.to_owned()),
    };
    let secret = found.trim_end_matches(['\n', '\r']);
    if secret.is_empty() {
        Err(wrong("the reference leads to an empty value".to_owned()))
    } else {
        Ok(secret.to_owned())
    }
}

/// Returns the value of an environment variable, and withholds it from programs from then on.
fn of_variable(name: &str) -> Option<String> {
    let secret = std::env::var(name).ok()?;
    VARIABLES.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    Some(secret)
}

/// Returns the environment variables from which this process has read secrets. Programs must not inherit them.
pub(crate) fn variables() -> Vec<String> {
    VARIABLES.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

/// Returns the database that a value names: a file or a URL. A URL without its scheme is refused here, because the error
/// of a missing file would show its password.
pub(crate) fn database(setting: &str, value: &str) -> Result<String, Unresolved> {
    let found = resolve(setting, value)?;
    let is_url = found.contains("://") || found.starts_with("sqlite:") || found.starts_with("memory:");
    if !is_url && (found.contains('@') || LOOKS_LIKE_URL.iter().any(|start| found.starts_with(start))) {
        let why = "looks like a URL without its scheme; use postgres://user:password@host/database, or sqlite://FILE for a \
                   file of this name";
        return Err(Unresolved { setting: setting.to_owned(), why: why.to_owned() });
    }
    Ok(found)
}

/// Returns the parser of an option that names a database.
pub(crate) fn database_option() -> Unechoed<String> {
    Unechoed(|value| database("database", value).map_err(|wrong| wrong.why))
}

/// The parser of an option whose value may be a secret: its error does not repeat the value, as other errors do.
#[derive(Clone)]
pub(crate) struct Unechoed<T>(pub(crate) fn(&str) -> Result<T, String>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Unechoed<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let parsed = value.to_str().ok_or_else(|| "not UTF-8".to_owned()).and_then(self.0);
        parsed.map_err(|why| {
            let option = arg.map(ToString::to_string).unwrap_or_default();
            let told = format!("invalid value for '{option}': {why}\n");
            clap::Error::raw(ErrorKind::ValueValidation, told).with_cmd(command)
        })
    }
}

/// Returns the place in a reference, unless it looks like a URL: a mistyped reference may contain a password.
fn shown(place: &str) -> &str {
    if place.contains("://") || place.contains('@') { "(hidden)" } else { place }
}

/// Reads a secret from a stream, with its limit.
fn read(from: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    from.take(SECRET_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > SECRET_BYTES {
        return Err("larger than 64 KiB".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())
}

/// Reads the secret in a file, with its limit.
pub(crate) fn of_file(path: &Path) -> Result<String, String> {
    // A pipe or a device could block, or never end.
    let is_file = std::fs::metadata(path).map_err(|error| error.to_string())?.is_file();
    if !is_file {
        return Err("not a file".to_owned());
    }
    read(std::fs::File::open(path).map_err(|error| error.to_string())?)
}

fn of_command(line: &str, within: Duration) -> Result<String, String> {
    let mut words = line.split_whitespace();
    let program = words.next().ok_or("expected a program and its arguments")?;
    let mut command = Command::new(program);
    // A separate process group, so that a timeout also ends the processes that the command has started.
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    let child = command.spawn().map_err(|error| error.to_string())?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(output(child)));
    ended.recv_timeout(within).unwrap_or_else(|_| {
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        Err(format!("no output within {} s", within.as_secs()))
    })
}

/// Reads the output of a command to its end.
fn output(mut child: Child) -> Result<String, String> {
    let secret = child.stdout.take().map_or(Ok(String::new()), read);
    if secret.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let secret = secret?;
    if status.success() { Ok(secret) } else { Err(format!("failed: {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(value: &str) -> Result<String, String> {
        resolve("client.token", value).map_err(|wrong| wrong.to_string())
    }

    #[test]
    fn a_reference_leads_to_a_secret_without_its_last_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "hush hush\r\n").unwrap();
        assert_eq!(resolved(&format!("file:{}", file.display())).unwrap(), "hush hush");
        assert_eq!(resolved(&format!("cmd:cat {}", file.display())).unwrap(), "hush hush");
        assert_eq!(resolved("cmd:printf a;b").unwrap(), "a;b", "no shell");
        assert_eq!(resolved("env:PATH").unwrap(), std::env::var("PATH").unwrap());
        for plain in ["tenure_0_1", "postgres://me:file:x@h/jobs", "whsec_QUFB", "jobs.db", ""] {
            assert_eq!(resolved(plain).unwrap(), plain);
        }
    }

    #[test]
    fn a_reference_that_leads_nowhere_names_the_setting_and_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str, text: &[u8]| {
            std::fs::write(folder.path().join(name), text).unwrap();
            format!("file:{}", folder.path().join(name).display())
        };
        let large = "hush".repeat(17_000);
        for (value, why) in [
            (at("large", large.as_bytes()), "larger than 64 KiB"),
            (at("odd", b"hush\xff"), "not UTF-8"),
            (at("empty", b"\n"), "empty"),
            ("file:/nowhere/token".to_owned(), "No such file"),
            (format!("file:{}", folder.path().display()), "not a file"),
            ("file:/dev/zero".to_owned(), "not a file"),
            ("env:TENURE_NOT_THERE".to_owned(), "is not set"),
            ("cmd:".to_owned(), "expected a program"),
            ("cmd:/nowhere/program hush".to_owned(), "No such file"),
            ("cmd:false hush".to_owned(), "failed"),
            ("cmd:yes hush".to_owned(), "larger than 64 KiB"),
            ("file:postgres://me:hush@h/jobs".to_owned(), "file (hidden): No such file"),
            ("env:postgres://me:hush@h/jobs".to_owned(), "(hidden) is not set"),
            ("cmd:me:hush@h/jobs".to_owned(), "command (hidden): No such file"),
        ] {
            let told = resolved(&value).unwrap_err();
            assert!(told.starts_with("client.token: ") && told.contains(why), "{value}: {told}");
            assert!(!told.contains("hush"), "{told}");
        }
    }

    #[test]
    fn a_url_without_its_scheme_is_not_taken_for_a_file() {
        for wrong in ["postgres:me:hush@h/jobs", "me:hush@h/jobs", "postgres//me:hush", "postgresql:/me"] {
            let told = database("database", wrong).unwrap_err().to_string();
            assert!(told.contains("use postgres://") && !told.contains("hush"), "{told}");
        }
        for right in ["jobs.db", "postgres://me:hush@h/jobs", "sqlite://a@b.db", "postgres.db", "memory:"] {
            assert_eq!(database("database", right).unwrap(), right);
        }
    }

    #[test]
    fn a_command_that_does_not_end_is_ended() {
        let told = of_command("sleep 1000", Duration::from_millis(50)).unwrap_err();
        assert!(told.contains("no output within"), "{told}");
    }
}
