//! The field for years, the seventh: which years match.

use super::super::BadSchedule;
use super::super::wall::digits;

/// The years that a field can name.
const FIRST: i32 = 1970;
const LAST: i32 = 2199;

/// Years in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Years(Vec<i32>);

impl Years {
    /// Reads `2027`, `2027-2030,2035` or `2026-2036/2`; `None` for `*`, all years.
    pub(super) fn read(text: &str, offset: usize) -> Result<Option<Self>, BadSchedule> {
        if matches!(text, "*" | "?") {
            return Ok(None);
        }
        let refuse = |element: &str| {
            let wrong =
                format_args!("`{}` is not a year or a range of years", crate::invalid::cut(element, 32));
            let allowed = format_args!("{FIRST} to {LAST}, such as 2027, 2027-2030 or 2027/2");
            BadSchedule::new("year", wrong).at(offset).instead(allowed)
        };
        let mut years = Vec::new();
        for element in text.split(',') {
            let (range, step) = match element.split_once('/') {
                Some((range, step)) => (range, digits(step).filter(|step| *step > 0)),
                None => (element, Some(1)),
            };
            let (low, high) = match range.split_once('-') {
                Some((low, high)) => (year(low), year(high)),
                None if range == "*" => (Some(FIRST), Some(LAST)),
                None => (year(range), if element.contains('/') { Some(LAST) } else { year(range) }),
            };
            let (Some(low), Some(high), Some(step)) = (low, high, step) else {
                return Err(refuse(element));
            };
            if low > high {
                return Err(refuse(element));
            }
            years.extend((low..=high).step_by(step as usize));
        }
        years.sort_unstable();
        years.dedup();
        Ok(Some(Self(years)))
    }

    /// Returns the first of them at `from` or after it.
    pub(super) fn from(&self, from: i32) -> Option<i32> {
        self.0.get(self.0.partition_point(|year| *year < from)).copied()
    }

    /// Returns runs of neighbours, each by its first and last.
    pub(in crate::schedule) fn runs(&self) -> Vec<(i32, i32)> {
        let mut runs: Vec<(i32, i32)> = Vec::new();
        for year in &self.0 {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == *year => *last = *year,
                _ => runs.push((*year, *year)),
            }
        }
        runs
    }
}

fn year(text: &str) -> Option<i32> {
    digits(text).and_then(|year| i32::try_from(year).ok()).filter(|year| (FIRST..=LAST).contains(year))
}
