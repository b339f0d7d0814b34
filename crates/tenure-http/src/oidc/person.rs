//! The person that claims describe: names and groups that grants match.

use serde_json::Value;

use super::OidcError;
use crate::access::is_control;

/// Longest name, address or group, in bytes.
const TEXT_BYTES: usize = 256;
/// Groups of one person that are read at most.
const GROUPS: usize = 1_000;

/// Names and groups of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Described {
    pub subject: String,
    pub name: Option<String>,
    /// Only if the provider has verified it: otherwise people could enter the address of another person.
    pub email: Option<String>,
    pub groups: Vec<String>,
}

impl Described {
    /// Reads claims of the ID token and of the user info, in this order.
    pub(super) fn read(subject: String, sources: &[&Value], groups_claim: &str) -> Result<Self, OidcError> {
        let text = |name: &str| sources.iter().find_map(|claims| plain(claims[name].as_str()?));
        let is_overfull = |claims: &&Value| !claims["_claim_names"][groups_claim].is_null();
        let groups = sources.iter().find_map(|claims| groups(claims, groups_claim));
        if groups.is_none() && sources.iter().any(is_overfull) {
            let why = "it sent no groups, because the person is in too many; let it send only groups of this application";
            return Err(OidcError::Provider(why.to_owned()));
        }
        Ok(Self {
            subject,
            name: text("name").or_else(|| text("preferred_username")),
            email: sources.iter().find_map(|claims| verified_email(claims)),
            groups: groups.unwrap_or_default(),
        })
    }

    /// Returns the name that `person:` grants match: the verified address, or the subject. A subject with an at sign could be
    /// the address of another person, so it matches nothing.
    pub(super) fn names(&self) -> Vec<&str> {
        let subject = Some(self.subject.as_str()).filter(|subject| !subject.contains('@'));
        self.email.as_deref().into_iter().chain(subject).collect()
    }

    /// Returns a name for people.
    pub(super) fn label(&self) -> &str {
        self.email.as_deref().or(self.name.as_deref()).unwrap_or(&self.subject)
    }
}

/// Returns the groups in a claim; `None` if the claim is absent.
pub(super) fn groups(claims: &Value, claim: &str) -> Option<Vec<String>> {
    // Some providers have dots in the names of claims, and others nest objects.
    let found = claims.get(claim).or_else(|| {
        claim.split('.').try_fold(claims, |claims, name| claims.get(name)).filter(|_| claim.contains('.'))
    })?;
    let all = found.as_array().map_or(std::slice::from_ref(found), Vec::as_slice);
    Some(all.iter().filter_map(|group| plain(group.as_str()?)).take(GROUPS).collect())
}

fn verified_email(claims: &Value) -> Option<String> {
    let is_verified = claims["email_verified"] == true || claims["email_verified"] == "true";
    plain(claims["email"].as_str()?).filter(|email| is_verified && email.contains('@'))
}

/// A text of one short line.
fn plain(text: &str) -> Option<String> {
    ((1..=TEXT_BYTES).contains(&text.len()) && !text.contains(is_control)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn groups_are_a_list_a_text_or_nested() {
        let claims = json!({
            "groups": ["ops", 7, "a\nb", "dev"], "role": "admin", "https://corp/groups": ["x"],
            "realm_access": { "roles": ["viewer"] },
        });
        let of = |claim: &str| groups(&claims, claim);
        assert_eq!(of("groups").unwrap(), ["ops", "dev"]);
        assert_eq!(of("role").unwrap(), ["admin"]);
        assert_eq!(of("https://corp/groups").unwrap(), ["x"]);
        assert_eq!(of("realm_access.roles").unwrap(), ["viewer"]);
        assert_eq!(of("realm_access").unwrap(), [""; 0]);
        assert_eq!((of("absent"), of("role.x"), of("")), (None, None, None));
    }

    #[test]
    fn only_a_verified_address_is_a_name() {
        let read =
            |subject: &str, claims: Value| Described::read(subject.to_owned(), &[&claims], "groups").unwrap();
        let names = |subject: &str, claims| -> Vec<String> {
            read(subject, claims).names().into_iter().map(str::to_owned).collect()
        };
        let ada = "ada@corp.example";
        assert_eq!(names("7", json!({ "email": ada, "email_verified": true })), [ada, "7"]);
        for verified in [json!(false), json!(null), json!("no"), json!(1)] {
            assert_eq!(names("7", json!({ "email": ada, "email_verified": verified })), ["7"]);
        }
        assert_eq!(names(ada, json!({})), [""; 0], "a subject that looks like an address");
        let overfull = json!({ "_claim_names": { "groups": "src1" } });
        assert!(Described::read("7".to_owned(), &[&overfull], "groups").is_err());
    }
}
