//! Every setting there is. Flags, variables, keys of files, the schema for editors and what is shown all come from this list.

pub(crate) use super::kind::{Kind, NO_ADDRESS};

/// One thing that can be chosen.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its section and key in a file, such as `server.bind`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What holds if nobody says anything; none if that depends, as `about` tells.
    pub(crate) default: Option<&'static str>,
    /// The flag of `tenure serve` that says it.
    pub(crate) flag: Option<Flag>,
    /// A variable of the environment with a name of its own, beside `TENURE_SECTION__KEY`.
    pub(crate) variable: Option<&'static str>,
    /// Never shown, and may be said by a file of its own: `…_file`.
    pub(crate) is_secret: bool,
    pub(crate) about: &'static str,
}

/// A flag.
#[derive(Debug)]
pub(crate) struct Flag {
    /// Without its dashes.
    pub(crate) name: &'static str,
    pub(crate) value_name: &'static str,
    /// What a flag says that takes no value.
    pub(crate) turns: Option<bool>,
    /// Its help, if that is not what the setting is about.
    pub(crate) help: Option<&'static str>,
}

const fn flag(name: &'static str, value_name: &'static str) -> Option<Flag> {
    Some(Flag { name, value_name, turns: None, help: None })
}

const fn turning(name: &'static str, turns: bool) -> Option<Flag> {
    Some(Flag { name, value_name: "", turns: Some(turns), help: None })
}

/// A flag that turns something off, which is what its help says.
const fn turning_off(name: &'static str, help: &'static str) -> Option<Flag> {
    Some(Flag { name, value_name: "", turns: Some(false), help: Some(help) })
}

const PLAIN: Setting = Setting {
    name: "",
    kind: Kind::Text,
    default: None,
    flag: None,
    variable: None,
    is_secret: false,
    about: "",
};

