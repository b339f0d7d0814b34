//! Reading a URL. What is wrong with it is said without saying anything of it that may be a secret.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use tenure_store::Caution;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::tls::{Asked, Mine, Mode};

/// What is wrong with a URL. No part of it is repeated but the names of options.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongUrl(String);

/// What may follow the question mark.
const OPTIONS: [&str; 22] = [
    "user",
    "password",
    "dbname",
    "application_name",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslnegotiation",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "channel_binding",
    "load_balance_hosts",
    "options",
    "target_session_attrs",
];

/// Says what is wrong with a URL of a PostgreSQL database, if anything is.
///
/// # Errors
/// What is wrong, in words that show no secret.
pub fn check_url(url: &str) -> Result<(), WrongUrl> {
    read(url).map(drop)
}

/// Where a database is, and how it is reached.
#[derive(Debug)]
pub(crate) struct Address {
    pub config: Config,
    pub tls: Asked,
    /// The names of the options that it says something of.
    pub told: BTreeSet<String>,
}

impl Address {
    /// Returns a caution if the server is another machine and `sslmode` is `prefer`. An operator who sets `require` or
    /// `disable` has decided not to check the server's identity.
    pub(crate) fn cautions(&self) -> Vec<Caution> {
        if self.tls.mode != Mode::Prefer {
            return Vec::new();
        }
        let caution = |host| Caution {
            found: format!("the connection to {host} is not verified (sslmode=prefer)"),
            next: "add sslmode=verify-full to the database URL".to_owned(),
        };
        remote_host(&self.config).map(caution).into_iter().collect()
    }
}

/// Returns the first host of another machine, if there is one.
fn remote_host(config: &Config) -> Option<String> {
    let addresses = config.get_hostaddrs();
    if !addresses.is_empty() {
        // The driver connects to these, and uses names only to check certificates.
        return addresses.iter().find(|address| !address.is_loopback()).map(ToString::to_string);
    }
    config.get_hosts().iter().find_map(|host| match host {
        Host::Tcp(name) => (!is_loopback(name)).then(|| name.clone()),
        #[cfg(unix)]
        Host::Unix(_) => None,
    })
}

fn is_loopback(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// What a URL means.
pub(crate) fn read(url: &str) -> Result<Address, WrongUrl> {
    let Some(rest) = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://")) else {
        return Err(wrong("it does not begin with postgres://"));
    };
    let (place, asked) = rest.split_once('?').unwrap_or((rest, ""));
    check_place(place)?;
    check_options(asked)?;
    let (Ours { tls, user_timeout }, others) = ours(asked)?;
    let mut config =
        Config::from_str(&format!("postgres://{place}?{others}")).map_err(|error| wrong(&reason(&error)))?;
    check_hosts(&config)?;
    if let Some(span) = user_timeout {
        config.tcp_user_timeout(span);
    }
    config.ssl_mode(match tls.mode {
        Mode::Disable => SslMode::Disable,
        Mode::Prefer => SslMode::Prefer,
        Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
    });
    let told = asked.split('&').filter_map(|option| option.split_once('=')).map(|(name, _)| name.to_owned());
    Ok(Address { config, tls, told: told.collect() })
}

fn check_place(place: &str) -> Result<(), WrongUrl> {
    let (of_server, _) = place.split_once('/').unwrap_or((place, ""));
    if place.matches('@').count() > 1 {
        return Err(wrong("it has more than one @; write @ in a user name or password as %40"));
    }
    if place.contains('@') && !of_server.contains('@') {
        return Err(wrong("it has a / before the @; write / in a user name or password as %2F"));
    }
    if place.contains('#') {
        return Err(wrong("it has a #; write # in a user name or password as %23"));
    }
    Ok(())
}

