//! `tenure help environment` and the like: what is the same for all commands.

/// The topics, and what is told of them.
const TOPICS: [(&str, &str); 4] =
    [("environment", ENVIRONMENT), ("formatting", FORMATTING), ("exit-codes", EXIT_CODES), ("query", QUERY)];

const ENVIRONMENT: &str = "\
TENURE_URL           the server; it goes before every context
TENURE_CONTEXT       the name of a server that `tenure context add` keeps
TENURE_TOKEN         what proves who asks
TENURE_LEASE_TOKEN   what `tenure lease acquire` has printed
TENURE_CONFIG        a file of settings, in place of ./tenure.toml
TENURE_DATABASE_URL  the store of `tenure serve`
TENURE_LOG           info, debug and so on: what the library tells on standard error
TENURE_SECTION__KEY  any setting of tenure.toml, such as TENURE_SERVER__BIND
XDG_CONFIG_HOME      the folder of tenure/config.toml [default: ~/.config]
NO_COLOR             no colours
CLICOLOR_FORCE       colours everywhere; it goes before NO_COLOR

TENURE_TOKEN and TENURE_DATABASE_URL can end with _FILE, and then name a file in which that is.

What is said by a flag goes before the environment, that before --config or ./tenure.toml, that before the person's own file
($XDG_CONFIG_HOME/tenure/config.toml), and that before the machine's (/etc/tenure/config.toml).
`tenure config show --origin` says which settings count, and where they were said.";

const FORMATTING: &str = "\
-o table             columns on a terminal; in a pipe, values with a tab between them and no colour
-o wide              the same with more columns
-o json              the document of the server, as it is
-o jsonl             one document a line
-o yaml              the document of the server, as YAML
-o id                ids only, one a line
-o name              what it is and its id, such as job/0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10
--json id,state      only these fields of each document, as JSON
--jq EXPR            what this expression of jq makes of the JSON; texts are printed without quotes
--columns id,state   only these columns of a table, in this order
--no-headers         without the names of the columns
--time FORM          relative, iso or unix
--color WHEN         auto, always or never
-q                   nothing beside what was asked for

What is for people may change; json, jsonl, yaml, id and name stay.

Examples:
  tenure job list --json id,state
  tenure job list --jq '.items[] | select(.attempt > 3) | .id'
  tenure queue list --columns name,paused --no-headers";

const EXIT_CODES: &str = "\
0     it was done
1     the job has failed or was cancelled, or something else did not work out
2     the command was not understood, or a file that it names cannot be read or written
3     nobody answers, or the store cannot
4     it is not allowed
5     there is no such thing, or its time is over
6     something else is in the way: another job, a state, somebody who has the lease
7     a value is not allowed
75    the lease could not be had in time (`lease run`, `exec --lock`)
124   a wait was over, and the job goes on
130   somebody interrupted it

`lease run` and `exec` otherwise end as the program does; 126 or 127 if it cannot be run.";

const QUERY: &str = "\
Words stand side by side, and all of them hold; a - before a word says that it does not hold:

state:failed,cancelled     in one of these states
queue:mail kind:send       in this queue, of this kind
tag:vip                    with this word
id:0190f5c2                whose id begins so
schedule:nightly           that this schedule brought
args.user.id:42            whose args hold this there
meta.tenant:\"Acme Inc\"    with this note
error:\"timed out\"         whose last failure holds this text
attempt:>2 priority:<=0    numbers, also from..to
created:>-2h ended:2026-11-20..2026-11-21
                           accepted or ended then
took:>30s                  whose last attempt took so long

Examples:
  tenure job list 'state:failed queue:stars -tag:test'
  tenure job retry --query 'state:failed kind:mail' --dry-run";

/// What is told if this is a call for a topic.
pub(crate) fn asked(args: &[String]) -> Option<&'static str> {
    let [_, help, topic] = args else { return None };
    TOPICS.iter().find(|(name, _)| help == "help" && name == topic).map(|(_, text)| *text)
}
