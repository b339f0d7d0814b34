//! Reading a folder: which apps there are.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::app::{App, Sort, check_name};
use crate::host::{Installed, NOTHING_TO_RUN, choose};
use crate::plain;
use crate::settings::Settings;

/// Where the jobs of a site are, below the folder that is named; the first one that is there counts for each sort.
const ROOTS: [&str; 3] = ["site/wwwroot/App_Data/jobs", "App_Data/jobs", "."];
/// Where Kudu looks second; on equal names what was found first wins.
const SECOND_ROOT: &str = "site/jobs";
/// What keeps a continuous app from running.
const DISABLE: &str = "disable.job";
/// Where an app says how it runs.
const SETTINGS: &str = "settings.job";
/// Apps of a folder, of both sorts.
const MOST_APPS: usize = 1_000;
/// Files of an app among which is chosen.
const MOST_FILES: usize = 10_000;
/// The largest file of settings.
const SETTINGS_BYTES: u64 = 256 * 1024;

/// What is in a folder.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Folder {
    /// Its apps, by sort and name. Those that cannot run are among them, and say why.
    pub apps: Vec<App>,
    /// What was found of apps that is none, and what is wrong with the folder as a whole.
    pub notes: Vec<String>,
    /// Files that lie among the apps, such as a README.
    pub strays: Vec<String>,
}

/// A folder that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refuses it.
    #[error("cannot read {path}: {source}", path = path.display())]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Its `tenure.toml` is none.
    #[error("invalid {path}: {why}", path = path.display())]
    Plain {
        /// Which file.
        path: PathBuf,
        /// Where, and what is wrong.
        why: String,
    },
    /// It has more than is looked at.
    #[error("{path} has more than {most} entries", path = path.display())]
    TooMany {
        /// Which folder.
        path: PathBuf,
        /// How many are allowed.
        most: usize,
    },
}

/// Reads a folder. `other_root` is where the jobs are if somebody has said so, relative to the folder or absolute.
///
/// # Errors
/// If the folder itself, or its `tenure.toml`, cannot be read. What is wrong with one app is told at that app.
pub fn read(folder: &Path, other_root: Option<&Path>, installed: Installed<'_>) -> Result<Folder, ReadError> {
    let io = |source| ReadError::Io { path: folder.to_owned(), source };
    let folder = fs::canonicalize(folder).map_err(io)?;
    fs::read_dir(&folder).map_err(io)?;
    let mut found = Folder::default();
    for sort in [Sort::Triggered, Sort::Continuous] {
        for root in [root_of(&folder, other_root, sort), folder.join(SECOND_ROOT).join(sort.word())] {
            read_root(&root, sort, installed, &mut found);
        }
    }
    plain::read(&folder, installed, &mut found)?;
    refuse_equal_names(&mut found.apps);
    found.apps.sort_by(|a, b| (a.sort, &a.name).cmp(&(b.sort, &b.name)));
    if found.apps.len() > MOST_APPS {
        return Err(ReadError::TooMany { path: folder, most: MOST_APPS });
    }
    if found.apps.is_empty() {
        found
            .notes
            .push("no programs found: neither triggered/NAME, continuous/NAME nor a tenure.toml".to_owned());
    }
    Ok(found)
}

/// Where the apps of this sort are, or would be if there is none yet. `other_root` is as for [`read`].
#[must_use]
pub fn root_of(folder: &Path, other_root: Option<&Path>, sort: Sort) -> PathBuf {
    let at = |root: &Path| folder.join(root).join(sort.word());
    if let Some(root) = other_root {
        return at(root);
    }
    // Of several primary places the first that is there counts.
    let there = ROOTS.iter().map(|root| at(Path::new(root))).find(|root| root.is_dir());
    // What comes first goes beside the apps of the other sort.
    let beside = ROOTS.iter().map(Path::new).find(|root| sort.other_of(&folder.join(root)).is_dir());
    there.unwrap_or_else(|| at(beside.unwrap_or(Path::new(""))))
}

fn read_root(root: &Path, sort: Sort, installed: Installed<'_>, found: &mut Folder) {
    if !root.is_dir() {
        return;
    }
    let names = match entries(root) {
        Ok(names) => names,
        // The other sort, and what the plain form has, run all the same.
        Err(why) => return found.notes.push(why.to_string()),
    };
    for name in names {
        let path = root.join(&name);
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if !path.is_dir() {
            found.strays.push(format!("ignored {}: not a folder", path.display()));
            continue;
        }
        let Some(name) = name.to_str() else {
            found.notes.push(format!("ignored {}: its name is not valid UTF-8", path.display()));
            continue;
        };
        if found.apps.iter().any(|app| app.sort == sort && app.name == name) {
            found.notes.push(format!("ignored {}: its name is already taken", path.display()));
            continue;
        }
        found.apps.push(read_app(&path, name, sort, installed));
    }
}

