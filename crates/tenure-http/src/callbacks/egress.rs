//! Egress rules: the hosts, networks and ports that webhooks, callbacks and push endpoints may use.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use tenure::Invalid;

use super::address::{Network, why_not};
use super::target::Target;

/// Ports that need no rule.
const USUAL_PORTS: [u16; 2] = [80, 443];
/// Longest host name, in bytes.
const NAME_BYTES: usize = 253;

/// Rules for the addresses that the server calls for its clients. Without any rule, these are public addresses over
/// https on the ports 80 and 443.
#[derive(Debug, Clone, Default)]
pub struct Egress {
    allow: Vec<EgressRule>,
    deny: Vec<EgressRule>,
}

/// A host or network, with an optional port: `hooks.example.com`, `*.example.com:8443`, `10.1.0.0/16`, `[fd00::/8]:8080`, or
/// `*` for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressRule {
    place: Place,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Any,
    Network(Network),
    Name(String),
    /// All names below this one.
    Below(String),
}

impl Egress {
    /// Creates rules. A deny rule takes precedence over an allow rule, except for `*`: it denies only the rest.
    #[must_use]
    pub fn new(allow: Vec<EgressRule>, deny: Vec<EgressRule>) -> Self {
        Self { allow, deny }
    }

    /// Allows these networks on every port, in addition to public addresses.
    #[must_use]
    pub fn to(networks: &[Network]) -> Self {
        let rule = |network: &Network| EgressRule { place: Place::Network(*network), port: None };
        Self { allow: networks.iter().map(rule).collect(), deny: Vec::new() }
    }

    /// Allows every address, for a URL that the operator has set.
    pub(crate) fn everywhere() -> Self {
        let whole: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        Self::to(&whole.map(Network::whole))
    }

    /// Checks an address to which the host of a URL leads. The error says why it is refused.
    pub(crate) fn check(&self, target: &Target, address: IpAddr) -> Result<(), &'static str> {
        let denies = |rule: &EgressRule| {
            rule.place != Place::Any && (rule.has_name(target) || rule.has_address(address, target.port))
        };
        if self.deny.iter().any(denies) {
            return Err("denied by --egress-deny");
        }
        if self.allow.iter().any(|rule| rule.has_address(address, target.port)) {
            return Ok(());
        }
        if let Some(why) = why_not(address) {
            return Err(why);
        }
        if !target.encrypted {
            return Err("public, so it requires https");
        }
        self.check_public_name(target)
    }

    /// Checks what is known of a URL before its name is resolved.
    pub(crate) fn check_name(&self, target: &Target) -> Result<(), &'static str> {
        if self.deny.iter().any(|rule| rule.place != Place::Any && rule.has_name(target)) {
            return Err("denied by --egress-deny");
        }
        // The name may lead to one of these networks.
        let may_be_allowed = |rule: &EgressRule| {
            matches!(rule.place, Place::Network(_)) && rule.port.is_none_or(|port| port == target.port)
        };
        if self.allow.iter().any(may_be_allowed) { Ok(()) } else { self.check_public_name(target) }
    }

    /// Checks the name and port of a host with a public address.
    fn check_public_name(&self, target: &Target) -> Result<(), &'static str> {
        if self.allow.iter().any(|rule| rule.has_name(target)) {
            return Ok(());
        }
        let denies_all = |rule: &EgressRule| rule.place == Place::Any && rule.has_port(target.port);
        if self.deny.iter().any(denies_all) {
            return Err("not in --egress-allow");
        }
        if USUAL_PORTS.contains(&target.port) { Ok(()) } else { Err("on a port other than 80 and 443") }
    }
}

impl EgressRule {
    fn has_port(&self, port: u16) -> bool {
        self.port.is_none_or(|mine| mine == port)
    }

    fn has_address(&self, address: IpAddr, port: u16) -> bool {
        matches!(&self.place, Place::Network(network) if network.has_meant(address)) && self.has_port(port)
    }

