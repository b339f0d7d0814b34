//! What a question for the next slot costs: `cargo run --release -p tenure-core --example next` prints it as JSON.
#![allow(clippy::unwrap_used, reason = "a schedule of this list that is refused is a mistake in the list")]
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::hint::black_box;
use std::time::Instant;

use tenure_core::Timestamp;
use tenure_core::schedule::Schedule;

const ASKED: u32 = 200_000;

const SCHEDULES: &[(&str, &str)] = &[
    ("every second", "* * * * * *"),
    ("every five minutes", "0 */5 * * * *"),
    ("every five minutes in a zone", "0 */5 * * * * in Europe/Berlin"),
    ("daily in a zone", "30 2 * * * in Europe/Berlin"),
    ("on weekdays in a zone", "30 9 * * MON-FRI in America/New_York"),
    ("on the last working day", "unix 0 18 LW * * in Europe/Berlin"),
    ("on Friday the 13th", "0 0 13 * FRI in Europe/Berlin"),
    ("on a leap day in a zone", "0 0 29 2 * in Europe/Berlin"),
    ("on a leap day that is a Monday", "0 0 29 2 MON in Europe/Berlin"),
    ("an interval", "every 10m"),
    ("times on weekdays", "weekly mon-fri 09:30, 17:00; sat 10:00 in Europe/Berlin"),
    ("a monthly rule", "DTSTART:20200101T090000 RRULE:FREQ=MONTHLY;BYDAY=-1FR in Europe/Berlin"),
];

fn main() {
    let (from, span) =
        ("2020-01-01T00:00:00Z".parse::<Timestamp>().unwrap().as_micros(), 10 * 31_557_600_000_000_i64);
    // Instants that jump about in ten years, so that no answer helps the next.
    let instants: Vec<Timestamp> = (0..i64::from(ASKED))
        .map(|number| Timestamp::from_micros(from + number * 7_919_000_000_007 % span).unwrap())
        .collect();
    let mut figures = serde_json::Map::new();
    let mut all = 0.0;
    for (name, text) in SCHEDULES {
        let schedule = Schedule::parse(text).unwrap();
        let begun = Instant::now();
        for after in &instants {
            black_box(schedule.next_after(black_box(*after)));
        }
        let nanos = begun.elapsed().as_nanos() as f64 / f64::from(ASKED);
        all += nanos;
        figures.insert((*name).to_owned(), serde_json::json!({ "schedule": text, "ns": nanos.round() }));
    }
    let mean = (all / SCHEDULES.len() as f64).round();
    println!("{}", serde_json::json!({ "asked": ASKED, "mean_ns": mean, "next": figures }));
}
