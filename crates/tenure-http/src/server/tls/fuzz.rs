//! Fuzz target of certificate and key files.

use std::sync::Arc;

use super::{Current, TlsFiles, WallTime};
use crate::fuzz::target;

#[test]
fn files_in_pem_format_are_read_or_refused_without_the_key() {
    let certificates = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/certificates/");
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("server.pem"), folder.path().join("server.key"));
    let real_key = std::fs::read_to_string(format!("{certificates}server.key")).unwrap();
    let secret: Vec<&str> =
        real_key.lines().filter(|line| line.len() > 30 && !line.starts_with("--")).collect();
    std::fs::write(&key, &real_key).unwrap();
    let clock: Arc<dyn tenure::Clock> = Arc::new(tenure::SystemClock);
    let words = &[
        "-----BEGIN ",
        "-----END ",
        "CERTIFICATE",
        "PRIVATE KEY",
        "-----",
        "\n",
        "TRUSTED CERTIFICATE",
        "MII",
        "=",
    ];
    target("pem").words(words).check(|input| {
        // The real certificate with a change, or another text altogether.
        let (how, change) = input.split_first().map_or((b' ', input), |(how, change)| (*how, change));
        let mut pem = std::fs::read(format!("{certificates}server.pem")).unwrap();
        let at = usize::from(change.first().copied().unwrap_or_default()) * 7 % pem.len();
        match how {
            b'+' => drop(pem.splice(at..at, change.iter().copied())),
            b'-' => drop(pem.splice(at..pem.len().min(at + change.len()), change.iter().copied())),
            _ => pem = input.to_vec(),
        }
        std::fs::write(&certificate, &pem).unwrap();
        let mut files = TlsFiles::new(&certificate, &key);
        files.client_ca = Some(certificate.clone());
        match Current::of(&files, &Arc::new(WallTime(Arc::clone(&clock)))) {
            Ok(_) => "valid".to_owned(),
            Err(error) => {
                let told = error.to_string();
                assert!(!secret.iter().any(|line| told.contains(line)), "{told}");
                told.replace(&folder.path().display().to_string(), "")
            }
        }
    });
}