    /// Returns true if it names the host of a URL.
    fn has_name(&self, target: &Target) -> bool {
        let host = target.host.trim_end_matches('.');
        let has_it = match &self.place {
            Place::Any => true,
            Place::Network(_) => false,
            Place::Name(name) => name == host,
            Place::Below(name) => host.strip_suffix(name.as_str()).is_some_and(|front| front.ends_with('.')),
        };
        has_it && self.has_port(target.port)
    }
}

impl FromStr for EgressRule {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let shown: String = text.chars().take(100).collect();
        let wrong = || {
            let allowed = "a host, *.domain, network or *, with or without a port, such as hooks.example.com:8443 or 10.1.0.0/16";
            Invalid::new("egress rule", format_args!("{shown:?}"), allowed)
        };
        let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(wrong);
        if let Some(inner) = text.strip_prefix('[') {
            let (network, rest) = inner.split_once(']').ok_or_else(wrong)?;
            let place = Place::Network(network.parse().map_err(|_| wrong())?);
            let port = match rest.strip_prefix(':') {
                Some(text) => Some(port(text)?),
                None if rest.is_empty() => None,
                None => return Err(wrong()),
            };
            return Ok(Self { place, port });
        }
        if let Ok(network) = text.parse() {
            return Ok(Self { place: Place::Network(network), port: None });
        }
        let (front, port) = match text.rsplit_once(':') {
            Some((front, text)) => (front, Some(port(text)?)),
            None => (text, None),
        };
        let place = place(front).ok_or_else(wrong)?;
        Ok(Self { place, port })
    }
}

fn place(text: &str) -> Option<Place> {
    if text == "*" {
        return Some(Place::Any);
    }
    if let Ok(network) = text.parse() {
        return Some(Place::Network(network));
    }
    let (name, is_below) = text.strip_prefix("*.").map_or((text, false), |name| (name, true));
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    // A name that ends with a number is an address in another form.
    let is_number =
        name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    let is_name = name.len() <= NAME_BYTES && name.split('.').all(is_label) && !is_number;
    is_name.then_some(if is_below { Place::Below(name) } else { Place::Name(name) })
}

