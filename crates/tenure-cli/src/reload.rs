//! SIGHUP: the level of the log, queues, schedules and webhooks are read again, and what has changed is told.

use std::sync::Arc;

use axum::Router;
use tenure_http::{AuditFile, Egress, Tls};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::declared;
use crate::exit::Failure;
use crate::logs::Logs;
use crate::output::safe;
use crate::screen::{Screen, complain};
use crate::serve::Serve;
use crate::settings::{KNOWN, Layer, Resolved};

/// Hears that settings are to be read again.
pub(crate) struct Reload(Signal);

impl Reload {
    /// From now on a hang-up does not end the program.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let refuse = |source| Failure::System { what: "cannot listen for signals", source };
        Ok(Self(signal(SignalKind::hangup()).map_err(refuse)?))
    }

    /// Reads them whenever that is wished. What is wrong is told, and then all stays as it was.
    pub(crate) async fn run(
        mut self,
        (serve, mut settings): (Serve, Resolved),
        logs: Logs,
        (routes, audit_file): (Router, Option<AuditFile>),
        screen: Arc<Screen>,
        tls: Option<Tls>,
    ) {
        let serve = Arc::new(serve);
        // Which addresses may be called counts from the next start on, as `told` says.
        let may_call = declared::may_call(&settings);
        // A server that started read-only stays so until its next start.
        let changes = (!settings.is_on("server.read_only")).then_some(routes);
        while self.0.recv().await.is_some() {
            if let Some(Err(error)) = tls.as_ref().map(Tls::reload) {
                complain(&format!("TLS certificate not reloaded; the old one stays in use: {error}"));
            }
            // A tool that rotates logs has renamed it.
            audit_file.iter().for_each(AuditFile::reopen);
            match again(&serve, &settings, &logs, (changes.as_ref(), &may_call)).await {
                Ok((new, told)) => {
                    screen.line(&format!("settings reloaded: {}", told.join("; ")));
                    settings = new;
                }
                Err(failure) => complain(&format!("settings not reloaded: {failure}")),
            }
        }
    }
}

async fn again(
    serve: &Arc<Serve>,
    old: &Resolved,
    logs: &Logs,
    (changes, may_call): (Option<&Router>, &Egress),
) -> Result<(Resolved, Vec<String>), Failure> {
    let serve = Arc::clone(serve);
    // Reading files, and commands that print secrets, would hold up a thread of the server.
    let read = tokio::task::spawn_blocking(move || serve.settings());
    let new = read.await.map_err(|error| Failure::System {
        what: "cannot read settings",
        source: std::io::Error::other(error),
    })??;
    // All of it or nothing: what would be refused is found before anything is otherwise.
    let faults = declared::tried(&new.declared, may_call).await?;
    Resolved::of([Layer { faults, ..Layer::default() }]).sound()?;
    let mut told = Vec::new();
    if new.text("log.level") != old.text("log.level") && logs.choose(&new)? {
        told.push(format!("log.level is now {}", new.text("log.level").unwrap_or_default()));
    }
    if let Some(routes) = changes {
        let applied = declared::apply(routes, &new.declared).await?;
        told.extend(applied.changed);
        told.extend(applied.faults.iter().map(ToString::to_string));
    }
    told.extend(left(old, &new));
    told.extend(for_a_start(old, &new));
    if told.is_empty() {
        told.push("no changes".to_owned());
    }
    Ok((new, told))
}

/// What is declared no more stays: a file that was emptied by mistake would end much.
fn left(old: &Resolved, new: &Resolved) -> Vec<String> {
    let mut told = Vec::new();
    for (key @ (section, name), before) in &old.declared {
        let Some(after) = new.declared.get(key) else {
            told.push(format!("{section}.{name}"));
            continue;
        };
        if declared::keeps_what_is_not_said(section) {
            let fields = before.body.as_object().into_iter().flat_map(serde_json::Map::keys);
            let gone = fields.filter(|field| after.body.get(field).is_none());
            told.extend(gone.map(|field| format!("{section}.{name}.{field}")));
        }
    }
    told.into_iter()
        .map(|what| safe::line(&format!("{what} is no longer declared but was kept; delete it by command")))
        .collect()
}

/// What counts only from the next start on.
fn for_a_start(old: &Resolved, new: &Resolved) -> Vec<String> {
    let changed = KNOWN.iter().filter(|setting| setting.name != "log.level").filter(|setting| {
        let values = |of: &Resolved| of.chosen.get(setting.name).map(|spoken| spoken.values.clone());
        values(old) != values(new)
    });
    changed.map(|setting| format!("{} takes effect at the next start", setting.name)).collect()
}