/// All of them, in the order in which they are shown.
pub(crate) const KNOWN: &[Setting] = &[
    Setting {
        name: "database.url",
        flag: flag("db", "FILE|URL"),
        variable: Some("TENURE_DATABASE_URL"),
        is_secret: true,
        about: "SQLite file or PostgreSQL database (postgres:// URL)",
        ..PLAIN
    },
    Setting {
        name: "database.schema",
        flag: flag("db-schema", "NAME"),
        default: Some("tenure"),
        about: "PostgreSQL schema",
        ..PLAIN
    },
    Setting {
        name: "database.encryption_keys",
        flag: flag("encryption-keys", "PLACE"),
        variable: Some("TENURE_ENCRYPTION_KEYS"),
        is_secret: true,
        about: "Keys that encrypt args, results and logs: file:PATH, env:NAME or cmd:PROGRAM",
        ..PLAIN
    },
    Setting {
        name: "database.without_encryption",
        kind: Kind::Bool,
        flag: turning("without-encryption", true),
        default: Some("false"),
        about: "Load no encryption keys; store new values as plain text",
        ..PLAIN
    },
    Setting {
        name: "server.bind",
        kind: Kind::Address,
        flag: flag("bind", "ADDRESS:PORT"),
        default: Some("127.0.0.1:8368"),
        about: "Address to listen on, or none with --socket; beyond loopback, needs --auth tokens",
        ..PLAIN
    },
    Setting {
        name: "server.socket",
        kind: Kind::File,
        flag: flag("socket", "PATH"),
        about: "Also listen on this Unix socket, for users with a grant; needs --auth tokens",
        ..PLAIN
    },
    Setting {
        name: "server.socket_mode",
        flag: flag("socket-mode", "MODE"),
        default: Some("0600"),
        about: "Permission bits of the Unix socket, in octal",
        ..PLAIN
    },
    Setting {
        name: "server.socket_group",
        flag: flag("socket-group", "GROUP"),
        about: "Group of the Unix socket, by name or number [default: that of the process]",
        ..PLAIN
    },
    Setting {
        name: "server.tls_cert",
        kind: Kind::File,
        flag: flag("tls-cert", "FILE"),
        about: "Certificate with its intermediates in PEM format, to speak TLS; reloaded when it changes",
        ..PLAIN
    },
    Setting {
        name: "server.tls_key",
        kind: Kind::File,
        flag: flag("tls-key", "FILE"),
        about: "Private key of the certificate in PEM format",
        ..PLAIN
    },
    Setting {
        name: "server.tls_client_ca",
        kind: Kind::File,
        flag: flag("tls-client-ca", "FILE"),
        about: "CA certificates in PEM format; clients must show a certificate signed by one of them",
        ..PLAIN
    },
    Setting {
        name: "server.tls_client_auth",
        kind: Kind::Choice(&["required", "optional"]),
        flag: flag("tls-client-auth", "HOW"),
        default: Some("required"),
        about: "Client certificates: required, or optional to accept clients without one",
        ..PLAIN
    },
    Setting {
        name: "server.hosts",
        kind: Kind::Texts,
        flag: flag("host", "NAME"),
        about: "Host name that requests may use besides localhost, such as that of a proxy (repeatable)",
        ..PLAIN
    },
    Setting {
        name: "server.auth",
        kind: Kind::Choice(&["open", "tokens"]),
        flag: flag("auth", "HOW"),
        default: Some("open"),
        about: "Authentication: open, or tokens to require an access token (see `tenure token create`)",
        ..PLAIN
    },
    Setting {
        name: "server.grants",
        kind: Kind::Grants,
        flag: flag("grant", "RULE"),
        about: "Scopes of clients without an access token, such as unix-user:deploy=manage or \
                cert:spiffe://corp/worker/*=work (repeatable)",
        ..PLAIN
    },
    Setting {
        name: "server.hide",
        kind: Kind::Texts,
        flag: flag("hide", "PATTERN"),
        about: "Hide fields of this name, such as *password*, from readers, in place of the default names (repeatable)",
        ..PLAIN
    },
    Setting {
        name: "server.connections_per_address",
        kind: Kind::Text,
        flag: flag("connections-per-address", "N"),
        default: Some("15000"),
        about: "Maximum number of connections from one IPv4 address or IPv6 /64 network; a proxy is one address",
        ..PLAIN
    },
    Setting {
        name: "server.unknown_tokens_per_minute",
        kind: Kind::Text,
        flag: flag("unknown-tokens-per-minute", "N"),
        default: Some("60"),
        about: "Maximum number of unknown access tokens per client address and minute; further ones get 429",
        ..PLAIN
    },
    Setting {
        name: "server.workers_per_token",
        kind: Kind::Text,
        flag: flag("workers-per-token", "N"),
        default: Some("1000"),
        about: "Maximum number of workers of one access token; all tokens together have ten times as many",
        ..PLAIN
    },
    Setting {
        name: "server.transfer_memory_mib",
        kind: Kind::Text,
        flag: flag("transfer-memory-mib", "N"),
        default: Some("256"),
        about: "Memory for request bodies in MiB, and as much for responses; one client has a tenth of each",
        ..PLAIN
    },
    Setting {
        name: "server.max_queues",
        kind: Kind::Text,
        flag: flag("max-queues", "N"),
        default: Some("10000"),
        about: "Maximum number of queues; requests beyond it create no queue",
        ..PLAIN
    },
    Setting {
        name: "server.queues_per_token",
        kind: Kind::Text,
        flag: flag("queues-per-token", "N"),
        about: "Queues that tokens of one name may create [default: a tenth of --max-queues]",
        ..PLAIN
    },
    Setting {
        name: "server.kinds_per_token",
        kind: Kind::Text,
        flag: flag("kinds-per-token", "N"),
        default: Some("1000"),
        about: "New kinds of tokens of one name, per queue; the store keeps each kind",
        ..PLAIN
    },
    Setting {
        name: "server.lease_names_per_token",
        kind: Kind::Text,
        flag: flag("lease-names-per-token", "N"),
        default: Some("100000"),
        about: "New lease names of tokens of one name; the store keeps each name",
        ..PLAIN
    },
    Setting {
        name: "server.trusted_proxies",
        kind: Kind::Networks,
        flag: flag("trusted-proxy", "CIDR"),
        about: "Proxy whose X-Forwarded-For and X-Forwarded-Proto the server trusts, such as 10.1.0.0/16 (repeatable)",
        ..PLAIN
    },
    Setting {
        name: "server.proxy_user_header",
        flag: flag("proxy-user-header", "NAME"),
        about: "Header with the person that a trusted proxy signed in, such as X-Forwarded-User",
        ..PLAIN
    },
    Setting {
        name: "server.proxy_groups_header",
        flag: flag("proxy-groups-header", "NAME"),
        about: "Header with the groups of that person, separated by commas",
        ..PLAIN
    },
    Setting {
        name: "server.audit_log",
        flag: flag("audit-log", "FILE"),
        about: "Append each audit entry as a line of JSON to this file; SIGHUP opens it again",
        ..PLAIN
    },
    Setting {
        name: "server.audit_otlp",
        flag: flag("audit-otlp", "URL"),
        about: "OpenTelemetry collector for audit entries, such as http://127.0.0.1:4318",
        ..PLAIN
    },
    Setting {
        name: "server.read_only",
        kind: Kind::Bool,
        flag: turning("read-only", true),
        default: Some("false"),
        about: "Reject every request that changes anything",
        ..PLAIN
    },
    Setting {
        name: "server.drain_delay",
        kind: Kind::Span,
        flag: flag("drain-delay", "SPAN"),
        about: "Time to keep answering, as not ready, after a stop signal, for load balancers [default: 5s under Kubernetes and \
                systemd, else 0s]",
        ..PLAIN
    },
    Setting {
        name: "server.timers",
        kind: Kind::Bool,
        flag: turning_off("no-timer", "Leave schedules to another server on the same database"),
        default: Some("true"),
        about: "Fire schedules on this server",
        ..PLAIN
    },
    Setting {
        name: "server.worker",
        kind: Kind::Bool,
        flag: turning_off(
            "no-worker",
            "Leave webhooks, push endpoints and bulk operations to another server",
        ),
        default: Some("true"),
        about: "Deliver webhooks, push jobs to endpoints and run bulk operations on this server",
        ..PLAIN
    },
    Setting {
        name: "server.public_url",
        kind: Kind::Url,
        flag: flag("public-url", "URL"),
        about: "URL at which others reach this server, with the path that a proxy strips, if any",
        ..PLAIN
    },
    Setting {
        name: "server.allow_callback_to",
        kind: Kind::Networks,
        flag: flag("allow-callback-to", "CIDR"),
        about: "Private network that webhooks and callbacks may call, such as 10.1.0.0/16 (repeatable)",
        ..PLAIN
    },
    Setting {
        name: "server.egress_allow",
        kind: Kind::Egress,
        flag: flag("egress-allow", "RULE"),
        about: "Host, *.domain or network that webhooks, callbacks and push endpoints may call, such as \
                hooks.example.com:8443 or 10.1.0.0/16 (repeatable)",
        ..PLAIN
    },
    Setting {
        name: "server.egress_deny",
        kind: Kind::Egress,
        flag: flag("egress-deny", "RULE"),
        about: "Host, *.domain or network that the server must not call, or * for all but --egress-allow (repeatable)",
        ..PLAIN
    },
    Setting {
        name: "oidc.issuer",
        flag: flag("oidc-issuer", "URL"),
        about: "OpenID Connect provider for sign-in; needs --public-url and --grant",
        ..PLAIN
    },
    Setting {
        name: "oidc.client_id",
        flag: flag("oidc-client-id", "ID"),
        about: "Client ID of this server at the provider",
        ..PLAIN
    },
    Setting {
        name: "oidc.client_secret",
        flag: flag("oidc-client-secret", "PLACE"),
        is_secret: true,
        about: "Client secret of a confidential client: file:PATH, env:NAME or cmd:PROGRAM",
        ..PLAIN
    },
    Setting {
        name: "oidc.scopes",
        kind: Kind::Texts,
        flag: flag("oidc-scope", "SCOPE"),
        about: "Scope to request besides openid, in place of profile and email (repeatable)",
        ..PLAIN
    },
    Setting {
        name: "oidc.groups_claim",
        flag: flag("oidc-groups-claim", "NAME"),
        default: Some("groups"),
        about: "Claim with a person's groups; dots lead into objects: realm_access.roles",
        ..PLAIN
    },
    Setting {
        name: "telemetry.kind_labels",
        kind: Kind::Bool,
        flag: turning_off("no-kind-labels", "Do not label metrics by kind of job"),
        default: Some("true"),
        about: "Label metrics by kind of job",
        ..PLAIN
    },
    Setting {
        name: "telemetry.otlp",
        flag: flag("otlp", "URL"),
        about: "OpenTelemetry collector for traces, such as http://127.0.0.1:4318; OTEL_* variables also work",
        ..PLAIN
    },
    Setting {
        name: "log.level",
        kind: Kind::Level,
        variable: Some("TENURE_LOG"),
        default: Some("warn"),
        about: "Log level: error, warn, info, debug or trace, also by module: info,tenure_sqlite=debug",
        ..PLAIN
    },
    Setting {
        name: "log.format",
        kind: Kind::Choice(&["auto", "pretty", "json"]),
        default: Some("auto"),
        about: "Log format: pretty, json, or auto for pretty on a terminal and json elsewhere",
        ..PLAIN
    },
    Setting {
        name: "client.url",
        kind: Kind::Urls,
        variable: Some("TENURE_URL"),
        default: Some(crate::client::USUAL),
        about: "URL of the server that commands use, such as unix:/run/tenure.sock; commas separate several",
        ..PLAIN
    },
    Setting {
        name: "client.context",
        variable: Some("TENURE_CONTEXT"),
        about: "Name of a context from `tenure context add`",
        ..PLAIN
    },
    Setting {
        name: "client.token",
        variable: Some("TENURE_TOKEN"),
        is_secret: true,
        about: "Access token, sent only to the server of the same file",
        ..PLAIN
    },
    Setting {
        name: "client.ca",
        kind: Kind::File,
        variable: Some("TENURE_CA"),
        about: "CA certificates in PEM format that verify servers, in place of the system's",
        ..PLAIN
    },
    Setting {
        name: "client.cert",
        kind: Kind::File,
        variable: Some("TENURE_CLIENT_CERT"),
        about: "Client certificate in PEM format, for a server that asks for one",
        ..PLAIN
    },
    Setting {
        name: "client.key",
        kind: Kind::File,
        variable: Some("TENURE_CLIENT_KEY"),
        about: "Private key of the client certificate in PEM format",
        ..PLAIN
    },
    Setting {
        name: "client.insecure_http",
        kind: Kind::Bool,
        variable: Some("TENURE_INSECURE_HTTP"),
        default: Some("false"),
        about: "Send the access token to other machines over http://",
        ..PLAIN
    },
];

