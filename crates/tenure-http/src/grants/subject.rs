//! Subjects of grants, and the clients that they match.

use std::fmt;

use tenure::Invalid;

use super::pattern::Pattern;

/// Beginning of a pattern for the common name of a certificate.
const COMMON_NAME: &str = "CN=";

/// The subject of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Subject {
    /// A user of this machine, by name or number.
    User(Pattern),
    /// A group of this machine, by name or number.
    LocalGroup(Pattern),
    /// A name in a client certificate.
    Certificate(CertificatePattern),
    /// A group that a sign-in reports.
    Group(Pattern),
    /// A person who signs in.
    Person(Pattern),
}

/// A pattern for one kind of name in a certificate. A common name never stands in for another kind: a CA may let
/// clients choose it freely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CertificatePattern {
    CommonName(Pattern),
    Dns(Pattern),
    Uri(Pattern),
}

/// The user at the other end of a Unix socket, as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub uid: u32,
    /// Name of the user, if this machine knows one.
    pub name: Option<String>,
    /// Numbers and names of the user's groups.
    pub groups: Vec<(u32, Option<String>)>,
}

/// Names in a client certificate, which the server has verified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CertificateNames {
    pub common_name: Option<String>,
    pub dns: Vec<String>,
    pub uris: Vec<String>,
}

impl Subject {
    /// Reads a subject; `None` if its kind or name is invalid.
    pub(super) fn of(kind: &str, name: &str) -> Result<Option<Self>, Invalid> {
        Ok(match kind {
            "unix-user" => Pattern::of(name).map(Self::User),
            "unix-group" => Pattern::of(name).map(Self::LocalGroup),
            "group" => Pattern::of(name).map(Self::Group),
            "person" => {
                let pattern = Pattern::of(name);
                // `ada@corp*` would also match `ada@corp.attacker.example`.
                if pattern.as_ref().is_some_and(|pattern| pattern.begins_with(|name| name.contains('@'))) {
                    let allowed = "a star before the @ or alone, such as person:*, or the whole address";
                    return Err(Invalid::new("grant", format_args!("{name:?}"), allowed));
                }
                pattern.map(Self::Person)
            }
            "cert" => CertificatePattern::of(name)?.map(Self::Certificate),
            _ => None,
        })
    }

    /// Replaces the name of one local user by its number. Returns a name that has no number as error.
    pub(super) fn with_number(self, number: impl Fn(&str) -> Option<u32>) -> Result<Self, String> {
        match self {
            Self::User(Pattern::Equals(name)) if !is_number(&name) => match number(&name) {
                Some(number) => Ok(Self::User(Pattern::Equals(number.to_string()))),
                None => Err(name),
            },
            subject @ (Self::User(_)
            | Self::LocalGroup(_)
            | Self::Certificate(_)
            | Self::Group(_)
            | Self::Person(_)) => Ok(subject),
        }
    }

    /// Returns `true` for one local user, named without a star.
    pub(super) fn is_one_user(&self) -> bool {
        matches!(self, Self::User(Pattern::Equals(_)))
    }
}

impl CertificatePattern {
    fn of(text: &str) -> Result<Option<Self>, Invalid> {
        if let Some(name) = text.strip_prefix(COMMON_NAME) {
            return Ok(Pattern::of(name).map(Self::CommonName));
        }
        let Some(pattern) = Pattern::of(text) else { return Ok(None) };
        let Some((scheme, rest)) = pattern.name().split_once("://") else {
            // `worker.corp*` would also match `worker.corp.attacker.example`.
            if pattern.begins_with(|name| name.contains('.')) {
                let allowed = "a DNS name with the star before the first dot, or without a star";
                return Err(Invalid::new("grant", format_args!("{text:?}"), allowed));
            }
            return Ok(Some(Self::Dns(pattern.to_lower_case())));
        };
        // With the star in the host, `spiffe://corp*` would also match `spiffe://corp.attacker.example`.
        let has_host = rest
            .split_once('/')
            .map_or(!rest.is_empty() && text == pattern.name(), |(host, _)| !host.is_empty());
        if scheme.is_empty() || !has_host {
            let allowed = "a URI with the star behind the host and a slash, such as spiffe://corp/*";
            return Err(Invalid::new("grant", format_args!("{text:?}"), allowed));
        }
        Ok(Some(Self::Uri(pattern)))
    }
}

impl Account {
    /// Returns `true` if this user is the subject, or in it.
    pub(super) fn is(&self, subject: &Subject) -> bool {
        match subject {
            Subject::User(pattern) => is_named(pattern, self.uid, self.name.as_deref()),
            Subject::LocalGroup(pattern) => {
                self.groups.iter().any(|(gid, name)| is_named(pattern, *gid, name.as_deref()))
            }
            Subject::Certificate(_) | Subject::Group(_) | Subject::Person(_) => false,
        }
    }
}

