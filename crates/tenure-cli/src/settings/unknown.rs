//! Variables that look like settings and are none: whoever set them believes that they count.

use std::collections::BTreeMap;

use super::known::KNOWN;
use crate::near::nearest;

/// Beside those of settings.
const OTHERS: [&str; 6] = [
    "TENURE_CONFIG",
    "TENURE_TOKEN_FILE",
    "TENURE_LEASE",
    "TENURE_FENCE",
    "TENURE_LEASE_TOKEN",
    crate::zones::VARIABLE,
];

/// What there is to say of each of these that nothing reads. A name with `__` is that of a setting, and refused elsewhere.
pub(super) fn unknown(variables: &BTreeMap<String, String>) -> Vec<String> {
    let named = KNOWN.iter().flat_map(|setting| {
        let files = |name: &String| setting.is_secret.then(|| format!("{name}_FILE"));
        let names = setting.variables();
        names.iter().filter_map(files).chain(names.iter().cloned()).collect::<Vec<_>>()
    });
    let known: Vec<String> = named.chain(OTHERS.map(str::to_owned)).collect();
    let odd = variables.iter().filter(|(name, value)| {
        !name.contains("__") && !known.contains(name) && !is_of_a_service(name, value)
    });
    odd.map(|(name, _)| {
        // As somebody guesses it from the section and the key of a file.
        let guessed = known.iter().find(|known| known.replace("__", "_") == *name).map(String::as_str);
        let near = guessed.or_else(|| nearest(name, known.iter().map(String::as_str)));
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        format!("ignored unknown variable {name}{near}")
    })
    .collect()
}

/// Kubernetes tells every container of a service named tenure by such variables.
fn is_of_a_service(name: &str, value: &str) -> bool {
    name.contains("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || name.contains("_PORT_")
        || (name.ends_with("_PORT") && value.contains("://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_nothing_reads_is_told_with_the_one_that_was_meant() {
        let variables = [
            ("TENURE_SERVER_BIND", "0.0.0.0:80"),
            ("TENURE_DATABASE__URL_FILE", "url"),
            ("TENURE_TOKN", "t"),
            ("TENURE_OTHER_PROGRAM", "x"),
            ("TENURE_LEASE", "billing"),
            ("TENURE_SERVER__BNID", "x"),
            ("TENURE_PORT", "tcp://10.0.0.1:8368"),
            ("TENURE_PORT_8368_TCP_ADDR", "10.0.0.1"),
            ("TENURE_SERVICE_HOST", "10.0.0.1"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let told = unknown(&variables.into_iter().collect());
        assert_eq!(
            told,
            [
                "ignored unknown variable TENURE_OTHER_PROGRAM",
                "ignored unknown variable TENURE_SERVER_BIND; did you mean TENURE_SERVER__BIND?",
                "ignored unknown variable TENURE_TOKN; did you mean TENURE_TOKEN?",
            ]
        );
    }
}
