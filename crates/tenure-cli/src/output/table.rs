//! Rows and columns.

use super::safe;
use crate::exit::Failure;
use crate::screen::{Tone, painted};

/// Columns are narrowed to this before ids are cut, and then to that.
const NARROW: usize = 20;
const NARROWEST: usize = 8;
/// An ellipsis and the last eight signs, which every command accepts.
const SHORT_ID: usize = 9;

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

    /// In columns, for people: at least as wide as those before, and within so many columns of a terminal.
    pub(super) fn columns(
        &self,
        headers: bool,
        coloured: bool,
        within: Option<usize>,
        before: &mut Vec<usize>,
    ) -> String {
        let width = |index: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(index)).map(Cell::width).max();
            let name = if headers { self.names.get(index).map_or(0, |name| name.len()) } else { 0 };
            cells.unwrap_or(0).max(name).max(before.get(index).copied().unwrap_or(0))
        };
        let mut widths: Vec<usize> = (0..self.names.len()).map(width).collect();
        if let Some(within) = within {
            self.fit(&mut widths, within);
        }
        let mut text = String::new();
        let mut line = |cells: Vec<(String, Tone)>| {
            let last = cells.len().saturating_sub(1);
            for (index, (cell, tone)) in cells.into_iter().enumerate() {
                let width = widths.get(index).copied().unwrap_or(0);
                let cell = cut(&cell, width, self.is_id(index));
                let gap = (width + 2).saturating_sub(cell.chars().count());
                text.push_str(&if coloured { painted(tone, &cell) } else { cell });
                if index < last {
                    text.push_str(&" ".repeat(gap));
                }
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        };
        if headers {
            line(self.names.iter().map(|name| (name.to_uppercase(), Tone::Faint)).collect());
        }
        for row in &self.rows {
            line(row.iter().map(|cell| (cell.text.clone(), cell.tone)).collect());
        }
        *before = widths;
        text
    }

    fn is_id(&self, index: usize) -> bool {
        self.names.get(index).is_some_and(|name| *name == "id")
    }

    /// Narrows the widest columns a little. If that is not enough, ids are shown by their ends, which tell them apart, and
    /// the others are narrowed as far as need be.
    fn fit(&self, widths: &mut Vec<usize>, within: usize) {
        let whole = widths.clone();
        if self.narrowed(widths, within, NARROW) {
            return;
        }
        *widths = whole;
        for (index, width) in widths.iter_mut().enumerate().filter(|(index, _)| self.is_id(*index)) {
            let name = self.names.get(index).map_or(0, |name| name.len());
            *width = (*width).min(SHORT_ID.max(name));
        }
        self.narrowed(widths, within, NARROWEST);
    }

    /// Narrows the widest columns that hold no ids, none further than this or its name; whether all fit then.
    fn narrowed(&self, widths: &mut [usize], within: usize, least: usize) -> bool {
        let gaps = 2 * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > within {
            let texts = self.names.iter().enumerate().filter(|(index, _)| !self.is_id(*index));
            let room = texts.filter(|(index, name)| widths[*index] > least.max(name.len()));
            let Some((widest, _)) = room.max_by_key(|(index, _)| widths[*index]) else { return false };
            widths[widest] -= 1;
        }
        true
    }

    /// With tabs between, for programs.
    pub(super) fn tabs(&self, headers: bool, coloured: bool) -> String {
        let names = headers.then(|| self.names.iter().map(|name| name.to_uppercase()).collect::<Vec<_>>());
        let shown = |cell: &Cell| if coloured { painted(cell.tone, &cell.text) } else { cell.text.clone() };
        let rows = self.rows.iter().map(|row| row.iter().map(shown).collect());
        names.into_iter().chain(rows).map(|row: Vec<String>| row.join("\t") + "\n").collect()
    }
}

/// A text in so many columns: the beginning of it, or of an id the end.
fn cut(text: &str, width: usize, is_id: bool) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    match is_id {
        true => format!("…{}", text.chars().skip(length + 1 - width.max(1)).collect::<String>()),
        false => format!("{}…", text.chars().take(width.saturating_sub(1)).collect::<String>().trim_end()),
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
        let columns = |headers, coloured| table().columns(headers, coloured, None, &mut Vec::new());
        assert_eq!(columns(true, false), "ID    STATE\n1\\t2  failed\nüber\n");
        assert_eq!(table().tabs(true, false), "ID\tSTATE\n1\\t2\tfailed\nüber\t\n");
        assert_eq!(table().tabs(false, false), "1\\t2\tfailed\nüber\t\n");
        assert!(columns(false, true).contains("\x1b[31mfailed\x1b[0m"));
        assert!(table().tabs(false, true).contains("\t\x1b[31mfailed\x1b[0m\n"));
    }

    #[test]
    fn columns_are_chosen_by_name_and_one_that_is_not_there_is_told() {
        let only =
            |names: &[&str]| table().only(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(only(&["state", "ID"]).unwrap().tabs(true, false), "STATE\tID\nfailed\t1\\t2\n\tüber\n");
        let refused = only(&["kind"]).unwrap_err();
        assert_eq!(
            (refused.code(), refused.to_string().as_str()),
            (7, "unknown column \"kind\"; expected id, state")
        );
    }

    #[test]
    fn a_table_fits_a_terminal_by_its_widest_text_and_then_by_the_ends_of_ids() {
        let mut table = Table::new(&["id", "kind", "more"]);
        let id = "0190f5c2-7b1e-7c3a-9f02-6a2d8c4e5b10";
        table.row(vec![id.into(), "mail".into(), "a reason that takes more room than there is".into()]);
        let shown = |within| table.columns(true, false, Some(within), &mut Vec::new());
        assert_eq!(shown(200), table.columns(true, false, None, &mut Vec::new()));
        for within in [30, 50, 60, 70, 80] {
            let text = shown(within);
            assert!(text.lines().all(|line| line.chars().count() <= within), "{text}");
            assert!(text.contains("8c4e5b10") && text.contains("a reason") && text.contains('…'), "{text}");
            assert_eq!(text.contains(id), within >= 70, "{text}");
        }
        assert!(shown(30).contains("…8c4e5b10  mail"), "{}", shown(30));
    }

    #[test]
    fn rows_that_follow_stand_below_those_before() {
        let mut before = Vec::new();
        let one = |kind: &str, first, before: &mut Vec<usize>| {
            let mut table = Table::new(&["kind", "state"]);
            table.row(vec![kind.into(), "queued".into()]);
            table.columns(first, false, None, before)
        };
        assert_eq!(one("build_star", true, &mut before), "KIND        STATE\nbuild_star  queued\n");
        assert_eq!(one("mail", false, &mut before), "mail        queued\n");
    }
}