/// One app in Kudu's form. What is wrong with it stays with it: no app keeps another from running.
fn read_app(path: &Path, name: &str, sort: Sort, installed: Installed<'_>) -> App {
    let (mut wrong, mut notes) = (Vec::new(), Vec::new());
    if let Err(bad) = check_name(name) {
        wrong.push(bad.to_string());
    }
    let (folder, names) = descended(path).unwrap_or_else(|why| {
        wrong.push(why.to_string());
        (path.to_owned(), Vec::new())
    });
    let said = match settings(&folder, &names) {
        Ok(said) => said,
        Err(why) => {
            wrong.push(why);
            Map::new()
        }
    };
    notes.extend([SETTINGS, DISABLE].into_iter().flat_map(|meant| misspelt(&names, meant)));
    let mut settings = Settings::of(sort, &said, &mut wrong, &mut notes);
    let command = match choose(&files(&folder, names), installed) {
        Ok(chosen) => {
            settings.is_in_place.get_or_insert(chosen.is_in_place);
            notes.extend(chosen.notes);
            chosen.command
        }
        Err(why) => {
            // Of a folder that cannot be read nobody knows what is in it.
            if wrong.is_empty() || why != NOTHING_TO_RUN {
                wrong.push(why);
            }
            Vec::new()
        }
    };
    let is_there = |at: &Path| at.join(DISABLE).symlink_metadata().is_ok();
    let is_disabled = sort == Sort::Continuous && (is_there(&folder) || is_there(path));
    App { name: name.to_owned(), sort, folder, command, settings, wrong, notes, is_disabled }
}

/// Names that differ in case alone are one on other systems: none of them runs, whichever was there first.
fn refuse_equal_names(apps: &mut [App]) {
    let mut by_name: BTreeMap<(Sort, String), Vec<usize>> = BTreeMap::new();
    for (at, app) in apps.iter().enumerate() {
        by_name.entry((app.sort, app.name.to_lowercase())).or_default().push(at);
    }
    for same in by_name.into_values().filter(|same| same.len() > 1) {
        let names: Vec<String> = same.iter().map(|at| apps[*at].name.clone()).collect();
        for at in same {
            let others: Vec<&str> =
                names.iter().filter(|name| **name != apps[at].name).map(String::as_str).collect();
            apps[at].wrong.push(format!("its name differs from {} only in case", others.join(", ")));
        }
    }
}

/// A folder that holds nothing but a folder stands for that one. Answers it with what it holds.
fn descended(path: &Path) -> Result<(PathBuf, Vec<OsString>), ReadError> {
    let names = entries(path)?;
    match names.as_slice() {
        [only] if path.join(only).is_dir() => {
            let below = path.join(only);
            entries(&below).map(|names| (below, names))
        }
        _ => Ok((path.to_owned(), names)),
    }
}

fn files(folder: &Path, mut names: Vec<OsString>) -> Vec<String> {
    names.retain(|name| folder.join(name).is_file());
    names.into_iter().filter_map(|name| name.into_string().ok()).collect()
}

/// What has this name but for the case of its letters, which is another name here.
fn misspelt(names: &[OsString], meant: &str) -> Option<String> {
    let other = names.iter().find(|name| *name != meant && name.eq_ignore_ascii_case(meant))?;
    Some(format!("ignored {}: the name must be {meant}", other.to_string_lossy()))
}

fn entries(folder: &Path) -> Result<Vec<OsString>, ReadError> {
    let io = |source| ReadError::Io { path: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        if names.len() == MOST_FILES {
            return Err(ReadError::TooMany { path: folder.to_owned(), most: MOST_FILES });
        }
        names.push(entry.map_err(io)?.file_name());
    }
    names.sort();
    Ok(names)
}

/// What stands in `settings.job`; nothing if there is none.
fn settings(folder: &Path, names: &[OsString]) -> Result<Map<String, Value>, String> {
    // A link that leads nowhere is there as well.
    if !names.iter().any(|name| name == SETTINGS) {
        return Ok(Map::new());
    }
    let text =
        text_of(&folder.join(SETTINGS)).map_err(|error| format!("cannot read settings.job: {error}"))?;
    // Editors on Windows put a mark before the first sign.
    match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(Value::Object(said)) => Ok(said),
        Ok(_) => Err("settings.job is not a JSON object".to_owned()),
        Err(error) => Err(format!("invalid settings.job: {error}")),
    }
}

/// The text of an ordinary file that is no larger than settings are. A pipe or a device is not waited for.
pub(crate) fn text_of(path: &Path) -> std::io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    fs::File::open(path)?.take(SETTINGS_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > SETTINGS_BYTES {
        return Err(std::io::Error::other(format!("larger than {SETTINGS_BYTES} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
