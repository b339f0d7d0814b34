//! Proxies whose word counts about the address of a client.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue};

use crate::access::strangers::Remote;
use crate::callbacks::Network;

/// The proxies that an operator trusts.
#[derive(Debug, Clone, Default)]
pub(super) struct Proxies(Vec<Network>);

impl Proxies {
    pub(super) fn new(trusted: &[Network]) -> Self {
        Self(trusted.to_vec())
    }

    /// Returns the client of a request that comes from this address.
    ///
    /// Each proxy appends the address that it was called from to `X-Forwarded-For`, so the list is read from its end, and
    /// only as long as trusted proxies have written it. What a client sends itself stands before that.
    pub(super) fn client(&self, peer: Remote, headers: &HeaderMap) -> Remote {
        // Parse bytes, not text: a client can send any bytes, and they must not hide the address that a proxy appended.
        let lines: Vec<&[u8]> =
            headers.get_all("x-forwarded-for").iter().map(HeaderValue::as_bytes).collect();
        let mut said = lines.iter().rev().flat_map(|line| line.rsplit(|byte| *byte == b','));
        let mut client = peer.0;
        while self.trusts(client) {
            let Some(before) = said.next().and_then(address) else { break };
            client = before;
        }
        Remote(client)
    }

    /// Returns true if requests from this address come from a trusted proxy.
    pub(super) fn are_at(&self, Remote(address): Remote) -> bool {
        self.trusts(address)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.has(address.to_canonical()))
    }
}

/// The address in one entry. Some proxies add the port.
fn address(said: &[u8]) -> Option<IpAddr> {
    let said = std::str::from_utf8(said).ok()?.trim();
    let with_port = || said.parse::<std::net::SocketAddr>().ok().map(|address| address.ip());
    said.parse().ok().or_else(with_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: &[&str], peer: &str, said: &[&str]) -> String {
        let proxies = Proxies(trusted.iter().map(|network| network.parse().unwrap()).collect());
        let mut headers = HeaderMap::new();
        for line in said {
            headers.append("x-forwarded-for", HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        proxies.client(Remote(peer.parse().unwrap()), &headers).0.to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        assert_eq!(client(&[], "10.0.0.1", &["192.0.2.7"]), "10.0.0.1");
        assert_eq!(client(&["10.0.0.0/8"], "192.0.2.1", &["192.0.2.7"]), "192.0.2.1");
        assert_eq!(client(&["10.0.0.0/8"], "10.0.0.1", &["192.0.2.7"]), "192.0.2.7");
        assert_eq!(client(&["10.0.0.0/8"], "::ffff:10.0.0.1", &["192.0.2.7:4711"]), "192.0.2.7");
    }

    #[test]
    fn the_last_address_before_the_trusted_ones_is_the_client() {
        let all = ["203.0.113.9, 192.0.2.7, 10.0.0.2", "10.0.0.3"];
        assert_eq!(client(&["10.0.0.0/8"], "10.0.0.1", &all), "192.0.2.7", "the client sent the first one");
        assert_eq!(client(&["10.0.0.0/8"], "10.0.0.1", &["192.0.2.7, unknown"]), "10.0.0.1");
        assert_eq!(client(&["10.0.0.0/8"], "10.0.0.1", &["é, 192.0.2.7"]), "192.0.2.7");
        assert_eq!(client(&["10.0.0.0/8"], "10.0.0.1", &["[2001:db8::1]:443"]), "2001:db8::1");
        assert_eq!(client(&["10.0.0.0/8"], "10.0.0.1", &[]), "10.0.0.1");
    }
}
