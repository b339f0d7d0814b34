//! By which names the server may be addressed. A page of somebody else's can make a browser resolve any name to this
//! machine; it cannot make the browser say another name than that.

use axum::http::header::{HOST, HeaderMap, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Uri};

/// The names by which it may be addressed.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    names: Vec<String>,
    /// The server's public origin, if it is behind a proxy.
    public: Option<Origin>,
}

/// The origin of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    encrypted: bool,
    host: String,
    port: u16,
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
        let names = own.into_iter().chain(more.iter().map(|name| name.to_ascii_lowercase())).collect();
        Self { names, public: None }
    }

    /// Allows the host of the public URL, and changes from its pages.
    pub(crate) fn reached_at(mut self, public_url: &str) -> Self {
        self.public = Origin::of(public_url);
        self.names.extend(self.public.iter().map(|public| public.host.clone()));
        self
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

    /// Returns true if the request comes from a page of this server, or from no page. Browsers set these headers, and a
    /// page cannot change them.
    ///
    /// A page on another port of the same host is another origin. `Sec-Fetch-Site` tells it apart. For a browser that does
    /// not send that header, the origin must be that of the public URL, or have the host and port of the request.
    pub(crate) fn allow_page(&self, headers: &HeaderMap) -> bool {
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
            return false;
        }
        let is_ours = site == Some(b"same-origin");
        headers.get_all(ORIGIN).iter().all(|origin| {
            // A page with a strict referrer policy has its forms sent from `null`.
            if origin == "null" {
                return is_ours;
            }
            let Some(origin) = origin.to_str().ok().and_then(Origin::of) else { return false };
            let is_named = self.names.contains(&origin.host);
            let is_asked = || self.public.as_ref() == Some(&origin) || origin.is_of(headers.get(HOST));
            is_named && (is_ours || is_asked())
        })
    }

    fn named(&self, host: &str) -> bool {
        host.parse::<Authority>().is_ok_and(|host| self.are(&host))
    }

    fn are(&self, host: &Authority) -> bool {
        self.names.contains(&host.host().to_ascii_lowercase()) && is_plain(host)
    }
}

/// Returns true if a browser says that the page of another site sent the request. Programs send none of these headers.
pub(crate) fn is_cross_site(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    if let Some(site) = site {
        return site != b"same-origin" && site != b"none";
    }
    let is_ours = |origin: &HeaderValue| {
        let origin = origin.to_str().ok().and_then(Origin::of);
        origin.is_some_and(|origin| origin.is_of(headers.get(HOST)))
    };
    !headers.get_all(ORIGIN).iter().all(is_ours)
}

impl Origin {
    fn of(url: &str) -> Option<Self> {
        let uri = url.parse::<Uri>().ok()?;
        let encrypted = uri.scheme_str()? == "https";
        let authority = uri.authority()?;
        let port = authority.port_u16().unwrap_or(usual_port(encrypted));
        let host = authority.host().to_ascii_lowercase();
        is_plain(authority).then_some(Self { encrypted, host, port })
    }

    /// Returns true if a request names this host and port. A port that is omitted is the one of the scheme.
    fn is_of(&self, host: Option<&HeaderValue>) -> bool {
        let host = host.and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        host.is_some_and(|host| {
            let port = host.port_u16().unwrap_or(usual_port(self.encrypted));
            host.host().eq_ignore_ascii_case(&self.host) && port == self.port
        })
    }
}

/// Returns true if it is a host, with or without a port, and nothing else.
fn is_plain(authority: &Authority) -> bool {
    let rest = authority.as_str().strip_prefix(authority.host());
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
}

fn usual_port(encrypted: bool) -> u16 {
    if encrypted { 443 } else { 80 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_cross_site_if_a_browser_says_so() {
        let headers = |said: &[(&'static str, &'static str)]| {
            let said = said.iter().map(|(name, value)| {
                (axum::http::HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            is_cross_site(&HeaderMap::from_iter(said))
        };
        for foreign in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site")],
            &[("host", "jobs.example"), ("origin", "https://evil.example")],
            &[("host", "jobs.example:3000"), ("origin", "http://jobs.example:8080")],
            &[("host", "jobs.example"), ("origin", "null")],
        ] {
            assert!(headers(foreign), "{foreign:?}");
        }
        for own in [
            &[][..],
            &[("sec-fetch-site", "same-origin"), ("origin", "null")],
            &[("sec-fetch-site", "none")],
            &[("host", "jobs.example"), ("origin", "https://jobs.example")],
        ] {
            assert!(!headers(own), "{own:?}");
        }
    }

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

    /// A browser without `Sec-Fetch-Site` on a page of another web server of the same machine.
    #[test]
    fn a_page_on_another_port_is_a_page_of_others() {
        let hosts = Hosts::new(&["jobs.example".to_owned()]).reached_at("https://public.example/tenure");
        let allows = |host: &str, origin: &str| {
            let headers =
                [(HOST, host), (ORIGIN, origin)].map(|(name, value)| (name, value.parse().unwrap()));
            hosts.allow_page(&HeaderMap::from_iter(headers))
        };
        for (host, origin) in [
            ("localhost:8368", "http://localhost:8368"),
            ("LOCALHOST:8368", "http://localhost:8368"),
            ("[::1]:8368", "http://[::1]:8368"),
            ("jobs.example", "https://jobs.example"),
            ("jobs.example", "http://jobs.example"),
            // The proxy sends the address that it connects to as the host.
            ("127.0.0.1:8368", "https://public.example"),
        ] {
            assert!(allows(host, origin), "{host} {origin}");
        }
        for (host, origin) in [
            ("localhost:8368", "http://localhost:3000"),
            ("localhost:8368", "http://localhost"),
            ("localhost:8368", "http://127.0.0.1:8368"),
            ("jobs.example", "https://jobs.example:8443"),
            ("127.0.0.1:8368", "https://public.example:8443"),
            ("127.0.0.1:8368", "http://public.example"),
            ("localhost:8368", "http://localhost:8368x"),
        ] {
            assert!(!allows(host, origin), "{host} {origin}");
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
            "localhost:[]:4",
            "user@localhost:80",
            "localhost:+80",
            "localhost:99999",
        ] {
            assert_eq!(addressed(&[host]), Addressed::Elsewhere, "{host}");
        }
        for hosts in [&[][..], &["localhost", "evil.example"]] {
            assert_eq!(addressed(hosts), Addressed::Unclear, "{hosts:?}");
        }
    }
}
