//! Fuzz target of the headers that say where a request comes from and where it goes.

use std::net::IpAddr;

use axum::http::Request;

use super::hosts::{Addressed, Hosts};
use super::proxies::Proxies;
use super::public::Public;
use crate::access::strangers::Remote;
use crate::fuzz::{header_map, target};

/// The first line is the path. Clients reach the server directly and through trusted proxies.
#[test]
fn only_trusted_proxies_are_believed_about_a_client() {
    let words = &[
        "\nx-forwarded-for: ",
        "192.0.2.7",
        "10.0.0.2",
        ", ",
        "[2001:db8::1]:443",
        "::ffff:10.0.0.1",
        "unknown",
        "\nhost: ",
        "localhost",
        "jobs.example",
        ":8368",
        "\norigin: ",
        "https://",
        "null",
        "\nsec-fetch-site: ",
        "same-origin",
        "@",
        ".",
    ];
    target("arrival").words(words).check_text(|text| {
        let mut lines = text.lines();
        let path = lines.next().unwrap_or("/");
        let headers = header_map(lines);
        let proxies = Proxies::new(&["10.0.0.0/8".parse().unwrap()]);
        let is_trusted = |client: IpAddr| proxies.are_at(Remote(client));
        let stranger: IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!(proxies.client(Remote(stranger), &headers), Remote(stranger));
        let proxy: IpAddr = "10.0.0.1".parse().unwrap();
        let Remote(client) = proxies.client(Remote(proxy), &headers);
        let is_named = headers.get_all("x-forwarded-for").iter().any(|line| {
            // A client can send bytes that are no text before the address that a proxy appends.
            String::from_utf8_lossy(line.as_bytes()).split(',').any(|part| {
                let part = part.trim();
                let with_port = part.parse::<std::net::SocketAddr>().map(|address| address.ip());
                part.parse() == Ok(client) || with_port == Ok(client)
            })
        });
        assert!(client == proxy || is_named, "{client}");
        let hosts = Hosts::new(&["jobs.example".to_owned()]).reached_at("https://public.example/tenure");
        let addressed = hosts.check(&headers, None);
        if addressed == Addressed::Here {
            // A browser would resolve no other name to this.
            let host = headers["host"].to_str().unwrap().to_ascii_lowercase();
            let host = host
                .rsplit_once(':')
                .filter(|(_, port)| port.parse::<u16>().is_ok())
                .map_or(host.as_str(), |(host, _)| host);
            let known = ["localhost", "127.0.0.1", "[::1]", "jobs.example", "public.example"];
            assert!(known.contains(&host), "{host}");
        }
        let page = hosts.allow_page(&headers);
        let moved = path.parse::<axum::http::Uri>().map(|uri| {
            let mut request = Request::new(());
            *request.uri_mut() = uri;
            Public::of("https://public.example/tenure").address(&mut request);
            let original = request.extensions().get::<axum::extract::OriginalUri>();
            original.is_none_or(|original| original.path().starts_with("/tenure"))
        });
        assert!(moved.as_ref().is_ok_and(|moved| *moved) || moved.is_err());
        format!("{} {} {addressed:?} {page} {}", is_trusted(client), client == proxy, moved.is_ok())
    });
}
