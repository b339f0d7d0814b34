//! Settings that a file in the working folder must not contain, because its author may be another user.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::geteuid;

use super::layers::Whose;

/// Bytes of a file that is read.
const FILE_BYTES: u64 = 4 << 20;
/// Places that get the audit log, which another user must not choose.
const AUDIT_PLACES: [&str; 2] = ["server.audit_log", "server.audit_otlp"];
/// The settings that a file of another user may contain. None of them changes a store, a job, or access to a server.
/// Tenure refuses all others, so a new setting is safe by default.
const HARMLESS: [&str; 3] = ["log.format", "log.level", "telemetry.kind_labels"];
const NOT_HERE: &str =
    "is not allowed in this file; use your own settings file, one passed with --config, or the environment";
const NOT_FOREIGN: &str = "is not allowed in this file, because other users own it or can write to it; pass it with --config if you \
                           trust it, or make it yours: chown and chmod go-w";

/// Returns the text of a settings file and its kind. A file in the working folder is foreign if other users can write to it.
pub(super) fn read(path: &Path, whose: Whose) -> io::Result<(String, Whose)> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    // A device may never end.
    if !found.is_file() {
        return Err(io::Error::other("not a file"));
    }
    if found.len() > FILE_BYTES {
        return Err(io::Error::other("larger than 4 MiB"));
    }
    let mut text = String::new();
    file.take(FILE_BYTES).read_to_string(&mut text)?;
    // Another user's link can point to a file of this user, whose settings mean something else in that folder.
    let is_own =
        is_own(&found) && std::fs::symlink_metadata(path).is_ok_and(|entry| leads_to(&entry, &found));
    let is_foreign = whose == Whose::Here && !is_own;
    Ok((text, if is_foreign { Whose::Foreign } else { whose }))
}

/// Returns true if this user or root owns the file, and no other user can write to it.
fn is_own(file: &Metadata) -> bool {
    const WRITABLE: u32 = 0o022;
    is_mine(file) && file.mode() & WRITABLE == 0
}

/// Returns true if this user or root owns a file or a link.
fn is_mine(entry: &Metadata) -> bool {
    entry.uid() == 0 || entry.uid() == geteuid().as_raw()
}

/// Returns true if this entry of a folder is the file that was opened, or a link of this user or root. Another user can replace a
/// link by any other file in the folder meanwhile.
fn leads_to(entry: &Metadata, file: &Metadata) -> bool {
    is_mine(entry) && (entry.is_symlink() || (entry.dev(), entry.ino()) == (file.dev(), file.ino()))
}

/// Returns the reason for which a file must not contain this setting or section; `None` if it may.
pub(super) fn refusal(whose: Whose, name: &str, values: &[String]) -> Option<&'static str> {
    // This value only turns authentication on.
    let protects = name == "server.auth" && values == ["tokens"];
    match whose {
        Whose::Here | Whose::Foreign if AUDIT_PLACES.contains(&name) => Some(NOT_HERE),
        Whose::Foreign if !HARMLESS.contains(&name) && !protects => Some(NOT_FOREIGN),
        Whose::Foreign | Whose::Here | Whose::Named | Whose::User | Whose::System => None,
    }
}
