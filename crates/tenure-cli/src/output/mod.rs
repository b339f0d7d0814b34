//! What is printed: tables for people, documents for programs.

mod fields;
#[cfg(test)]
mod fuzz;
mod jq;
pub(crate) mod safe;
mod table;
mod when;
mod yaml;

use std::io::{BufWriter, ErrorKind, IsTerminal, Stdout, Write};

use clap::{Args, ValueEnum};
use tenure::{Clock, SystemClock, Timestamp};

pub(crate) use table::{Cell, Table};

use crate::exit::Failure;
use crate::screen::{self, Tone};

/// In which form something is printed.
#[derive(Debug, Clone, Args)]
pub(crate) struct Output {
    /// Output format
    #[arg(short, long, value_name = "FORM", global = true, help_heading = "Output")]
    output: Option<Form>,
    /// Print only these fields of each document, as JSON
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', global = true, help_heading = "Output")]
    json: Vec<String>,
    /// Filter the JSON by a jq expression; strings are printed without quotes
    #[arg(long, value_name = "EXPR", value_parser = jq::expression, global = true, help_heading = "Output")]
    jq: Option<String>,
    /// Print only these columns, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with_all = ["json", "jq"], global = true, help_heading = "Output")]
    columns: Vec<String>,
    /// Omit the line of column names
    #[arg(long, global = true, help_heading = "Output")]
    no_headers: bool,
    /// Format of times [default: relative on a terminal, else iso]
    #[arg(long, value_name = "FORM", global = true, help_heading = "Output")]
    time: Option<TimeForm>,
    /// When to print in color [default: auto]
    #[arg(long, value_name = "WHEN", global = true, help_heading = "Output")]
    color: Option<Colour>,
    /// Print data only, no messages
    #[arg(short, long, global = true, help_heading = "Output")]
    quiet: bool,
}

/// A form of output, as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Table,
    Wide,
    Json,
    Jsonl,
    Yaml,
    Id,
    Name,
}

/// What a command has to make of what it prints; the place that prints it does the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A table.
    Table,
    /// A table with more columns.
    Wide,
    /// The document of the server.
    Json,
    /// One document a line.
    Jsonl,
    /// Ids only, one a line.
    Id,
}

impl Form {
    fn shape(self) -> Shape {
        match self {
            Self::Table => Shape::Table,
            Self::Wide => Shape::Wide,
            Self::Json | Self::Yaml => Shape::Json,
            Self::Jsonl => Shape::Jsonl,
            Self::Id | Self::Name => Shape::Id,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeForm {
    Relative,
    Iso,
    Unix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Colour {
    Auto,
    Always,
    Never,
}

/// Standard output, in a form that somebody chose.
#[derive(Debug)]
pub(crate) struct Out {
    to: BufWriter<Stdout>,
    shape: Option<Shape>,
    /// Documents are shown as YAML, and whether one was shown before.
    yaml: Option<bool>,
    /// An id is shown with what it is the id of.
    named: bool,
    fields: Vec<String>,
    jq: Option<jq::Jq>,
    columns: Vec<String>,
    headers: bool,
    pub(crate) quiet: bool,
    on_terminal: bool,
    coloured: bool,
    time: TimeForm,
    /// Column widths of the last table, so that later rows line up.
    widths: Vec<usize>,
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
        let is_json = !self.json.is_empty() || self.jq.is_some();
        let unsaid = match (is_json, self.columns.is_empty()) {
            (true, _) => Some(Shape::Json),
            // Any column of the widest table can be chosen.
            (false, false) => Some(Shape::Wide),
            (false, true) => None,
        };
        let shape = self.output.map(Form::shape);
        // Rows and ids have no fields to choose from.
        let shape =
            if is_json { shape.filter(|it| *it == Shape::Jsonl).or(unsaid) } else { shape.or(unsaid) };
        Out {
            to: BufWriter::new(stdout),
            shape,
            yaml: (self.output == Some(Form::Yaml)).then_some(false),
            named: self.output == Some(Form::Name),
            fields: self.json.clone(),
            // It was understood when it was read.
            jq: self.jq.as_deref().and_then(|text| jq::Jq::of(text).ok()),
            columns: self.columns.clone(),
            headers: !self.no_headers,
            quiet: self.quiet,
            on_terminal,
            coloured,
            time: self.time.unwrap_or(usual),
            widths: Vec::new(),
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

    /// A document of the server, as it is, or what was asked for of it.
    pub(crate) fn document(&mut self, text: &str) -> Result<(), Failure> {
        let text = text.trim_end();
        if self.fields.is_empty() {
            return self.filtered(text);
        }
        let text = fields::picked(text, &self.fields)?;
        self.filtered(&text)
    }

    fn filtered(&mut self, text: &str) -> Result<(), Failure> {
        let Some(jq) = &self.jq else { return self.json(text) };
        for brought in jq.of_document(text)? {
            match brought {
                jq::Brought::Text(text) if self.on_terminal => self.line(&safe::lines(&text))?,
                jq::Brought::Text(text) => self.line(&text)?,
                jq::Brought::Json(text) => self.json(&text)?,
            }
        }
        Ok(())
    }

    fn json(&mut self, text: &str) -> Result<(), Failure> {
        if let Some(before) = self.yaml {
            self.yaml = Some(true);
            if before {
                self.line("---")?;
            }
            return self.line(&safe::json(&yaml::yaml(text)));
        }
        if self.on_terminal { self.line(&safe::json(text)) } else { self.line(text) }
    }

    /// The id of something, with what it is if that was asked for.
    pub(crate) fn id(&mut self, what: &str, id: &str) -> Result<(), Failure> {
        let id = safe::line(id);
        if self.named { self.line(&format!("{what}/{id}")) } else { self.line(&id) }
    }

    /// Whether somebody has chosen columns.
    pub(crate) fn has_columns(&self) -> bool {
        !self.columns.is_empty()
    }

    /// A table, whose names of columns are left out for whoever wants that, and for a page that follows another one.
    pub(crate) fn table(&mut self, table: &Table, first: bool) -> Result<(), Failure> {
        let headers = self.headers && first;
        let chosen = if self.has_columns() { Some(table.only(&self.columns)?) } else { None };
        let table = chosen.as_ref().unwrap_or(table);
        if first {
            self.widths.clear();
        }
        let text = match self.on_terminal {
            true => table.columns(headers, self.coloured, screen::width(), &mut self.widths),
            false => table.tabs(headers, self.coloured),
        };
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
        Failure::System { what: "cannot write to standard output", source }
    })
}

/// A number of things, such as `1 job` or `3 jobs`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
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
