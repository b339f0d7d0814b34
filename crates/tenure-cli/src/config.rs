//! `tenure config`: which settings there are, which count, where they were said, and what is wrong with them.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use tenure_http::Egress;

use crate::client::Connect;
use crate::declared::{self, Declared};
use crate::exit::Failure;
use crate::output::{Output, Shape, Table, safe};
use crate::screen::{complain, print, tell};
use crate::settings::{
    Env, Fault, File, HERE, KNOWN, Layer, Resolved, Settings, files, is_kept_apart, schema,
};

/// Arguments of `tenure config`.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show the settings in effect, without secrets
    Show(Box<Show>),
    /// Check all settings without starting a server
    Check(Check),
    /// Print the JSON Schema of tenure.toml for editors
    Schema,
    /// Write a tenure.toml with every setting commented out
    Init(Init),
}

/// Arguments of `tenure config show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    output: Output,
    /// Show where each setting was set
    #[arg(long)]
    origin: bool,
}

/// Arguments of `tenure config check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Settings file [env: TENURE_CONFIG] [default: ./tenure.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Arguments of `tenure config init`.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// File to write; - for standard output
    #[arg(value_name = "FILE", default_value = HERE)]
    file: PathBuf,
}

pub(crate) fn run(config: Config) -> Result<(), Failure> {
    match config {
        Config::Show(show) => shown(&show),
        Config::Check(check) => checked(&check),
        Config::Schema => {
            print(&format!("{:#}", schema()));
            Ok(())
        }
        Config::Init(init) => made(&init.file),
    }
}

/// A row: a setting, its value, and where that was said.
type Row = (String, String, String);

fn shown(show: &Show) -> Result<(), Failure> {
    let env = Env::real();
    let mut rows = of_client(&show.connect, &env)?;
    let resolved = Resolved::of_server(&env, Layer::default(), show.connect.config.as_deref()).sound()?;
    rows.extend(KNOWN.iter().filter_map(|setting| {
        if setting.parts().0 == "client" {
            return None;
        }
        let said = resolved.chosen.get(setting.name);
        let value = match said {
            Some(_) if setting.is_secret => "(not shown)".to_owned(),
            Some(spoken) => spoken.values.join(", "),
            None => setting.default?.to_owned(),
        };
        let origin = said.map_or_else(|| "default".to_owned(), |spoken| spoken.at.clone());
        Some((setting.name.to_owned(), value, origin))
    }));
    rows.extend(resolved.declared.iter().map(|((section, name), declaration)| {
        let mut body = declaration.body.clone();
        for (key, value) in body.as_object_mut().into_iter().flatten() {
            if is_kept_apart(section, key) {
                *value = "(not shown)".into();
            }
        }
        (format!("{section}.{name}"), body.to_string(), declaration.at.clone())
    }));
    for (_, value, origin) in &mut rows {
        (*value, *origin) = (safe::without_passwords(value), safe::without_passwords(origin));
    }
    let mut out = show.output.open();
    if matches!(out.shape(), Shape::Json | Shape::Jsonl) {
        let fields = rows.into_iter().map(|(name, value, origin)| {
            let value = if show.origin { json!({ "value": value, "origin": origin }) } else { json!(value) };
            (name, value)
        });
        let fields: Map<String, Value> = fields.collect();
        return out.document(&Value::from(fields).to_string());
    }
    let mut table =
        Table::new(if show.origin { &["setting", "value", "origin"] } else { &["setting", "value"] });
    for (name, value, origin) in rows {
        let mut row = vec![name.into(), value.into()];
        row.extend(show.origin.then(|| origin.into()));
        table.row(row);
    }
    out.table(&table, true)?;
    out.flush()
}

