//! A shop that does not exist: what it has done, by whom, and what goes wrong there.

use serde_json::{Value, json};
use tenure::Chance;

/// A sort of work in the shop.
pub(super) struct Work {
    pub kind: &'static str,
    pub queue: &'static str,
    pub says: &'static str,
    pub owner: &'static str,
    /// Of a hundred jobs, so many are of it; programs are run by schedules and by hand.
    pub share: u64,
    /// Seconds that it takes, at least and at most.
    pub takes: (f64, f64),
    /// What it says while it runs, if it takes its time.
    pub steps: &'static [&'static str],
    /// What goes wrong, and whether another attempt may help.
    pub fails: &'static [(&'static str, bool)],
    /// Of a hundred attempts, so many fail.
    pub failing: u64,
}

pub(super) const WORK: [Work; 11] = [
    Work {
        kind: "send_email",
        queue: "mail",
        says: "Sends one mail through the relay.",
        owner: "customer care",
        share: 42,
        takes: (0.2, 1.6),
        steps: &[],
        fails: &[
            ("550 mailbox unavailable", false),
            ("the relay timed out after 30 s", true),
            ("421 too many connections", true),
        ],
        failing: 7,
    },
    Work {
        kind: "resize_image",
        queue: "media",
        says: "Resizes a product image to four sizes.",
        owner: "catalogue",
        share: 24,
        takes: (0.8, 7.0),
        steps: &[],
        fails: &[
            ("cannot decode image: unexpected end of file", false),
            ("image-7.shop.example answered 503", true),
        ],
        failing: 5,
    },
    Work {
        kind: "charge_card",
        queue: "billing",
        says: "Charges the card of an order.",
        owner: "billing",
        share: 14,
        takes: (0.4, 2.4),
        steps: &[],
        fails: &[("card declined: insufficient funds", false), ("the gateway answered 503", true)],
        failing: 9,
    },
    Work {
        kind: "post_to_chat",
        queue: "chat",
        says: "Posts a message to a chat room.",
        owner: "platform",
        share: 14,
        takes: (0.1, 0.5),
        steps: &[],
        fails: &[("no such room: #orders-eu", false)],
        failing: 2,
    },
    Work {
        kind: "sync_inventory",
        queue: "imports",
        says: "Synchronizes the stock of a warehouse.",
        owner: "warehouse",
        share: 4,
        takes: (4.0, 14.0),
        steps: &["querying the warehouse", "comparing", "writing changes"],
        fails: &[("the warehouse timed out after 60 s", true)],
        failing: 18,
    },
    Work {
        kind: "import_csv",
        queue: "imports",
        says: "Imports the price list of a supplier.",
        owner: "catalogue",
        share: 1,
        takes: (25.0, 70.0),
        steps: &["fetching the file", "reading rows", "matching articles", "writing prices", "cleaning up"],
        fails: &[("row 1842: \"12,5O\" is not a price", false)],
        failing: 12,
    },
    Work {
        kind: "build_report",
        queue: "reports",
        says: "Builds the daily report.",
        owner: "finance",
        share: 1,
        takes: (15.0, 45.0),
        steps: &["reading orders", "adding up", "drawing", "sending"],
        fails: &[("the ledger is locked by month-end", true)],
        failing: 6,
    },
    Work {
        kind: "apps.nightly-backup",
        queue: "apps",
        says: "Backs up the database.",
        owner: "operations",
        share: 0,
        takes: (20.0, 60.0),
        steps: &["dumping orders", "dumping customers", "packing", "sending"],
        fails: &[("Job failed due to exit code 1", false)],
        failing: 4,
    },
    Work {
        kind: "apps.rotate-logs",
        queue: "apps",
        says: "Compresses and rotates logs.",
        owner: "operations",
        share: 0,
        takes: (0.5, 3.0),
        steps: &["packing access.log"],
        fails: &[("Job failed due to exit code 2", false)],
        failing: 6,
    },
    Work {
        kind: "apps.rebuild-search",
        queue: "apps",
        says: "Rebuilds the search index.",
        owner: "operations",
        share: 0,
        takes: (12.0, 30.0),
        steps: &["reading articles", "building", "swapping"],
        fails: &[("Job failed due to exit code 137: killed by SIGKILL", false)],
        failing: 10,
    },
    Work {
        kind: "apps.tax-export",
        queue: "apps",
        says: "Writes the tax report.",
        owner: "operations",
        share: 0,
        takes: (3.0, 9.0),
        steps: &["reading the ledger", "writing"],
        fails: &[("Job failed due to exit code 64", false)],
        failing: 15,
    },
];

/// Who works: a name for people, how many jobs at once, and from which queues.
pub(super) const WORKERS: [(&str, u64, &[&str]); 5] = [
    ("mailer on web-1", 6, &["mail", "chat"]),
    ("mailer on web-2", 6, &["mail", "chat"]),
    ("media on gpu-1", 4, &["media"]),
    ("back office on app-1", 5, &["billing", "imports", "reports"]),
    ("programs of app-1", 4, &["apps"]),
];