fn check_options(asked: &str) -> Result<(), WrongUrl> {
    if asked.contains('@') {
        return Err(wrong("it has an @ after a ?; write ? in a user name or password as %3F"));
    }
    for option in asked.split('&').filter(|option| !option.is_empty()) {
        let (name, _) = option.split_once('=').unwrap_or((option, ""));
        if OPTIONS.contains(&name) {
            continue;
        }
        let plain = name.len() <= 32 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let named = if plain && !name.is_empty() { format!("option {name}") } else { "an option".to_owned() };
        return Err(wrong(&format!("{named} is unknown; expected one of: {}", OPTIONS.join(", "))));
    }
    Ok(())
}

/// What the driver does not understand, or not as others do.
struct Ours {
    tls: Asked,
    user_timeout: Option<Duration>,
}

/// What the options say that the driver does not understand, and the other options.
fn ours(asked: &str) -> Result<(Ours, String), WrongUrl> {
    let mut tls = Asked { mode: Mode::Prefer, roots: None, mine: None };
    let (mut certificate, mut key, mut user_timeout) = (None, None, None);
    let mut others = Vec::new();
    for option in asked.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("sslmode", mode)) => {
                const MODES: &str =
                    "unknown sslmode; expected disable, prefer, require, verify-ca or verify-full";
                tls.mode = Mode::read(mode).ok_or_else(|| wrong(MODES))?;
            }
            Some(("sslrootcert", path)) => {
                tls.roots = Some(decoded(path).ok_or_else(|| wrong("invalid sslrootcert"))?);
            }
            Some(("sslcert", path)) => {
                certificate = Some(decoded(path).ok_or_else(|| wrong("invalid sslcert"))?);
            }
            Some(("sslkey", path)) => {
                key = Some(decoded(path).ok_or_else(|| wrong("invalid sslkey"))?);
            }
            // In milliseconds, as everywhere but in the driver.
            Some(("tcp_user_timeout", text)) => {
                let millis = text.parse().map_err(|_| wrong("invalid tcp_user_timeout"))?;
                user_timeout = Some(Duration::from_millis(millis));
            }
            // Whatever it is, a server that takes no writes is not the one.
            Some(("target_session_attrs", "any" | "read-write" | "primary" | "prefer-primary")) => {}
            Some(("target_session_attrs", _)) => {
                return Err(wrong("unknown target_session_attrs; expected read-write, primary or any"));
            }
            Some(_) | None => others.push(option),
        }
    }
    tls.mine = match (certificate, key) {
        (Some(certificate), Some(key)) => Some(Mine { certificate, key }),
        (None, None) => None,
        (Some(_), None) => return Err(wrong("sslcert without sslkey; set both")),
        (None, Some(_)) => return Err(wrong("sslkey without sslcert; set both")),
    };
    Ok((Ours { tls, user_timeout }, others.join("&")))
}

