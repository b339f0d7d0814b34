//! Which server is meant, and who asks.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;

use super::{Client, Place, Purpose, is_socket, socket};
use crate::dev::Home;
use crate::exit::Failure;
use crate::settings::{Env, Settings, is_insecure_http_set};
use crate::{files, keys, secrets};

/// Where a server listens if nobody says otherwise.
pub(crate) const USUAL: &str = "http://127.0.0.1:8368";

/// Which server is asked.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Connect {
    /// URL of the server, such as unix:/run/tenure.sock; commas separate several servers of one store, tried in
    /// turn [env: TENURE_URL] [default: that of the context, else http://127.0.0.1:8368]
    #[arg(long, value_name = "URL", value_delimiter = ',', global = true, help_heading = "Server")]
    pub(crate) url: Vec<String>,
    /// Use the server of this context [env: TENURE_CONTEXT] [default: set by `tenure context use`]
    #[arg(long, value_name = "NAME", global = true, conflicts_with = "url", help_heading = "Server")]
    pub(crate) context: Option<String>,
    /// Access token; other users of this machine can read arguments, so prefer --token-file [env: TENURE_TOKEN]
    #[arg(long, value_name = "TOKEN", global = true, value_parser = secrets::Unechoed(token), help_heading = "Server")]
    pub(crate) token: Option<Secret>,
    /// Read the access token from this file [env: TENURE_TOKEN_FILE]
    #[arg(long, value_name = "FILE", global = true, conflicts_with = "token", help_heading = "Server")]
    pub(crate) token_file: Option<PathBuf>,
    /// Verify servers with these CA certificates, not the system's [env: TENURE_CA]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Server")]
    pub(crate) ca: Option<PathBuf>,
    /// Show this client certificate to servers [env: TENURE_CLIENT_CERT]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Server")]
    pub(crate) client_cert: Option<PathBuf>,
    /// Private key of the client certificate [env: TENURE_CLIENT_KEY]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Server")]
    pub(crate) client_key: Option<PathBuf>,
    /// Send the access token to other machines over http:// [env: TENURE_INSECURE_HTTP]
    #[arg(long, global = true, help_heading = "Server")]
    pub(crate) insecure_http: bool,
    /// Read this settings file before those of the user and the machine [env: TENURE_CONFIG]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Server")]
    pub(crate) config: Option<PathBuf>,
    /// Open this SQLite file or PostgreSQL database (postgres:// URL) directly, without a server; read-only unless
    /// --write is passed
    #[arg(
        long,
        value_name = "FILE|URL",
        global = true,
        value_parser = secrets::database_option(),
        conflicts_with_all = ["url", "context", "token", "token_file"],
        help_heading = "Server"
    )]
    pub(crate) db: Option<String>,
    /// PostgreSQL schema of --db [default: tenure]
    #[arg(long, value_name = "NAME", global = true, requires = "db", help_heading = "Server")]
    pub(crate) db_schema: Option<String>,
    /// Encryption keys of --db: file:PATH, env:NAME or cmd:PROGRAM [env: TENURE_ENCRYPTION_KEYS]
    #[arg(long, value_name = "PLACE", global = true, requires = "db", help_heading = "Server")]
    pub(crate) encryption_keys: Option<String>,
    /// Load no keys for --db; store new values as plain text
    #[arg(long, global = true, requires = "db", conflicts_with = "encryption_keys", help_heading = "Server")]
    pub(crate) without_encryption: bool,
    /// Allow changes to the database of --db
    #[arg(long, global = true, requires = "db", help_heading = "Server")]
    pub(crate) write: bool,
}

/// What nobody is shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let is_fit = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_fit
            .then(|| Self(text.to_owned()))
            .ok_or_else(|| "expected letters, digits and punctuation without spaces".to_owned())
    }
}

