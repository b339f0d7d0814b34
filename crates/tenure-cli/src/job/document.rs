//! Documents of jobs, as they are shown.

use serde_json::Value;
use serde_json::value::RawValue;
use tenure::json_value;

use crate::client::Trouble;
use crate::exit::Failure;
use crate::output::{Cell, Out, Shape, Table, safe, tone_of};
use crate::screen::Tone;

/// A document, read and as it was.
pub(super) struct Document {
    pub(super) read: Value,
    pub(super) text: String,
}

impl Document {
    pub(super) fn of(text: String) -> Result<Self, Trouble> {
        let read = json_value(&text).map_err(|error| Trouble::strange(&error.to_string()))?;
        Ok(Self { read, text })
    }

    /// Every document of a page, as it was.
    pub(super) fn all(items: &[Box<RawValue>]) -> Result<Vec<Self>, Trouble> {
        items.iter().map(|item| Self::of(item.get().to_owned())).collect()
    }

    pub(super) fn text_of(&self, field: &str) -> Option<&str> {
        self.read[field].as_str()
    }

    pub(super) fn id(&self) -> String {
        safe::line(self.text_of("id").unwrap_or_default())
    }

    pub(super) fn state(&self) -> &str {
        self.text_of("state").unwrap_or_default()
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state(), "succeeded" | "failed" | "cancelled")
    }

    /// What can be said of it now: how far it has come, or what went wrong.
    fn more(&self) -> String {
        let error = self.read.pointer("/error/detail").and_then(Value::as_str);
        if let Some(progress) = self.read["progress"].as_object().filter(|_| self.state() == "running") {
            let percent = progress.get("fraction").and_then(Value::as_f64).unwrap_or_default() * 100.0;
            let message = progress.get("message").and_then(Value::as_str).unwrap_or_default();
            return format!("{percent:.0} % {message}").trim_end().to_owned();
        }
        // What went wrong on the way is no news of a job that has succeeded.
        let error = error.filter(|_| self.state() != "succeeded");
        let text = error.or_else(|| self.text_of("resource_location")).unwrap_or_default();
        text.lines().next().unwrap_or_default().to_owned()
    }

    fn attempts(&self) -> String {
        match self.read["max_attempts"].as_u64() {
            Some(most) => format!("{}/{most}", self.read["attempt"]),
            None => self.read["attempt"].to_string(),
        }
    }

    /// Its place in a table.
    fn cells(&self, out: &Out, wide: bool) -> Vec<Cell> {
        let said = |field| Cell::from(self.text_of(field).unwrap_or_default());
        let mut cells = vec![
            said("id"),
            said("kind"),
            said("queue"),
            said("state").toned(tone_of(self.state())),
            self.attempts().into(),
            out.when(self.text_of("created_at")).into(),
        ];
        if wide {
            let tags = self.read["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
            cells.push(self.read["priority"].to_string().into());
            cells.extend(["run_at", "started_at", "finished_at"].map(|at| out.when(self.text_of(at)).into()));
            cells.push(tags.collect::<Vec<_>>().join(",").into());
        }
        cells.push(Cell::from(self.more()).toned(if self.state() == "failed" {
            Tone::Bad
        } else {
            Tone::Plain
        }));
        cells
    }
}

const NAMES: &[&str] = &["id", "kind", "queue", "state", "attempt", "created", "more"];
const WIDE: &[&str] = &[
    "id", "kind", "queue", "state", "attempt", "created", "priority", "due", "started", "ended", "tags",
    "more",
];

/// Prints documents as rows, lines or ids. `first` says whether nothing was printed before them.
pub(super) fn rows(out: &mut Out, documents: &[Document], first: bool) -> Result<(), Failure> {
    let shape = out.shape();
    match shape {
        Shape::Table | Shape::Wide => {
            let wide = shape == Shape::Wide;
            let mut table = Table::new(if wide { WIDE } else { NAMES });
            for document in documents {
                table.row(document.cells(out, wide));
            }
            out.table(&table, first)
        }
        Shape::Json | Shape::Jsonl => documents.iter().try_for_each(|one| out.document(&one.text)),
        Shape::Id => documents.iter().try_for_each(|one| out.id("job", &one.id())),
    }
}

/// Prints one document with all that is said in it.
pub(super) fn card(out: &mut Out, document: &Document) -> Result<(), Failure> {
    if out.has_columns() || !matches!(out.shape(), Shape::Table | Shape::Wide) {
        return rows(out, std::slice::from_ref(document), true);
    }
    let mut table = Table::new(&["", ""]);
    let fields = document.read.as_object().into_iter().flatten();
    // What it can be asked for is for programs; what is said twice is shown once.
    for (name, value) in
        fields.filter(|(name, _)| !["links", "resourceLocation", "status"].contains(&name.as_str()))
    {
        let empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if empty || value.as_object().is_some_and(serde_json::Map::is_empty) {
            continue;
        }
        let shown = match value.as_str() {
            Some(at) if name.ends_with("_at") => out.when(Some(at)),
            Some(text) => text.to_owned(),
            None => value.to_string(),
        };
        let tone = if name == "state" { tone_of(document.state()) } else { Tone::Plain };
        table.row(vec![Cell::from(name.as_str()).toned(Tone::Faint), Cell::from(shown).toned(tone)]);
    }
    out.table(&table, false)
}
