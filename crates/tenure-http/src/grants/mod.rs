//! Scopes of clients that prove their identity without an access token: local users, client certificates, and groups of
//! a sign-in.
//!
//! All grants have one syntax: `unix-user:deploy=manage`, `cert:spiffe://corp/worker/*=work`, `group:ops=admin`.

mod pattern;
mod subject;

use std::fmt;
use std::str::FromStr;

use tenure::Invalid;

use crate::access::Scope;
use pattern::Pattern;
use subject::Subject;
pub(crate) use subject::{Account, CertificateNames};

/// Longest grant, in bytes.
const GRANT_BYTES: usize = 1_024;
/// The scopes of a grant that gives none, such as to the server's own user in place of `admin`.
const NO_SCOPES: &str = "none";
/// An example of each kind of grant, for errors.
const EXAMPLES: &str = "KIND:NAME=SCOPES, such as unix-user:deploy=manage, unix-group:ops=read, \
                        cert:spiffe://corp/worker/*=work, group:ops=read+enqueue or person:ada@corp.example=admin";

/// A rule that gives scopes to a local user, a client certificate or a group.
///
/// ```
/// use tenure_http::{Grant, Scope};
///
/// let grant: Grant = "unix-user:deploy=manage+work".parse()?;
/// assert_eq!(grant.scopes(), [Scope::Work, Scope::Manage]);
/// # Ok::<(), tenure::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    subject: Subject,
    scopes: Vec<Scope>,
}

/// All grants of a server. A client gets the scopes of every grant that matches it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants(Vec<Grant>);

impl Grant {
    /// Returns the scopes, sorted.
    #[must_use]
    pub fn scopes(&self) -> &[Scope] {
        &self.scopes
    }
}

impl Grants {
    /// Creates the grants of a server.
    #[must_use]
    pub fn new(grants: Vec<Grant>) -> Self {
        Self(grants)
    }

    /// Returns `true` if a grant names groups of a sign-in.
    #[must_use]
    pub fn has_groups(&self) -> bool {
        self.0.iter().any(|grant| matches!(grant.subject, Subject::Group(_)))
    }

    /// Returns the scopes of a member of these groups; none if no grant matches.
    #[must_use]
    pub fn of_groups(&self, groups: &[String]) -> Vec<Scope> {
        self.of(|subject| matches!(subject, Subject::Group(pattern) if groups.iter().any(|group| pattern.matches(group))))
    }

    /// Returns the scopes of a person with these names, who is a member of these groups.
    pub(crate) fn of_person(&self, names: &[&str], groups: &[String]) -> Vec<Scope> {
        let is_named = |pattern: &Pattern| names.iter().any(|name| pattern.matches(name));
        let persons = self.of(|subject| matches!(subject, Subject::Person(pattern) if is_named(pattern)));
        sorted([persons, self.of_groups(groups)].concat())
    }

    /// Returns `true` if a grant names people or groups of a sign-in.
    #[must_use]
    pub fn has_people(&self) -> bool {
        self.has_groups() || self.0.iter().any(|grant| matches!(grant.subject, Subject::Person(_)))
    }

    /// Returns `true` if a grant names certificates.
    pub(crate) fn has_certificates(&self) -> bool {
        self.0.iter().any(|grant| matches!(grant.subject, Subject::Certificate(_)))
    }

