//! Fuzz targets of searches: the filter of a search means what its words mean, one by one, and stores agree.

use tempfile::TempDir;
use tenure_core::{Condition, Job, JobId, Timestamp};
use tenure_fuzz::Target;
use tenure_store::{Filter, PageAsk};
use tokio::runtime::{Builder, Runtime};

use super::lex::words;
use super::search;
use super::values::condition;
use crate::{Draft, Tenure};

/// A store with jobs that searches can tell apart.
struct Sample {
    tenure: Tenure,
    jobs: Vec<Job>,
    now: Timestamp,
    runtime: Runtime,
    _folder: TempDir,
}

impl Sample {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (tenure, jobs, now) = runtime.block_on(async {
            let url = format!("sqlite://{}", folder.path().join("jobs.db").display());
            let tenure = Tenure::open(&url).await.unwrap();
            let args =
                serde_json::json!({ "user": { "id": 42, "name": "Ann" }, "ids": [1, "x", null], "on": true });
            let day = std::time::Duration::from_secs(86_400);
            let accepted = tenure
                .enqueue_all(vec![
                    Draft::raw("mail", &args).tag("test").meta("tenant", "Acme Inc").priority(3),
                    Draft::raw("mail.send", &args).queue("mail").after(day),
                    Draft::raw("report", &serde_json::json!(7))
                        .queue("reports")
                        .tag("test")
                        .tag("x")
                        .priority(-5),
                    Draft::raw("b", &serde_json::json!({})).meta("tenant", "").after(day),
                ])
                .await
                .unwrap();
            let last = accepted.last().unwrap().id();
            tenure.jobs().cancel(last, std::time::Duration::ZERO, "").await.unwrap();
            let jobs = tenure.jobs().page(PageAsk::default()).await.unwrap().jobs;
            let now = tenure.now();
            (tenure, jobs, now)
        });
        Self { tenure, jobs, now, runtime, _folder: folder }
    }

    /// Returns the jobs that this filter means, as the store finds them.
    fn listed(&self, filter: Filter) -> Vec<JobId> {
        let page = self.runtime.block_on(self.tenure.jobs().page(PageAsk { filter, ..PageAsk::default() }));
        page.unwrap().jobs.iter().map(|job| job.id).collect()
    }
}

/// Returns the names of a condition's variants.
fn shape(condition: &Condition) -> String {
    let debug = format!("{condition:?}");
    debug
        .split(|sign: char| !sign.is_alphabetic())
        .filter(|word| word.starts_with(char::is_uppercase))
        .collect()
}

#[test]
fn a_search_means_what_its_words_mean() {
    let sample = Sample::new();
    let words_of_grammar = &[
        "state:",
        "queued",
        "scheduled",
        "cancelled",
        "queue:mail",
        "kind:",
        "mail",
        "tag:test",
        "id:",
        "schedule:",
        "worker:",
        "args.user.id:42",
        "args.ids.0:",
        "args.user.name:Ann",
        "meta.tenant:\"Acme Inc\"",
        "error:",
        "attempt:",
        "priority:",
        "created:",
        "ended:",
        "took:",
        ">",
        "<=",
        "..",
        "-",
        ",",
        "\"",
        "\\\"",
        "-2h",
        "2026-11-20",
        "5",
        "30s",
        " ",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "search").words(words_of_grammar).check_text(|text| {
        let filter = match search(text, sample.now) {
            Ok(filter) => filter,
            Err(bad) => {
                assert!((1..=text.chars().count() + 2).contains(&bad.at), "{bad}");
                return bad.to_string();
            }
        };
        let read: Vec<_> = words(text)
            .unwrap()
            .iter()
            .map(|word| (word.is_not, condition(word, sample.now).unwrap()))
            .collect();
        let holds = |job: &&Job| read.iter().all(|(is_not, each)| each.holds(job, sample.now) != *is_not);
        let expected: Vec<JobId> = sample.jobs.iter().filter(holds).map(|job| job.id).collect();
        let means = |job: &&Job| filter.means(job, sample.now);
        let meant: Vec<JobId> = sample.jobs.iter().filter(means).map(|job| job.id).collect();
        assert_eq!(meant, expected, "{filter:?}");
        let kept = serde_json::to_string(&filter).unwrap();
        assert_eq!(serde_json::from_str::<Filter>(&kept).unwrap(), filter, "{kept}");
        assert_eq!(sample.listed(filter), expected);
        read.iter().take(3).map(|(is_not, each)| format!("{is_not} {} ", shape(each))).collect()
    });
}

/// A job is either below a value or not.
#[test]
fn comparisons_exclude_each_other() {
    let sample = Sample::new();
    let words = &[
        "-2h",
        "2026-11-20",
        "T12:00:00Z",
        "5",
        "1.5",
        "ms",
        "s",
        "d",
        "-",
        "0",
        "3",
        "-5",
        "\"",
        "..",
        ">",
        "=",
    ];
    Target::new(env!("CARGO_MANIFEST_DIR"), "search_range").words(words).check_text(|value| {
        // Words that follow would be other conditions.
        if value
            .contains(|sign: char| sign.is_whitespace() || matches!(sign, ',' | '"' | '.' | '<' | '>' | '='))
        {
            return "several".to_owned();
        }
        let mut outcome = String::new();
        for field in ["attempt", "priority", "created"] {
            for (one, other) in [("<", ">="), (">", "<=")] {
                let read = |sign: &str| search(&format!("{field}:{sign}{value}"), sample.now);
                let (one, other) = match (read(one), read(other)) {
                    (Ok(one), Ok(other)) => (one, other),
                    (Err(one), Err(_)) => {
                        outcome += &one.found;
                        continue;
                    }
                    (one, other) => panic!("{field}: {one:?} but {other:?}"),
                };
                for job in &sample.jobs {
                    assert_ne!(
                        one.means(job, sample.now),
                        other.means(job, sample.now),
                        "{field}: {one:?} {other:?}"
                    );
                }
                outcome += field;
            }
        }
        outcome
    });
}
