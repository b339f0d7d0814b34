//! Rows and columns.

use super::safe;
use crate::exit::Failure;
use crate::screen::{Tone, painted};

/// A table. What stands in it cannot steer a terminal.
#[derive(Debug)]
pub(crate) struct Table {
    names: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// What stands in one place of a table.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self { text: safe::line(text), tone: Tone::Plain }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl Cell {
    pub(crate) fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

impl Table {
    pub(crate) fn new(names: &[&'static str]) -> Self {
        Self { names: names.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The same with these columns only, in this order.
    pub(super) fn only(&self, columns: &[String]) -> Result<Self, Failure> {
        let place = |column: &String| {
            let found = self.names.iter().position(|name| name.eq_ignore_ascii_case(column.trim()));
            found.ok_or_else(|| {
                let column = safe::line(column);
                Failure::Invalid(format!("unknown column \"{column}\"; expected {}", self.names.join(", ")))
            })
        };
        let places = columns.iter().map(place).collect::<Result<Vec<usize>, _>>()?;
        let names = places.iter().filter_map(|place| self.names.get(*place).copied()).collect();
        let chosen = |row: &Vec<Cell>| places.iter().filter_map(|place| row.get(*place).cloned()).collect();
        Ok(Self { names, rows: self.rows.iter().map(chosen).collect() })
    }

    /// In columns, for people.
    pub(super) fn columns(&self, headers: bool, coloured: bool) -> String {
        let width = |index: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(index)).map(Cell::width).max();
            let name = if headers { self.names.get(index).map_or(0, |name| name.len()) } else { 0 };
            cells.unwrap_or(0).max(name)
        };
        let widths: Vec<usize> = (0..self.names.len()).map(width).collect();
        let mut text = String::new();
        let mut line = |cells: Vec<(String, usize, Tone)>| {
            let last = cells.len().saturating_sub(1);
            for (index, (cell, chars, tone)) in cells.into_iter().enumerate() {
                text.push_str(&if coloured { painted(tone, &cell) } else { cell });
                if index < last {
                    let gap = widths.get(index).copied().unwrap_or(0).saturating_sub(chars) + 2;
                    text.push_str(&" ".repeat(gap));
                }
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        };
        if headers {
            line(self.names.iter().map(|name| (name.to_uppercase(), name.len(), Tone::Faint)).collect());
        }
        for row in &self.rows {
            line(row.iter().map(|cell| (cell.text.clone(), cell.width(), cell.tone)).collect());
        }
        text
    }

    /// With tabs between, for programs.
    pub(super) fn tabs(&self, headers: bool) -> String {
        let names = headers.then(|| self.names.iter().map(|name| name.to_uppercase()).collect::<Vec<_>>());
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| cell.text.clone()).collect());
        names.into_iter().chain(rows).map(|row: Vec<String>| row.join("\t") + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["id", "state"]);
        table.row(vec!["1\t2".into(), Cell::from("failed").toned(Tone::Bad)]);
        table.row(vec!["über".into(), "".into()]);
        table
    }

    #[test]
    fn people_see_columns_and_programs_one_tab_between_two_values() {
        assert_eq!(table().columns(true, false), "ID    STATE\n1\\t2  failed\nüber\n");
        assert_eq!(table().tabs(true), "ID\tSTATE\n1\\t2\tfailed\nüber\t\n");
        assert_eq!(table().tabs(false), "1\\t2\tfailed\nüber\t\n");
        assert!(table().columns(false, true).contains("\x1b[31mfailed\x1b[0m"));
    }

    #[test]
    fn columns_are_chosen_by_name_and_one_that_is_not_there_is_told() {
        let only =
            |names: &[&str]| table().only(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(only(&["state", "ID"]).unwrap().tabs(true), "STATE\tID\nfailed\t1\\t2\n\tüber\n");
        let refused = only(&["kind"]).unwrap_err();
        assert_eq!((refused.code(), refused.to_string().as_str()), (7, "unknown column \"kind\"; expected id, state"));
    }
}
