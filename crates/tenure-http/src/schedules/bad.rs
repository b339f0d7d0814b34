//! What is told of a schedule that makes no sense: which field, and where in its text.

use tenure::Invalid;
use tenure::schedule::BadSchedule;

use crate::problem::Problem;

/// What is wrong with the text of a field.
pub(crate) fn told(field: &str, bad: BadSchedule) -> Problem {
    let (column, part) = (bad.column, bad.field.clone());
    let place = column.map(|column| format!(" at column {column}")).unwrap_or_default();
    let allowed =
        bad.instead.unwrap_or_else(|| "a valid schedule; see the schedules page of the guide".to_owned());
    let problem = Problem::from(Invalid::new(field, format_args!("{}{place}", bad.wrong), allowed));
    let problem = problem.with("part", part);
    match column {
        Some(column) => problem.with("column", column),
        None => problem,
    }
}
