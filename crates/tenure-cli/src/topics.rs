//! `tenure help environment` and the like: what is the same for all commands.

use crate::help;

/// The topics, and what is told of them.
const TOPICS: [(&str, &str); 4] =
    [("environment", ENVIRONMENT), ("formatting", FORMATTING), ("exit-codes", EXIT_CODES), ("query", QUERY)];

const ENVIRONMENT: &str = "\
TENURE_URL           URL of the server; takes precedence over every context
TENURE_CONTEXT       name of a server from `tenure context add`
TENURE_TOKEN         access token
TENURE_LEASE_TOKEN   lease token printed by `tenure lease acquire`
TENURE_CONFIG        settings file to read in place of ./tenure.toml
TENURE_DATABASE_URL  database of `tenure serve`
TENURE_LOG           log level on standard error: error, warn, info, debug or trace
TENURE_SECTION__KEY  any setting of tenure.toml, such as TENURE_SERVER__BIND
XDG_CONFIG_HOME      folder of tenure/config.toml [default: ~/.config]
NO_COLOR             turn color off
CLICOLOR_FORCE       turn color on everywhere; takes precedence over NO_COLOR

Add _FILE to TENURE_TOKEN or TENURE_DATABASE_URL to read the value from a file.

Precedence: flag, environment, --config or ./tenure.toml, your own file
($XDG_CONFIG_HOME/tenure/config.toml), the file of the machine (/etc/tenure/config.toml).
`tenure config show --origin` lists the settings in effect and where each was set.";

const FORMATTING: &str = "\
-o table             columns on a terminal; in a pipe, tab-separated values
-o wide              the same with more columns
-o json              the document of the server, unchanged
-o jsonl             one document a line
-o yaml              the document of the server as YAML
-o id                ids only, one a line
-o name              type and id, such as job/0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10
--json id,state      only these fields of each document, as JSON
--jq EXPR            the JSON filtered by a jq expression; strings are printed without quotes
--columns id,state   only these columns, in this order
--no-headers         no line of column names
--time FORM          relative, iso or unix
--color WHEN         auto, always or never; a pipe has color with always or CLICOLOR_FORCE=1
-q                   no messages, only data

On a terminal, tables are cut to its width; an id is then shown by its last eight characters.
Scripts can rely on json, jsonl, yaml, id and name. Output for people may change.

Examples:
  tenure job list --json id,state
  tenure job list --jq '.items[] | select(.attempt > 3) | .id'
  tenure queue list --columns name,paused --no-headers";

const EXIT_CODES: &str = "\
0     success
1     the job failed or was canceled, or the command failed
2     usage error, or a named file cannot be read or written
3     server or database unreachable
4     not allowed
5     not found
6     conflict: another job, a state or a lease holder is in the way
7     invalid value
75    lease not acquired in time (`lease run`, `exec --lock`)
124   wait timed out; the job continues
130   interrupted

Otherwise `lease run` and `exec` end with the exit code of the program, or with 126 or 127 if it
cannot be run.";

const QUERY: &str = "\
Separate terms by spaces; a job matches if all terms match. A - before a term negates it.

state:failed,cancelled     one of these states
queue:mail kind:send       queue and kind
tag:vip                    tag
id:0190f5c2                start of the id; id:…8c4e5b10 is its end
schedule:nightly           enqueued by this schedule
args.user.id:42            value in the args
meta.tenant:\"Acme Inc\"    metadata
error:\"timed out\"         text of the last error
attempt:>2 priority:<=0    numbers, also from..to
created:>-2h ended:2026-11-20..2026-11-21
                           time of creation and of end
took:>30s                  duration of the last attempt

Examples:
  tenure job list 'state:failed queue:stars -tag:test'
  tenure job retry --query 'state:failed kind:mail' --dry-run";

/// What is told if this is a call for a topic.
pub(crate) fn asked(args: &[String]) -> Option<String> {
    let [_, word, topic] = args else { return None };
    if word != "help" {
        return None;
    }
    if topic == "options" {
        return Some(help::global_options());
    }
    TOPICS.iter().find(|(name, _)| name == topic).map(|(_, text)| (*text).to_owned())
}
