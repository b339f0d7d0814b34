//! What was said about settings, where, and which of it counts: a flag, the environment, a file, what is usual.

mod file;
mod flags;
#[cfg(test)]
mod fuzz;
mod kind;
mod known;
mod layers;
mod schema;
mod trust;
mod unknown;
mod written;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) use file::{Context, File};
pub(crate) use flags::Flags;
pub(crate) use known::{KNOWN, Kind, NO_ADDRESS, Setting, declarable};
pub(crate) use layers::{Declaration, Fault, HERE, Layer, Resolved, files, is_kept_apart};
pub(crate) use schema::schema;

use crate::client::{
    Client, Connect, ReadOnly, Secret, TlsFiles, USUAL, bases, is_encrypted, is_exposed, secret_in,
};
use crate::exit::Failure;
use crate::secrets;
use layers::{Spoken, Whose};
use ureq::tls::TlsConfig;

/// The setting that allows sending a token over `http://` to another machine.
const INSECURE_HTTP: &str = "client.insecure_http";
/// The machine's own file.
const SYSTEM: &str = "/etc/tenure/config.toml";

/// The environment, as far as it matters here.
#[derive(Clone, Default)]
pub(crate) struct Env {
    /// Variables that begin with `TENURE_`, and say something.
    pub(crate) variables: BTreeMap<String, String>,
    /// The folder of the settings of this program.
    pub(crate) folder: Option<PathBuf>,
    /// Where the program was started.
    pub(crate) here: PathBuf,
    /// The machine's own file.
    pub(crate) system: PathBuf,
}

impl Env {
    /// That of this process. What is empty is not said.
    pub(crate) fn real() -> Self {
        let said = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let absolute = |value: OsString| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
        let home = || said("HOME").and_then(absolute).map(|home| home.join(".config"));
        let text = |text: OsString| text.to_string_lossy().into_owned();
        let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
        let variables = variables.filter(|(name, value)| name.starts_with("TENURE_") && !value.is_empty());
        let folder = said("XDG_CONFIG_HOME").and_then(absolute).or_else(home);
        Self {
            variables: variables.collect(),
            folder: folder.map(|folder| folder.join("tenure")),
            here: PathBuf::new(),
            system: PathBuf::from(SYSTEM),
        }
    }

    /// What there is to say of variables that look like settings and are none.
    pub(crate) fn unknown(&self) -> Vec<String> {
        unknown::unknown(&self.variables)
    }

    /// What a variable says.
    pub(crate) fn said(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The layers of files, as far as they are a person's own to name.
    fn layers(&self, named: Option<&Path>) -> Vec<Layer> {
        let files = files(self, named).into_iter().filter(|(_, whose)| *whose != Whose::Here);
        files.map(|(path, whose)| Layer::of_file(&path, whose)).collect()
    }
}

impl Resolved {
    /// What counts for a program that serves: flags, the environment, files.
    pub(crate) fn of_server(env: &Env, flags: Layer, named: Option<&Path>) -> Self {
        let files = files(env, named);
        let files = files.into_iter().map(|(path, whose)| Layer::of_file(&path, whose));
        Self::of([flags, Layer::of_variables(&env.variables)].into_iter().chain(files))
    }

    /// Returns the settings of the database that a command opens itself. All files count that a server would read.
    ///
    /// # Errors
    /// A mistake in any of them: a command that ignored it might store plain text.
    pub(crate) fn of_store(env: &Env, named: Option<&Path>) -> Result<Self, Failure> {
        Self::of_server(env, Layer::default(), named).sound()
    }

    /// What counts for a command that comes to its end.
    pub(crate) fn of_person(env: &Env) -> Self {
        Self::of([Layer::of_variables(&env.variables)].into_iter().chain(env.layers(None)))
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
    /// Servers of one store, in order of preference.
    pub(crate) urls: Said<Vec<String>>,
    pub(crate) context: Option<Said<String>>,
    pub(crate) token: Option<Said<Secret>>,
    pub(crate) read_only: bool,
    /// `true` if the token may be sent over `http://` to another machine.
    insecure_http: bool,
    tls: TlsFiles,
}

fn said<T>(value: T, origin: impl Into<String>) -> Said<T> {
    Said { value, origin: origin.into() }
}

/// Which server is meant.
enum Meant {
    /// The one at this URL, and the file that names it, if a file does.
    Url(Said<String>, Option<Layer>),
    /// The one that a context stands for.
    Context(Said<String>),
}

impl Settings {
    /// What counts of the flags, the environment and the files.
    pub(crate) fn of(connect: &Connect, env: &Env) -> Result<Self, Failure> {
        let variables = sound(Layer::of_variables(&env.variables))?;
        let meant = meant(connect, env, &variables)?;
        // Who says the server itself leaves every context: its token is for its own server only.
        let file = if matches!(meant, Meant::Context(_)) { File::load(env)? } else { File::default() };
        let context = match &meant {
            Meant::Context(name) => Some(file.context(&name.value)?),
            Meant::Url(..) => None,
        };
        let token = token(connect, &variables)?;
        let mut insecure_http = connect.insecure_http || is_on(&variables, INSECURE_HTTP);
        insecure_http |= context.is_some_and(|context| context.insecure_http);
        let (url, name, beside) = match (meant, context) {
            (Meant::Url(url, file), _) => {
                insecure_http |= file.as_ref().is_some_and(|file| is_on(file, INSECURE_HTTP));
                let token = file.as_ref().and_then(|file| file.said.get("client.token"));
                (url, None, token.map(read).transpose()?)
            }
            (Meant::Context(name), Some(context)) => {
                let url = said(context.url.clone(), format!("context {}", name.value));
                let secret = context.secret(&name.value)?;
                (url, Some(name), secret)
            }
            // A context that is not there was told above.
            (Meant::Context(name), None) => return Err(Failure::NotThere(name.value)),
        };
        let read_only = context.is_some_and(|context| context.read_only);
        let urls = said(bases(&url.value)?, url.origin);
        let tls = tls(connect, env, &variables);
        Ok(Self { urls, token: token.or(beside), read_only, insecure_http, context: name, tls })
    }

