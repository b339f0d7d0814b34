//! People whom a trusted proxy has signed in.

use axum::http::{HeaderMap, HeaderName};
use tenure::Invalid;

use super::{Needs, Principal, Scope, is_control};
use crate::grants::Grants;

/// Longest name of a person or group, in bytes.
const NAME_BYTES: usize = 256;
/// Groups of one person that are read at most.
const GROUPS: usize = 1_000;

/// Headers in which a trusted proxy names the person that it has signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxySignIn {
    user: HeaderName,
    groups: Option<HeaderName>,
}

/// A person whom a trusted proxy has signed in. The server adds it to the extensions of a request, and only the dashboard
/// reads it: the API needs an access token behind such a proxy, too.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxiedPerson {
    /// The person, with the scopes that the server's grants give.
    pub principal: Principal,
    /// `true` if the scopes open the dashboard.
    pub may_look: bool,
}

impl ProxySignIn {
    /// Creates the settings from the names of headers, such as `X-Auth-Request-Email` and `X-Auth-Request-Groups`.
    ///
    /// # Errors
    /// An invalid name, or a header with another meaning.
    pub fn new(user: &str, groups: Option<&str>) -> Result<Self, Invalid> {
        let user = name("server.proxy_user_header", user)?;
        let groups = groups.map(|groups| name("server.proxy_groups_header", groups)).transpose()?;
        if groups.as_ref() == Some(&user) {
            let found = "the header that names the user";
            return Err(Invalid::new("server.proxy_groups_header", found, "another header"));
        }
        Ok(Self { user, groups })
    }

    /// Takes the headers out of a request, and returns the person if a trusted proxy has sent them.
    pub(crate) fn take(
        &self,
        headers: &mut HeaderMap,
        is_trusted: bool,
        grants: &Grants,
    ) -> Option<ProxiedPerson> {
        let user = one(headers, &self.user).filter(|user| is_name(user));
        let groups = self.groups.as_ref().map(|header| all(headers, header)).unwrap_or_default();
        headers.remove(&self.user);
        self.groups.as_ref().and_then(|header| headers.remove(header));
        let user = user.filter(|_| is_trusted)?;
        let scopes = grants.of_person(&[&user], &groups);
        let may_look = Needs::One(&[Scope::Read]).are_met(&scopes);
        Some(ProxiedPerson { principal: Principal { name: format!("proxy:{user}"), scopes }, may_look })
    }
}

fn name(field: &str, text: &str) -> Result<HeaderName, Invalid> {
    let allowed = "a header that only the proxy sets, such as X-Forwarded-User";
    let wrong =
        || Invalid::new(field, format_args!("{:?}", text.chars().take(100).collect::<String>()), allowed);
    let header: HeaderName = text.parse().map_err(|_| wrong())?;
    let has_meaning = [
        "authorization",
        "connection",
        "content-length",
        "cookie",
        "forwarded",
        "host",
        "origin",
        "referer",
        "sec-fetch-site",
        "transfer-encoding",
        "user-agent",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-request-id",
    ];
    if has_meaning.contains(&header.as_str()) { Err(wrong()) } else { Ok(header) }
}

/// Returns the value of a header that is there once. A client's own header beside that of the proxy must not decide.
fn one(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    std::str::from_utf8(value.as_bytes()).ok().map(|value| value.trim().to_owned())
}

/// Returns the names in a list that commas separate.
fn all(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let line = one(headers, name).unwrap_or_default();
    let names = line.split(',').map(str::trim).filter(|name| is_name(name));
    names.take(GROUPS).map(str::to_owned).collect()
}

fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES).contains(&text.len()) && !text.contains(is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(sent: &[(&str, &str)], is_trusted: bool) -> (Option<ProxiedPerson>, HeaderMap) {
        let grants =
            ["person:ada=manage", "person:bob@corp.example=enqueue", "group:ops=read", "group:a b=work"];
        let grants = Grants::new(grants.iter().map(|grant| grant.parse().unwrap()).collect());
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let sign_in = ProxySignIn::new("X-Forwarded-User", Some("X-Forwarded-Groups")).unwrap();
        (sign_in.take(&mut headers, is_trusted, &grants), headers)
    }

    #[test]
    fn only_one_header_of_a_trusted_proxy_counts_and_none_stays() {
        let (user, groups) = ("x-forwarded-user", "x-forwarded-groups");
        let person = taken(&[(user, "ada"), (groups, "dev, ops,a b,")], true).0.unwrap();
        assert_eq!(person.principal.name, "proxy:ada");
        assert_eq!(person.principal.scopes, [Scope::Work, Scope::Read, Scope::Manage]);
        for (sent, is_trusted) in [
            (&[(user, "ada"), (groups, "ops")][..], false),
            (&[(user, "ada"), (user, "bob")], true),
            (&[(user, "")], true),
            (&[(groups, "ops")], true),
            (&[("x_forwarded_user", "ada")], true),
        ] {
            let (person, left) = taken(sent, is_trusted);
            assert_eq!(person, None, "{sent:?}");
            assert!(!left.contains_key(user) && !left.contains_key(groups), "{sent:?}");
        }
        let twice = taken(&[(user, "eve"), (groups, "dev"), (groups, "ops")], true).0.unwrap();
        assert_eq!(twice.principal.scopes, [], "a second list is one that the client has sent");
    }

    #[test]
    fn a_person_without_a_scope_to_read_may_not_look() {
        let may_look = |user| taken(&[("x-forwarded-user", user)], true).0.unwrap().may_look;
        assert!(may_look("ada"));
        assert!(!may_look("bob@corp.example") && !may_look("Ada") && !may_look("eve"));
    }

    #[test]
    fn a_header_with_another_meaning_names_no_person() {
        for name in ["Host", "authorization", "X-Forwarded-For", "cookie", "", "X User", "X-Usér"] {
            assert!(ProxySignIn::new(name, None).is_err(), "{name:?}");
        }
        assert!(ProxySignIn::new("X-User", Some("x-user")).is_err());
    }
}
