//! Examples and notes of each command. Every command has an entry, and every example is understood: tests see to it.

use super::Page;

const fn page(path: &'static str, examples: &'static [&'static str]) -> Page {
    noted(path, examples, "")
}

const fn noted(path: &'static str, examples: &'static [&'static str], notes: &'static str) -> Page {
    Page { path, examples, notes }
}

pub(super) const PAGES: &[Page] = &[
    noted(
        "",
        &[
            "tenure dev",
            "tenure submit report '{\"month\": 5}' --wait",
            "tenure --url https://jobs.example.com ps",
        ],
        "\
Exit codes: 0 ok · 1 failed · 2 usage, or a file cannot be read or written · 3 server or database
            unreachable · 4 not allowed · 5 not found · 6 conflict · 7 invalid value ·
            75 lease not acquired in time · 124 wait timed out · 130 interrupted
Variables:  TENURE_URL or TENURE_CONTEXT for the server, TENURE_TOKEN or TENURE_TOKEN_FILE for the
            access token, TENURE_LOG for the log level, NO_COLOR and CLICOLOR_FORCE for color

More: tenure help options, environment, formatting, exit-codes or query",
    ),
    noted(
        "dev",
        &["tenure dev", "tenure dev --seed --open", "tenure dev --db jobs.db --port 9000"],
        "\
Jobs are kept in .tenure/dev.db and resume at the next start. Use `tenure serve` in production.",
    ),
    noted(
        "serve",
        &[
            "tenure serve --db jobs.db",
            "tenure serve --db postgres://me@db.example/jobs --bind 0.0.0.0:8368 --auth tokens",
            "tenure serve --db jobs.db --auth tokens --tls-cert tls.pem --tls-key tls.key",
        ],
        "\
Every option can also be set in ./tenure.toml or in the environment; `tenure config show --origin`
lists the settings in effect. SIGHUP reloads the log level, certificate, queues, schedules and
webhooks.",
    ),
    page("open", &["tenure open", "tenure open 8c4e5b10 --print"]),
    page("job", &["tenure job list 'state:failed queue:mail'"]),
    noted(
        "job submit",
        &[
            "tenure job submit build_star '{\"name\": \"Sol\"}' --queue stars --wait",
            "tenure job submit report @args.json --in 10m --unique nightly",
            "echo '[1, 2]' | tenure job submit add - --wait 30s -o json",
        ],
        SAFE_SUBMIT,
    ),
    noted(
        "submit",
        &[
            "tenure submit build_star '{\"name\": \"Sol\"}' --queue stars --wait",
            "tenure submit report @args.json --in 10m --unique nightly",
            "echo '[1, 2]' | tenure submit add - --wait 30s -o json",
        ],
        SAFE_SUBMIT,
    ),
    noted(
        "job list",
        &[
            "tenure job list 'state:failed queue:stars error:\"timed out\"'",
            "tenure job list --state running,queued -o wide",
        ],
        "`tenure help query` explains the search language.",
    ),
    page("ps", &["tenure ps", "tenure ps -n 10"]),
    noted("job get", &["tenure job get 8c4e5b10", "tenure job get 8c4e5b10 -o json"], SHORT_IDS),
    page("job explain", &["tenure job explain 8c4e5b10"]),
    page("job watch", &["tenure job watch 8c4e5b10 --exit-status --timeout 10m"]),
    page("job logs", &["tenure job logs -f 8c4e5b10", "tenure job logs 8c4e5b10 --tail 20 --timestamps"]),
    page("logs", &["tenure logs -f 8c4e5b10", "tenure logs 8c4e5b10 --tail 20 --timestamps"]),
    page("job attempts", &["tenure job attempts 8c4e5b10"]),
    page("job result", &["tenure job result 8c4e5b10"]),
    page(
        "job cancel",
        &[
            "tenure job cancel 8c4e5b10 --reason 'wrong month'",
            "tenure job cancel --query 'state:queued tag:test' --yes",
        ],
    ),
    page(
        "job retry",
        &["tenure job retry 8c4e5b10", "tenure job retry --query 'state:failed kind:mail' --dry-run"],
    ),
    page("job run-now", &["tenure job run-now 8c4e5b10"]),
    page("job edit", &["tenure job edit 8c4e5b10 --priority -10 --in 5m"]),
    page("job rm", &["tenure job rm 8c4e5b10", "tenure job rm --query 'state:succeeded ended:<-7d' --yes"]),
    noted(
        "job import",
        &["tenure job import jobs.ndjson"],
        "\
A line is a body of POST /v1/jobs, such as
  {\"kind\": \"mail\", \"args\": {\"to\": \"a@example.com\"}, \"queue\": \"mail\"}
A job without an id gets one made of --import-id and its line number. Repeat an interrupted import
with the same --import-id: no job is enqueued twice.",
    ),
    page(
        "job export",
        &[
            "tenure job export --state failed > failed.ndjson",
            "tenure job export --state queued,scheduled --for-import > waiting.ndjson",
        ],
    ),
    page("queue", &["tenure queue stats"]),
    page("queue list", &["tenure queue list"]),
    page("queue get", &["tenure queue get mail"]),
    page("queue stats", &["tenure queue stats mail --watch"]),
    noted(
        "queue set",
        &[
            "tenure queue set mail --max-running 10 --rate 100/60s",
            "tenure queue set mail --max-attempts 5 --backoff 10s,1m,1h --retain 7d",
        ],
        "The value none removes a limit or restores a default.",
    ),
    page("queue purge", &["tenure queue purge mail --confirm mail"]),
    page("queue delete", &["tenure queue delete mail"]),
    page("queue explain", &["tenure queue explain mail"]),
    page("queue pause", &["tenure queue pause mail"]),
    page("queue drain", &["tenure queue drain mail --timeout 10m"]),
    page("queue resume", &["tenure queue resume mail"]),
    page("limit", &["tenure limit list"]),
    page("limit list", &["tenure limit list"]),
    page("limit get", &["tenure limit get smtp"]),
    noted(
        "limit set",
        &["tenure limit set smtp --rate 20/1s --burst 1", "tenure limit set smtp --max-running 2"],
        "\
The limit replaces an earlier one and overrides the numbers of jobs. An omitted option is unlimited.",
    ),
    page("limit rm", &["tenure limit rm smtp"]),
    page("kind", &["tenure kind list"]),
    page("kind list", &["tenure kind list"]),
    page("kind get", &["tenure kind get mail"]),
    page("kind set", &["tenure kind set mail --schema mail.schema.json --owner billing"]),
    page("kind rm", &["tenure kind rm mail"]),
    page("top", &["tenure top", "tenure top mail --once"]),
    page("stats", &["tenure stats --since 24h", "tenure stats --since 6h --step 10m --queue mail"]),
    page("bulk", &["tenure bulk list"]),
    page("bulk list", &["tenure bulk list --limit 10"]),
    page("bulk cancel", &["tenure bulk cancel 8c4e5b10"]),
    page("audit", &["tenure audit --limit 20"]),
    noted(
        "audit export",
        &["tenure audit export --since 30d --out audit.jsonl", "tenure audit export --format syslog"],
        "\
The hash of an entry is the SHA-256 of its line without number and hash.",
    ),
    page("event", &["tenure event tail"]),
    page("event tail", &["tenure event tail --type 'job.*' --queue mail"]),
    page("webhook", &["tenure webhook list"]),
    page("webhook list", &["tenure webhook list"]),
    page("webhook add", &["tenure webhook add https://example.com/hook --type job.failed --queue mail"]),
    page("webhook rm", &["tenure webhook rm 8c4e5b10"]),
    page("webhook test", &["tenure webhook test 8c4e5b10"]),
    page("webhook deliveries", &["tenure webhook deliveries 8c4e5b10"]),
    page("webhook redeliver", &["tenure webhook redeliver 8c4e5b10 0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10"]),
    page("webhook rotate-secret", &["tenure webhook rotate-secret 8c4e5b10"]),
    page("webhook callback-secret", &["tenure webhook callback-secret"]),
    page("schedule", &["tenure schedule list"]),
    page(
        "schedule preview",
        &[
            "tenure schedule preview '30 9 * * MON-FRI in Europe/Berlin' -n 3",
            "tenure schedule preview 'every 10m' -o json",
        ],
    ),
    page("schedule list", &["tenure schedule list"]),
    page("schedule get", &["tenure schedule get nightly"]),
    noted(
        "schedule add",
        &[
            "tenure schedule add nightly '30 2 * * *' report --zone Europe/Berlin",
            "tenure schedule add sync 'every 10m' sync '{\"full\": false}' --overlap queue-one",
            "tenure schedule add plan --file plan.json",
        ],
        "\
`tenure schedule preview` shows the meaning of an expression. A file accepts every field of
PUT /v1/schedules/{name}.",
    ),
    page("schedule next", &["tenure schedule next nightly -n 3"]),
    page("schedule runs", &["tenure schedule runs nightly --limit 10"]),
    page("schedule explain", &["tenure schedule explain nightly"]),
    page("schedule trigger", &["tenure schedule trigger nightly '{\"full\": true}'"]),
    page("schedule pause", &["tenure schedule pause nightly --reason 'month-end closing'"]),
    page("schedule resume", &["tenure schedule resume nightly"]),
    page(
        "schedule backfill",
        &["tenure schedule backfill nightly --from 2026-03-01T00:00:00Z --to 2026-03-08T00:00:00Z --dry-run"],
    ),
    noted(
        "schedule import-crontab",
        &[
            "crontab -l | tenure schedule import-crontab - --dry-run",
            "crontab -l | tenure schedule import-crontab - --zone Europe/Berlin --to ./jobs",
            "tenure schedule import-crontab /etc/crontab --system --all-users --shell --to ./jobs",
        ],
        "\
`tenure run ./jobs` then runs the commands, all as the user who starts it. A line is skipped if it
needs a shell (unless --shell) or names another user (unless --all-users). The exit code is 1 if a
line was skipped.",
    ),
    page("schedule export", &["tenure schedule export nightly > nightly.json"]),
    page("schedule rm", &["tenure schedule rm nightly"]),
    page("lease", &["tenure lease run nightly-backup -- ./backup.sh"]),
    page("lease list", &["tenure lease list --prefix billing"]),
    page("lease get", &["tenure lease get month-end"]),
    page(
        "lease history",
        &["tenure lease history month-end", "tenure lease history month-end --at 2026-03-28T04:00:00Z"],
    ),
    page("lease acquire", &["tenure lease acquire month-end --ttl 5m --wait 1m"]),
    page("lease renew", &["tenure lease renew month-end --lease-token TOKEN"]),
    page("lease release", &["tenure lease release month-end --lease-token TOKEN"]),
    page("lease break", &["tenure lease break month-end --reason 'host is gone' --after 0s"]),
    noted(
        "lease run",
        &[
            "tenure lease run nightly-backup -- ./backup.sh",
            "tenure lease run deploy --wait 10m --ttl 15s -- make deploy",
        ],
        "\
The program gets TENURE_LEASE (the name) and TENURE_FENCE (the fencing token, which grows with each
grant). The exit code is that of the program, 75 if the lease was not acquired in time, or 6 if it
was lost. Its child processes end with it. A first Ctrl-C is passed on, a second one kills; SIGTERM
is passed on, and kills after 10 s.",
    ),
    noted(
        "exec",
        &[
            "tenure exec -- ./backup.sh --full",
            "tenure exec --lock backup --lock-wait 10m --timeout 1h --retry 2 -- ./backup.sh",
            "tenure exec --db jobs.db -- make report",
        ],
        "\
`tenure job list`, `get` and `logs` show the run. The exit code is that of the command, 75 if the
lock was not acquired in time, 124 if the timeout passed, 6 if the lock or the job was lost, 126 or
127 if the command cannot be run.",
    ),
    noted(
        "worker",
        &[
            "tenure worker --queue mail=10,other=2 --exec ./handler",
            "tenure worker --queue mail --kind welcome --permanent 64,65 --exec python3 mail.py",
            "tenure worker --queue mail=10 --http http://127.0.0.1:3000/jobs",
            "tenure worker list",
        ],
        "\
--exec starts the program for each job, without a shell. It reads the args (JSON) on standard input.
Its variables are JOB_ID, JOB_KIND, JOB_QUEUE, JOB_ATTEMPT, JOB_RESULT_FILE, JOB_SHUTDOWN_FILE,
JOB_TOKEN, JOB_API, TRACEPARENT and TRACESTATE. Exit code 0 completes the job, 75 retries it without
using up an attempt, any other fails the attempt.
--http sends the args by POST. An answer of 2xx completes the job with the body as its result; after
202 the service reports the end itself, with the token of the header job-token. 429 and 503 retry
without using up an attempt, and 422 fails the job for good. Any other answer fails the attempt.
With --db the worker also fires schedules, and sets neither JOB_TOKEN nor JOB_API.",
    ),
    page("worker list", &["tenure worker list"]),
    page("worker get", &["tenure worker get mailer-1"]),
    page("worker quiet", &["tenure worker quiet mailer-1"]),
    page("worker resume", &["tenure worker resume mailer-1"]),
    page("worker stop", &["tenure worker stop mailer-1"]),
    page("worker remove", &["tenure worker remove mailer-1"]),
    noted(
        "run",
        &[
            "tenure run ./jobs",
            "tenure run ./jobs --check",
            "tenure run ./jobs --sandbox required --sandbox-connect 443",
            "tenure run ./jobs --db postgres://tenure@db.example/jobs",
        ],
        "\
The folder has the layout of Azure WebJobs (triggered/NAME and continuous/NAME, with run.* and
settings.job), a tenure.toml, or both. Any number of hosts can run it on one database. `tenure app`
manages its programs.",
    ),
    noted(
        "app",
        &["tenure app list", "tenure app run report --wait"],
        "\
Without --url, --context or --db, the first of these is used: TENURE_DATABASE_URL, TENURE_URL or
TENURE_CONTEXT, .tenure/apps.db in this folder, the default server. No --write is needed.",
    ),
    page("app list", &["tenure app list"]),
    noted(
        "app run",
        &["tenure app run --wait report 2026 05"],
        "Pass options before NAME: everything behind it goes to the program.",
    ),
    page("app start", &["tenure app start continuous/mailer"]),
    page("app stop", &["tenure app stop continuous/mailer --reason 'moving house'"]),
    page("app runs", &["tenure app runs report -n 5"]),
    page("app logs", &["tenure app logs -f report"]),
    page("app deploy", &["tenure app deploy report.zip --to ./jobs --as triggered/report"]),
    page("app rm", &["tenure app rm triggered/report --from ./jobs"]),
    page("doctor", &["tenure doctor", "tenure doctor --ready"]),
    page("selftest", &["tenure selftest --url https://jobs.example.com"]),
    page("encryption", &["tenure encryption status --db jobs.db"]),
    page("encryption status", &["tenure encryption status --db jobs.db --encryption-keys file:keys"]),
    noted(
        "encryption rotate",
        &["tenure encryption rotate --db jobs.db --encryption-keys file:keys"],
        "\
First add the new key as the last line of all keys files, and restart every program. Then move
it to the first line, and restart again. When no value is skipped, the older keys can be removed.",
    ),
    page("db", &["tenure db status --db jobs.db"]),
    page("db status", &["tenure db status --db jobs.db"]),
    page(
        "db migrate",
        &[
            "tenure db migrate --db postgres://owner@db.example/jobs --grant-to app",
            "tenure db migrate --db jobs.db --print-sql",
        ],
    ),
    page("db check", &["tenure db check --db jobs.db"]),
    noted(
        "db repair",
        &["tenure db repair --db jobs.db --dry-run"],
        "\
The job is removed with all its rows, and jobs that wait for it go on as if it had been deleted.
The rows stay in the table quarantine.",
    ),
    noted(
        "db backup",
        &["tenure db backup --db jobs.db /backups/jobs.db"],
        "\
To restore, open the copy. It grants larger fencing tokens than the source ever will, so writes of
old holders are rejected. Back up a PostgreSQL database with pg_dump.",
    ),
    page("db vacuum", &["tenure db vacuum --db jobs.db"]),
    page("db copy", &["tenure db copy --from jobs.db --to postgres://me@db.example/jobs"]),
    page("bench", &["tenure bench --quick", "tenure bench --figure life --floor"]),
    page("token", &["tenure token list --db jobs.db"]),
    page("token rotate", &["tenure token rotate 3f0a1c7e --db jobs.db --overlap 2h"]),
    page(
        "token create",
        &[
            "tenure token create --db jobs.db --name ci --scope enqueue --scope read --expires 90d",
            "tenure token create --db jobs.db --name billing --scope enqueue --certificate-sha256 5e2b0c319a77f044d8631eb58c02a9704f16dd3b92e760ca1588f32db64907ac",
            "tenure token create --db jobs.db --name shop --scope enqueue --rate 50 --max-waiting 10000",
        ],
    ),
    page("token list", &["tenure token list --db jobs.db"]),
    page("token revoke", &["tenure token revoke 8c4e5b10 --db jobs.db"]),
    page("config", &["tenure config show --origin"]),
    page("config show", &["tenure config show --origin"]),
    page("config check", &["tenure config check"]),
    page("config schema", &["tenure config schema > tenure.schema.json"]),
    page("config init", &["tenure config init"]),
    page("context", &["tenure context list"]),
    page("context list", &["tenure context list"]),
    page("context use", &["tenure context use prod"]),
    page(
        "context add",
        &["tenure context add prod --url https://jobs.example.com --token-file ~/.secrets/jobs --read-only"],
    ),
    page("context rm", &["tenure context rm prod"]),
    page("openapi", &["tenure openapi > openapi.json"]),
    page(
        "completions",
        &[
            "tenure completions bash > ~/.local/share/bash-completion/completions/tenure",
            "tenure completions fish > ~/.config/fish/completions/tenure.fish",
            "tenure completions zsh > ~/.zfunc/_tenure",
        ],
    ),
    page("man", &["tenure man | man -l -", "tenure man --dir ."]),
    page("version", &["tenure version --json"]),
];

const SAFE_SUBMIT: &str = "\
The program draws the id of the job, so a broken connection never enqueues it twice. A script that
may run again passes --id itself.";

const SHORT_IDS: &str = "Every command accepts an id by its first or last eight characters or more.";
