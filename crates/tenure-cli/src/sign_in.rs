//! Settings by which people sign in to the dashboard: an identity provider, or a proxy that names them.

use tenure_http::{Access, OidcOptions, Options, ProxySignIn};

use crate::exit::Failure;
use crate::secrets;
use crate::settings::Resolved;

const ISSUER: &str = "oidc.issuer";
const USER_HEADER: &str = "server.proxy_user_header";
const GROUPS_HEADER: &str = "server.proxy_groups_header";

/// Returns the settings of a sign-in with OpenID Connect, if an issuer is set.
pub(crate) fn oidc(settings: &Resolved, options: &Options) -> Result<Option<OidcOptions>, Failure> {
    let usage = |why: &str| Err(Failure::Usage(why.to_owned()));
    let Some(issuer) = settings.text(ISSUER) else {
        let has_more =
            ["oidc.client_id", "oidc.client_secret"].iter().any(|name| settings.text(name).is_some());
        return if has_more { usage("sign-in needs --oidc-issuer URL") } else { Ok(None) };
    };
    let Some(client_id) = settings.text("oidc.client_id") else {
        return usage("sign-in needs --oidc-client-id ID, as the identity provider shows it");
    };
    if options.public_url.is_none() {
        return usage("sign-in needs --public-url URL: the identity provider sends browsers back there");
    }
    check("--oidc-issuer", options)?;
    let mut oidc = OidcOptions::new(issuer, client_id);
    let secret = settings.text("oidc.client_secret");
    oidc.client_secret = secret.map(|secret| secrets::resolve("oidc.client_secret", secret)).transpose()?;
    if !settings.list("oidc.scopes").is_empty() {
        oidc.scopes = settings.list("oidc.scopes").to_vec();
    }
    if let Some(claim) = settings.text("oidc.groups_claim") {
        oidc.groups_claim = claim.to_owned();
    }
    Ok(Some(oidc))
}

/// Returns the headers in which a proxy names people, if they are set.
pub(crate) fn proxy(settings: &Resolved, options: &Options) -> Result<Option<ProxySignIn>, Failure> {
    let (user, groups) = (settings.text(USER_HEADER), settings.text(GROUPS_HEADER));
    let Some(user) = user else {
        let why = "--proxy-groups-header needs --proxy-user-header NAME";
        return groups.map_or(Ok(None), |_| Err(Failure::Usage(why.to_owned())));
    };
    check("--proxy-user-header", options)?;
    let headers = ProxySignIn::new(user, groups).map_err(|wrong| Failure::Library(wrong.into()))?;
    Ok(Some(headers))
}

/// Refuses a sign-in that would have no effect, or that would let no person in.
fn check(flag: &str, options: &Options) -> Result<(), Failure> {
    if options.access != Access::Tokens {
        return Err(Failure::Usage(format!("{flag} needs --auth tokens")));
    }
    if !options.grants.has_people() {
        let example = "--grant group:ops=manage or --grant person:ada@example.com=admin";
        return Err(Failure::Usage(format!("{flag} needs a grant for people, such as {example}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Env, Layer};

    fn settings(said: &[(&str, &str)]) -> Resolved {
        let said = said.iter().map(|(key, value)| (format!("TENURE_{key}"), (*value).to_owned()));
        Resolved::of_server(&Env { variables: said.collect(), ..Env::default() }, Layer::default(), None)
    }

    fn options() -> Options {
        let mut options = Options::default();
        options.access = Access::Tokens;
        options.public_url = Some("https://jobs.example.com".to_owned());
        options.grants = tenure_http::Grants::new(vec!["group:ops=manage".parse().unwrap()]);
        options
    }

    const OIDC: [(&str, &str); 3] = [
        ("OIDC__ISSUER", "https://id.example"),
        ("OIDC__CLIENT_ID", "tenure"),
        ("OIDC__CLIENT_SECRET", "env:PATH"),
    ];

    #[test]
    fn a_sign_in_has_a_secret_by_reference_and_default_claims() {
        let found = oidc(&settings(&OIDC), &options()).unwrap().unwrap();
        assert_eq!(found.client_secret, std::env::var("PATH").ok());
        assert_eq!((found.groups_claim.as_str(), found.scopes.len()), ("groups", 3));
        assert!(oidc(&settings(&[]), &options()).unwrap().is_none());
        assert!(proxy(&settings(&[]), &options()).unwrap().is_none());
    }

    #[test]
    fn a_sign_in_that_cannot_work_is_refused_at_the_start() {
        let (open, guarded) = (Options::default(), options());
        let why = |said: &[(&str, &str)], options| oidc(&settings(said), options).unwrap_err().to_string();
        assert!(why(&OIDC[1..], &guarded).contains("--oidc-issuer"));
        assert!(why(&OIDC[..1], &guarded).contains("--oidc-client-id"));
        assert!(why(&OIDC, &open).contains("--public-url"));
        let header = settings(&[("SERVER__PROXY_USER_HEADER", "X-Forwarded-User")]);
        assert!(proxy(&header, &options()).unwrap().is_some());
        assert!(proxy(&header, &open).unwrap_err().to_string().contains("--auth tokens"));
        let mut without = options();
        without.grants = tenure_http::Grants::default();
        assert!(proxy(&header, &without).unwrap_err().to_string().contains("--grant"));
        let groups = settings(&[("SERVER__PROXY_GROUPS_HEADER", "X-Forwarded-Groups")]);
        assert!(proxy(&groups, &options()).is_err());
        let host = settings(&[("SERVER__PROXY_USER_HEADER", "Host")]);
        assert!(proxy(&host, &options()).is_err());
    }
}
