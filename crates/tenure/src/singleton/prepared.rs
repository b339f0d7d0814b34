//! A singleton of which all is known but the args of its jobs.

use serde_json::Value;
use tenure_core::{AppId, Invalid};

use super::{Lock, Mode, Scope, Singleton, Template};

/// A singleton that is checked and has its settings filled in.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    app: AppId,
    function: String,
    mode: Mode,
    of_host: bool,
    template: Template,
}

impl Prepared {
    pub(crate) fn new(
        singleton: &Singleton,
        app: &AppId,
        function: &str,
        mode: Mode,
        setting: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Invalid> {
        singleton.check()?;
        let template = match mode {
            Mode::Function => Template::bound(&singleton.scope, setting)?,
            Mode::Listener => Template::literal(&singleton.scope, setting)?,
        };
        let of_host = singleton.of_host;
        let prepared = Self { app: app.clone(), function: function.to_owned(), mode, of_host, template };
        if mode == Mode::Listener {
            // It has no args, so what is wrong with it is known already.
            prepared.lock(&Value::Null)?;
        }
        Ok(prepared)
    }

    /// The lock of a run with these args.
    pub(crate) fn lock(&self, args: &Value) -> Result<Lock, Invalid> {
        let text = self.template.scope(args)?;
        let scope = if self.of_host {
            Scope::Host { name: text }
        } else {
            Scope::Function { function: self.function.clone(), part: text }
        };
        Lock::new(self.app.clone(), scope, self.mode)
    }
}

impl Singleton {
    /// The lock that a run of this function takes in this app. `setting` answers what stands for
    /// `%setting%` in its scope; `args` are those of the job, and mean nothing to what listens.
    ///
    /// # Errors
    /// A scope that cannot be read or filled in, and what [`Lock::new`] refuses.
    pub fn lock(
        &self,
        app: &AppId,
        function: &str,
        mode: Mode,
        setting: impl Fn(&str) -> Option<String>,
        args: &Value,
    ) -> Result<Lock, Invalid> {
        Prepared::new(self, app, function, mode, setting)?.lock(args)
    }
}
