//! TLS of a server: handshakes with a bound, client certificates, and new files without a restart.

mod files;
#[cfg(test)]
mod fuzz;
mod names;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::time_provider::TimeProvider;
use sha2::{Digest, Sha256};
use tenure::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::impatient::Impatient;
use super::worded::message;
use crate::access::{ClientCertificate, Principal};
use crate::grants::Grants;
use crate::problem::{Problem, ProblemType};
use crate::secret::hex;
pub use files::{TlsError, TlsFiles};

/// Interval of the look at the files.
const LOOK: Duration = Duration::from_secs(10);
/// Interval of the check that the certificate of a connected client is still valid.
const RECHECK: Duration = Duration::from_secs(10);
/// First byte of a TLS connection.
const HANDSHAKE: u8 = 0x16;
/// Maximum bytes read of a plain request before the refusal. Closing with unread bytes would reset the connection.
const PLAIN_BYTES: usize = 4096;

/// TLS of a server, shared by its connections.
#[derive(Debug, Clone)]
pub struct Tls {
    files: Arc<TlsFiles>,
    time: Arc<WallTime>,
    now: Arc<RwLock<Current>>,
}

/// The configuration of new connections, and its verifier of client certificates.
#[derive(Debug, Clone)]
struct Current {
    config: Arc<ServerConfig>,
    clients: Arc<dyn ClientCertVerifier>,
}

/// A verified client certificate: its fingerprint, and the client that a grant for one of its names makes of it.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub certificate: ClientCertificate,
    pub principal: Option<Principal>,
    /// The certificate, followed by intermediate certificates.
    chain: Arc<[CertificateDer<'static>]>,
}

impl Shown {
    fn of(chain: &[CertificateDer<'static>], grants: &Grants) -> Option<Self> {
        let certificate = chain.first()?;
        let granted =
            grants.has_certificates().then(|| grants.of_certificate(&names::names(certificate))).flatten();
        let principal = granted.filter(|(_, scopes)| !scopes.is_empty());
        Some(Self {
            certificate: ClientCertificate(hex(&Sha256::digest(certificate)).into()),
            principal: principal.map(|(name, scopes)| Principal { name: format!("cert:{name}"), scopes }),
            chain: chain.into(),
        })
    }
}

/// The store's clock, for the expiry of certificates.
struct WallTime(Arc<dyn Clock>);

impl std::fmt::Debug for WallTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WallTime")
    }
}

impl TimeProvider for WallTime {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().as_micros() / 1_000_000).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

impl Current {
    fn of(files: &TlsFiles, time: &Arc<WallTime>) -> Result<Self, TlsError> {
        let clients = files.clients()?;
        let config = files.config(Arc::clone(time) as Arc<dyn TimeProvider>, Arc::clone(&clients))?;
        Ok(Self { config: Arc::new(config), clients })
    }
}

impl Tls {
    pub(super) fn load(files: TlsFiles, clock: Arc<dyn Clock>) -> Result<Self, TlsError> {
        let time = Arc::new(WallTime(clock));
        let current = Current::of(&files, &time)?;
        files.warn_about_a_readable_key();
        Ok(Self { files: Arc::new(files), time, now: Arc::new(RwLock::new(current)) })
    }

    /// Reads the files again, for new connections. Connections of clients whose certificate is no longer valid are closed.
    ///
    /// # Errors
    /// A file is missing or invalid. Then the server keeps the old certificate.
    pub fn reload(&self) -> Result<(), TlsError> {
        let current = Current::of(&self.files, &self.time)?;
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = current;
        Ok(())
    }

    /// Reloads the files whenever one of them has changed.
    pub(super) async fn watch(self) {
        let clock = Arc::clone(&self.time.0);
        let mut seen = self.files.stamps();
        loop {
            clock.sleep(LOOK).await;
            // Taken before the files are read: a change in between is seen at the next look.
            let stamps = self.files.stamps();
            if stamps == seen {
                continue;
            }
            seen = stamps;
            match self.reload() {
                Ok(()) => tracing::info!("TLS certificate reloaded"),
                Err(error) => {
                    tracing::error!(%error, "TLS certificate not reloaded; the old one stays in use")
                }
            }
        }
    }

    /// Ends when the certificate of a connected client is no longer valid: it has expired, or its CA was removed.
    pub(super) async fn until_invalid(self, shown: Option<Shown>) {
        let Some(shown) = shown else { return std::future::pending().await };
        loop {
            self.time.0.sleep(RECHECK).await;
            if let Err(error) = self.check(&shown) {
                let sha256 = &shown.certificate.0;
                tracing::info!(%error, %sha256, "client certificate no longer valid; closing its connection");
                return;
            }
        }
    }

    fn check(&self, shown: &Shown) -> Result<(), rustls::Error> {
        let [certificate, intermediates @ ..] = &*shown.chain else { return Ok(()) };
        let Some(now) = self.time.current_time() else { return Err(rustls::Error::FailedToGetCurrentTime) };
        self.current().clients.verify_client_cert(certificate, intermediates, now).map(drop)
    }

    fn current(&self) -> Current {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Completes the handshake of a connection; `None` if the client does not, or does not speak TLS.
    pub(super) async fn handshake(
        &self,
        stream: TcpStream,
        read_within: Duration,
        grants: &Grants,
    ) -> Option<(TlsStream<Impatient<TcpStream>>, Option<Shown>)> {
        let mut first = [0];
        if stream.peek(&mut first).await.ok()? == 0 {
            return None;
        }
        if first != [HANDSHAKE] {
            refuse_plain(stream).await;
            return None;
        }
        let config = self.current().config;
        let stream = Impatient::new(stream, Arc::clone(&self.time.0), read_within);
        match TlsAcceptor::from(config).accept(stream).await {
            Ok(stream) => {
                let chain = stream.get_ref().1.peer_certificates();
                let shown = chain.and_then(|chain| Shown::of(chain, grants));
                Some((stream, shown))
            }
            Err(error) => {
                tracing::debug!(%error, "TLS handshake failed");
                None
            }
        }
    }
}

/// Answers a client that sends plain HTTP.
async fn refuse_plain(mut stream: TcpStream) {
    let problem = Problem::new(ProblemType::Malformed, "this port speaks TLS; use https://");
    let _ = stream.read(&mut [0; PLAIN_BYTES]).await;
    let _ = stream.write_all(message("HTTP/1.1 400 Bad Request", "", &problem).as_bytes()).await;
    let _ = stream.shutdown().await;
}
