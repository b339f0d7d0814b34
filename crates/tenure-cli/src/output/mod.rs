//! What is printed: tables for people, documents for programs.

pub(crate) mod safe;
mod table;
mod when;

use std::io::{BufWriter, ErrorKind, IsTerminal, Stdout, Write};

use clap::{Args, ValueEnum};
use tenure::{Clock, SystemClock, Timestamp};

pub(crate) use table::{Cell, Table};

use crate::exit::Failure;
use crate::screen::{self, Tone};

/// In which form something is printed.
#[derive(Debug, Clone, Args)]
pub(crate) struct Output {
    /// In which form: table and wide for people, json and jsonl exactly as the server says it, id for scripts
    #[arg(short, long, value_name = "FORM", global = true, help_heading = "Output")]
    output: Option<Shape>,
    /// Leaves out the line with the names of the columns
    #[arg(long, global = true, help_heading = "Output")]
    no_headers: bool,
    /// How instants are shown [default: relative on a terminal, else iso]
    #[arg(long, value_name = "FORM", global = true, help_heading = "Output")]
    time: Option<TimeForm>,
    /// Whether there are colours [default: on a terminal, unless NO_COLOR says otherwise]
    #[arg(long, value_name = "WHEN", global = true, help_heading = "Output")]
    color: Option<Colour>,
    /// Says nothing beside what was asked for
    #[arg(short, long, global = true, help_heading = "Output")]
    quiet: bool,
}

/// A form of what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// Columns on a terminal, values with tabs between them elsewhere
    Table,
    /// The same with more columns
    Wide,
    /// The document of the server
    Json,
    /// One document a line
    Jsonl,
    /// Ids only, one a line
    Id,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeForm {
    /// Such as 5 m ago
    Relative,
    /// RFC 3339, in UTC
    Iso,
    /// Seconds since 1970
    Unix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Colour {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Standard output, in a form that somebody chose.
#[derive(Debug)]
pub(crate) struct Out {
    to: BufWriter<Stdout>,
    shape: Option<Shape>,
    headers: bool,
    pub(crate) quiet: bool,
    on_terminal: bool,
    coloured: bool,
    time: TimeForm,
}

impl Output {
    /// The place for it.
    pub(crate) fn open(&self) -> Out {
        let stdout = std::io::stdout();
        let on_terminal = stdout.is_terminal();
        let coloured = match self.color.unwrap_or(Colour::Auto) {
            Colour::Auto => screen::is_coloured(&stdout),
            Colour::Always => true,
            Colour::Never => false,
        };
        let usual = if on_terminal { TimeForm::Relative } else { TimeForm::Iso };
        Out {
            to: BufWriter::new(stdout),
            shape: self.output,
            headers: !self.no_headers,
            quiet: self.quiet,
            on_terminal,
            coloured,
            time: self.time.unwrap_or(usual),
        }
    }
}

impl Out {
    /// The form, if somebody chose one.
    pub(crate) fn chosen(&self) -> Option<Shape> {
        self.shape
    }

    /// The form; a table if nobody chose.
    pub(crate) fn shape(&self) -> Shape {
        self.shape.unwrap_or(Shape::Table)
    }

    /// A line of text that is safe to show.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.to.write_all(text.as_bytes()).and_then(|()| self.to.write_all(b"\n"));
        heard(written)
    }

    /// A document of the server, as it is.
    pub(crate) fn document(&mut self, text: &str) -> Result<(), Failure> {
        let text = text.trim_end();
        if self.on_terminal { self.line(&safe::json(text)) } else { self.line(text) }
    }

    /// A table, whose names of columns are left out for whoever wants that, and for a page that follows another one.
    pub(crate) fn table(&mut self, table: &Table, first: bool) -> Result<(), Failure> {
        let headers = self.headers && first;
        let text = if self.on_terminal { table.columns(headers, self.coloured) } else { table.tabs(headers) };
        heard(self.to.write_all(text.as_bytes()))
    }

    /// Whatever was printed is there now.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        heard(self.to.flush())
    }

    /// Says something to a person, beside the data.
    pub(crate) fn tell(&self, text: &str) {
        if !self.quiet {
            screen::tell(text);
        }
    }

    /// An instant of a document, in the form that was chosen.
    pub(crate) fn when(&self, at: Option<&str>) -> String {
        let Some(at) = at else { return String::new() };
        let Ok(instant) = at.parse::<Timestamp>() else { return safe::line(at) };
        match self.time {
            TimeForm::Relative => when::relative(instant, SystemClock.now()),
            TimeForm::Iso => safe::line(at),
            TimeForm::Unix => when::unix(instant),
        }
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        let _ = self.to.flush();
    }
}

/// Whoever stops to read has had enough: that is no mistake.
fn heard(written: std::io::Result<()>) -> Result<(), Failure> {
    written.map_err(|source| {
        if source.kind() == ErrorKind::BrokenPipe {
            return Failure::NobodyReads;
        }
        Failure::System { what: "what was asked for could not be written", source }
    })
}

/// The tone of a state.
pub(crate) fn tone_of(state: &str) -> Tone {
    match state {
        "running" => Tone::Busy,
        "succeeded" => Tone::Good,
        "failed" => Tone::Bad,
        "cancelled" => Tone::Careful,
        "scheduled" | "blocked" => Tone::Faint,
        _ => Tone::Plain,
    }
}