/// Which server commands ask, and who asks.
fn of_client(connect: &Connect, env: &Env) -> Result<Vec<Row>, Failure> {
    let settings = Settings::of(connect, env)?;
    let row = |name: &str, value: String, origin: String| (name.to_owned(), value, origin);
    let mut rows = vec![row("url", settings.urls.value.join(", "), settings.urls.origin)];
    if let Some(token) = settings.token {
        rows.push(row("token", "(not shown)".to_owned(), token.origin));
    }
    if let Some(context) = settings.context {
        let origin = format!("context {}", context.value);
        rows.push(row("context", context.value, context.origin));
        rows.push(row("read_only", settings.read_only.to_string(), origin));
    }
    if let Ok(path) = File::path(env) {
        let there = if path.exists() { "exists" } else { "does not exist" };
        rows.push(row("file", path.display().to_string(), there.to_owned()));
    }
    Ok(rows)
}

fn checked(check: &Check) -> Result<(), Failure> {
    let env = Env::real();
    let resolved = Resolved::of_server(&env, Layer::default(), check.config.as_deref());
    let allowed = declared::may_call(&resolved);
    let mut faults = resolved.faults;
    faults.extend(tried(&resolved.declared, &allowed)?);
    in_order(&mut faults);
    if !faults.is_empty() {
        faults.iter().for_each(|fault| complain(&fault.to_string()));
        let number = faults.len();
        return Err(Failure::Invalid(format!("{number} invalid {}", plural(number))));
    }
    let read: Vec<String> = files(&env, check.config.as_deref())
        .into_iter()
        .filter(|(path, _)| path.exists())
        .map(|(path, _)| path.display().to_string())
        .collect();
    let of = if read.is_empty() { "no settings file found".to_owned() } else { read.join(", ") };
    print(&format!("settings are valid: {of}"));
    Ok(())
}

/// As they stand in their files, and each once.
fn in_order(faults: &mut Vec<Fault>) {
    let mut files: Vec<String> = Vec::new();
    for fault in &*faults {
        let file = fault.place().0.to_owned();
        if !files.contains(&file) {
            files.push(file);
        }
    }
    faults.sort_by_key(|fault| {
        let (file, line) = fault.place();
        (files.iter().position(|known| known == file), line)
    });
    faults.dedup();
}

fn plural(number: usize) -> &'static str {
    if number == 1 { "setting" } else { "settings" }
}

/// What a server would refuse of what is declared.
fn tried(declared: &Declared, may_call: &Egress) -> Result<Vec<Fault>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "cannot start threads", source })?;
    runtime.block_on(declared::tried(declared, may_call))
}

fn made(file: &Path) -> Result<(), Failure> {
    let text = commented();
    if file == Path::new("-") {
        print(text.trim_end());
        return Ok(());
    }
    let refuse = |source| Failure::Output { path: file.to_owned(), source };
    // A file that a group can write may contain few settings.
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(file) {
        Ok(mut made) => made.write_all(text.as_bytes()).map_err(refuse)?,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(Failure::Conflict(format!("{} already exists and was not changed", file.display())));
        }
        Err(error) => return Err(refuse(error)),
    }
    tell(&format!("wrote {}; check it with `tenure config check`", file.display()));
    Ok(())
}

/// Every setting with its default, and an example of what can be declared.
fn commented() -> String {
    let mut text = "# Settings of Tenure. Remove the # of a line to set it; `tenure config show --origin` lists the settings in effect.\n"
        .to_owned();
    let mut within = "";
    for setting in KNOWN {
        let (section, key) = setting.parts();
        // Which server a person asks is said in his own file.
        if section == "client" {
            continue;
        }
        if within != section {
            within = section;
            text.push_str(&format!("\n[{section}]\n"));
        }
        text.push_str(&format!("# {}\n# {key} = {}\n", setting.about, example(setting)));
        if setting.is_secret {
            text.push_str(&format!("# {key}_file = \"/run/secrets/{section}_{key}\"\n"));
        }
    }
    text.push_str(&DECLARED.concat());
    text
}

