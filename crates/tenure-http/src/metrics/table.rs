//! All metrics: what each is called, what it is, by what it is told apart and what it tells. Both texts are made of this
//! table, and the page about metrics, the rules and the dashboards are compared with it.

/// A metric.
#[derive(Debug, PartialEq)]
pub(super) struct Metric {
    pub name: &'static str,
    pub kind: Type,
    /// By what its values are told apart. None of them is an id, and each has a bounded number of values.
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// It only grows; its name ends in `_total`.
    Counter,
    /// It is what it is now.
    Gauge,
    /// How often a value was at most so great.
    Histogram,
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Type::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Type::Gauge, labels, help }
}

const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Type::Histogram, labels, help }
}

pub(super) const BUILD_INFO: Metric = gauge(
    "tenure_build_info",
    &["version", "commit", "backend"],
    "Version, commit and storage backend of this server; always 1",
);
pub(super) const START: Metric =
    gauge("process_start_time_seconds", &[], "Start time of this process, in seconds since the Unix epoch");

pub(super) const QUEUE_DEPTH: Metric =
    gauge("tenure_queue_depth", &["queue", "state"], "Unfinished jobs by state");
pub(super) const QUEUE_OLDEST_AGE: Metric = gauge(
    "tenure_queue_oldest_age_seconds",
    &["queue"],
    "Age of the oldest due job in seconds; 0 if no job is due",
);
pub(super) const QUEUE_PAUSED: Metric =
    gauge("tenure_queue_paused", &["queue"], "1 if the queue is paused, otherwise 0");
pub(super) const QUEUE_INFO: Metric = gauge(
    "tenure_queue_info",
    &["queue", "at_once", "rate"],
    "Concurrency and rate limit of the queue; always 1",
);
pub(super) const RUNNING: Metric = gauge("tenure_running", &["queue"], "Running jobs");
pub(super) const WORKERS: Metric = gauge("tenure_workers", &["state"], "Live workers");
pub(super) const WORKER_SLOTS: Metric =
    gauge("tenure_worker_slots", &["queue", "use"], "Job slots of all live workers, busy or free");

pub(super) const ENQUEUED: Metric =
    counter("tenure_enqueued_total", &["queue", "kind"], "Jobs enqueued through this process");
pub(super) const ATTEMPTS: Metric = counter(
    "tenure_attempts_total",
    &["queue", "kind", "outcome"],
    "Attempts that ended through this process, by outcome",
);
pub(super) const WAIT: Metric = histogram(
    "tenure_wait_duration_seconds",
    &["queue", "kind"],
    "Time from due to start of jobs claimed through this process",
);
pub(super) const RUN: Metric = histogram(
    "tenure_run_duration_seconds",
    &["queue", "kind", "outcome"],
    "Run time of attempts that ended through this process",
);

pub(super) const CLAIMS_WAITING: Metric =
    gauge("tenure_claims_waiting", &[], "Long-poll claims waiting at this server");
pub(super) const CLAIM: Metric =
    histogram("tenure_claim_duration_seconds", &[], "Time the store took to grant jobs");
pub(super) const CLAIM_JOBS: Metric = histogram("tenure_claim_jobs", &[], "Jobs granted per claim");
pub(super) const CLAIM_EMPTY: Metric =
    counter("tenure_claim_empty_total", &["queue"], "Claims that found no job in the queue");

pub(super) const SCHEDULE_FIRES: Metric = counter(
    "tenure_schedule_fires_total",
    &["schedule", "outcome"],
    "Scheduled runs decided by this process, by outcome",
);
pub(super) const SCHEDULE_LATENESS: Metric = histogram(
    "tenure_schedule_lateness_seconds",
    &[],
    "Delay between a scheduled run and its enqueue by this process",
);
pub(super) const SCHEDULE_NEXT: Metric = gauge(
    "tenure_schedule_next_run_timestamp_seconds",
    &["schedule"],
    "Next run of an active schedule, in seconds since the Unix epoch",
);
pub(super) const SCHEDULE_PAUSED: Metric =
    gauge("tenure_schedule_paused", &["schedule"], "1 if the schedule is paused, otherwise 0");
pub(super) const SCHEDULE_LOOK: Metric = gauge(
    "tenure_schedule_last_look_timestamp_seconds",
    &[],
    "Last time this process checked for due runs, in seconds since the Unix epoch; 0 if never",
);

pub(super) const LEASE_ACQUIRE: Metric =
    counter("tenure_lease_acquire_total", &["outcome"], "Lease requests through this process, by outcome");
pub(super) const LEASES_HELD: Metric = gauge("tenure_leases_held", &[], "Leases currently held");
pub(super) const LEASE_LOST: Metric = counter(
    "tenure_lease_lost_total",
    &[],
    "Leases lost by this process or by a client that renews through it",
);
pub(super) const LEASE_RENEW: Metric =
    histogram("tenure_lease_renew_duration_seconds", &[], "Time the store took to renew leases");

pub(super) const STORAGE_UP: Metric =
    gauge("tenure_storage_up", &[], "1 if the store answered the queries for this page, otherwise 0");
