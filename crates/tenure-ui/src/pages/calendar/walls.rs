//! Days as the clocks of a zone show them.

use tenure::Timestamp;
use tenure::schedule::Zone;

pub(super) const HOUR: i64 = 3_600_000_000;
pub(super) const DAY: i64 = 24 * HOUR;
pub(super) const MINUTE: i64 = 60_000_000;
const SECOND: i64 = 1_000_000;

/// What the clocks of a zone show at an instant, as if it were in UTC; in microseconds.
pub(super) fn wall(zone: &Zone, at: Timestamp) -> i64 {
    at.as_micros() + offset(zone, at)
}

/// By how much the clocks of a zone are ahead.
fn offset(zone: &Zone, at: Timestamp) -> i64 {
    let shown = zone.show(at);
    let Some((hours, minutes)) =
        shown.get(shown.len().saturating_sub(6)..).and_then(|end| end.split_once(':'))
    else {
        return 0;
    };
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let number = |text: &str| text.trim_start_matches(['+', '-']).parse::<i64>().unwrap_or(0);
    sign * (number(hours) * 3600 + number(minutes) * 60) * SECOND
}

/// The instant at which the clocks of a zone show this. Where they are put on or back, one that is close.
pub(in crate::pages) fn instant(zone: &Zone, wall: i64) -> Timestamp {
    let at = |micros: i64| Timestamp::from_micros(micros).unwrap_or(Timestamp::EPOCH);
    let near = at(wall - offset(zone, at(wall)));
    at(wall - offset(zone, near))
}

/// The midnight before.
pub(super) fn day_of(wall: i64) -> i64 {
    wall.div_euclid(DAY) * DAY
}

/// How many days its week has had before it. 1970 began with a Thursday.
pub(super) fn weekday(wall: i64) -> i64 {
    (wall.div_euclid(DAY) + 3).rem_euclid(7)
}

/// The midnight at which its month began.
pub(super) fn month_of(wall: i64) -> i64 {
    let day: i64 = date(wall).get(8..10).and_then(|day| day.parse().ok()).unwrap_or(1);
    day_of(wall) - (day - 1) * DAY
}

/// Its date, such as `2026-11-23`.
pub(super) fn date(wall: i64) -> String {
    let shown = Timestamp::from_micros(wall).unwrap_or(Timestamp::EPOCH).to_string();
    shown.chars().take(10).collect()
}

/// The midnight of a date that somebody said.
pub(super) fn said(date: &str) -> Option<i64> {
    format!("{date}T00:00:00Z").parse::<Timestamp>().ok().map(Timestamp::as_micros)
}

/// A minute that somebody said, such as `2026-11-24T14:08`, as the clocks show it.
pub(in crate::pages) fn minute(text: &str) -> Option<i64> {
    let text =
        if text.len() == "2026-11-24T14:08".len() { format!("{text}:00Z") } else { format!("{text}Z") };
    text.parse::<Timestamp>().ok().map(Timestamp::as_micros)
}

/// An instant as it is said so.
pub(in crate::pages) fn shown_minute(zone: &Zone, at: Timestamp) -> String {
    zone.show(at).chars().take("2026-11-24T14:08".len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_and_months_begin_where_they_do() {
        for (day, before, month) in [
            ("2026-11-23", 0, "2026-11-01"),
            ("2026-11-29", 6, "2026-11-01"),
            ("2028-02-29", 1, "2028-02-01"),
        ] {
            let wall = said(day).unwrap() + 5 * HOUR;
            assert_eq!(
                (weekday(wall), date(month_of(wall)).as_str(), date(day_of(wall)).as_str()),
                (before, month, day)
            );
        }
        assert_eq!(said("nonsense"), None);
        let there = Zone::named("Asia/Kolkata").unwrap();
        let at = instant(&there, minute("2026-11-24T14:08").unwrap());
        assert_eq!(at, "2026-11-24T08:38:00Z".parse().unwrap());
        assert_eq!(shown_minute(&there, at), "2026-11-24T14:08");
        assert_eq!((minute("2026-11-24"), minute("")), (None, None));
    }

    #[test]
    fn midnight_is_where_the_clocks_show_it() {
        let berlin = Zone::named("Europe/Berlin").unwrap();
        for (day, shown) in [("2026-03-29", "2026-03-28T23:00:00Z"), ("2026-03-30", "2026-03-29T22:00:00Z")] {
            assert_eq!(instant(&berlin, said(day).unwrap()), shown.parse().unwrap());
        }
        let newfoundland = Zone::named("America/St_Johns").unwrap();
        let at = "2026-01-01T03:30:00Z".parse().unwrap();
        assert_eq!(date(wall(&newfoundland, at)), "2026-01-01");
        assert_eq!(wall(&newfoundland, at), said("2026-01-01").unwrap());
    }
}