/// Sections whose keys are names that people give, and what can be said under each.
pub(crate) const NAMED: &[(&str, &[&str])] = &[
    (
        "queues",
        &["paused", "max_running", "rate", "max_depth", "default_retry", "retain_seconds", "lease_seconds"],
    ),
    (
        "schedules",
        &[
            "spec",
            "time_zone",
            "except",
            "jitter_seconds",
            "starts_at",
            "ends_at",
            "max_runs",
            "overlap",
            "overlap_max",
            "catch_up",
            "catch_up_max",
            "max_lateness_seconds",
            "on_edit",
            "revision",
            "job",
        ],
    ),
    ("webhooks", &["url", "types", "queues", "kinds", "secret"]),
];

/// What of a declaration is a secret: it is never shown, and may be said by a file of its own, `…_file`.
pub(crate) const KEPT_APART: &[(&str, &str)] = &[("webhooks", "secret")];

/// What `tenure context` keeps in a person's own file.
pub(crate) const CONTEXTS: [&str; 2] = ["current", "contexts"];

/// The setting of this name.
pub(crate) fn known(name: &str) -> Option<&'static Setting> {
    KNOWN.iter().find(|setting| setting.name == name)
}

/// What can be said under each name of a section.
pub(crate) fn declarable(section: &str) -> &'static [&'static str] {
    NAMED.iter().find(|(known, _)| *known == section).map_or(&[], |(_, keys)| *keys)
}

