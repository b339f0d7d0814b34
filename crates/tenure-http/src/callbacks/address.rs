//! Which addresses may be called. Whoever may set a webhook must not reach through this server what only this server can
//! reach: its own machine, its network, and what the cloud tells its machines.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use tenure::Invalid;

/// A range of IP addresses, such as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    /// Returns the loopback addresses.
    #[must_use]
    pub fn loopback() -> [Self; 2] {
        let four = Self { address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), bits: 8 };
        [four, Self { address: IpAddr::V6(Ipv6Addr::LOCALHOST), bits: 128 }]
    }

    /// Returns all addresses of one version of IP.
    pub(super) fn whole(unspecified: IpAddr) -> Self {
        Self { address: unspecified, bits: 0 }
    }

    /// Returns true if it contains the address, or the one that the address wraps.
    pub(super) fn has_meant(&self, address: IpAddr) -> bool {
        self.has(address) || embedded(address).is_some_and(|inner| self.has(inner))
    }

    pub(crate) fn has(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(mine), IpAddr::V4(address)) => {
                let shift = 32 - self.bits;
                mine.to_bits().checked_shr(shift) == address.to_bits().checked_shr(shift)
            }
            (IpAddr::V6(mine), IpAddr::V6(address)) => {
                let shift = 128 - self.bits;
                mine.to_bits().checked_shr(shift) == address.to_bits().checked_shr(shift)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Network {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let shown: String = text.chars().take(64).collect();
        let wrong = || {
            let allowed = "an IP address, or a network such as 10.0.0.0/8 or fd00::/8";
            Invalid::new("network", format_args!("{shown:?}"), allowed)
        };
        let (address, bits) = text.split_once('/').map_or((text, None), |(front, bits)| (front, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wrong()))?;
        if bits > most { Err(wrong()) } else { Ok(Self { address, bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// The address that is meant by one that only wraps it.
fn embedded(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(six) = address else { return None };
    let parts = six.segments();
    let four =
        |high: u16, low: u16| Some(IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))));
    match parts {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => four(high, low),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => four(high, low),
        // What a gateway translates, of its usual prefix.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => four(high, low),
        // 6to4
        [0x2002, high, low, ..] => four(high, low),
        [..] => None,
    }
}

/// Why an address is none that anybody could reach; `None` if it is public.
pub(super) fn why_not(address: IpAddr) -> Option<&'static str> {
    match embedded(address).unwrap_or(address) {
        IpAddr::V4(four) => why_not_four(four),
        IpAddr::V6(six) => why_not_six(six),
    }
}

fn why_not_four(four: Ipv4Addr) -> Option<&'static str> {
    match four.octets() {
        [127, ..] => Some("a loopback address"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("private"),
        // Where clouds tell their machines their secrets, among others.
        [169, 254, ..] => Some("link-local"),
        [100, 64..=127, ..] => Some("a carrier-grade NAT address"),
        [0, ..] => Some("not a host address"),
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Some("reserved")
        }
        [224..=255, ..] => Some("a multicast or reserved address"),
        [..] => None,
    }
}

fn why_not_six(six: Ipv6Addr) -> Option<&'static str> {
    match six.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("a loopback address"),
        [0, 0, 0, 0, 0, 0, 0, _] => Some("not a host address"),
        [0xfe80..=0xfebf, ..] => Some("link-local"),
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Some("private"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0..=0x01ff, ..]
        | [0x2001, 0x0db8, ..]
        | [0x3fff, 0..=0x0fff, ..]
        | [0x0100, 0, 0, 0, ..] => Some("reserved"),
        // What else is public begins so.
        [0x2000..=0x3fff, ..] => None,
        [..] => Some("not public"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_public_is_refused_in_every_form_in_which_it_can_be_written() {
        for refused in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.169.254",
            "169.254.170.2",
            "100.64.0.1",
            "100.127.255.255",
            "100.100.100.200",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "192.88.99.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7",
            "fe80::1",
            "febf::1",
            "fc00::1",
            "fd00:ec2::254",
            "fdff::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:10.0.0.1",
            "::127.0.0.1",
            "::10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2002:c0a8:1::1",
            "2001::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "100::1",
            "3fff::1",
            "4000::1",
            "5f00::1",
        ] {
            let address: IpAddr = refused.parse().unwrap();
            assert!(why_not(address).is_some(), "{refused}");
        }
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.0.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "64:ff9b::101:101",
            "2002:101:101::1",
            "::ffff:8.8.8.8",
        ] {
            let address: IpAddr = public.parse().unwrap();
            assert_eq!(why_not(address), None, "{public}");
        }
    }

    #[test]
    fn a_network_has_its_addresses_in_every_form() {
        let [four, six] = Network::loopback();
        assert!(four.has("127.9.9.9".parse().unwrap()) && six.has("::1".parse().unwrap()));
        assert!(!six.has("::2".parse().unwrap()) && !six.has("127.0.0.1".parse().unwrap()));
        assert!(four.has_meant("::ffff:127.0.0.1".parse().unwrap()));
        assert!(!four.has_meant("::ffff:10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn a_network_that_is_none_is_told() {
        assert_eq!("10.0.0.0/8".parse::<Network>().unwrap().to_string(), "10.0.0.0/8");
        assert_eq!("::1".parse::<Network>().unwrap().to_string(), "::1/128");
        for bad in ["", "10", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/", "localhost"] {
            assert_eq!(bad.parse::<Network>().unwrap_err().field, "network", "{bad}");
        }
    }
}