fn example(setting: &crate::settings::Setting) -> String {
    use crate::settings::Kind;
    match (setting.kind, setting.default) {
        (Kind::Bool, default) => default.unwrap_or("true").to_owned(),
        (_, Some(default)) => format!("{default:?}"),
        (Kind::Texts, None) if setting.name == "oidc.scopes" => "[\"profile\", \"email\"]".to_owned(),
        (Kind::Texts, None) => "[\"jobs.example.com\"]".to_owned(),
        (Kind::Networks, None) => "[\"10.1.0.0/16\"]".to_owned(),
        (Kind::Grants, None) => "[\"unix-user:deploy=manage\"]".to_owned(),
        (Kind::Egress, None) => "[\"hooks.example.com:8443\"]".to_owned(),
        (Kind::File, None) if setting.name == "server.socket" => "\"/run/tenure/tenure.sock\"".to_owned(),
        (Kind::File, None) => format!("\"{}.pem\"", setting.parts().1),
        (Kind::Span, None) => "\"5s\"".to_owned(),
        (Kind::Url | Kind::Urls, None) => "\"https://jobs.example.com\"".to_owned(),
        (Kind::Text | Kind::Address | Kind::Choice(_) | Kind::Level, None) => match setting.name {
            "database.url" => "\"jobs.db\"".to_owned(),
            "server.socket_group" => "\"tenure\"".to_owned(),
            "oidc.issuer" => "\"https://id.example.com\"".to_owned(),
            "oidc.client_id" => "\"tenure\"".to_owned(),
            "oidc.client_secret" => "\"file:/etc/tenure/oidc_secret\"".to_owned(),
            "server.proxy_user_header" => "\"X-Forwarded-User\"".to_owned(),
            "server.proxy_groups_header" => "\"X-Forwarded-Groups\"".to_owned(),
            "database.encryption_keys" => "\"file:/etc/tenure/keys\"".to_owned(),
            _ => "\"http://127.0.0.1:4318\"".to_owned(),
        },
    }
}

/// Examples of what can be declared.
const DECLARED: [&str; 4] = [
    "\n# `tenure serve` applies queues, schedules and webhooks when it starts and at SIGHUP.\n",
    "# [queues.mail]\n# max_running = 10\n# rate = { limit = 100, per_seconds = 60 }\n",
    r#"
# [schedules.nightly]
# spec = { cron = "0 2 * * *" }
# time_zone = "Europe/Copenhagen"
# job = { kind = "report", queue = "reports", args = { all = true } }
"#,
    r#"
# [webhooks.oncall]
# url = "https://example.com/hook"
# types = ["job.failed"]
# secret_file = "/run/secrets/oncall"
"#,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_init_writes_is_sound_commented_out_and_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tenure.toml");
        made(&file).unwrap();
        assert_eq!(made(&file).unwrap_err().code(), 6, "a file that is there stays");
        let env = Env::default();
        let read = || Resolved::of_server(&env, Layer::default(), Some(&file));
        let nothing = read();
        assert_eq!((nothing.faults, nothing.chosen.len(), nothing.declared.len()), (vec![], 0, 0));
        let said = |line: &str| match line.strip_prefix("# ") {
            Some(rest) if rest.contains(" = ") && !rest.contains("_file = ") || rest.starts_with('[') => {
                rest.to_owned()
            }
            Some(_) | None => line.to_owned(),
        };
        let text: Vec<String> = std::fs::read_to_string(&file).unwrap().lines().map(said).collect();
        std::fs::write(&file, text.join("\n")).unwrap();
        let all = read();
        assert_eq!(all.faults, vec![]);
        let shown = KNOWN.iter().filter(|setting| setting.parts().0 != "client").count();
        assert_eq!((all.chosen.len(), all.declared.len()), (shown, 3));
        assert_eq!(tried(&all.declared, &Egress::default()).unwrap(), vec![]);
    }
}