impl Setting {
    /// Its section and its key.
    pub(crate) fn parts(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or(("", self.name))
    }

    /// The variables of the environment that say it.
    pub(crate) fn variables(&self) -> Vec<String> {
        let by_name = format!("TENURE_{}", self.name.replace('.', "__").to_uppercase());
        self.variable.map(str::to_owned).into_iter().chain([by_name]).collect()
    }

    /// Returns true if it takes several values.
    pub(crate) fn is_list(&self) -> bool {
        self.kind.is_list()
    }

    /// Refuses an invalid value, or an invalid item of a list.
    pub(crate) fn check(&self, value: &str) -> Result<(), String> {
        self.kind.check(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_section_a_key_and_a_default_that_is_one() {
        for setting in KNOWN {
            let (section, key) = setting.parts();
            assert!(!section.is_empty() && !key.is_empty() && !setting.about.is_empty(), "{}", setting.name);
            assert!(!key.ends_with("_file"), "that is how a secret is said elsewhere: {}", setting.name);
            if let Some(default) = setting.default {
                assert_eq!(setting.check(default), Ok(()), "{}", setting.name);
            }
            assert_eq!(KNOWN.iter().filter(|other| other.name == setting.name).count(), 1);
        }
    }

    #[test]
    fn a_value_is_one_or_is_told_what_is_allowed() {
        let told = |name, value| known(name).unwrap().check(value);
        for (name, bad) in [
            ("server.bind", "8368"),
            ("server.auth", "maybe"),
            ("server.drain_delay", "soon"),
            ("server.timers", "on"),
            ("server.public_url", "jobs.example.com"),
            ("server.allow_callback_to", "10.0.0.0/99"),
            ("server.egress_allow", "https://hooks.example.com"),
            ("server.grants", "deploy=manage"),
            ("log.level", "tenure=loud"),
            ("database.url", ""),
        ] {
            assert!(told(name, bad).is_err(), "{name}: {bad}");
        }
        assert_eq!(told("log.level", "info,tenure_sqlite=debug"), Ok(()));
        assert_eq!(told("server.allow_callback_to", "10.1.0.0/16"), Ok(()));
    }
}
