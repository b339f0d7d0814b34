//! Where jobs wait whose kind is a singleton.

use tenure_core::{AppId, Invalid, Key, LimitKey, NewJob, json_value, limits};

use super::{Mode, Prepared, Singleton, Template};

/// The limit key of such a job: of those with one lock, one runs at a time, so the others are not even
/// handed out. They wait in line without a slot, a delivery or an attempt, and `explain` says for what.
///
/// The lease is what makes it a singleton. The line only saves tries, so where its key cannot be known
/// (a setting that only the worker has, a name longer than a key) the job goes without.
///
/// # Errors
/// Refuses args that do not fill in the scope: they never will.
pub(crate) fn line_of(
    singleton: &Singleton,
    app: Option<&AppId>,
    job: &NewJob,
) -> Result<Option<LimitKey>, Invalid> {
    let setting = |name: &str| std::env::var(name).ok();
    let Ok(args) = json_value(job.args.as_bytes()) else { return Ok(None) };
    let Some(app) = app else {
        let Ok(template) = Template::bound(&singleton.scope, setting) else { return Ok(None) };
        return template.scope(&args).map(|_| None);
    };
    let Ok(prepared) = Prepared::new(singleton, app, job.kind.as_str(), Mode::Function, setting) else {
        return Ok(None);
    };
    let lock = prepared.lock(&args)?;
    if lock.name().as_str().len() > limits::KEY_BYTES {
        return Ok(None);
    }
    Ok(Some(LimitKey { key: Key::new("singleton", lock.name().as_str())?, most: Some(1) }))
}
