//! What a person sees: lines, and whether they are coloured.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::output::safe::without_passwords;

/// Standard output, as a place for lines. It goes on without a reader.
#[derive(Debug)]
pub(crate) struct Screen {
    coloured: bool,
    read: AtomicBool,
}

/// What a piece of a line stands for; the colour follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Ordinary text.
    Plain,
    /// Beside the point, such as a time.
    Faint,
    /// Under way.
    Busy,
    /// Ended well.
    Good,
    /// Will be tried again, or needs a look.
    Careful,
    /// Ended badly.
    Bad,
}

impl Screen {
    pub(crate) fn open() -> Self {
        Self { coloured: is_coloured(&std::io::stdout()), read: AtomicBool::new(true) }
    }

    /// Text in the colour of its tone.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        if self.coloured { painted(tone, text) } else { text.to_owned() }
    }

    /// Shows a line. If its reader has gone, that is said once, and the program goes on: the jobs do
    /// not depend on being watched.
    pub(crate) fn line(&self, text: &str) {
        if !self.read.load(Ordering::Relaxed) {
            return;
        }
        if write_line(&mut std::io::stdout().lock(), text).is_err_and(|error| has_gone(&error)) {
            self.read.store(false, Ordering::Relaxed);
            tell("the output was closed; jobs keep running, press Ctrl-C here to stop");
        }
    }
}

/// Text in the colour of its tone.
pub(crate) fn painted(tone: Tone, text: &str) -> String {
    let code = match tone {
        Tone::Plain => return text.to_owned(),
        Tone::Faint => "2",
        Tone::Busy => "36",
        Tone::Good => "32",
        Tone::Careful => "33",
        Tone::Bad => "31",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Prints a line for whoever still reads.
pub(crate) fn print(text: &str) {
    let _ = write_line(&mut std::io::stdout().lock(), text);
}

/// Says something to the person, beside the data.
pub(crate) fn tell(text: &str) {
    let _ = write_line(&mut std::io::stderr().lock(), text);
}

/// Says something in the place of what was said last so; a terminal shows the last of it.
pub(crate) fn tell_over(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = write!(out, "\r\x1b[K{text}").and_then(|()| out.flush());
}

/// Says what went wrong. What was wrong may be a URL with a password, and what is said may be kept in a log.
pub(crate) fn complain(text: &str) {
    tell(&format!("tenure: {}", without_passwords(text)));
}

/// Columns of the terminal that standard output is, if it is one that says it.
pub(crate) fn width() -> Option<usize> {
    size().map(|(columns, _)| columns)
}

/// Columns and lines of that terminal.
pub(crate) fn size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then(|| (size.ws_col.into(), size.ws_row.into()))
}

/// Whether to colour: `CLICOLOR_FORCE`, then `NO_COLOR`, then whether a person is likely to see it.
pub(crate) fn is_coloured(out: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let forced = set("CLICOLOR_FORCE") && std::env::var_os("CLICOLOR_FORCE").is_some_and(|it| it != "0");
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    colour(forced, set("NO_COLOR"), out.is_terminal() && !dumb)
}

fn colour(forced: bool, refused: bool, terminal: bool) -> bool {
    forced || (terminal && !refused)
}

/// One write a line, so that lines of two tasks do not mix.
fn write_line(out: &mut impl Write, text: &str) -> std::io::Result<()> {
    out.write_all(format!("{text}\n").as_bytes())?;
    out.flush()
}

fn has_gone(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::WriteZero)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn force_beats_refusal_and_refusal_beats_a_terminal() {
        assert!(colour(true, true, false));
        assert!(!colour(false, true, true));
        assert!(colour(false, false, true));
        assert!(!colour(false, false, false));
    }

    #[test]
    fn text_is_untouched_without_colour() {
        let screen = Screen { coloured: false, read: AtomicBool::new(true) };
        assert_eq!(screen.paint(Tone::Bad, "failed"), "failed");
        let screen = Screen { coloured: true, ..screen };
        assert_eq!(screen.paint(Tone::Bad, "failed"), "\x1b[31mfailed\x1b[0m");
    }
}
