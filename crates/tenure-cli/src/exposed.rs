//! Passwords on the command line, which every program of this machine can read.

use std::ffi::OsString;

/// Arguments behind these belong to another program.
const OTHERS: [&str; 2] = ["--exec", "--"];
/// Parameters of a PostgreSQL URL that hold a password.
const PARAMETERS: [&str; 2] = ["password=", "sslpassword="];

/// Returns true if `--db` names a PostgreSQL URL with a password, and not a place that holds the URL.
pub(crate) fn shows_password(args: impl Iterator<Item = OsString>) -> bool {
    let mut is_database = false;
    for arg in args {
        let arg = arg.to_string_lossy();
        if OTHERS.contains(&arg.as_ref()) {
            return false;
        }
        let url = arg.strip_prefix("--db=").or_else(|| is_database.then_some(&*arg));
        if url.is_some_and(has_password) {
            return true;
        }
        is_database = arg == "--db";
    }
    false
}

fn has_password(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    if !matches!(scheme, "postgres" | "postgresql") {
        return false;
    }
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    // A password may contain a slash that is not escaped.
    let in_user = place.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
    in_user.is_some_and(|(_, password)| !password.is_empty())
        || parameters.split('&').any(|one| PARAMETERS.iter().any(|name| one.starts_with(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shows(args: &[&str]) -> bool {
        shows_password(args.iter().map(OsString::from))
    }

    #[test]
    fn a_password_on_the_command_line_is_found() {
        for url in [
            "postgres://tenure:secret@db/jobs",
            "postgresql://tenure:a/b@db/jobs",
            "postgres://db/jobs?sslmode=require&user=a&password=secret",
        ] {
            assert!(shows(&["worker", "--db", url, "--exec", "true"]), "{url}");
            assert!(shows(&["run", "jobs", &format!("--db={url}")]), "{url}");
        }
    }

    #[test]
    fn a_reference_a_url_without_password_and_arguments_of_others_are_not() {
        const URL: &str = "postgres://tenure:secret@db/jobs";
        for args in [
            &["worker", "--db", "env:TENURE_DATABASE_URL"][..],
            &["worker", "--db", "file:/run/secrets/url"],
            &["worker", "--db", "postgres://tenure@db:5432/jobs"],
            &["worker", "--db", "a:b@c.db"],
            &["worker", "--db", "jobs.db", "--exec", "other", "--db", URL],
            &["lease", "run", "--", "other", "--db", URL],
            &["worker", "--name", URL],
        ] {
            assert!(!shows(args), "{args:?}");
        }
    }
}
