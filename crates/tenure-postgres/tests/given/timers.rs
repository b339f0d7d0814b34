//! What the tests of timers start from.

use std::sync::Arc;

use tenure_core::{Args, Kind, Name, NewTimer, Overlap, Policies, Priority, QueueName, SlotRecord, TimerJob};
use tenure_store::{Order, SlotsAsk, Timers};
use tokio_postgres::Client;

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
pub async fn records(store: &(dyn Timers + Sync)) -> Vec<SlotRecord> {
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

/// Whether what the database keeps of timers agrees with itself.
pub async fn assert_timers_agree(client: &Client) {
    for (what, sql) in CONTRADICTIONS {
        let rows = client.query(*sql, &[]).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        let found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert!(found.is_empty(), "{what}: {found:?}");
    }
}

/// Each of these statements finds what contradicts something else.
const CONTRADICTIONS: &[(&str, &str)] = &[
    (
        "a timer without its standing, or a standing of none",
        "SELECT name FROM timer FULL JOIN timer_standing s USING (name) WHERE agreed IS NULL OR s.runs IS NULL",
    ),
    (
        "a wake that is not the next slot put off by the jitter, or one of a timer that is paused",
        "SELECT name FROM timer_standing s JOIN timer t USING (name) WHERE CASE
             WHEN paused IS NOT NULL OR next IS NULL THEN wake IS NOT NULL
             WHEN agreed::json #>> '{schedule,jitter}' IS NULL THEN wake IS DISTINCT FROM next
             ELSE coalesce(wake < next, true) END",
    ),
    ("a reason of no pause", "SELECT name FROM timer_standing WHERE (paused IS NULL) <> (reason IS NULL)"),
    (
        "a next slot that was decided",
        "SELECT name FROM timer_standing JOIN timer USING (name)
         WHERE next <= decided AND agreed::json #>> '{schedule,delay}' IS NULL",
    ),
    (
        "a record that ends before it begins, or counts one slot as many",
        "SELECT timer FROM timer_slot WHERE first > last OR (first IS NULL AND count <> 1)",
    ),
    (
        "records of a schedule that overlap",
        "SELECT timer FROM (SELECT timer, coalesce(first, last) AS first,
             lag(last) OVER (PARTITION BY timer ORDER BY last) AS before FROM timer_slot WHERE origin = 0) o
         WHERE first <= before",
    ),
    (
        "a slot of a schedule that is on record and was not decided",
        "SELECT r.timer FROM timer_slot r JOIN timer_standing s ON s.name = r.timer JOIN timer t ON t.name = r.timer
         WHERE r.origin = 0 AND r.at > t.created AND r.last > coalesce(s.decided, r.last - 1)",
    ),
];
