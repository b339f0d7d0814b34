//! What a person sees: lines, and whether they are coloured.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    /// True if the output has color.
    pub(crate) fn is_coloured(&self) -> bool {
        self.coloured
    }

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
        if write_line(To::Output, text).is_err_and(|error| has_gone(&error)) {
            self.read.store(false, Ordering::Relaxed);
            tell("the output was closed; jobs keep running, press Ctrl-C here to stop");
        }
    }
}

/// Lines that stay below all others of a terminal.
#[derive(Debug)]
struct Pinned {
    lines: Vec<String>,
    /// Number of lines on the screen.
    shown: usize,
}

static PINNED: Mutex<Pinned> = Mutex::new(Pinned { lines: Vec::new(), shown: 0 });
static IS_PINNED: AtomicBool = AtomicBool::new(false);
/// Nothing is pinned any more.
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// A terminal that is smaller has no room for such lines.
const ROOM: (usize, usize) = (40, 16);

impl Pinned {
    fn get() -> MutexGuard<'static, Self> {
        PINNED.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lines from the screen: up to the first of them, and nothing from there on.
    fn erase(&mut self) -> String {
        match std::mem::take(&mut self.shown) {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r\x1b[J"),
        }
    }

    /// Puts the lines below what is there.
    fn draw(&mut self) -> String {
        self.shown = self.lines.len();
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Returns true if the terminal can pin lines.
pub(crate) fn can_pin() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    let has_room = size().is_some_and(|(columns, lines)| columns >= ROOM.0 && lines >= ROOM.1);
    std::io::stdout().is_terminal() && !is_dumb && has_room
}

/// Takes what is pinned from the screen, for good.
pub(crate) fn unpin() {
    IS_OVER.store(true, Ordering::Relaxed);
    let mut out = std::io::stdout().lock();
    let mut pinned = Pinned::get();
    IS_PINNED.store(false, Ordering::Relaxed);
    let text = pinned.erase();
    pinned.lines.clear();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Pins these lines in the place of those before, each cut to the width of the terminal.
pub(crate) fn pin(lines: &[(Tone, String)], coloured: bool) {
    let width = width().unwrap_or(ROOM.0).saturating_sub(1);
    let mut out = std::io::stdout().lock();
    let mut pinned = Pinned::get();
    if IS_OVER.load(Ordering::Relaxed) {
        return;
    }
    let before = pinned.erase();
    let cut = |text: &str| text.chars().take(width).collect::<String>();
    let shown = |(tone, text): &(Tone, String)| if coloured { painted(*tone, &cut(text)) } else { cut(text) };
    pinned.lines = lines.iter().map(shown).collect();
    IS_PINNED.store(!lines.is_empty(), Ordering::Relaxed);
    let text = before + &pinned.draw();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
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
    let _ = write_line(To::Output, text);
}

/// Says something to the person, beside the data.
pub(crate) fn tell(text: &str) {
    let _ = write_line(To::Error, text);
}

/// Standard error for log lines: they appear above the pinned lines.
pub(crate) struct LogLines;

impl Write for LogLines {
    /// Writes one event.
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        write_line(To::Error, String::from_utf8_lossy(event).trim_end_matches('\n'))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
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

/// Where a line goes.
#[derive(Debug, Clone, Copy)]
enum To {
    Output,
    Error,
}

/// One write a line, so that lines of two tasks do not mix. What is pinned stays below it.
fn write_line(to: To, text: &str) -> std::io::Result<()> {
    if !IS_PINNED.load(Ordering::Relaxed) {
        return put_line(to, text);
    }
    // Locked in this order everywhere; standard output may be locked once more by the same thread.
    let mut screen = std::io::stdout().lock();
    let mut pinned = Pinned::get();
    screen.write_all(pinned.erase().as_bytes()).and_then(|()| screen.flush())?;
    put_line(to, text)?;
    screen.write_all(pinned.draw().as_bytes()).and_then(|()| screen.flush())
}

fn put_line(to: To, text: &str) -> std::io::Result<()> {
    fn put(out: &mut impl Write, text: &str) -> std::io::Result<()> {
        out.write_all(format!("{text}\n").as_bytes())?;
        out.flush()
    }
    match to {
        To::Output => put(&mut std::io::stdout().lock(), text),
        To::Error => put(&mut std::io::stderr().lock(), text),
    }
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
