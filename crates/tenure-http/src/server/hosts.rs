//! By which names the server may be addressed. A page of somebody else's can make a browser resolve any name to this
//! machine; it cannot make the browser say another name than that.

use axum::http::header::{HOST, HeaderMap};
use axum::http::uri::Authority;

/// The names by which it may be addressed.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    names: Vec<String>,
}

impl Hosts {
    pub(crate) fn new(more: &[String]) -> Self {
        let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        Self { names: own.into_iter().chain(more.iter().map(|name| name.to_ascii_lowercase())).collect() }
    }

    /// Whether a request may be answered that is addressed so.
    pub(crate) fn allow(&self, headers: &HeaderMap, of_uri: Option<&Authority>) -> bool {
        let mut said = headers.get_all(HOST).iter();
        let host = match (said.next(), said.next(), of_uri) {
            (Some(host), None, _) => host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()),
            (None, None, Some(of_uri)) => Some(of_uri.clone()),
            // Nobody, or two at once: who knows whom it is for.
            _ => None,
        };
        host.is_some_and(|host| {
            let name = host.host().to_ascii_lowercase();
            self.names.contains(&name) && !host.as_str().contains('@')
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(hosts: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, host.parse().unwrap());
        }
        Hosts::new(&["jobs.example".to_owned()]).allow(&headers, None)
    }

    #[test]
    fn only_names_that_are_meant_are_answered() {
        for host in ["localhost", "LOCALHOST:8368", "127.0.0.1:80", "[::1]:8368", "jobs.example:443"] {
            assert!(allows(&[host]), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil", "user@localhost", "", "127.0.0.2"]
        {
            assert!(!allows(&[host]), "{host}");
        }
        assert!(!allows(&[]) && !allows(&["localhost", "evil.example"]));
    }
}
