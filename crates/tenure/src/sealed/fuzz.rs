//! Fuzz targets of encryption: envelopes from a store that an attacker wrote to, and files of keys.

use tenure_fuzz::Target;

use super::envelope::{Field, Owner, Place, Shut, describe, open, seal};
use super::keyring::Keyring;

const PLACE: Place<'_> = Place { owner: Owner::Job, of: b"job 1", field: Field::Args };
const KEYS: &str = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Each input is a change of a real envelope: only the envelope itself opens.
#[test]
fn no_changed_envelope_opens() {
    let keys = Keyring::parse(KEYS).unwrap();
    let real = seal(keys.current_key().unwrap(), PLACE, b"{\"a\":1}").unwrap();
    Target::new(env!("CARGO_MANIFEST_DIR"), "envelope").words(&["TNRE", "\x01\x02k1\0", "k1"]).check(
        |input| {
            let (how, change) = input.split_first().map_or((0, input), |(how, change)| (*how, change));
            let at = usize::from(change.first().copied().unwrap_or_default()) % real.len();
            let sealed = match how % 4 {
                0 => input.to_vec(),
                1 => [&real[..at], change.get(1..).unwrap_or_default()].concat(),
                2 => [change, &real[at..]].concat(),
                _ => real
                    .iter()
                    .enumerate()
                    .map(|(index, byte)| byte ^ change.get(index).unwrap_or(&0))
                    .collect(),
            };
            let described = describe(&sealed).map(|(_, owner)| owner);
            match open(&keys, PLACE, &sealed) {
                Ok(plain) => {
                    assert_eq!((&sealed, plain.as_slice()), (&real, &b"{\"a\":1}"[..]));
                    "opens".to_owned()
                }
                Err(Shut::NoKey(_)) => format!("no key {described:?}"),
                Err(Shut::Broken(why)) => format!("{why} {described:?}"),
            }
        },
    );
}

#[test]
fn a_file_of_keys_is_read_or_refused_without_its_keys() {
    let words = &["k1", ":", "\n", "#", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "=", "\r\n", " "];
    Target::new(env!("CARGO_MANIFEST_DIR"), "keyring").words(words).check_text(|text| {
        match Keyring::parse(text) {
            Ok(keys) => {
                let key = keys.current_key().unwrap();
                let sealed = seal(key, PLACE, b"7").unwrap();
                assert_eq!(open(&keys, PLACE, &sealed).as_deref(), Ok(b"7".as_slice()));
                format!("{} keys", keys.ids().count())
            }
            Err(invalid) => {
                let told = invalid.to_string();
                assert!(!told.contains("AAECAwQFBgcI"), "{told}");
                told
            }
        }
    });
}
