//! Where something is sent to: a URL, looked at before anybody is asked for its address.

use std::net::IpAddr;

use axum::http::Uri;
use tenure::Invalid;

use super::egress::Egress;

/// Longest URL, in bytes.
pub(crate) const URL_BYTES: usize = 2048;

/// The parts of a URL that are needed to ask it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub encrypted: bool,
    /// Without brackets.
    pub host: String,
    pub port: u16,
    /// As it stands in the header `host`.
    pub authority: String,
    pub path: String,
}

impl Target {
    pub(crate) fn read(url: &str) -> Result<Self, Invalid> {
        let shown: String = url.chars().take(100).collect();
        let allowed = "http:// or https:// and a host, without user name and password";
        let wrong = || Invalid::new("url", format_args!("{shown:?}"), allowed);
        if url.len() > URL_BYTES {
            return Err(Invalid::new(
                "url",
                format_args!("{} bytes", url.len()),
                format_args!("at most {URL_BYTES} bytes"),
            ));
        }
        if !url.bytes().all(|byte| byte.is_ascii_graphic()) || url.contains('#') || url.contains('\\') {
            return Err(wrong());
        }
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let encrypted = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) | None => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let has_zone = host.contains('%');
        if authority.as_str().contains('@') || host.is_empty() || has_zone {
            return Err(wrong());
        }
        // What stands behind the colon is a port, or the URL is none.
        let behind = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
        let port = match (behind.strip_prefix(':'), authority.port_u16()) {
            (None, _) => {
                if encrypted {
                    443
                } else {
                    80
                }
            }
            (Some(_), Some(port)) if port > 0 => port,
            (Some(_), _) => return Err(wrong()),
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self {
            encrypted,
            host: host.to_ascii_lowercase(),
            port,
            authority: authority.as_str().to_owned(),
            path,
        })
    }

    /// Returns true if both have the scheme, host and port in common.
    pub(crate) fn has_origin_of(&self, other: &Self) -> bool {
        (self.encrypted, &self.host, self.port) == (other.encrypted, &other.host, other.port)
    }

    /// Refuses a URL that the egress rules forbid, as far as that is known before its name is resolved.
    pub(crate) fn check(&self, egress: &Egress) -> Result<(), Invalid> {
        let (what, checked) = match self.host.parse::<IpAddr>() {
            Ok(address) => ("address", egress.check(self, address)),
            Err(_) => ("host", egress.check_name(self)),
        };
        checked.map_err(|why| {
            let allowed = "a public address over https on port 443, or one that --egress-allow allows";
            let Self { host, port, .. } = self;
            Invalid::new("url", format_args!("{what} {host}, port {port}, which is {why}"), allowed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        let target = |url: &str| Target::read(url).unwrap();
        let origin = target("https://Hooks.example.com/a");
        for same in ["https://hooks.example.com:443/b?c", "https://hooks.example.com"] {
            assert!(origin.has_origin_of(&target(same)), "{same}");
        }
        for other in ["http://hooks.example.com:443", "https://hooks.example.com:8443", "https://example.com"]
        {
            assert!(!origin.has_origin_of(&target(other)), "{other}");
        }
    }

    #[test]
    fn a_url_is_taken_apart() {
        let target = Target::read("https://Hooks.example.com:8443/a/b?c=d").unwrap();
        assert_eq!((target.host.as_str(), target.port, target.encrypted), ("hooks.example.com", 8443, true));
        assert_eq!((target.path.as_str(), target.authority.as_str()), ("/a/b?c=d", "Hooks.example.com:8443"));
        let target = Target::read("http://[::1]:80").unwrap();
        assert_eq!((target.host.as_str(), target.port, target.path.as_str()), ("::1", 80, "/"));
        assert_eq!(Target::read("https://a").unwrap().port, 443);
    }

    #[test]
    fn what_is_no_url_or_hides_something_is_refused() {
        for bad in [
            "",
            "a",
            "//a",
            "/a",
            "ftp://a",
            "file:///etc/passwd",
            "gopher://a",
            "https://",
            "https:///a",
            "http://me@a",
            "http://me:secret@a",
            "https://a@127.0.0.1/",
            "https://a:0/",
            "https://a:99999/",
            "https://a:x/",
            "https://a:/",
            "https://a/#b",
            "https://a\\@b",
            "https://a b",
            "https://a/\r\nx: y",
            "https://[fe80::1%25eth0]/",
            "https://[::1",
            "javascript:alert(1)",
            "https://\u{e9}.example",
        ] {
            assert_eq!(Target::read(bad).unwrap_err().field, "url", "{bad}");
        }
        assert!(Target::read(&format!("https://a/{}", "b".repeat(URL_BYTES))).is_err());
    }

    #[test]
    fn an_address_that_may_not_be_called_is_told_at_once() {
        let none = Egress::default();
        for bad in [
            "http://127.0.0.1/",
            "https://[::1]/",
            "https://169.254.169.254/",
            "http://8.8.8.8/",
            "https://a:22/",
        ] {
            assert!(Target::read(bad).unwrap().check(&none).is_err(), "{bad}");
        }
        for good in ["https://8.8.8.8/", "https://hooks.example.com/", "http://localhost/"] {
            assert_eq!(Target::read(good).unwrap().check(&none), Ok(()), "{good}");
        }
    }
}
