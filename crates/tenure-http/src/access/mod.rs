//! Who may ask what.
//!
//! Each route says which right it needs. Whoever asks shows an access token; the store knows of it what it allows, and of
//! its secret only a digest.

mod audited;
mod certificate;
mod guard;
pub(crate) mod known;
pub(crate) mod last_used;
mod principal;
mod proxied;
pub(crate) mod rates;
mod reach;
pub(crate) mod routes;
pub(crate) mod strangers;
pub(crate) mod taken_back;
mod tokens;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure::Invalid;

pub(crate) use certificate::ClientCertificate;
pub(crate) use guard::{Guard, OwnOnly, Who, guarded};
pub use principal::Principal;
pub(crate) use principal::{LocalUid, NoGrant};
pub use proxied::{ProxiedPerson, ProxySignIn};
pub use reach::Reach;
pub(crate) use reach::Within;
pub use strangers::Remote;
pub use tokens::{AccessToken, NewAccessToken, TokenError, TokenQuotas, Tokens};
pub(crate) use tokens::{is_control, parts};

/// The authentication mode of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// No authentication: everybody who can reach the server may do everything. Use it only for a server on a
    /// loopback address or behind an authenticating proxy.
    #[default]
    Open,
    /// Every request needs an access token.
    Tokens,
}

/// A scope of an access token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Enqueue, cancel and delete jobs.
    Enqueue,
    /// Claim and settle jobs, and hold leases.
    Work,
    /// Read everything except webhooks, push endpoints, access tokens and the audit log.
    Read,
    /// Read everything, and change queues, schedules, leases, webhooks, push endpoints and finished jobs.
    Manage,
    /// Everything, including access tokens and the audit log.
    Admin,
}

/// What a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needs {
    /// Nothing: it tells nothing that anybody may not know.
    Nothing,
    /// Nothing; with an access token that reads, the answer has more.
    Optional,
    /// Any access token.
    Anyone,
    /// One of these rights.
    One(&'static [Scope]),
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 5] = [Self::Enqueue, Self::Work, Self::Read, Self::Manage, Self::Admin];

    /// Returns the name of the scope.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Work => "work",
            Self::Read => "read",
            Self::Manage => "manage",
            Self::Admin => "admin",
        }
    }

    /// Whether who has this has the other as well.
    fn gives(self, other: Self) -> bool {
        match self {
            Self::Admin => true,
            Self::Manage => matches!(other, Self::Manage | Self::Read | Self::Enqueue),
            Self::Enqueue | Self::Work | Self::Read => self == other,
        }
    }
}

impl Needs {
    /// Whether somebody with these rights may.
    pub(crate) fn are_met(self, by: &[Scope]) -> bool {
        match self {
            Self::Nothing | Self::Optional | Self::Anyone => true,
            Self::One(of) => by.iter().any(|has| of.iter().any(|needed| has.gives(*needed))),
        }
    }

    /// Returns `true` if only the scope `enqueue` admits a token with these scopes. Such a token reaches only the jobs that
    /// tokens of its name enqueued.
    pub(crate) fn are_met_by_enqueue_alone(self, by: &[Scope]) -> bool {
        let Self::One(of) = self else { return false };
        // On a route that `manage` does not open, `read` is enough to see jobs of other clients.
        let more = if of.contains(&Scope::Manage) { Scope::Manage } else { Scope::Read };
        of.contains(&Scope::Enqueue) && !by.iter().any(|has| has.gives(more))
    }

    /// Returns `true` if the audit log records this action for a token with these scopes: every action that needs `manage`
    /// or `admin`, an operator's action on other clients' jobs, and a worker's action on another worker.
    pub(crate) fn is_audited(self, by: &[Scope]) -> bool {
        let is_operators = |scope: &Scope| matches!(scope, Scope::Manage | Scope::Admin);
        match self {
            Self::Nothing | Self::Optional | Self::Anyone => false,
            Self::One(of) if of.iter().all(is_operators) => true,
            Self::One(of) if of.contains(&Scope::Work) && of.iter().any(is_operators) => true,
            Self::One(of) => of.iter().any(is_operators) && by.iter().any(is_operators),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Optional => f.write_str("nothing; more with read"),
            Self::Anyone => f.write_str("any access token"),
            Self::One(of) => {
                f.write_str(&of.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" or "))
            }
        }
    }
}

impl FromStr for Scope {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let allowed = Self::ALL.map(Self::as_str).join(", ");
        let shown: String = text.chars().take(32).collect();
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| Invalid::new("scope", format_args!("{shown:?}"), allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_gives_itself_and_only_what_it_is_said_to_give() {
        let all =
            |scope: Scope| Scope::ALL.into_iter().filter(|other| scope.gives(*other)).collect::<Vec<_>>();
        assert_eq!(all(Scope::Admin), Scope::ALL);
        assert_eq!(all(Scope::Manage), [Scope::Enqueue, Scope::Read, Scope::Manage]);
        for alone in [Scope::Enqueue, Scope::Work, Scope::Read] {
            assert_eq!(all(alone), [alone]);
        }
        assert!(Needs::Nothing.are_met(&[]) && !Needs::One(&[Scope::Read]).are_met(&[Scope::Work]));
        assert_eq!("manage".parse::<Scope>().unwrap(), Scope::Manage);
        assert_eq!("root".parse::<Scope>().unwrap_err().field, "scope");
    }
}
