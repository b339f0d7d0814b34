//! The kinds of values that settings take.

use std::net::SocketAddr;

use tenure_http::{EgressRule, Grant, Network};
use tracing_subscriber::EnvFilter;

use crate::client::{base, bases};
use crate::span::span;

/// The address of a server that listens only on its Unix socket.
pub(crate) const NO_ADDRESS: &str = "none";

/// The kind of a setting's value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    /// http:// or https://
    Url,
    /// URLs of servers, separated by commas.
    Urls,
    /// An address and a port.
    Address,
    Span,
    Bool,
    /// A value of this list.
    Choice(&'static [&'static str]),
    /// Texts.
    Texts,
    /// Path of a file; in a settings file it is relative to that file.
    File,
    /// Ranges of addresses.
    Networks,
    /// Hosts and networks that the server may call.
    Egress,
    /// Grants of scopes to users, certificates and groups.
    Grants,
    /// A level of the log, also by module.
    Level,
}

impl Kind {
    /// Returns true if it takes several values.
    pub(crate) fn is_list(&self) -> bool {
        match self {
            Kind::Texts | Kind::Networks | Kind::Egress | Kind::Grants => true,
            Kind::Text
            | Kind::File
            | Kind::Url
            | Kind::Urls
            | Kind::Address
            | Kind::Span
            | Kind::Bool
            | Kind::Choice(_)
            | Kind::Level => false,
        }
    }

    /// Refuses an invalid value, or an invalid item of a list.
    pub(crate) fn check(&self, value: &str) -> Result<(), String> {
        match self {
            Kind::Text | Kind::Texts | Kind::File if value.is_empty() => {
                Err("expected a text that is not empty".to_owned())
            }
            Kind::Text | Kind::Texts | Kind::File => Ok(()),
            Kind::Url => base(value)
                .map(drop)
                .map_err(|_| "expected a URL such as https://jobs.example.com".to_owned()),
            Kind::Urls => bases(value).map(drop).map_err(|_| {
                "expected a URL such as https://jobs.example.com, or several, separated by commas".to_owned()
            }),
            Kind::Address if value == NO_ADDRESS => Ok(()),
            Kind::Address => value
                .parse::<SocketAddr>()
                .map(drop)
                .map_err(|_| "expected an address and a port, such as 127.0.0.1:8368, or none".to_owned()),
            Kind::Span => span(value).map(drop),
            Kind::Bool => value.parse::<bool>().map(drop).map_err(|_| "expected true or false".to_owned()),
            Kind::Choice(allowed) if allowed.contains(&value) => Ok(()),
            Kind::Choice(allowed) => Err(format!("expected {}", allowed.join(", "))),
            Kind::Networks => value.parse::<Network>().map(drop).map_err(|wrong| wrong.to_string()),
            Kind::Egress => value.parse::<EgressRule>().map(drop).map_err(|wrong| wrong.to_string()),
            Kind::Grants => value.parse::<Grant>().map(drop).map_err(|wrong| wrong.to_string()),
            Kind::Level => EnvFilter::try_new(value).map(drop).map_err(|wrong| {
                format!("{wrong}; expected a level such as info, or info,tenure_sqlite=debug")
            }),
        }
    }
}
