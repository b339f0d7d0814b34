//! The file of a person's settings: which servers there are.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

use serde::Deserialize;

use super::{Env, Said, said, written};
use crate::client::{Secret, secret_in};
use crate::exit::Failure;
use crate::files;
use crate::output::safe;
use crate::secrets;

/// All of the file.
#[derive(Default, Deserialize)]
pub(crate) struct File {
    /// The context that counts if nobody says another.
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Context>,
}

/// A server under a name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    /// Whether commands that change something are refused.
    #[serde(default)]
    pub(crate) read_only: bool,
    /// Allows sending the token over `http://` to another machine.
    #[serde(default)]
    pub(crate) insecure_http: bool,
}

impl File {
    /// Where it is.
    pub(crate) fn path(env: &Env) -> Result<PathBuf, Failure> {
        let none = || Failure::Usage("no settings folder: set XDG_CONFIG_HOME or HOME".to_owned());
        Ok(env.folder.as_ref().ok_or_else(none)?.join("config.toml"))
    }

    /// Nobody else changes it until this is dropped. A file beside it is locked, for the file itself is replaced.
    pub(crate) fn alone(env: &Env) -> Result<std::fs::File, Failure> {
        let path = Self::path(env)?.with_extension("toml.lock");
        let locked = || {
            if let Some(folder) = path.parent() {
                files::create_private_folder(folder)?;
            }
            let file = files::private_file().create(true).truncate(false).open(&path)?;
            file.lock()?;
            Ok(file)
        };
        locked().map_err(|source| Failure::Output { path: path.clone(), source })
    }

    /// What it says; nothing if there is none.
    pub(crate) fn load(env: &Env) -> Result<Self, Failure> {
        let Ok(path) = Self::path(env) else { return Ok(Self::default()) };
        match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|error| {
                // What stands there may be a token: only where and why is told.
                let line = error.span().map(|span| text[..span.start].lines().count().max(1));
                let line = line.map_or_else(String::new, |line| format!(" at line {line}"));
                Failure::Invalid(safe::line(&format!(
                    "invalid settings file {}{line}: {}",
                    path.display(),
                    error.message()
                )))
            }),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(Self::default())
            }
            Err(source) => Err(Failure::Input { path, source }),
        }
    }

    /// Writes what has changed into the file, whole or not at all; nobody else may read it. Whatever else stands in it stays as
    /// its owner wrote it.
    pub(crate) fn save(&self, env: &Env) -> Result<PathBuf, Failure> {
        let path = Self::path(env)?;
        let refuse = |source| Failure::Output { path: path.clone(), source };
        let old = match std::fs::read_to_string(&path) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound) => String::new(),
            told => told.map_err(refuse)?,
        };
        written::replace(&path, &written::changed(&old, self)?).map_err(refuse)?;
        Ok(path)
    }

    /// The context of this name.
    pub(crate) fn context(&self, name: &str) -> Result<&Context, Failure> {
        self.contexts.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.contexts.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Failure::NotThere(safe::line(&format!(
                "unknown context \"{name}\"; known contexts: {known}; add one with `tenure context add`"
            )))
        })
    }
}

impl Context {
    /// What proves who asks, if the context says it.
    pub(super) fn secret(&self, name: &str) -> Result<Option<Said<Secret>>, Failure> {
        let origin = format!("context {name}");
        if let Some(token) = &self.token {
            let token = secrets::resolve(&format!("token of {origin}"), token)?
                .parse()
                .map_err(|wrong| Failure::Invalid(format!("invalid token of {origin}: {wrong}")))?;
            return Ok(Some(said(token, origin)));
        }
        self.token_file.as_deref().map(|file| Ok(said(secret_in(file)?, origin))).transpose()
    }
}