impl fmt::Display for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Any => f.write_str("*")?,
            Place::Network(network) => write!(f, "[{network}]")?,
            Place::Name(name) => f.write_str(name)?,
            Place::Below(name) => write!(f, "*.{name}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Vec<EgressRule> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn is_called(egress: &Egress, url: &str, address: &str) -> bool {
        let target = Target::read(url).unwrap();
        let is_called = egress.check(&target, address.parse().unwrap()).is_ok();
        assert!(!is_called || egress.check_name(&target).is_ok(), "refused before it is resolved: {url}");
        is_called
    }

    const PUBLIC: &str = "93.184.216.34";

    #[test]
    fn public_hosts_are_called_over_https_on_the_usual_ports() {
        let none = Egress::default();
        assert!(
            is_called(&none, "https://a.example", PUBLIC) && is_called(&none, "https://a.example:80", PUBLIC)
        );
        for refused in ["https://a.example:8443", "https://a.example:22", "http://a.example"] {
            assert!(!is_called(&none, refused, PUBLIC), "{refused}");
        }
        assert!(!is_called(&none, "https://a.example", "10.0.0.1"));
        assert!(
            none.check_name(&Target::read("https://a.example:22").unwrap()).is_err(),
            "without a look-up"
        );
    }

    #[test]
    fn a_name_opens_its_port_and_no_private_address() {
        let egress = Egress::new(rules(&["Hooks.example:8443", "*.corp.example"]), Vec::new());
        assert!(is_called(&egress, "https://hooks.example:8443", PUBLIC));
        assert!(is_called(&egress, "https://hooks.example.:8443", PUBLIC));
        assert!(is_called(&egress, "https://a.b.corp.example:9000", PUBLIC));
        for refused in [
            "https://hooks.example:8444",
            "https://evilhooks.example:8443",
            "https://corp.example:9000",
            "https://evilcorp.example:9000",
            "https://hooks.example.evil:8443",
        ] {
            assert!(!is_called(&egress, refused, PUBLIC), "{refused}");
        }
        // A name leads wherever its owner wants.
        for inner in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::ffff:10.0.0.1"] {
            assert!(!is_called(&egress, "https://hooks.example:8443", inner), "{inner}");
        }
    }

    #[test]
    fn a_network_is_open_on_its_port_alone() {
        let egress = Egress::new(rules(&["10.1.0.0/16:8080", "[fd00::/8]:8080", "10.2.0.0/16"]), Vec::new());
        assert!(is_called(&egress, "http://jobs:8080", "10.1.2.3"));
        assert!(is_called(&egress, "http://jobs:8080", "::ffff:10.1.2.3"));
        assert!(
            is_called(&egress, "http://jobs:8080", "fd12::1")
                && is_called(&egress, "http://jobs:1", "10.2.0.1")
        );
        assert!(!is_called(&egress, "http://jobs:8081", "10.1.2.3"));
        assert!(!is_called(&egress, "http://jobs:8080", "10.3.0.1"));
    }

    #[test]
    fn what_is_denied_is_refused_by_name_and_by_address_even_if_allowed() {
        let deny = rules(&["*.evil.example", "10.1.0.0/16", "8.8.8.0/24:443"]);
        let egress = Egress::new(rules(&["10.0.0.0/8", "a.evil.example"]), deny);
        for (url, address) in [
            ("https://a.evil.example", PUBLIC),
            ("https://A.EVIL.example.", PUBLIC),
            ("http://jobs", "10.1.2.3"),
            ("http://jobs", "::ffff:10.1.2.3"),
            ("https://dns.example", "8.8.8.8"),
        ] {
            assert!(!is_called(&egress, url, address), "{url} {address}");
        }
        assert!(
            is_called(&egress, "http://jobs", "10.2.0.1") && is_called(&egress, "https://b.example", PUBLIC)
        );
        assert!(
            egress.check_name(&Target::read("https://a.evil.example").unwrap()).is_err(),
            "without a look-up"
        );
    }

    #[test]
    fn to_deny_all_leaves_what_is_allowed() {
        let egress = Egress::new(rules(&["hooks.example", "10.1.0.0/16"]), rules(&["*"]));
        assert!(
            is_called(&egress, "https://hooks.example", PUBLIC)
                && is_called(&egress, "http://jobs", "10.1.0.1")
        );
        assert!(!is_called(&egress, "https://other.example", PUBLIC));
        assert!(!is_called(&egress, "https://hooks.example", "10.2.0.1"));
        let ports = Egress::new(Vec::new(), rules(&["*:80"]));
        assert!(
            is_called(&ports, "https://a.example", PUBLIC)
                && !is_called(&ports, "https://a.example:80", PUBLIC)
        );
    }

    #[test]
    fn a_rule_is_read_or_refused() {
        for (text, shown) in [
            ("Hooks.Example.com.", "hooks.example.com"),
            ("*.example.com:8443", "*.example.com:8443"),
            ("10.1.0.0/16:80", "[10.1.0.0/16]:80"),
            ("::1", "[::1/128]"),
            ("[fd00::/8]:8080", "[fd00::/8]:8080"),
            ("*", "*"),
        ] {
            let rule: EgressRule = text.parse().unwrap();
            assert_eq!(rule.to_string(), shown);
            assert_eq!(shown.parse::<EgressRule>().unwrap(), rule);
        }
        for bad in [
            "",
            ":80",
            "a:",
            "a:0",
            "a:99999",
            "a:b",
            "https://a",
            "a/b",
            "10.0.0.0/99",
            "127.1",
            "1",
            "[::1",
            "[::1]x",
            "[a]:1",
            "*.",
            "*a.example",
            "a..b",
            "a b",
            "a@b",
        ] {
            assert!(bad.parse::<EgressRule>().is_err(), "{bad}");
        }
    }
}
