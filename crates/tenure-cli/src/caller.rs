//! The caller that the audit log shows for commands that open a store themselves.

use std::sync::OnceLock;

use clap::ArgMatches;
use tenure_http::{Caller, Source};

/// The command of this process, such as `tenure queue pause`.
static COMMAND: OnceLock<String> = OnceLock::new();
/// File in which a system lists its users.
const USERS: &str = "/etc/passwd";

/// Notes the command of this process, without its arguments, which may be secret.
pub(crate) fn note(matches: &ArgMatches) {
    let (mut command, mut level) = ("tenure".to_owned(), matches);
    while let Some((name, below)) = level.subcommand() {
        command = format!("{command} {name}");
        level = below;
    }
    let _ = COMMAND.set(command);
}

/// Returns the user and the command of this process.
pub(crate) fn caller() -> Caller {
    let user = user().unwrap_or_else(|| rustix::process::getuid().as_raw().to_string());
    Caller { source: Source::Cli, actor: Some(format!("cli:{user}")), command: COMMAND.get().cloned() }
}

/// Returns the name of the user who runs this process, if the system lists it.
pub(crate) fn user() -> Option<String> {
    named(&std::fs::read_to_string(USERS).ok()?, rustix::process::getuid().as_raw())
}

fn named(users: &str, id: u32) -> Option<String> {
    users.lines().find_map(|user| {
        let mut fields = user.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number() {
        let users = "root:x:0:0::/root:/bin/sh\nbroken\nada:x:1001:1001::/srv/ada:/bin/sh\n";
        assert_eq!(named(users, 1001).as_deref(), Some("ada"));
        assert_eq!(named(users, 7), None);
    }
}
