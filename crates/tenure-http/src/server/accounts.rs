//! Users at the other end of a Unix socket, and their scopes.

use std::sync::Arc;

use axum::http::HeaderMap;

use super::socket::Own;
use crate::access::{LocalUid, NoGrant, Principal, Scope};
use crate::grants::{Account, Grants};

/// Files in which a system lists its users and groups.
const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";
/// Headers of a request that a proxy or a browser has sent, besides those that begin with `x-forwarded-` or `sec-`.
const PASSED_ON: [&str; 8] =
    ["forwarded", "via", "origin", "cookie", "referer", "x-real-ip", "x-client-ip", "cf-connecting-ip"];

/// A user at the other end of a connection.
#[derive(Debug, Clone)]
pub(super) struct LocalUser {
    uid: u32,
    name: Arc<str>,
    scopes: Vec<Scope>,
}

impl LocalUser {
    /// Looks up a user and its scopes, by the numbers that the kernel reports. The server's own user is `admin`, unless a
    /// grant is for its number. If a file is unreadable, no grant matches by its names.
    pub(super) fn find((uid, gid): (u32, u32), own: Own, grants: &Grants) -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self::of(&account((uid, gid), &read(USERS), &read(GROUPS)), own, grants)
    }

    fn of(account: &Account, Own(own): Own, grants: &Grants) -> Self {
        let name = account.name.clone().unwrap_or_else(|| account.uid.to_string());
        let granted = grants.of_account(account);
        let is_admin = Some(account.uid) == own && !grants.names(account);
        let scopes = if is_admin { vec![Scope::Admin] } else { granted };
        Self { uid: account.uid, name: format!("unix:{name}").into(), scopes }
    }

    /// Returns the number of the user.
    pub(super) fn uid(&self) -> LocalUid {
        LocalUid(self.uid)
    }

    /// Returns the identity of a request. A request that a proxy passed on is not its user's: it needs a token.
    pub(super) fn identity(&self, headers: &HeaderMap) -> Result<Principal, NoGrant> {
        let refuse = |detail: String| NoGrant { name: Arc::clone(&self.name), detail: detail.into() };
        if let Some(header) = passed_on(headers) {
            return Err(refuse(format!(
                "a proxy or browser sent this request (header {header}), so it needs a bearer token; the grant of the \
                 proxy's user does not extend to its clients"
            )));
        }
        if self.scopes.is_empty() {
            let user = self.name.strip_prefix("unix:").unwrap_or_default();
            return Err(refuse(format!(
                "user {user} has no grant; start the server with --grant unix-user:{user}=SCOPES, or send a bearer token"
            )));
        }
        Ok(Principal { name: self.name.to_string(), scopes: self.scopes.clone() })
    }
}

/// Replaces the names of users in grants by numbers, which no later failure of a lookup can change. Returns the name of
/// an unknown user as error.
pub(super) fn with_numbers(grants: Grants) -> Result<Grants, String> {
    let users = std::fs::read_to_string(USERS).unwrap_or_default();
    grants.with_numbers(|name| number(name, &users))
}

/// Returns the number of a user from the text of the system's file.
fn number(name: &str, users: &str) -> Option<u32> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    })
}

/// Returns a header that a proxy or browser adds, if the request has one. No browser connects to a Unix socket itself.
fn passed_on(headers: &HeaderMap) -> Option<&str> {
    let is_such =
        |name: &&str| name.starts_with("x-forwarded") || name.starts_with("sec-") || PASSED_ON.contains(name);
    headers.keys().map(|name| name.as_str()).find(is_such)
}