    /// The client of these servers.
    ///
    /// # Errors
    /// The access token would be sent to another machine unencrypted, or a file for TLS is invalid.
    pub(crate) fn client(self) -> Result<Client, Failure> {
        let exposed = self.urls.value.iter().find(|base| is_exposed(base));
        if let Some(base) = exposed.filter(|_| self.token.is_some() && !self.insecure_http) {
            return Err(Failure::Usage(format!(
                "refused to send the access token to {base} unencrypted; use https://, or pass --insecure-http"
            )));
        }
        let read_only = self.context.filter(|_| self.read_only);
        let read_only = read_only.map(|context| ReadOnly::Context(context.value));
        let tls = match self.urls.value.iter().any(|base| is_encrypted(base)) {
            true => self.tls.config()?,
            false => TlsConfig::default(),
        };
        Ok(Client::new(&self.urls.value, self.token.map(|token| token.value), read_only, &tls))
    }
}

/// Returns the files for TLS: a flag counts before the environment, and that before settings files.
fn tls(connect: &Connect, env: &Env, variables: &Layer) -> TlsFiles {
    let layers = env.layers(connect.config.as_deref());
    let file = |flag: &Option<PathBuf>, name: &str| {
        let spoken = || std::iter::once(variables).chain(&layers).find_map(|layer| layer.said.get(name));
        flag.clone().or_else(|| spoken().map(|spoken| PathBuf::from(spoken.values.concat())))
    };
    TlsFiles {
        ca: file(&connect.ca, "client.ca"),
        cert: file(&connect.client_cert, "client.cert"),
        key: file(&connect.client_key, "client.key"),
    }
}

/// Returns true if the environment allows secrets over `http://` to other machines.
pub(crate) fn is_insecure_http_set(env: &Env) -> bool {
    is_on(&Layer::of_variables(&env.variables), INSECURE_HTTP)
}

/// Returns true if a layer turns this setting on.
fn is_on(layer: &Layer, name: &str) -> bool {
    layer.said.get(name).is_some_and(|spoken| spoken.values.concat() == "true")
}

fn sound(layer: Layer) -> Result<Layer, Failure> {
    let faults: Vec<String> = layer.faults.iter().map(ToString::to_string).collect();
    if faults.is_empty() { Ok(layer) } else { Err(Failure::Invalid(faults.join("\n"))) }
}

/// The first who says which server is meant.
fn meant(connect: &Connect, env: &Env, variables: &Layer) -> Result<Meant, Failure> {
    let spoken = |spoken: &Spoken| said(spoken.values.concat(), spoken.at.clone());
    if !connect.url.is_empty() {
        return Ok(Meant::Url(said(connect.url.join(","), "--url"), None));
    }
    if let Some(name) = &connect.context {
        return Ok(Meant::Context(said(name.clone(), "--context")));
    }
    if let Some(url) = variables.said.get("client.url") {
        return Ok(Meant::Url(spoken(url), None));
    }
    if let Some(name) = variables.said.get("client.context") {
        return Ok(Meant::Context(spoken(name)));
    }
    let layers = env.layers(connect.config.as_deref()).into_iter().map(sound);
    for layer in layers.collect::<Result<Vec<_>, _>>()? {
        if let Some(name) = layer.said.get("client.context") {
            return Ok(Meant::Context(spoken(name)));
        }
        if let Some(url) = layer.said.get("client.url") {
            let url = spoken(url);
            return Ok(Meant::Url(url, Some(layer)));
        }
    }
    Ok(Meant::Url(said(USUAL.to_owned(), "default"), None))
}

fn read(token: &Spoken) -> Result<Said<Secret>, Failure> {
    let secret = secrets::resolve(&token.at, &token.values.concat())?.parse();
    Ok(said(secret.map_err(|wrong| Failure::Invalid(format!("{}: {wrong}", token.at)))?, token.at.clone()))
}

/// The token that was said outside of files.
fn token(connect: &Connect, variables: &Layer) -> Result<Option<Said<Secret>>, Failure> {
    if let Some(token) = &connect.token {
        return Ok(Some(said(token.clone(), "--token")));
    }
    if let Some(file) = &connect.token_file {
        return Ok(Some(said(secret_in(file)?, "--token-file")));
    }
    variables.said.get("client.token").map(read).transpose()
}

#[cfg(test)]
mod tests;
