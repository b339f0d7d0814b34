//! The files of a server's TLS: its certificate and key, and the CA of its clients.

use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{RootCertStore, ServerConfig};

/// Largest file that is read.
const FILE_BYTES: u64 = 1 << 20;
/// Permissions of a key file that others do not have.
const OTHERS: u32 = 0o077;

/// Files of a server's TLS, all in PEM format. The server reads them again when they change.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TlsFiles {
    /// Certificate of the server, followed by its intermediate certificates.
    pub certificate: PathBuf,
    /// Private key of the certificate.
    pub key: PathBuf,
    /// CA certificates that sign the certificates of clients. Default: clients show none.
    pub client_ca: Option<PathBuf>,
    /// Also accepts clients without a certificate.
    pub is_client_certificate_optional: bool,
}

/// A file of the server's TLS that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {} for TLS: {why}", path.display())]
pub struct TlsError {
    path: PathBuf,
    why: String,
}

/// The state of a file: a replaced file has another inode, a changed file another time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stamp(u64, u64, i64, i64);

impl TlsFiles {
    /// Creates the files of a server that asks its clients for no certificate.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            certificate: certificate.into(),
            key: key.into(),
            client_ca: None,
            is_client_certificate_optional: false,
        }
    }

    /// Reads the certificate and the key, and returns the configuration of a server with this verifier of clients.
    pub(super) fn config(
        &self,
        time: Arc<dyn TimeProvider>,
        clients: Arc<dyn ClientCertVerifier>,
    ) -> Result<ServerConfig, TlsError> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?)
            .map_err(|error| wrong(&self.key, format!("no private key in PEM format: {error}")))?;
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_details(provider, time)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&self.certificate, error.to_string()))?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key)
            .map_err(|error| wrong(&self.certificate, format!("{error}; key {}", self.key.display())))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if self.client_ca.is_some() {
            // A resumed session would not check the client's certificate again, which may have expired.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(config)
    }

    /// Returns the verifier of client certificates.
    pub(super) fn clients(&self) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let Some(path) = &self.client_ca else { return Ok(Arc::new(NoClientAuth)) };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| wrong(path, error.to_string()))?;
        }
        let provider = Arc::new(ring::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let clients =
            if self.is_client_certificate_optional { clients.allow_unauthenticated() } else { clients };
        let clients = clients.build().map_err(|error| wrong(path, error.to_string()))?;
        Ok(clients)
    }

    /// Logs a warning if other users may read the key.
    pub(super) fn warn_about_a_readable_key(&self) {
        let mode = std::fs::metadata(&self.key).map_or(0, |found| found.permissions().mode());
        if mode & OTHERS != 0 {
            let key = self.key.display();
            tracing::warn!("other users may read the TLS key {key}; run `chmod 600 {key}`");
        }
    }

    /// Returns the state of each file.
    pub(super) fn stamps(&self) -> Vec<Option<Stamp>> {
        let stamp = |path: &Path| {
            let found = std::fs::metadata(path).ok()?;
            Some(Stamp(found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
        };
        [Some(&self.certificate), Some(&self.key), self.client_ca.as_ref()]
            .into_iter()
            .flatten()
            .map(|path| stamp(path))
            .collect()
    }
}

fn wrong(path: &Path, why: String) -> TlsError {
    TlsError { path: path.to_owned(), why }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let refuse = |error: std::io::Error| wrong(path, error.to_string());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(refuse)?;
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(refuse)?;
    if bytes.len() as u64 > FILE_BYTES { Err(wrong(path, "larger than 1 MiB".to_owned())) } else { Ok(bytes) }
}

/// Reads the certificates of a file, which must have at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    match found {
        Ok(found) if found.is_empty() => Err(wrong(path, "no certificate in PEM format".to_owned())),
        found => found.map_err(|error| wrong(path, error.to_string())),
    }
}
