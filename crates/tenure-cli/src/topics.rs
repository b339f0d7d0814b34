//! `tenure help environment` and the like: what is the same for all commands.

use crate::help;

/// A topic: rows of a name and its meaning, and what follows them.
struct Topic {
    name: &'static str,
    rows: &'static [(&'static str, &'static str)],
    width: usize,
    before: &'static str,
    after: &'static str,
}

const TOPICS: [Topic; 4] = [
    Topic { name: "environment", rows: ENVIRONMENT, width: 19, before: "", after: PRECEDENCE },
    Topic { name: "formatting", rows: FORMATTING, width: 16, before: "", after: STABLE },
    Topic { name: "exit-codes", rows: EXIT_CODES, width: 4, before: "", after: OWN_CODES },
    Topic { name: "query", rows: QUERY, width: 24, before: TERMS, after: SEARCHES },
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("TENURE_URL", "URL of the server; takes precedence over every context"),
    ("TENURE_CONTEXT", "name of a server from `tenure context add`"),
    ("TENURE_TOKEN", "access token"),
    ("TENURE_CA", "CA certificates that verify servers, in place of the system's"),
    ("TENURE_CLIENT_CERT", "client certificate; TENURE_CLIENT_KEY is its private key"),
    ("TENURE_INSECURE_HTTP", "true sends the access token to other machines over http://"),
    ("TENURE_LEASE_TOKEN", "lease token printed by `tenure lease acquire`"),
    ("TENURE_CONFIG", "settings file to read in place of ./tenure.toml"),
    ("TENURE_DATABASE_URL", "database of `tenure serve`"),
    ("TENURE_ENCRYPTION_KEYS", "encryption keys of the database: file:PATH, env:NAME or cmd:PROGRAM"),
    ("TENURE_LOG", "log level on standard error: error, warn, info, debug or trace"),
    ("TENURE_ZONEINFO", "directory of time zones to read in place of the built-in ones"),
    ("TENURE_SECTION__KEY", "any setting of tenure.toml, such as TENURE_SERVER__BIND"),
    ("XDG_CONFIG_HOME", "folder of tenure/config.toml [default: ~/.config]"),
    ("NO_COLOR", "turn color off"),
    ("CLICOLOR_FORCE", "turn color on everywhere; takes precedence over NO_COLOR"),
];

const PRECEDENCE: &str = "\
Add _FILE to TENURE_TOKEN or TENURE_DATABASE_URL to read the value from a file. Their values can
also be file:PATH, env:NAME or cmd:PROGRAM.

Precedence: flag, environment, --config or ./tenure.toml, your own file
($XDG_CONFIG_HOME/tenure/config.toml), the file of the machine (/etc/tenure/config.toml).
`tenure config show --origin` lists the settings in effect and where each was set.";

const FORMATTING: &[(&str, &str)] = &[
    ("-o table", "columns on a terminal; in a pipe, tab-separated values"),
    ("-o wide", "the same with more columns"),
    ("-o json", "the document of the server, unchanged"),
    ("-o jsonl", "one document a line"),
    ("-o yaml", "the document of the server as YAML"),
    ("-o id", "ids only, one a line"),
    ("-o name", "type and id, such as job/0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10"),
    ("--json id,state", "only these fields of each document, as JSON"),
    ("--jq EXPR", "the JSON filtered by a jq expression; strings are printed without quotes"),
    ("--columns id,kind", "only these columns, in this order"),
    ("--no-headers", "no line of column names"),
    ("--time FORM", "relative, iso or unix"),
    ("--color WHEN", "auto, always or never; always also colors a pipe"),
    ("-q", "no messages, only data"),
];

const STABLE: &str = "\
On a terminal, tables are cut to its width. An id may then be shown by its last eight characters.
Scripts can rely on json, jsonl, yaml, id and name. Output for people may change.

Examples:
  tenure job list --json id,state
  tenure job list --jq '.items[] | select(.attempt > 3) | .id'
  tenure queue list --columns name,paused --no-headers";

const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "success"),
    ("1", "the job failed or was cancelled, or the command failed"),
    ("2", "usage error, or a named file cannot be read or written"),
    ("3", "server or database unreachable"),
    ("4", "not allowed"),
    ("5", "not found"),
    ("6", "conflict: another job, a state or a lease holder is in the way"),
    ("7", "invalid value"),
    ("75", "lease not acquired in time (`lease run`, `exec --lock`)"),
    ("124", "wait timed out; the job continues"),
    ("130", "interrupted"),
];

const OWN_CODES: &str = "\
Otherwise `lease run` and `exec` end with the exit code of the program, or with 126 or 127 if it
cannot be run.";

const TERMS: &str =
    "Separate terms by spaces; a job matches if all terms match. A - before a term negates it.";

const QUERY: &[(&str, &str)] = &[
    ("state:failed,cancelled", "one of these states"),
    ("queue:mail kind:send", "queue and kind"),
    ("tag:vip", "tag"),
    ("id:0190f5c2", "start of the id; id:…8c4e5b10 is its end"),
    ("schedule:nightly", "enqueued by this schedule"),
    ("args.user.id:42", "value in the args"),
    ("meta.tenant:\"Acme Inc\"", "metadata"),
    ("error:\"timed out\"", "text of the last error"),
    ("attempt:>2 priority:<=0", "numbers, also from..to"),
    ("created:>-2h", "time of creation, here in the last two hours"),
    ("ended:2026-11-20..2026-11-21", "time of the end"),
    ("took:>30s", "duration of the last attempt"),
];

const SEARCHES: &str = "\
Examples:
  tenure job list 'state:failed queue:stars -tag:test'
  tenure job retry --query 'state:failed kind:mail' --dry-run";

impl Topic {
    fn text(&self) -> String {
        let rows =
            self.rows.iter().map(|(name, meaning)| format!("{name:<width$}  {meaning}", width = self.width));
        let rows: Vec<String> = rows.collect();
        let before = if self.before.is_empty() { String::new() } else { format!("{}\n\n", self.before) };
        format!("{before}{}\n\n{}", rows.join("\n"), self.after)
    }
}

/// The text of a topic, if this is a call for one.
pub(crate) fn asked(args: &[String]) -> Option<String> {
    let [_, word, topic] = args else { return None };
    if word != "help" {
        return None;
    }
    if topic == "options" {
        return Some(help::global_options());
    }
    TOPICS.iter().find(|known| known.name == topic).map(Topic::text)
}
