//! The plain form: a `tenure.toml` that says of each app what a folder of Kudu's layout says by its files.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use crate::app::{App, Sort, check_name};
use crate::folder::{Folder, ReadError, text_of};
use crate::host::{Installed, choose};
use crate::settings::Settings;

const FILE: &str = "tenure.toml";

/// Adds the apps of the plain form, if there is one.
pub(crate) fn read(folder: &Path, installed: Installed<'_>, found: &mut Folder) -> Result<(), ReadError> {
    let path = folder.join(FILE);
    // A link that leads nowhere is there, and cannot be read.
    if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Ok(());
    }
    let text = text_of(&path).map_err(|source| ReadError::Io { path: path.clone(), source })?;
    let refuse = |why: String| ReadError::Plain { path: path.clone(), why };
    let tables: Map<String, Value> = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        refuse(format!("line {line}: {}", error.message()))
    })?;
    for (word, apps) in tables {
        let sort = Sort::of(&word).ok_or_else(|| {
            refuse(format!("unknown section {word:?}; expected [triggered.NAME] or [continuous.NAME]"))
        })?;
        let Value::Object(apps) = apps else { return Err(refuse(format!("{word} is not a table"))) };
        for (name, said) in apps {
            let Value::Object(said) = said else {
                return Err(refuse(format!("{word}.{name} is not a table")));
            };
            if found.apps.iter().any(|app| app.sort == sort && app.name == name) {
                found.notes.push(format!("{FILE}: ignored {word}.{name}: its name is already taken"));
                continue;
            }
            found.apps.push(app(folder, name, sort, said, installed));
        }
    }
    Ok(())
}

fn app(root: &Path, name: String, sort: Sort, mut said: Map<String, Value>, installed: Installed<'_>) -> App {
    let (mut wrong, mut notes) = (Vec::new(), Vec::new());
    if let Err(bad) = check_name(&name) {
        wrong.push(bad.to_string());
    }
    let folder = below(root, said.remove("folder")).unwrap_or_else(|why| {
        wrong.push(why);
        root.to_owned()
    });
    let (command, run) = (said.remove("command"), said.remove("run"));
    let command = self::command(command, run, installed).unwrap_or_else(|why| {
        wrong.push(why);
        Vec::new()
    });
    let mut settings = Settings::of(sort, &said, &mut wrong, &mut notes);
    // Whoever writes one file for all has not packed each app by itself.
    settings.is_in_place.get_or_insert(true);
    App { name, sort, folder, command, settings, wrong, notes, is_disabled: false }
}

/// Either `command`, as it is, or `run`, a script whose interpreter is known by its name.
fn command(
    command: Option<Value>,
    run: Option<Value>,
    installed: Installed<'_>,
) -> Result<Vec<OsString>, String> {
    match (command, run) {
        (Some(command), None) => {
            let words: Vec<String> =
                serde_json::from_value(command).map_err(|error| format!("command: {error}"))?;
            if words.is_empty() || words.iter().any(|word| word.contains('\0')) || words[0].is_empty() {
                return Err(
                    "invalid command: empty or with a NUL character; expected a program and its arguments"
                        .to_owned(),
                );
            }
            Ok(words.into_iter().map(OsString::from).collect())
        }
        (None, Some(Value::String(file))) => {
            if file.contains('\0') || Path::new(&file).components().any(|part| part == Component::ParentDir) {
                return Err(format!("invalid run {file:?}; expected a script in the folder of the program"));
            }
            choose(&[file], installed).map(|chosen| chosen.command)
        }
        (None | Some(_), _) => Err("set either command (a list of words) or run (a script)".to_owned()),
    }
}

/// A folder below the one that has the file, and nowhere else.
fn below(root: &Path, said: Option<Value>) -> Result<PathBuf, String> {
    let Some(said) = said else { return Ok(root.to_owned()) };
    let path =
        said.as_str().map(Path::new).ok_or_else(|| format!("invalid folder {said}; expected a text"))?;
    if path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Ok(root.join(path));
    }
    Err(format!("invalid folder {said}; expected one below the folder of {FILE}"))
}
