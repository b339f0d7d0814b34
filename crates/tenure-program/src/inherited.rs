//! What a program finds of the environment of its host.

use std::ffi::{OsStr, OsString};

/// Which variables of the host a program finds in its environment. What is said to it stands there whatever this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inherited {
    /// Not what is the host's own: its access to stores and servers, what its service manager has told it, and what it was told
    /// of a run that it is itself a part of. A name that ends with `*` means all that begin so.
    Guarded {
        /// What every program needs to find its way, and these. All of them if `None`.
        only: Option<Vec<String>>,
        /// The host's own that are handed on all the same.
        also: Vec<String>,
        /// Variables in which the host has found its secrets. A program finds them only if `also` names them.
        withheld: Vec<String>,
    },
    /// All but these, for a program that its caller could have begun himself, with everything that he has.
    AllBut(Vec<String>),
}

/// How the host reaches stores and servers, and what it may do there.
const OF_THE_HOST: &str = "TENURE_";
/// What a service manager tells one process: who answers in its name would be believed.
const OF_ITS_MANAGER: [&str; 9] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "LISTEN_PID",
    "CREDENTIALS_DIRECTORY",
    "LISTEN_PIDFDID",
    "MAINPID",
];
/// What is said of one run, and means another job in the mouth of whoever runs within it.
const OF_A_RUN: [&str; 18] = [
    "JOB_ID",
    "JOB_KIND",
    "JOB_QUEUE",
    "JOB_ATTEMPT",
    "JOB_FENCE",
    "JOB_TRIGGER",
    "JOB_TOKEN",
    "JOB_API",
    "JOB_PATH",
    "JOB_NAME",
    "JOB_TYPE",
    "JOB_DATA_PATH",
    "JOB_COMMAND_ARGUMENTS",
    "TRACEPARENT",
    "TRACESTATE",
    "WEBJOBS_RUN_ID",
    "WEBJOBS_PORT",
    "WEBJOBS_DATA_PATH",
];
/// Without these many a program does not find its files, its language or its clocks.
const NEEDED: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TZDIR",
    "TMPDIR",
    "TERM",
    "XDG_RUNTIME_DIR",
    "SSL_CERT_*",
];

impl Default for Inherited {
    fn default() -> Self {
        Self::Guarded { only: None, also: Vec::new(), withheld: Vec::new() }
    }
}

impl Inherited {
    /// Whether a program finds this variable of its host.
    #[must_use]
    pub fn has(&self, name: &OsStr) -> bool {
        // Whatever is no text has no name that is listed anywhere.
        let name = name.to_string_lossy();
        match self {
            Self::Guarded { only, also, withheld } => {
                let is_wanted =
                    only.as_ref().is_none_or(|only| is_one_of(&name, &NEEDED) || is_one_of(&name, only));
                let is_the_hosts = is_the_hosts(&name) || withheld.iter().any(|withheld| *withheld == name);
                is_one_of(&name, also) || (is_wanted && !is_the_hosts)
            }
            Self::AllBut(names) => !is_one_of(&name, names),
        }
    }

    /// Those of this process's own variables that a program finds.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        std::env::vars_os().filter(|(name, _)| self.has(name))
    }
}

fn is_the_hosts(name: &str) -> bool {
    name.starts_with(OF_THE_HOST) || OF_ITS_MANAGER.contains(&name) || OF_A_RUN.contains(&name)
}

fn is_one_of<T: AsRef<str>>(name: &str, patterns: &[T]) -> bool {
    patterns.iter().any(|pattern| match pattern.as_ref().strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern.as_ref(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(inherited: &Inherited, name: &str) -> bool {
        inherited.has(OsStr::new(name))
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_is_the_hosts_stays_with_it() {
        let usual = Inherited::default();
        for secret in [
            "TENURE_TOKEN",
            "TENURE_DATABASE_URL",
            "TENURE_FENCE",
            "TENURE_ANYTHING__ELSE",
            "NOTIFY_SOCKET",
            "CREDENTIALS_DIRECTORY",
            "JOB_TOKEN",
            "TRACEPARENT",
        ] {
            assert!(!has(&usual, secret), "{secret}");
        }
        for common in
            ["PATH", "HOME", "LANG", "SMTP_PASSWORD", "DATABASE_URL", "WEBJOBS_RESTART_TIME", "TENURE", ""]
        {
            assert!(has(&usual, common), "{common}");
        }
    }

    #[test]
    fn fewer_are_named_and_none_of_the_hosts_by_a_pattern() {
        let named = Inherited::Guarded {
            only: Some(names(&["SMTP_*", "LEVEL", "*", "TENURE_TOKEN"])),
            also: Vec::new(),
            withheld: Vec::new(),
        };
        assert!(has(&named, "SMTP_PASSWORD") && has(&named, "PATH") && !has(&named, "TENURE_TOKEN"));
        let few = Inherited::Guarded {
            only: Some(names(&["LEVEL"])),
            also: names(&["TENURE_URL"]),
            withheld: Vec::new(),
        };
        assert!(has(&few, "LEVEL") && has(&few, "LC_ALL") && has(&few, "TENURE_URL"));
        assert!(!has(&few, "LEVELS") && !has(&few, "SMTP_PASSWORD") && !has(&few, "TENURE_TOKEN"));
    }

    #[test]
    fn a_variable_with_a_secret_of_the_host_stays_with_it_unless_it_is_passed_by_name() {
        let (only, withheld) = (Some(names(&["JOBS_*"])), names(&["JOBS_DB", "JOBS_KEY"]));
        let some = Inherited::Guarded { only, also: names(&["JOBS_KEY"]), withheld };
        assert!(!has(&some, "JOBS_DB") && has(&some, "JOBS_KEY") && has(&some, "JOBS_DBS"));
    }

    #[test]
    fn whoever_stands_before_a_command_hands_all_on() {
        let all = Inherited::AllBut(names(&["JOB_TOKEN"]));
        assert!(has(&all, "TENURE_TOKEN") && has(&all, "NOTIFY_SOCKET") && !has(&all, "JOB_TOKEN"));
    }
}
