//! Names in a client certificate.

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use crate::access::is_control;
use crate::grants::CertificateNames;

/// Longest name, in bytes: it stands in the audit log.
const NAME_BYTES: usize = 256;
/// DER tags.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
/// Tags of texts that are UTF-8 or a part of it: `UTF8String`, `PrintableString` and `IA5String`.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];
/// Object ID of a common name, 2.5.4.3.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// Reads the names of a certificate, which must have been verified.
pub(super) fn names(certificate: &CertificateDer<'_>) -> CertificateNames {
    let Ok(read) = EndEntityCert::try_from(certificate) else { return CertificateNames::default() };
    let fit = |names: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        names.filter(|name| is_fit(name)).map(str::to_owned).collect()
    };
    CertificateNames {
        common_name: common_name(read.subject()),
        dns: fit(&mut read.valid_dns_names()),
        uris: fit(&mut read.valid_uri_names()),
    }
}

fn is_fit(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES && !name.chars().any(is_control)
}

/// Returns the common name of a subject, if it has exactly one, in a readable text.
fn common_name(mut subject: &[u8]) -> Option<String> {
    let mut found = None;
    while !subject.is_empty() {
        let (mut attributes, rest) = element(SET, subject)?;
        subject = rest;
        while !attributes.is_empty() {
            let (attribute, rest) = element(SEQUENCE, attributes)?;
            attributes = rest;
            let (id, value) = element(OBJECT_ID, attribute)?;
            if id == COMMON_NAME {
                let text = TEXTS.iter().find_map(|tag| element(*tag, value))?;
                let name = std::str::from_utf8(text.0).ok().filter(|name| is_fit(name))?;
                if found.replace(name.to_owned()).is_some() {
                    return None;
                }
            }
        }
    }
    found
}

/// Splits a DER element with this tag off: its content, and the rest.
fn element(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, bytes) = match *bytes {
        [first, length @ 0..=0x7f, ref bytes @ ..] if first == tag => (usize::from(length), bytes),
        [first, 0x81, length, ref bytes @ ..] if first == tag => (usize::from(length), bytes),
        [first, 0x82, high, low, ref bytes @ ..] if first == tag => {
            (usize::from(u16::from_be_bytes([high, low])), bytes)
        }
        _ => return None,
    };
    bytes.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes an element with a short length.
    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, u8::try_from(content.len()).unwrap()], content].concat()
    }

    fn attribute(id: &[u8], tag: u8, text: &[u8]) -> Vec<u8> {
        der(SET, &der(SEQUENCE, &[der(OBJECT_ID, id), der(tag, text)].concat()))
    }

    #[test]
    fn a_subject_has_the_common_name_that_is_its_only_one() {
        let organization = attribute(&[0x55, 0x04, 0x0a], 0x0c, b"billing");
        let name = attribute(&COMMON_NAME, 0x0c, b"billing");
        assert_eq!(common_name(&[organization.clone(), name.clone()].concat()).as_deref(), Some("billing"));
        for (why, subject) in [
            ("none", organization),
            ("empty", Vec::new()),
            ("two", [name.clone(), attribute(&COMMON_NAME, 0x0c, b"admin")].concat()),
            ("cut", name[..name.len() - 1].to_vec()),
            ("a line break", attribute(&COMMON_NAME, 0x0c, b"a\nb")),
            ("a zero byte", attribute(&COMMON_NAME, 0x13, b"admin\0.example")),
            ("not UTF-8", attribute(&COMMON_NAME, 0x0c, &[0xff])),
            ("two bytes a sign", attribute(&COMMON_NAME, 0x1e, &[0, b'a'])),
        ] {
            assert_eq!(common_name(&subject), None, "{why}");
        }
    }
}