fn is_number(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Compares digits with a number only, so that a user whose name is `1000` is not taken for user 1000.
fn is_named(pattern: &Pattern, number: u32, name: Option<&str>) -> bool {
    match pattern {
        Pattern::Equals(digits) if is_number(digits) => digits.parse() == Ok(number),
        Pattern::Equals(_) | Pattern::BeginsWith(_) => {
            pattern.is_star() || name.is_some_and(|name| pattern.matches(name))
        }
    }
}

impl CertificateNames {
    /// Returns the name that a subject matches, as people write it.
    pub(super) fn matched(&self, subject: &Subject) -> Option<String> {
        let Subject::Certificate(pattern) = subject else { return None };
        match pattern {
            CertificatePattern::CommonName(pattern) => {
                let name = self.common_name.as_ref().filter(|name| pattern.matches(name))?;
                Some(format!("{COMMON_NAME}{name}"))
            }
            CertificatePattern::Dns(pattern) => {
                let names = self.dns.iter().map(|name| name.to_ascii_lowercase());
                names.into_iter().find(|name| pattern.matches(name))
            }
            CertificatePattern::Uri(pattern) => {
                self.uris.iter().find(|uri| is_plain(uri) && pattern.matches(uri)).cloned()
            }
        }
    }
}

/// Returns `true` for a URI whose path says the same however it is read: no dots, escapes or query.
fn is_plain(uri: &str) -> bool {
    let odd = |sign: char| {
        matches!(sign, '%' | '?' | '#' | '\\' | '*') || sign.is_control() || sign.is_whitespace()
    };
    !uri.contains(odd) && !uri.split('/').skip(3).any(|part| matches!(part, "." | ".."))
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(pattern) => write!(f, "unix-user:{pattern}"),
            Self::LocalGroup(pattern) => write!(f, "unix-group:{pattern}"),
            Self::Certificate(CertificatePattern::CommonName(pattern)) => {
                write!(f, "cert:{COMMON_NAME}{pattern}")
            }
            Self::Certificate(CertificatePattern::Dns(pattern) | CertificatePattern::Uri(pattern)) => {
                write!(f, "cert:{pattern}")
            }
            Self::Group(pattern) => write!(f, "group:{pattern}"),
            Self::Person(pattern) => write!(f, "person:{pattern}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(text: &str) -> Subject {
        let (kind, name) = text.split_once(':').unwrap();
        Subject::of(kind, name).unwrap().unwrap()
    }

    #[test]
    fn a_user_is_matched_by_name_or_number_and_a_name_of_digits_is_no_number() {
        let account = |uid, name: Option<&str>| Account {
            uid,
            name: name.map(str::to_owned),
            groups: vec![(50, None), (7, Some("ops".to_owned()))],
        };
        let is = |text: &str, uid, name| account(uid, name).is(&subject(text));
        assert!(is("unix-user:deploy", 1000, Some("deploy")));
        assert!(is("unix-user:1000", 1000, None) && is("unix-user:*", 1000, None));
        assert!(!is("unix-user:1000", 1001, Some("1000")), "a name of digits");
        assert!(!is("unix-user:deploy", 1000, Some("deployer")));
        assert!(!is("unix-user:ploy", 1000, Some("deploy")), "not in the middle");
        assert!(is("unix-group:ops", 1, None) && is("unix-group:50", 1, None));
        assert!(!is("unix-group:op", 1, None) && !is("unix-group:5", 1, None));
        assert!(!is("group:ops", 1, None), "a group of a sign-in is another one");
    }

    #[test]
    fn each_kind_of_name_in_a_certificate_is_matched_only_by_its_own_patterns() {
        let names = CertificateNames {
            common_name: Some("spiffe://corp/worker/1".to_owned()),
            dns: vec!["Worker-1.corp.example".to_owned()],
            uris: vec!["spiffe://corp/mail/1".to_owned(), "spiffe://corp/worker/../admin".to_owned()],
        };
        let matched = |text| names.matched(&subject(text));
        assert_eq!(matched("cert:spiffe://corp/mail/*").as_deref(), Some("spiffe://corp/mail/1"));
        assert_eq!(matched("cert:worker-1.corp.example").as_deref(), Some("worker-1.corp.example"));
        assert_eq!(matched("cert:CN=spiffe://corp/worker/*").as_deref(), Some("CN=spiffe://corp/worker/1"));
        for other in [
            "cert:spiffe://corp/worker/*",
            "cert:spiffe://corp/mail",
            "cert:spiffe://corp/mai",
            "cert:CN=worker-1.corp.example",
            "cert:corp.example",
            "cert:mail/*",
        ] {
            assert_eq!(matched(other), None, "{other}");
        }
    }
}
