//! Schedules in plain words, and what they warn of.

use std::time::Duration;

use tenure_core::schedule::{Bounds, Calendar, Jitter};

use crate::schedule::given::{at, parse};

#[test]
fn a_schedule_says_what_it_does() {
    let mut wrong = Vec::new();
    for (text, words) in [
        ("* * * * * *", "every second, UTC"),
        ("*/5 * * * * *", "every 5 seconds, UTC"),
        ("10,20,45 * * * * *", "at seconds 10, 20 and 45 of every minute, UTC"),
        ("* * * * *", "every minute, UTC"),
        ("0 */5 * * * *", "every 5 minutes, UTC"),
        ("5/20 * * * *", "every 20 minutes from minute 5 on, UTC"),
        ("30 * * * *", "at minute 30 of every hour, UTC"),
        ("0 * * * *", "at minute 0 of every hour, UTC"),
        ("*/15 9-17 * * MON-FRI", "every 15 minutes from 09:00 to 17:59, every weekday, UTC"),
        ("0 */2 * * *", "at minute 0 in every 2nd hour, UTC"),
        ("* 3 * * *", "every minute in the hour from 03:00, UTC"),
        ("10-20 3,4,7 * * *", "at minutes 10 to 20 in the hours from 03:00, 04:00 and 07:00, UTC"),
        ("30 9 * * 1-5 in Europe/Berlin", "every weekday at 09:30, Europe/Berlin"),
        ("0 30 9,17 * * *", "every day at 09:30 and 17:30, UTC"),
        ("15 30 9 * * SAT,SUN", "every Saturday and Sunday at 09:30:15, UTC"),
        ("0 0 1,15 * *", "on the 1st and the 15th of every month at 00:00, UTC"),
        ("0 0 22 3,4,5 *", "on the 22nd of March to May at 00:00, UTC"),
        ("0 0 * 1,7 *", "every day in January and July at 00:00, UTC"),
        ("0 0 * 1,7 MON", "every Monday in January and July at 00:00, UTC"),
        ("0 0 13 * 5", "on the 13th of every month if it is a Friday at 00:00, UTC"),
        ("unix 0 0 13 * 5", "on the 13th of every month and every Friday at 00:00, UTC"),
        ("unix 0 0 1 * 0-6", "every day at 00:00, UTC"),
        ("unix 0 0 1-31/1 * MON", "every day at 00:00, UTC"),
        ("unix 0 0 1-31 6 5L", "every day in June at 00:00, UTC"),
        ("unix */5 * LW * 1-7", "every 5 minutes, UTC"),
        (
            "unix 0 0 L,L-1,L-3 * *",
            "on the last day, the day before the last and the 3rd day before the last of every month at 00:00, UTC",
        ),
        ("unix 0 0 15W 2 *", "on the working day nearest to the 15th of February at 00:00, UTC"),
        ("unix 0 0 * * FRI#2,MONL", "on the second Friday and the last Monday of every month at 00:00, UTC"),
        ("unix @hourly", "at minute 0 of every hour, UTC"),
        ("unix @weekly", "every Sunday at 00:00, UTC"),
        ("every 10m", "every 10 minutes"),
        ("every 1h", "every hour"),
        ("every 1h30m", "every 1 hour and 30 minutes"),
        ("every 2w from 2026-01-05T09:30:00Z", "every 14 days, counted from 2026-01-05 09:30 UTC"),
        ("delay 1m", "1 minute after each run"),
        ("at 2026-03-29T00:00:00Z", "once, at 2026-03-29 00:00 UTC"),
        (
            "at 2026-03-29T02:30:15Z, 2026-03-30T10:00:00Z",
            "2 times: 2026-03-29 02:30:15 UTC and 2026-03-30 10:00 UTC",
        ),
        ("daily 09:30, 17:00 in Asia/Tokyo", "every day at 09:30 and 17:00, Asia/Tokyo"),
        (
            "weekly mon-fri 09:30; sat,sun 10:00, 11:00",
            "every weekday at 09:30; every Saturday and Sunday at 10:00 and 11:00, UTC",
        ),
        (
            "DTSTART:20260105T093000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE",
            "every 2 weeks on Monday and Wednesday at 09:30, UTC",
        ),
        (
            "DTSTART:20260105T093000 RRULE:FREQ=MONTHLY;BYDAY=-1FR",
            "every month on the last Friday at 09:30, UTC",
        ),
        (
            "DTSTART:20260105T093000 RRULE:FREQ=MONTHLY;BYMONTHDAY=1,-2",
            "every month on the 1st and the 2nd day from the end at 09:30, UTC",
        ),
        (
            "DTSTART:20260105T093000 RRULE:FREQ=YEARLY;BYMONTH=6;BYDAY=2MO;BYHOUR=8,9",
            "every year on the second Monday in June at 08:30 and 09:30, UTC",
        ),
        (
            "DTSTART:20260105T170000 RRULE:FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1",
            "every month on Monday and Tuesday at 17:00 (only the last of them), UTC",
        ),
        ("DTSTART:20260105T170000 RRULE:FREQ=HOURLY;INTERVAL=3", "every 3 hours, UTC"),
        ("DTSTART:20260105T173010 RRULE:FREQ=HOURLY", "every hour at minute 30 at second 10, UTC"),
        ("DTSTART:20260105T170000 RRULE:FREQ=HOURLY;BYMINUTE=0,30", "every hour at minutes 0 and 30, UTC"),
        (
            "DTSTART:20260105T170000 RRULE:FREQ=MINUTELY;BYSECOND=0,30",
            "every minute at seconds 0 and 30, UTC",
        ),
        (
            "DTSTART:20260105T090000 RRULE:FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16;BYDAY=MO",
            "every 20 minutes from 09:00 to 16:59 on Monday, UTC",
        ),
        (
            "DTSTART:20260105T090000 RRULE:FREQ=SECONDLY;BYHOUR=9;BYMINUTE=0,15,30,45;BYSECOND=1,2,3",
            "every second at every 15th minute at seconds 1 to 3 in the hour from 09:00, UTC",
        ),
        (
            "DTSTART:20260105T090000 RRULE:FREQ=DAILY;BYHOUR=9,10,11;BYMINUTE=0,20,40",
            "every day (every 20 minutes from 09:00 to 11:59), UTC",
        ),
        (
            "DTSTART:20260105T090000 RRULE:FREQ=YEARLY;BYWEEKNO=20,-1;BYDAY=MO",
            "every year on Monday in the 20th week and the last week of the year at 09:00, UTC",
        ),
        ("DTSTART:20260105T090000 RRULE:FREQ=DAILY;COUNT=5", "every day at 09:00, UTC, 5 times"),
        ("DTSTART:20260105T090000 RRULE:FREQ=DAILY;COUNT=1", "every day at 09:00, UTC, once"),
        (
            "DTSTART:20260105T090000 RRULE:FREQ=DAILY;UNTIL=20261224T120000Z",
            "every day at 09:00, UTC, until 2026-12-24 12:00 UTC",
        ),
        (
            "DTSTART;TZID=Europe/Berlin:20260105T090000 RRULE:FREQ=DAILY;UNTIL=20261224",
            "every day at 09:00, Europe/Berlin, until 2026-12-24 23:59:59",
        ),
    ] {
        if parse(text).describe() != words {
            wrong.push(format!("{text}: {}", parse(text).describe()));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn the_words_tell_the_bounds_too() {
    let bounds = Bounds {
        starts_at: Some(at("2026-01-01T00:00:00Z")),
        ends_at: Some(at("2026-12-31T23:59:59Z")),
        most_runs: Some(100),
    };
    let schedule = parse("0 9 * * *").within(bounds).unwrap();
    let schedule = schedule.except(Calendar::of(["12-25", "sat"]).unwrap()).unwrap();
    let schedule = schedule.with_jitter(Jitter::within(Duration::from_secs(90)).unwrap());
    assert_eq!(
        schedule.describe(),
        "every day at 09:00, UTC, from 2026-01-01 00:00 UTC, until 2026-12-31 23:59:59 UTC, at most 100 times, except on sat and 12-25, delayed by up to 1 minute and 30 seconds"
    );
}

#[test]
fn what_may_not_be_meant_is_warned_of() {
    let warnings = |text: &str| parse(text).warnings();
    assert_eq!(
        warnings("0 0 13 * 5"),
        ["both day and weekday are set, and a date must match both; in the unix dialect, one is enough"]
    );
    assert_eq!(
        warnings("*/25 * * * *"),
        ["every 25 minutes does not divide an hour evenly: minute 50 is followed by minute 0, 10 later"]
    );
    assert_eq!(
        warnings("0 */5 * * *"),
        ["every 5 hours does not divide a day evenly: hour 20 is followed by hour 0, 4 later"]
    );
    assert_eq!(warnings("0 0 31 * *"), ["months without a 31st are skipped"]);
    assert_eq!(warnings("0 0 30,31 * *"), ["months without a 30th are skipped"]);
    for fine in
        ["unix 0 0 13 * 5", "*/15 * * * *", "0 0 1,31 * *", "unix 0 0 L * *", "every 7m", "0 9 * * 1-5"]
    {
        assert_eq!(warnings(fine), [""; 0], "{fine}");
    }
}

/// The guide's tables and blocks are what the program says.
#[test]
fn the_guide_tells_the_truth() {
    let guide = include_str!("../../../../docs/guide/schedules.md");
    let table = guide.lines().skip_while(|line| !line.contains("in plain words |")).skip(2);
    let rows: Vec<&str> = table.take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 18);
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let (text, words) = (cells[0].trim_matches(['|', ' ', '`']), cells[1].trim_matches(['|', ' ']));
        assert_eq!(parse(text).describe(), words, "{text}");
    }
    let objects: Vec<&str> = guide.lines().filter(|line| line.starts_with('{')).collect();
    assert_eq!(objects.len(), 9);
    for object in objects {
        serde_json::from_str::<tenure_core::Schedule>(object).unwrap();
    }
}
