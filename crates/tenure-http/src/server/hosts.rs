//! By which names the server may be addressed. A page of somebody else's can make a browser resolve any name to this
//! machine; it cannot make the browser say another name than that.

use axum::http::header::{HOST, HeaderMap, ORIGIN};
use axum::http::uri::Authority;

/// The names by which it may be addressed.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    names: Vec<String>,
}

/// The server that a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addressed {
    /// This one.
    Here,
    /// Another one.
    Elsewhere,
    /// None, or several: HTTP requires one `Host` header.
    Unclear,
}

impl Hosts {
    pub(crate) fn new(more: &[String]) -> Self {
        let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        Self { names: own.into_iter().chain(more.iter().map(|name| name.to_ascii_lowercase())).collect() }
    }

    /// Checks the address of a request.
    pub(crate) fn check(&self, headers: &HeaderMap, of_uri: Option<&Authority>) -> Addressed {
        let mut said = headers.get_all(HOST).iter();
        let (Some(host), None) = (said.next(), said.next()) else { return Addressed::Unclear };
        let is_allowed = match of_uri {
            // The host of the URI takes precedence over the header.
            Some(of_uri) => self.are(of_uri),
            None => host.to_str().is_ok_and(|host| self.named(host)),
        };
        if is_allowed { Addressed::Here } else { Addressed::Elsewhere }
    }

    /// Whether the request comes from a page of this server, or from no page at all. Browsers say so of themselves, and a
    /// page cannot make them say something else.
    pub(crate) fn allow_page(&self, headers: &HeaderMap) -> bool {
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
            return false;
        }
        let is_ours = site == Some(b"same-origin");
        headers.get_all(ORIGIN).iter().all(|origin| {
            // A page that is to tell nobody where it is has its forms sent from `null`; that it is ours, the browser says beside.
            if origin == "null" {
                return is_ours;
            }
            let host = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
            host.is_some_and(|(_, host)| self.named(host))
        })
    }

    fn named(&self, host: &str) -> bool {
        host.parse::<Authority>().is_ok_and(|host| self.are(&host))
    }

    fn are(&self, host: &Authority) -> bool {
        let has_odd_port = host.port().is_none() && host.as_str().len() > host.host().len();
        self.names.contains(&host.host().to_ascii_lowercase()) && !has_odd_port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addressed(hosts: &[&str]) -> Addressed {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, host.parse().unwrap());
        }
        Hosts::new(&["jobs.example".to_owned()]).check(&headers, None)
    }

    #[test]
    fn pages_of_others_are_told_from_pages_of_this_server_and_from_programs() {
        let allows = |said: &[(&'static str, &str)]| {
            let said = said.iter().map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()));
            Hosts::new(&[]).allow_page(&HeaderMap::from_iter(said))
        };
        assert!(
            allows(&[]) && allows(&[("origin", "http://localhost:8368"), ("sec-fetch-site", "same-origin")])
        );
        assert!(allows(&[("origin", "null"), ("sec-fetch-site", "same-origin")]));
        assert!(!allows(&[("origin", "null"), ("sec-fetch-site", "none")]));
        assert!(!allows(&[("origin", "https://evil.example"), ("sec-fetch-site", "same-origin")]));
        for said in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("origin", "http://localhost.evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert!(!allows(&[said]), "{said:?}");
        }
    }

    #[test]
    fn only_names_that_are_meant_are_answered() {
        for host in ["localhost", "LOCALHOST:8368", "127.0.0.1:80", "[::1]:8368", "jobs.example:443"] {
            assert_eq!(addressed(&[host]), Addressed::Here, "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil",
            "user@localhost",
            "",
            "127.0.0.2",
            "localhost:evil",
            "localhost:99999",
        ] {
            assert_eq!(addressed(&[host]), Addressed::Elsewhere, "{host}");
        }
        for hosts in [&[][..], &["localhost", "evil.example"]] {
            assert_eq!(addressed(hosts), Addressed::Unclear, "{hosts:?}");
        }
    }
}
