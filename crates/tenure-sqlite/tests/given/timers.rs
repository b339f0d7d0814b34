//! What the tests of timers start from.

use std::sync::Arc;

use rusqlite::Connection;
use tenure_core::{Args, Kind, Name, NewTimer, Overlap, Policies, Priority, QueueName, TimerJob};
use tenure_store::{Order, SlotsAsk, Timers};

pub fn name(text: &str) -> Name {
    Name::new("timer", text).unwrap()
}

/// A timer whose jobs wait for one another in the default queue.
pub fn timer(text: &str, schedule: &str) -> NewTimer {
    NewTimer {
        name: name(text),
        schedule: schedule.parse().unwrap(),
        job: TimerJob {
            kind: Kind::new("echo").unwrap(),
            queue: QueueName::default(),
            args: Args::new(*b"{}").unwrap(),
            priority: Priority::default(),
            terms: Arc::default(),
        },
        policies: Policies { overlap: Overlap::QueueAll, ..Policies::default() },
        revision: 0,
    }
}

/// All records, the oldest first.
pub async fn records(store: &(dyn Timers + Sync)) -> Vec<tenure_core::SlotRecord> {
    let (mut records, mut behind) = (Vec::new(), None);
    loop {
        let ask = SlotsAsk { order: Order::OldestFirst, behind, at_most: 1_000, ..SlotsAsk::default() };
        let page = store.slots(ask).await.unwrap();
        records.extend(page.slots);
        behind = page.next;
        if behind.is_none() {
            return records;
        }
    }
}

/// Whether what the file keeps of timers agrees with itself.
pub fn assert_timers_agree(conn: &Connection) {
    for (what, sql) in CONTRADICTIONS {
        let found: Vec<String> =
            conn.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert!(found.is_empty(), "{what}: {found:?}");
    }
}

/// Each of these statements finds what contradicts something else.
const CONTRADICTIONS: &[(&str, &str)] = &[
    (
        "a timer without its standing, or a standing of none",
        "SELECT name FROM timer WHERE name NOT IN (SELECT name FROM timer_standing)
         UNION SELECT name FROM timer_standing WHERE name NOT IN (SELECT name FROM timer)",
    ),
    (
        "a wake that is not the next slot put off by the jitter, or one of a timer that is paused",
        "SELECT name FROM timer_standing s JOIN timer t USING (name) WHERE CASE
             WHEN paused IS NOT NULL OR next IS NULL THEN wake IS NOT NULL
             WHEN agreed ->> '$.schedule.jitter' IS NULL THEN wake IS NOT next
             ELSE ifnull(wake < next, 1) END",
    ),
    ("a reason of no pause", "SELECT name FROM timer_standing WHERE (paused IS NULL) <> (reason IS NULL)"),
    (
        "a next slot that was decided",
        "SELECT name FROM timer_standing JOIN timer USING (name)
         WHERE next <= decided AND agreed ->> '$.schedule.delay' IS NULL",
    ),
    ("a form of another version", "SELECT name FROM timer WHERE agreed ->> '$.version' <> 1"),
    (
        "an open job that is none",
        "SELECT name FROM timer_standing WHERE length(open) % 16 <> 0 OR length(open) = 0",
    ),
    (
        "a record that ends before it begins, or counts one slot as many",
        "SELECT timer FROM timer_slot WHERE first > last OR (first IS NULL AND count <> 1)",
    ),
    (
        "records of a schedule that overlap",
        "SELECT timer FROM (SELECT timer, ifnull(first, last) AS first,
             lag(last) OVER (PARTITION BY timer ORDER BY last) AS before FROM timer_slot WHERE origin = 0)
         WHERE first <= before",
    ),
    (
        "a slot of a schedule that is on record and was not decided",
        "SELECT r.timer FROM timer_slot r JOIN timer_standing s ON s.name = r.timer JOIN timer t ON t.name = r.timer
         WHERE r.origin = 0 AND r.at > t.created AND r.last > ifnull(s.decided, r.last - 1)",
    ),
];
