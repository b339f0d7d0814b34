//! Fuzz targets of outgoing calls: URLs, egress rules, networks and secrets.

use std::net::IpAddr;

use super::address::{Network, why_not};
use super::egress::{Egress, EgressRule};
use super::signature::Secret;
use super::target::Target;
use crate::fuzz::target;

#[test]
fn a_url_leads_to_the_host_that_it_shows() {
    let words = &[
        "https://",
        "http://",
        "hooks.example.com",
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
        "localhost",
        ":443",
        ":8443",
        "/a",
        "?b=c",
        "#",
        "@",
        "\\",
        "%2f",
        "%00",
        ".",
        "0x7f.1",
        "2130706433",
        "[fe80::1%25eth0]",
        "xn--",
        "é",
    ];
    target("url").words(words).check_text(|text| match Target::read(text) {
        Ok(read) => {
            let scheme = if read.encrypted { "https" } else { "http" };
            let again =
                Target::read(&format!("{scheme}://{}{}", read.authority, read.path)).expect("printed");
            assert_eq!(again, read);
            assert!(
                read.path.starts_with('/')
                    && read.port > 0
                    && !read.host.contains(['@', '/', '\\', '?', '#'])
            );
            // The header `host` names the same host as the connection.
            let shown = read.authority.to_ascii_lowercase();
            let port = shown.rsplit_once(':').filter(|(_, port)| port.parse() == Ok(read.port));
            let shown = port.map_or(shown.as_str(), |(host, _)| host);
            assert_eq!(shown.trim_start_matches('[').trim_end_matches(']'), read.host, "{}", read.authority);
            let checked = read.check(&Egress::default());
            if let (Ok(()), Ok(address)) = (&checked, read.host.parse::<IpAddr>()) {
                assert_eq!(why_not(address), None, "{address}");
                assert!(read.encrypted, "{text}");
            }
            // A deny rule also holds for the fully qualified name.
            let denied = Egress::new(Vec::new(), vec!["hooks.example.com".parse().unwrap()]);
            assert!(
                read.host.trim_end_matches('.') != "hooks.example.com" || read.check(&denied).is_err(),
                "{text}"
            );
            checked.map_or_else(|invalid| invalid.to_string(), |()| "allowed".to_owned())
        }
        Err(invalid) => invalid.to_string(),
    });
}

#[test]
fn an_egress_rule_and_a_network_print_as_the_same() {
    let words = &[
        "*",
        "*.",
        "example.com",
        "10.0.0.0/8",
        "[",
        "fd00::/8",
        "]",
        ":443",
        "::1",
        "/0",
        "/128",
        ".",
        "localhost",
        "+",
    ];
    target("egress").words(words).check_text(|text| {
        let rule = text.parse::<EgressRule>().map(|rule| {
            let printed = rule.to_string();
            assert_eq!(printed.parse::<EgressRule>().as_ref(), Ok(&rule), "{printed}");
        });
        let network = text.parse::<Network>().map(|network| {
            let printed = network.to_string();
            assert_eq!(printed.parse::<Network>(), Ok(network), "{printed}");
            let own: IpAddr = printed.split('/').next().unwrap().parse().unwrap();
            assert!(network.has(own), "{printed}");
        });
        format!("{} {}", rule.is_ok(), network.is_ok())
    });
}

#[test]
fn a_signing_secret_prints_as_the_same() {
    target("signing_secret")
        .words(&["whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "=", "+", "/"])
        .check_text(|text| match Secret::read(text) {
            Ok(secret) => {
                assert!(Secret::read(&secret.text()).is_ok_and(|again| again == secret));
                "valid".to_owned()
            }
            Err(invalid) => invalid.to_string(),
        });
}
