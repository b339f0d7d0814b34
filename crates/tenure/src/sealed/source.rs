//! Places that a keyring is read from.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use tenure_core::Invalid;
use zeroize::Zeroizing;

use super::keyring::Keyring;

/// Most bytes of a file, variable or output with keys.
const MOST_BYTES: u64 = 64 * 1024;
const ALLOWED: &str = "file:PATH, env:NAME or cmd:PROGRAM ARGS";

impl Keyring {
    /// Reads keys from a place: `file:PATH`, `env:NAME`, or `cmd:PROGRAM ARGS`, a program that prints them. No shell runs,
    /// so the arguments are separated by spaces and cannot be quoted.
    ///
    /// The call blocks while it reads the file or waits for the program.
    ///
    /// # Errors
    /// A place that cannot be read, or keys as in [`parse`](Self::parse). No message repeats a key.
    pub fn load(source: &str) -> Result<Self, Invalid> {
        let (scheme, place) = source.split_once(':').unwrap_or((source, ""));
        let text = match scheme {
            _ if place.is_empty() => return Err(Invalid::new("encryption keys", "no place", ALLOWED)),
            "file" => File::open(place).and_then(read),
            "env" => std::env::var(place).map_err(std::io::Error::other).map(Zeroizing::new),
            "cmd" => printed_by(place),
            _ => {
                return Err(Invalid::new(
                    "encryption keys",
                    format_args!("unknown scheme {scheme:?}"),
                    ALLOWED,
                ));
            }
        };
        let text = text.map_err(|error| {
            Invalid::new("encryption keys", format_args!("cannot read {scheme}: {error}"), "readable keys")
        })?;
        Self::parse(&text)
    }
}

fn read(from: impl Read) -> std::io::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    from.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(std::io::Error::other(format!("more than {MOST_BYTES} bytes")));
    }
    Ok(text)
}

fn printed_by(command: &str) -> std::io::Result<Zeroizing<String>> {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let mut child = Command::new(program).args(words).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let text = child.stdout.take().map(read).unwrap_or_else(|| Ok(Zeroizing::default()));
    if text.is_err() {
        // A program may wait forever for its output to be read.
        let _ = child.kill();
    }
    let ended = child.wait()?;
    if text.is_ok() && !ended.success() {
        return Err(std::io::Error::other(format!("the program ended with {ended}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn keys_come_from_a_file_or_a_program() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        std::fs::write(&path, KEY).unwrap();
        for source in [format!("file:{}", path.display()), format!("cmd:cat {}", path.display())] {
            assert_eq!(Keyring::load(&source).unwrap().current(), Some("k1"), "{source}");
        }
    }

    #[test]
    fn a_place_without_keys_is_refused_without_repeating_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        std::fs::write(&path, KEY.repeat(3_000)).unwrap();
        let large = format!("file:{}", path.display());
        let wrong = [
            (KEY, "unknown scheme"),
            ("file:", "file:PATH, env:NAME or cmd:PROGRAM"),
            ("file:/nowhere/keys", "cannot read file"),
            ("env:TENURE_NO_SUCH_VARIABLE", "cannot read env"),
            ("cmd:false", "cannot read cmd: the program ended with"),
            (&large, "more than 65536 bytes"),
        ];
        for (source, expected) in wrong {
            let told = Keyring::load(source).unwrap_err().to_string();
            assert!(told.contains(expected) && !told.contains("AAECAwQF"), "{told}");
        }
    }
}
