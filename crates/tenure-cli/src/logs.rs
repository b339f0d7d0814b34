//! What the library and the server tell on standard error: for people on a terminal, as JSON elsewhere.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::exit::Failure;
use crate::screen;
use crate::settings::{Env, Resolved};

/// In which form it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Lines for people.
    Lines,
    /// A JSON object a line.
    Json,
}

/// Listens to the program; what is told can be chosen anew.
pub(crate) struct Logs {
    choose: Box<dyn Fn(EnvFilter) -> bool + Send + Sync>,
}

impl Form {
    /// As the settings say. A program that stays writes for a collector, unless somebody is looking.
    pub(crate) fn of(settings: &Resolved, is_terminal: bool) -> Self {
        match settings.text("log.format") {
            Some("json") => Self::Json,
            Some("pretty") => Self::Lines,
            _ if is_terminal => Self::Lines,
            _ => Self::Json,
        }
    }
}

impl Logs {
    /// For a program that stays.
    pub(crate) fn of(settings: &Resolved) -> Result<Self, Failure> {
        let form = Form::of(settings, std::io::stderr().is_terminal());
        Ok(Self::listen(level(settings, WARNINGS)?, form))
    }

    /// Chooses anew what is told.
    pub(crate) fn choose(&self, settings: &Resolved) -> Result<bool, Failure> {
        Ok((self.choose)(level(settings, WARNINGS)?))
    }

    fn listen(filter: EnvFilter, form: Form) -> Self {
        let builder = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(|| screen::LogLines)
            .with_ansi(form == Form::Lines && screen::is_coloured(&std::io::stderr()))
            .with_span_events(FmtSpan::NONE)
            // A closed standard error must not end the program.
            .log_internal_errors(false);
        match form {
            Form::Lines => {
                let builder = builder.with_filter_reloading();
                let handle = builder.reload_handle();
                builder.init();
                Self { choose: Box::new(move |filter| handle.reload(filter).is_ok()) }
            }
            Form::Json => {
                let builder = builder.json().flatten_event(true).with_filter_reloading();
                let handle = builder.reload_handle();
                builder.init();
                Self { choose: Box::new(move |filter| handle.reload(filter).is_ok()) }
            }
        }
    }
}

/// The default level.
pub(crate) const WARNINGS: &str = "warn";
/// This level for a command that shows each failed attempt itself.
pub(crate) const WITHOUT_FAILURES: &str = "warn,tenure::worker::failures=off";

/// For a command that comes to its end: what is wrong with the settings it tells elsewhere.
pub(crate) fn listen(default: &str) {
    let settings = Resolved::of_person(&Env::real());
    let form = if settings.text("log.format") == Some("json") { Form::Json } else { Form::Lines };
    let filter = level(&settings, default).unwrap_or_else(|_| EnvFilter::new(default));
    Logs::listen(filter, form);
}

fn level(settings: &Resolved, default: &str) -> Result<EnvFilter, Failure> {
    // Every command has the same default in the settings, and a few have a narrower one.
    let choose = |text: &str| EnvFilter::try_new(if text == WARNINGS { default } else { text });
    let level = settings.parsed("log.level", choose)?;
    Ok(level.unwrap_or_else(|| EnvFilter::new(default)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_on_a_terminal_get_lines_and_collectors_json() {
        let settings = Resolved::default();
        assert_eq!((Form::of(&settings, true), Form::of(&settings, false)), (Form::Lines, Form::Json));
    }
}