/// Names, rules and zones of schedules, and what they bring.
pub(super) const SCHEDULES: [(&str, &str, &str, &str); 6] = [
    ("daily-report", "daily 06:30", "Europe/Copenhagen", "build_report"),
    ("stock-north", "every 20m", "UTC", "sync_inventory"),
    ("stock-south", "7,37 * * * *", "UTC", "sync_inventory"),
    ("prices-of-suppliers", "weekly mon-fri 05:15; sat 07:00", "Europe/Berlin", "import_csv"),
    ("newsletter", "weekly thu 16:00", "America/New_York", "send_email"),
    ("dunning", "30 9 1,15 * *", "Europe/London", "charge_card"),
];

/// Names of leases, and who holds them.
pub(super) const LEASES: [(&str, &str); 3] = [
    ("search-index", "indexer on app-2"),
    ("stock-writer", "back office on app-1"),
    ("month-end", "ledger on app-1"),
];

const PEOPLE: [&str; 8] = ["ada", "grace", "edsger", "barbara", "alan", "frances", "niklaus", "radia"];

pub(super) fn of_kind(kind: &str) -> Option<&'static Work> {
    WORK.iter().find(|work| work.kind == kind)
}

/// Some job of the shop.
pub(super) fn job(chance: &Chance) -> Value {
    let mut place = chance.below(100);
    let work = WORK.iter().find(|work| {
        let is_it = place < work.share;
        place = place.saturating_sub(work.share);
        is_it
    });
    let work = work.unwrap_or(&WORK[0]);
    let mut job = json!({ "kind": work.kind, "queue": work.queue, "args": args(work.kind, chance), "tags": tags(chance) });
    job["meta"] = json!({ "tenant": if chance.below(3) == 0 { "shop-eu" } else { "shop-us" } });
    job["retry"] = json!({ "max_attempts": 4, "waits_seconds": [20, 60, 180] });
    if work.kind == "charge_card" {
        job["ordering_key"] = json!(format!("customer-{}", chance.below(40)));
    }
    job
}

fn tags(chance: &Chance) -> Vec<&'static str> {
    match chance.below(10) {
        0 => vec!["vip"],
        1 => vec!["night"],
        _ => Vec::new(),
    }
}

pub(super) fn args(kind: &str, chance: &Chance) -> Value {
    let person =
        usize::try_from(chance.below(8)).ok().and_then(|at| PEOPLE.get(at)).copied().unwrap_or("ada");
    let order = 48_000 + chance.below(3_000);
    match kind {
        "send_email" => {
            json!({ "to": format!("{person}@example.com"), "template": "order_shipped", "order": order })
        }
        "resize_image" => {
            json!({ "article": order, "source": format!("s3://pictures/{order}.jpg"), "sizes": [96, 320, 800, 1600] })
        }
        "charge_card" => {
            json!({ "order": order, "amount": { "value": 5 + chance.below(400), "currency": "EUR" }, "card_token": "tok_1f7c" })
        }
        "post_to_chat" => {
            json!({ "room": "#orders", "text": format!("{person} has ordered something nice") })
        }
        "sync_inventory" => json!({ "warehouse": if order.is_multiple_of(2) { "north" } else { "south" } }),
        "import_csv" => json!({ "supplier": "acme", "file": format!("prices-{order}.csv") }),
        _ => json!({ "of": "sales", "day": "yesterday" }),
    }
}

/// How an attempt goes: what it returns, or what goes wrong and whether another one may help.
pub(super) fn outcome(work: &Work, chance: &Chance) -> Result<Value, (&'static str, bool)> {
    if chance.below(100) < work.failing {
        let which = usize::try_from(chance.below(work.fails.len() as u64)).unwrap_or(0);
        if let Some(failure) = work.fails.get(which) {
            return Err(*failure);
        }
    }
    Ok(match work.kind {
        "send_email" => {
            json!({ "accepted_by": "relay-2", "queue_id": format!("{:x}", chance.below(u64::from(u32::MAX))) })
        }
        "charge_card" => {
            json!({ "charge": format!("ch_{:x}", chance.below(u64::from(u32::MAX))), "settled": true })
        }
        "import_csv" => json!({ "rows": 2_000 + chance.below(4_000), "changed": chance.below(300) }),
        "sync_inventory" => json!({ "changed": chance.below(90) }),
        _ => Value::Null,
    })
}

/// Seconds that an attempt takes.
pub(super) fn takes(work: &Work, chance: &Chance) -> f64 {
    let (least, most) = work.takes;
    // Most are quick, a few are not.
    least + (most - least) * chance.fraction() * chance.fraction()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_jobs_are_shared_out() {
        assert_eq!(WORK.iter().map(|work| work.share).sum::<u64>(), 100);
        for work in &WORK {
            assert!(
                WORKERS.iter().any(|(_, _, queues)| queues.contains(&work.queue)),
                "{} has a worker",
                work.queue
            );
            assert!(!work.fails.is_empty() && work.takes.0 < work.takes.1);
        }
        assert!(SCHEDULES.iter().all(|(_, _, _, kind)| of_kind(kind).is_some()));
    }
}