    /// Replaces the names of single local users by their numbers. Returns a name that has no number as error.
    pub(crate) fn with_numbers(self, number: impl Fn(&str) -> Option<u32>) -> Result<Self, String> {
        let replaced = self.0.into_iter().map(|grant| {
            let subject = grant.subject.with_number(&number)?;
            Ok(Grant { subject, ..grant })
        });
        replaced.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the scopes of a local user.
    pub(crate) fn of_account(&self, account: &Account) -> Vec<Scope> {
        self.of(|subject| account.is(subject))
    }

    /// Returns `true` if a grant is for this local user alone, by name or number.
    pub(crate) fn names(&self, account: &Account) -> bool {
        self.0.iter().any(|grant| grant.subject.is_one_user() && account.is(&grant.subject))
    }

    /// Returns the scopes of a client certificate, and the name that the first matching grant matches.
    pub(crate) fn of_certificate(&self, names: &CertificateNames) -> Option<(String, Vec<Scope>)> {
        let name = self.0.iter().find_map(|grant| names.matched(&grant.subject))?;
        Some((name, self.of(|subject| names.matched(subject).is_some())))
    }

    fn of(&self, is_matched: impl Fn(&Subject) -> bool) -> Vec<Scope> {
        let matched = self.0.iter().filter(|grant| is_matched(&grant.subject));
        sorted(matched.flat_map(|grant| grant.scopes.iter().copied()).collect())
    }
}

impl FromStr for Grant {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let shown: String = text.chars().take(100).collect();
        let wrong = || Invalid::new("grant", format_args!("{shown:?}"), EXAMPLES);
        if text.len() > GRANT_BYTES || text.chars().any(char::is_control) {
            return Err(wrong());
        }
        // A name may contain `=`; a scope does not.
        let (subject, scopes) = text.rsplit_once('=').ok_or_else(wrong)?;
        let (kind, name) = subject.split_once(':').ok_or_else(wrong)?;
        let subject = Subject::of(kind, name)?.ok_or_else(wrong)?;
        if scopes == NO_SCOPES && name.ends_with('*') {
            let allowed = "a name without a star, such as unix-user:tenure=none: other users have no scope without a grant";
            return Err(Invalid::new("grant", format_args!("{shown:?}"), allowed));
        }
        if scopes == NO_SCOPES {
            return Ok(Self { subject, scopes: Vec::new() });
        }
        let scopes = scopes.split('+').map(str::parse).collect::<Result<Vec<Scope>, _>>()?;
        Ok(Self { subject, scopes: sorted(scopes) })
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scopes: Vec<&str> = self.scopes.iter().map(|scope| scope.as_str()).collect();
        if scopes.is_empty() {
            return write!(f, "{}={NO_SCOPES}", self.subject);
        }
        write!(f, "{}={}", self.subject, scopes.join("+"))
    }
}

fn sorted(mut scopes: Vec<Scope>) -> Vec<Scope> {
    scopes.sort_unstable();
    scopes.dedup();
    scopes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(texts: &[&str]) -> Grants {
        Grants::new(texts.iter().map(|text| text.parse().unwrap()).collect())
    }

    #[test]
    fn a_grant_is_read_and_written_the_same_way() {
        for text in [
            "unix-user:deploy=manage",
            "unix-user:1000=enqueue+work",
            "unix-user:*=read",
            "unix-user:tenure=none",
            "unix-group:ops=read",
            "cert:spiffe://corp/worker/*=work",
            "cert:worker-1.corp.example=work",
            "cert:CN=billing=enqueue",
            "group:ops=admin",
            "person:ada@corp.example=admin",
            "person:*=read",
            "group:a:b=c=read",
        ] {
            assert_eq!(text.parse::<Grant>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_wrong_grant_is_refused_with_an_example() {
        for text in [
            "",
            "deploy=read",
            "unix-user:deploy",
            "unix-user:=read",
            "user:deploy=read",
            "unix-user:de*ploy=read",
            "unix-user:deploy=read,enqueue",
            "unix-user:deploy=",
            "unix-user:deploy=root",
            "group:**=read",
            "group:a\nb=read",
            "cert:CN==read",
            "cert:spiffe://corp*=work",
            "cert:spiffe://*=work",
            "cert:*://corp/=work",
            "cert:worker.corp*=work",
            "cert:worker.*=work",
            "person:ada@*=read",
            "person:ada@corp.example*=read",
            "unix-user:*=none",
            "unix-user:ten*=none",
        ] {
            assert!(text.parse::<Grant>().is_err(), "{text:?}");
        }
        let error = "user:deploy=read".parse::<Grant>().unwrap_err().to_string();
        assert!(error.contains("unix-user:deploy=manage"), "{error}");
    }

    #[test]
    fn a_member_of_several_groups_has_the_scopes_of_all_of_them() {
        let grants = grants(&["group:ops-*=manage", "group:dev=read+enqueue", "unix-group:admins=admin"]);
        let of = |groups: &[&str]| {
            grants.of_groups(&groups.iter().map(|group| (*group).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["dev", "ops-eu"]), [Scope::Enqueue, Scope::Read, Scope::Manage]);
        for other in ["devs", "Dev", "my-ops-eu", "ops", "admins", "group:dev", ""] {
            assert_eq!(of(&[other]), [], "{other:?}");
        }
        assert!(grants.has_groups() && !grants.has_certificates());
    }
}
