//! TLS to servers: the CA that verifies them, and the certificate that this program shows them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use crate::exit::Failure;
use crate::files;

/// Largest file that is read.
const FILE_BYTES: u64 = 1 << 20;

/// Files for TLS, in PEM format.
#[derive(Debug, Default)]
pub(crate) struct TlsFiles {
    /// Default: the CA certificates of the system, or those in the file that `SSL_CERT_FILE` names.
    pub(crate) ca: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

impl TlsFiles {
    /// Reads the files.
    pub(crate) fn config(&self) -> Result<TlsConfig, Failure> {
        let trusted = match &self.ca {
            Some(file) => certificates(file)?,
            None => {
                let trusted = rustls_native_certs::load_native_certs().certs;
                trusted.iter().map(|trusted| Certificate::from_der(trusted).to_owned()).collect()
            }
        };
        let mine = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                Some(ClientCert::new_with_certs(&certificates(cert)?, private_key(key)?))
            }
            (None, None) => None,
            _ => {
                let why = "a client certificate needs both --client-cert FILE and --client-key FILE";
                return Err(Failure::Usage(why.to_owned()));
            }
        };
        let config =
            TlsConfig::builder().root_certs(RootCerts::Specific(Arc::new(trusted))).client_cert(mine);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        Ok(config.unversioned_rustls_crypto_provider(provider).build())
    }
}

fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>, Failure> {
    let text = files::text_of(file, FILE_BYTES)?;
    let found = parse_pem(text.as_bytes()).filter_map(|item| match item {
        Ok(PemItem::Certificate(found)) => Some(found),
        Ok(_) | Err(_) => None,
    });
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return Err(Failure::Invalid(format!("{}: no certificate in PEM format", file.display())));
    }
    Ok(found)
}

fn private_key(file: &Path) -> Result<PrivateKey<'static>, Failure> {
    let text = files::text_of(file, FILE_BYTES)?;
    let none = |_| Failure::Invalid(format!("{}: no private key in PEM format", file.display()));
    PrivateKey::from_pem(text.as_bytes()).map_err(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> Option<PathBuf> {
        Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tenure-http/tests/certificates").join(name))
    }

    #[test]
    fn files_for_tls_are_read_and_wrong_ones_are_named() {
        let files = TlsFiles { ca: file("ca.pem"), cert: file("billing.pem"), key: file("billing.key") };
        let config = files.config().unwrap();
        assert!(config.client_cert().is_some_and(|mine| mine.certs().len() == 1));
        let refused = |files: TlsFiles| files.config().unwrap_err();
        assert_eq!(refused(TlsFiles { cert: file("billing.pem"), ..TlsFiles::default() }).code(), 2);
        for (files, name) in [
            (TlsFiles { ca: file("billing.key"), ..TlsFiles::default() }, "billing.key: no certificate"),
            (TlsFiles { ca: file("none.pem"), ..TlsFiles::default() }, "none.pem"),
            (TlsFiles { ca: None, cert: file("billing.pem"), key: file("ca.pem") }, "ca.pem: no private key"),
        ] {
            let told = refused(files).to_string();
            assert!(told.contains(name), "{told}");
        }
    }
}
