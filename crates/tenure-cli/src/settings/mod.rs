//! What was said about the server, where, and which of it counts: a flag, the environment, a context, what is usual.

mod file;

use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) use file::{Context, File};

use crate::client::{Client, Connect, ReadOnly, Secret, USUAL, base, secret_in};
use crate::exit::Failure;

/// The environment, as far as it matters here.
#[derive(Debug, Default)]
pub(crate) struct Env {
    pub(crate) url: Option<String>,
    pub(crate) context: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    /// The folder of the settings of this program.
    pub(crate) folder: Option<PathBuf>,
}

impl Env {
    /// That of this process. What is empty is not said.
    pub(crate) fn real() -> Self {
        let said = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let text = |name: &str| said(name).map(|value| value.to_string_lossy().into_owned());
        let absolute = |value: OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
        let home = || said("HOME").and_then(absolute).map(|home| home.join(".config"));
        Self {
            url: text("TENURE_URL"),
            context: text("TENURE_CONTEXT"),
            token: text("TENURE_TOKEN"),
            token_file: said("TENURE_TOKEN_FILE").map(PathBuf::from),
            folder: said("XDG_CONFIG_HOME")
                .and_then(absolute)
                .or_else(home)
                .map(|folder| folder.join("tenure")),
        }
    }
}

/// A value, and where it was said.
#[derive(Debug)]
pub(crate) struct Said<T> {
    pub(crate) value: T,
    pub(crate) origin: String,
}

/// What counts.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) url: Said<String>,
    pub(crate) context: Option<Said<String>>,
    pub(crate) token: Option<Said<Secret>>,
    pub(crate) read_only: bool,
}

fn said<T>(value: T, origin: impl Into<String>) -> Said<T> {
    Said { value, origin: origin.into() }
}

impl Settings {
    /// What counts of the flags, the environment and the file.
    pub(crate) fn of(connect: &Connect, env: &Env) -> Result<Self, Failure> {
        let url = match (&connect.url, &connect.context, &env.url) {
            (Some(url), _, _) => Some(said(url.clone(), "--url")),
            (None, None, Some(url)) => Some(said(url.clone(), "TENURE_URL")),
            (None, Some(_), _) | (None, None, None) => None,
        };
        // Who says the server itself leaves every context: its token is for its own server only.
        let file = if url.is_none() { File::load(env)? } else { File::default() };
        let named = url.is_none().then(|| name(connect, env, &file)).flatten();
        let context =
            named.as_ref().map(|name| Ok::<_, Failure>((name, file.context(&name.value)?))).transpose()?;
        let token = match token(connect, env)? {
            Some(token) => Some(token),
            None => {
                context.and_then(|(name, context)| context.secret(&name.value).transpose()).transpose()?
            }
        };
        let from = |context: (&Said<String>, &Context)| {
            said(context.1.url.clone(), format!("context {}", context.0.value))
        };
        let url = url
            .or_else(|| context.map(from))
            .unwrap_or_else(|| said(USUAL.to_owned(), "nobody: it is the usual one"));
        let read_only = context.is_some_and(|(_, context)| context.read_only);
        Ok(Self { url: said(base(&url.value)?, url.origin), token, read_only, context: named })
    }

    pub(crate) fn client(self) -> Client {
        let read_only = self.context.filter(|_| self.read_only);
        let read_only = read_only.map(|context| ReadOnly::Context(context.value));
        Client::new(self.url.value, self.token.map(|token| token.value), read_only)
    }
}

/// The name of the context that is meant.
fn name(connect: &Connect, env: &Env, file: &File) -> Option<Said<String>> {
    let by_flag = connect.context.clone().map(|name| said(name, "--context"));
    let by_env = || env.context.clone().map(|name| said(name, "TENURE_CONTEXT"));
    by_flag.or_else(by_env).or_else(|| file.current.clone().map(|name| said(name, "tenure context use")))
}

/// The token that was said outside of a context.
fn token(connect: &Connect, env: &Env) -> Result<Option<Said<Secret>>, Failure> {
    if let Some(token) = &connect.token {
        return Ok(Some(said(token.clone(), "--token")));
    }
    if let Some(file) = &connect.token_file {
        return Ok(Some(said(secret_in(file)?, "--token-file")));
    }
    if let Some(token) = &env.token {
        let token = token.parse().map_err(|wrong| Failure::Invalid(format!("TENURE_TOKEN: {wrong}")))?;
        return Ok(Some(said(token, "TENURE_TOKEN")));
    }
    env.token_file.as_ref().map(|file| Ok(said(secret_in(file)?, "TENURE_TOKEN_FILE"))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(folder: &std::path::Path) -> Env {
        Env { folder: Some(folder.to_owned()), ..Env::default() }
    }

    fn context(url: &str, read_only: bool) -> Context {
        Context { url: url.to_owned(), token: Some("of_the_context".to_owned()), token_file: None, read_only }
    }

    #[test]
    fn a_flag_counts_before_the_environment_that_before_a_context_and_that_before_what_is_usual() {
        let folder = tempfile::tempdir().unwrap();
        let mut env = env(folder.path());
        let url = |connect: &Connect, env: &Env| {
            let settings = Settings::of(connect, env).unwrap();
            (settings.url.value, settings.url.origin)
        };
        let nothing = Connect::default();
        assert_eq!(url(&nothing, &env), (USUAL.to_owned(), "nobody: it is the usual one".to_owned()));
        let contexts = [("here", "http://here"), ("there", "http://there")];
        let contexts = contexts.map(|(name, url)| (name.to_owned(), context(url, false)));
        File { current: Some("here".to_owned()), contexts: contexts.into() }.save(&env).unwrap();
        assert_eq!(url(&nothing, &env), ("http://here".to_owned(), "context here".to_owned()));
        env.context = Some("there".to_owned());
        assert_eq!(url(&nothing, &env).0, "http://there");
        env.url = Some("http://environment".to_owned());
        assert_eq!(url(&nothing, &env), ("http://environment".to_owned(), "TENURE_URL".to_owned()));
        let connect = Connect { context: Some("here".to_owned()), ..Connect::default() };
        assert_eq!(url(&connect, &env).0, "http://here");
        let connect = Connect { url: Some("http://flag/".to_owned()), ..Connect::default() };
        assert_eq!(url(&connect, &env), ("http://flag".to_owned(), "--url".to_owned()));
    }

    #[test]
    fn the_token_of_a_context_goes_to_no_other_server() {
        let folder = tempfile::tempdir().unwrap();
        let env = env(folder.path());
        let contexts = [("here".to_owned(), context("http://here", true))].into();
        File { current: Some("here".to_owned()), contexts }.save(&env).unwrap();
        let here = Settings::of(&Connect::default(), &env).unwrap();
        assert_eq!((here.token.unwrap().value.0.as_str(), here.read_only), ("of_the_context", true));
        let elsewhere = Connect { url: Some("http://elsewhere".to_owned()), ..Connect::default() };
        let elsewhere = Settings::of(&elsewhere, &env).unwrap();
        assert!(elsewhere.token.is_none() && !elsewhere.read_only);
    }

    #[test]
    fn a_context_that_is_not_there_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let connect = Connect { context: Some("nowhere".to_owned()), ..Connect::default() };
        let told = Settings::of(&connect, &env(folder.path())).unwrap_err();
        assert_eq!(told.code(), 5);
        assert!(told.to_string().contains("nowhere"));
    }
}