pub(super) const STORAGE_CALLS: Metric = histogram(
    "tenure_storage_operation_duration_seconds",
    &["backend", "operation"],
    "Duration of store calls made by this process",
);
pub(super) const STORAGE_ERRORS: Metric = counter(
    "tenure_storage_errors_total",
    &["backend", "kind"],
    "Store calls of this process that failed, by kind of failure",
);
pub(super) const STORAGE_BYTES: Metric =
    gauge("tenure_storage_bytes", &["part"], "Disk space used by each part of the store");
pub(super) const DISK_FREE: Metric =
    gauge("tenure_storage_disk_free_bytes", &[], "Free disk space at the store's file");

pub(super) const EVENTS_SUBSCRIBERS: Metric =
    gauge("tenure_events_subscribers", &[], "Jobs that clients of this server are watching");
pub(super) const WEBHOOK_DELIVERIES: Metric = counter(
    "tenure_webhook_deliveries_total",
    &["outcome"],
    "Webhook delivery attempts by this process, by outcome",
);
pub(super) const WEBHOOK_PENDING: Metric =
    gauge("tenure_webhook_pending", &[], "Webhook deliveries that have not ended");
pub(super) const BULK_RUNNING: Metric = gauge("tenure_bulk_running", &[], "Bulk operations in progress");
pub(super) const SPANS: Metric =
    counter("tenure_spans_total", &["outcome"], "Trace spans sent to the collector or dropped");
pub(super) const AUDIT_EXPORTED: Metric = counter(
    "tenure_audit_exported_total",
    &["outcome"],
    "Audit entries that the collector accepted or refused",
);
pub(super) const AUDIT_EXPORT_FAILURES: Metric =
    counter("tenure_audit_export_failures_total", &[], "Failed attempts to export audit entries");
pub(super) const AUDIT_EXPORT_LAG: Metric =
    gauge("tenure_audit_export_lag_seconds", &[], "Age of the oldest audit entry that waits for export");
pub(super) const REQUESTS: Metric = histogram(
    "http_server_request_duration_seconds",
    &["http_request_method", "http_route", "http_response_status_code"],
    "Time to the first byte of an HTTP response",
);
pub(super) const ACTIVE_REQUESTS: Metric =
    gauge("http_server_active_requests", &[], "HTTP requests in progress");

/// All of them, in the order in which they are told.
#[cfg(test)]
pub(super) const ALL: &[&Metric] = &[
    &BUILD_INFO,
    &START,
    &STORAGE_UP,
    &QUEUE_DEPTH,
    &QUEUE_OLDEST_AGE,
    &QUEUE_PAUSED,
    &QUEUE_INFO,
    &RUNNING,
    &WORKERS,
    &WORKER_SLOTS,
    &ENQUEUED,
    &ATTEMPTS,
    &WAIT,
    &RUN,
    &CLAIMS_WAITING,
    &CLAIM,
    &CLAIM_JOBS,
    &CLAIM_EMPTY,
    &SCHEDULE_FIRES,
    &SCHEDULE_LATENESS,
    &SCHEDULE_NEXT,
    &SCHEDULE_PAUSED,
    &SCHEDULE_LOOK,
    &LEASE_ACQUIRE,
    &LEASES_HELD,
    &LEASE_LOST,
    &LEASE_RENEW,
    &STORAGE_CALLS,
    &STORAGE_ERRORS,
    &STORAGE_BYTES,
    &DISK_FREE,
    &EVENTS_SUBSCRIBERS,
    &WEBHOOK_DELIVERIES,
    &WEBHOOK_PENDING,
    &BULK_RUNNING,
    &SPANS,
    &AUDIT_EXPORTED,
    &AUDIT_EXPORT_FAILURES,
    &AUDIT_EXPORT_LAG,
    &REQUESTS,
    &ACTIVE_REQUESTS,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The page tells of each metric that there is, with all of its labels, and of no other.
    #[test]
    fn the_page_about_metrics_tells_of_every_metric_with_its_labels() {
        let page = include_str!("../../../../docs/guide/metrics.md");
        let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        let told: BTreeMap<String, Vec<String>> = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `"))
            .filter_map(|line| {
                let mut cells = line.split(" | ");
                Some((cells.next()?.trim_end_matches('`').to_owned(), quoted(cells.next()?)))
            })
            .collect();
        let labels = |metric: &Metric| metric.labels.iter().map(|label| (*label).to_owned()).collect();
        let expected: BTreeMap<String, Vec<String>> =
            ALL.iter().map(|metric| (metric.name.to_owned(), labels(metric))).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn names_say_what_they_count_in_which_unit() {
        for metric in ALL {
            let name = metric.name;
            assert_eq!(name.ends_with("_total"), metric.kind == Type::Counter, "{name}");
            assert!(!metric.labels.iter().any(|label| label.contains("id") || *label == "le"), "{name}");
            let is_number = ["tenure_claim_jobs"].contains(&name) || name.ends_with("_seconds");
            assert!(metric.kind != Type::Histogram || is_number, "{name}");
            assert!(metric.help.len() > 10 && !metric.help.ends_with('.'), "{name}");
        }
        let names: std::collections::BTreeSet<_> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), ALL.len());
    }
}
