//! Client certificates: a connection whose certificate is bound to an access token needs no token in its requests.

use std::sync::Arc;

/// SHA-256 fingerprint of the client's certificate, in lower-case hex. The server has verified the certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientCertificate(pub Arc<str>);
