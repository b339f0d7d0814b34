//! Clients that prove their identity without an access token: local users, and certificates by their names.

use std::sync::Arc;

use tenure::Timestamp;

use super::tokens::{AccessToken, TokenQuotas};
use super::{Reach, Scope};

/// A client that proved its identity without an access token. A program adds it to the extensions of a request. An
/// `Authorization` header takes precedence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Name for the audit log and as owner of jobs, such as `unix:deploy` or `cert:spiffe://corp/worker/1`.
    pub name: String,
    /// Scopes that the server's grants give it.
    pub scopes: Vec<Scope>,
}

/// Number of the user at the other end of a Unix socket. The server adds it to the extensions of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalUid(pub u32);

/// A client that has proved its identity, but has no scopes here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoGrant {
    /// Name for the audit log.
    pub name: Arc<str>,
    /// Reason, and the remedy.
    pub detail: Arc<str>,
}

impl Principal {
    /// Returns an access token with these scopes that no store has. It covers the whole store and has no quotas.
    pub(super) fn token(&self) -> AccessToken {
        AccessToken {
            id: self.name.clone(),
            name: self.name.clone(),
            scopes: self.scopes.clone(),
            reach: Reach::whole(),
            quotas: TokenQuotas::default(),
            created: Timestamp::EPOCH,
            expires: None,
            certificate_sha256: None,
            last_used: None,
        }
    }
}