impl Connect {
    /// The server that is meant, or the store.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.client_for(if self.write { Purpose::Change } else { Purpose::Look })
    }

    /// The same for work of this program's own: a store that is named for that may be changed.
    pub(crate) fn client_for(&self, purpose: Purpose) -> Result<Client, Failure> {
        match self.place()? {
            Some(place) => Client::of_store(&place, purpose),
            None => Settings::of(self, &Env::real())?.client(),
        }
    }

    /// Returns true if a flag or the environment allows secrets over `http://` to other machines. A settings file allows it
    /// only for its own server.
    pub(crate) fn allows_insecure_http(&self) -> bool {
        self.insecure_http || is_insecure_http_set(&Env::real())
    }

    /// The store that is meant, if no server is.
    pub(crate) fn place(&self) -> Result<Option<Place>, Failure> {
        let Some(db) = self.db.as_deref() else { return Ok(None) };
        let at_rest =
            keys::at_rest(self.encryption_keys.as_deref(), self.without_encryption, self.config.as_deref())?;
        Ok(Some(Place { home: Home::named(db), schema: self.db_schema.clone(), at_rest }))
    }
}

/// Parses `--token`, which may be a reference.
fn token(value: &str) -> Result<Secret, String> {
    secrets::resolve("token", value).map_err(|wrong| wrong.to_string())?.parse()
}

/// So much is read of a file with a secret.
const SECRET_BYTES: u64 = 64 << 10;

/// The secret that a file holds.
pub(crate) fn secret_in(file: &Path) -> Result<Secret, Failure> {
    let text = files::text_of(file, SECRET_BYTES)?;
    text.parse().map_err(|wrong| Failure::Invalid(format!("invalid token in {}: {wrong}", file.display())))
}

/// The part of a URL that stands before every path.
pub(crate) fn base(url: &str) -> Result<String, Failure> {
    let wrong = || {
        let shown: String = url.chars().take(200).collect();
        let hint = if shown.contains("://") {
            "expected http:// or https://, a host, and if need be a port and a path"
        } else {
            "add http:// or https://"
        };
        Failure::Usage(format!("invalid URL {shown:?}: {hint}"))
    };
    let uri: ureq::http::Uri = url.parse().map_err(|_| wrong())?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    if !is_http || uri.host().is_none_or(str::is_empty) || has_user || uri.query().is_some() {
        return Err(wrong());
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// The parts of URLs of servers that are separated by commas, each once. `unix:PATH` names the socket of a server.
pub(crate) fn bases(urls: &str) -> Result<Vec<String>, Failure> {
    let mut bases = Vec::new();
    for url in urls.split(',') {
        let url = url.trim();
        let base = if is_socket(url) { socket::base(url)? } else { base(url)? };
        if !bases.contains(&base) {
            bases.push(base);
        }
    }
    Ok(bases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_urls_are_separated_by_commas() {
        let several = bases("http://a/, http://b:1,http://a").unwrap();
        assert_eq!(several, ["http://a", "http://b:1"]);
        for bad in ["http://a,", "http://a,b", ""] {
            assert_eq!(bases(bad).unwrap_err().code(), 2, "{bad}");
        }
    }

    #[test]
    fn a_url_is_a_base_for_paths_or_refused() {
        assert_eq!(base("http://127.0.0.1:8368/").unwrap(), "http://127.0.0.1:8368");
        assert_eq!(base("https://jobs.example.com/tenure").unwrap(), "https://jobs.example.com/tenure");
        for bad in ["", "jobs", "localhost:8368", "ftp://a", "http://", "http://a/?b=c", "http://me:secret@a"]
        {
            assert_eq!(base(bad).unwrap_err().code(), 2, "{bad}");
        }
    }

    #[test]
    fn a_secret_is_not_shown_and_has_no_line_breaks() {
        let secret: Secret = " tenure_abc\n".parse().unwrap();
        assert_eq!((secret.0.as_str(), format!("{secret:?}").as_str()), ("tenure_abc", "Secret(…)"));
        assert!("a\r\nhost: b".parse::<Secret>().is_err());
    }
}