/// Reads the names of a user and its groups from the texts of the system's files.
fn account((uid, gid): (u32, u32), users: &str, groups: &str) -> Account {
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    let mut found = vec![(gid, None)];
    for line in groups.lines() {
        let mut fields = line.split(':');
        let (Some(group), Some(number)) = (fields.next(), fields.nth(1)) else { continue };
        let Ok(number) = number.parse() else { continue };
        let is_member = |members: &str| members.split(',').any(|member| name.as_deref() == Some(member));
        if number == gid || fields.next().is_some_and(is_member) {
            found.push((number, Some(group.to_owned())));
        }
    }
    Account { uid, name, groups: found }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str =
        "root:x:0:0::/root:/bin/sh\nbroken\ntenure:x:900:900::/:/bin/false\nada:x:1001:1001::/:/bin/sh\n";
    const GROUPS: &str =
        "root:x:0:\nbroken\nops:x:50:eve,ada\ntenure:x:900:\nada:x:1001:\nadat:x:51:ad,adam\n";

    fn scopes(uid: u32, grants: &[&str]) -> Vec<Scope> {
        LocalUser::of(&account((uid, uid), USERS, GROUPS), Own(Some(900)), &numbered(grants).unwrap()).scopes
    }

    fn numbered(grants: &[&str]) -> Result<Grants, String> {
        let grants = Grants::new(grants.iter().map(|grant| grant.parse().unwrap()).collect());
        grants.with_numbers(|name| number(name, USERS))
    }

    #[test]
    fn a_grant_for_the_servers_own_user_holds_without_the_systems_files() {
        let grants = numbered(&["unix-user:tenure=none", "unix-user:ada=read"]).unwrap();
        let of = |uid| LocalUser::of(&account((uid, uid), "", ""), Own(Some(900)), &grants).scopes;
        assert_eq!((of(900), of(1001)), (vec![], vec![Scope::Read]));
        assert_eq!(numbered(&["unix-user:dynamic=none"]).unwrap_err(), "dynamic");
        assert_eq!(numbered(&["unix-user:broken=none"]).unwrap_err(), "broken");
        assert!(numbered(&["unix-user:*=read", "unix-user:dyn*=read", "group:dynamic=read"]).is_ok());
    }

    #[test]
    fn a_user_that_shares_its_number_with_unknown_ones_is_no_admin() {
        let user = LocalUser::of(&account((65_534, 65_534), USERS, GROUPS), Own(None), &Grants::default());
        assert_eq!(user.scopes, []);
    }

    #[test]
    fn only_the_servers_own_user_has_scopes_without_a_grant() {
        assert_eq!(scopes(900, &[]), [Scope::Admin]);
        assert_eq!(scopes(900, &["unix-user:*=read", "unix-group:tenure=work"]), [Scope::Admin]);
        assert_eq!(scopes(900, &["unix-user:tenure=read"]), [Scope::Read]);
        assert_eq!(scopes(900, &["unix-user:900=none"]), []);
        for other in [0, 1001, 65_534] {
            assert_eq!(scopes(other, &["unix-user:tenure=admin"]), [], "{other}");
        }
    }

    #[test]
    fn a_user_has_the_scopes_of_its_name_number_and_groups() {
        assert_eq!(scopes(1001, &["unix-user:ada=read", "unix-group:ops=work"]), [Scope::Work, Scope::Read]);
        assert_eq!(scopes(1001, &["unix-group:50=enqueue"]), [Scope::Enqueue]);
        assert_eq!(scopes(1001, &["unix-group:adat=admin", "unix-user:1=admin", "group:ops=admin"]), []);
        assert_eq!(scopes(4_711, &["unix-user:4711=read"]), [Scope::Read], "a user without a name");
    }

    #[test]
    fn a_request_that_was_passed_on_does_not_have_the_identity_of_its_proxy() {
        let user = LocalUser { uid: 7, name: "unix:proxy".into(), scopes: vec![Scope::Admin] };
        assert!(user.identity(&HeaderMap::new()).is_ok());
        for header in
            ["x-forwarded-for", "x-forwarded-host", "forwarded", "via", "origin", "cookie", "sec-fetch-site"]
        {
            let mut headers = HeaderMap::new();
            headers.insert(header, "x".parse().unwrap());
            let refused = user.identity(&headers).unwrap_err();
            assert!(refused.detail.contains(header), "{header}: {}", refused.detail);
        }
    }
}