/// A text in which `%` and two digits stand for a byte.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut left = text.bytes();
    while let Some(byte) = left.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        bytes.push(match byte {
            b'%' => u8::try_from(digit(left.next())? * 16 + digit(left.next())?).ok()?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn check_hosts(config: &Config) -> Result<(), WrongUrl> {
    let hosts = config.get_hosts();
    let names_one = hosts.iter().any(|host| match host {
        Host::Tcp(name) => !name.is_empty(),
        #[cfg(unix)]
        Host::Unix(_) => true,
    });
    if !names_one && config.get_hostaddrs().is_empty() {
        return Err(wrong("missing host; use postgres://user:password@host/database"));
    }
    if config.get_user().is_none_or(str::is_empty) {
        return Err(wrong("missing user; use postgres://user:password@host/database"));
    }
    Ok(())
}

/// What the driver says; it names options, and nothing of what they were given.
fn reason(error: &tokio_postgres::Error) -> String {
    use std::error::Error;
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let known = OPTIONS.iter().find(|name| why.contains(&format!("`{name}`")));
    known.map_or_else(|| "it cannot be parsed".to_owned(), |name| format!("invalid {name}"))
}

fn wrong(why: &str) -> WrongUrl {
    WrongUrl(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_means_a_database() {
        for url in [
            "postgres://me@localhost/jobs",
            "postgresql://me:secret@db.example:5433/jobs?application_name=mail&sslmode=disable",
            "postgres://me@%2Fvar%2Frun%2Fpostgresql/jobs",
            "postgres://me:a%40b%2Fc@one:5432,two:5433/jobs",
            "postgres://me@/jobs?host=/var/run/postgresql",
            "postgres://me@db.example/jobs?sslmode=verify-full&sslrootcert=%2Fetc%2Froot.pem",
            "postgres://me@db.example/jobs?sslcert=%2Fetc%2Fme.pem&sslkey=%2Fetc%2Fme.key&options=-c%20work_mem=8MB",
            "postgres://me@one,two/jobs?target_session_attrs=read-write&connect_timeout=3&keepalives=0",
        ] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn an_unverified_connection_to_another_machine_is_a_caution() {
        let found = |url: &str| read(url).unwrap().cautions().pop().map(|caution| caution.to_string());
        for (url, host) in [
            ("postgres://me:secret@db.example/jobs", "db.example"),
            ("postgres://me@10.0.0.7/jobs?sslmode=prefer", "10.0.0.7"),
            ("postgres://me@localhost,standby/jobs", "standby"),
            ("postgres://me@localhost/jobs?hostaddr=10.0.0.7", "10.0.0.7"),
            ("postgres://me@localhost.example/jobs", "localhost.example"),
        ] {
            let expected = format!(
                "the connection to {host} is not verified (sslmode=prefer): add sslmode=verify-full to the database URL"
            );
            assert_eq!(found(url), Some(expected), "{url}");
        }
        for url in [
            "postgres://me@localhost/jobs",
            "postgres://me@LOCALHOST./jobs",
            "postgres://me@127.0.0.5/jobs",
            "postgres://me@/jobs?host=::1",
            "postgres://me@%2Fvar%2Frun%2Fpostgresql/jobs",
            "postgres://me@db.example/jobs?hostaddr=127.0.0.1",
            "postgres://me@db.example/jobs?sslmode=disable",
            "postgres://me@db.example/jobs?sslmode=require",
            "postgres://me@db.example/jobs?sslmode=verify-full",
        ] {
            assert_eq!(found(url), None, "{url}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said_without_its_secrets() {
        for (url, told) in [
            ("mysql://me:secret@h/jobs", "postgres://"),
            ("postgres://me:sec@ret@h/jobs", "%40"),
            ("postgres://me:sec/ret@h/jobs", "%2F"),
            ("postgres://me:sec?ret@h/jobs", "%3F"),
            ("postgres://me:sec#ret@h/jobs", "%23"),
            ("postgres://me:secret@h:x/jobs", "port"),
            ("postgres://me:secret@h/jobs?sslmode=secret", "sslmode"),
            ("postgres://me:secret@h/jobs?sslmod=require", "sslmod "),
            ("postgres://me:secret@h/jobs?SECRET%20", "an option"),
            ("postgres://me:secret@h/jobs?sslcert=secret", "without sslkey"),
            ("postgres://me:secret@h/jobs?tcp_user_timeout=secret", "tcp_user_timeout"),
            ("postgres://me:secret@h/jobs?connect_timeout=secret", "connect_timeout"),
            ("postgres://me:secret@h/jobs?sslkey=secret", "without sslcert"),
            ("postgres://me:secret@h/jobs?target_session_attrs=secret", "read-write"),
            ("postgres://me:secret@/jobs", "host"),
            ("postgres://h/jobs", "user"),
        ] {
            let wrong = check_url(url).map(|()| String::new()).unwrap_or_else(|wrong| wrong.to_string());
            let hides = ["secret", "SECRET", "sec", "ret@"].iter().all(|part| !wrong.contains(part));
            assert!(wrong.contains(told) && hides, "{url}: {wrong}");
        }
    }
}
