//! TLS, by rustls and ring: what is asked of a server, what it is shown, and how a connection is encrypted.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tenure_store::Fault;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// What is asked of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// No TLS.
    Disable,
    /// TLS if the server has it, whoever it is.
    Prefer,
    /// TLS, whoever the server is.
    Require,
    /// TLS, and a certificate that somebody has signed who is trusted.
    VerifyCa,
    /// The same, and it names the host.
    VerifyFull,
}

/// What a URL says about TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub mode: Mode,
    /// The file with the certificates of those who are trusted; those of the system if it is not said.
    pub roots: Option<String>,
    /// What the server is shown if it wants to know who this program is.
    pub mine: Option<Mine>,
}

/// The files in which this program has its certificate and the key to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mine {
    pub certificate: String,
    pub key: String,
}

impl Mode {
    /// What `sslmode` says.
    pub(crate) fn read(text: &str) -> Option<Self> {
        Some(match text {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => return None,
        })
    }
}

/// How connections are encrypted; `None` if they are not.
pub(crate) fn of(asked: &Asked) -> Result<Option<Encrypts>, Fault> {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match (asked.mode, &asked.roots) {
        (Mode::Disable, _) => return Ok(None),
        // As other clients have it: whoever names roots wants them to be asked.
        (Mode::VerifyCa, _) | (Mode::Require, Some(_)) => {
            Arc::new(Signed { of: trusting(asked, &provider)?, names_host: false })
        }
        (Mode::VerifyFull, _) => Arc::new(Signed { of: trusting(asked, &provider)?, names_host: true }),
        (Mode::Prefer | Mode::Require, _) => Arc::new(Anybody(Arc::clone(&provider))),
    };
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| Fault::Broken(format!("cannot use TLS: {error}")))?;
    let config = config.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = match &asked.mine {
        None => config.with_no_client_auth(),
        Some(mine) => {
            let (certificates, key) = read(mine)?;
            config.with_client_auth_cert(certificates, key).map_err(|error| {
                Fault::Broken(format!("cannot use sslcert {:?} and its sslkey: {error}", mine.certificate))
            })?
        }
    };
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(Some(Encrypts(Arc::new(config))))
}

/// The certificate of this program, with those that lead from it to one that is trusted, and the key to it.
fn read(mine: &Mine) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Fault> {
    let broken = |what: &str, path: &str, error: pem::Error| {
        Fault::Broken(format!("cannot use {what} {path:?}: {error}"))
    };
    let certificates = CertificateDer::pem_file_iter(&mine.certificate).and_then(Iterator::collect);
    let certificates = certificates.map_err(|error| broken("sslcert", &mine.certificate, error))?;
    let key = PrivateKeyDer::from_pem_file(&mine.key).map_err(|error| broken("sslkey", &mine.key, error))?;
    Ok((certificates, key))
}

fn trusting(asked: &Asked, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, Fault> {
    let mut roots = RootCertStore::empty();
    match asked.roots.as_deref().filter(|path| *path != "system") {
        Some(path) => {
            let broken = |why: String| Fault::Broken(format!("cannot use sslrootcert {path:?}: {why}"));
            for read in CertificateDer::pem_file_iter(path).map_err(|error| broken(error.to_string()))? {
                let certificate = read.map_err(|error| broken(error.to_string()))?;
                roots.add(certificate).map_err(|error| broken(error.to_string()))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    verifier.map_err(|_| {
        Fault::Broken("no trusted CA certificates found; set sslrootcert to a file of them".to_owned())
    })
}

/// Accepts whoever can use the certificate that he shows.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Accepts whose certificate was signed by somebody who is trusted.
#[derive(Debug)]
struct Signed {
    of: Arc<WebPkiServerVerifier>,
    /// Whether it has to name the host.
    names_host: bool,
}

impl ServerCertVerifier for Signed {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.of.verify_server_cert(certificate, between, host, stapled, now);
        let is_about_host = matches!(
            &verified,
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
            ))
        );
        // The name is asked about last: all else was found to be good.
        if is_about_host && !self.names_host { Ok(ServerCertVerified::assertion()) } else { verified }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.of.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.of.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.of.supported_verify_schemes()
    }
}

/// Encrypts connections.
#[derive(Debug, Clone)]
pub(crate) struct Encrypts(Arc<ClientConfig>);

/// Encrypts one connection.
pub(crate) struct EncryptsOne {
    with: TlsConnector,
    host: ServerName<'static>,
}

impl<S> MakeTlsConnect<S> for Encrypts
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type TlsConnect = EncryptsOne;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<EncryptsOne, InvalidDnsNameError> {
        let host = ServerName::try_from(host)?.to_owned();
        Ok(EncryptsOne { with: TlsConnector::from(Arc::clone(&self.0)), host })
    }
}

impl<S> TlsConnect<S> for EncryptsOne
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { self.with.connect(self.host, stream).await.map(Encrypted) })
    }
}

/// An encrypted connection.
pub(crate) struct Encrypted<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    /// None: a password is not bound to the certificate. Whoever fears somebody in between verifies the certificate.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
