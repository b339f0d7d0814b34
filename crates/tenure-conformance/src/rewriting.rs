//! Storing values in another form.

use tenure_core::{Args, Cause, Due, Failure, Job, LogLine, Output, Progress, Verdict, limits};
use tenure_store::{Encryption, Fault, Report, Rewrite, Store, StoredValue};

use super::given::{Given, held, retry_at, seconds};
use super::{Test, test};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(every_value_is_rewritten_if_it_is_as_it_was_read),
        test(a_value_that_has_changed_or_is_of_another_job_is_not_rewritten),
        test(rewriting_too_many_values_is_a_fault),
    ]
}

/// Returns the store with its values as they are stored.
fn stored(given: &Given) -> &dyn Store {
    given.store.extras().encryption.map_or(&*given.store, Encryption::beneath)
}

async fn read(given: &Given, job: &Job) -> Job {
    stored(given).job(job.id).await.unwrap().unwrap()
}

/// Returns a job with every value: its first attempt failed, and its second one reported progress and succeeded.
async fn finished(given: &Given) -> Job {
    let id = given.put(given.new_job("mail")).await;
    let first = given.take("mail").await;
    given.settle(first, retry_at(Due::In(seconds(1)))).await;
    given.pass(seconds(2));
    let second = given.take("mail").await;
    let progress = Some(Progress::new(0.5, "half").unwrap());
    let lines = (1..=2).map(|number| LogLine::new(2, number, given.now(), "as it was")).collect();
    given.store.report(vec![Report { held: held(&second), progress, lines }]).await.unwrap();
    let output = Output::new(b"7".to_vec(), Some("/mails/7".to_owned())).unwrap();
    given.settle(second, Verdict::Succeeded(Some(output))).await;
    stored(given).job(id).await.unwrap().unwrap()
}

fn of(job: &Job, value: StoredValue) -> Rewrite {
    Rewrite { id: job.id, seq: job.seq, value }
}

fn other_args(from: &Args) -> StoredValue {
    StoredValue::Args { from: from.clone(), to: Args::stored(b"\"another form\"") }
}

fn other_failure() -> Failure {
    Failure::new(Cause::Error, "another form")
}

async fn every_value_is_rewritten_if_it_is_as_it_was_read(given: Given) {
    let before = finished(&given).await;
    let id = before.id;
    let failure = stored(&given).attempts(id).await.unwrap()[0].failure.clone().unwrap();
    let line = stored(&given).logs(id, (0, 0), 9).await.unwrap()[1].text.clone();
    let (output, progress) = (before.output.clone().unwrap(), before.progress.clone().unwrap());
    let to_output = Output { value: b"\"another form\"".to_vec(), place: None };
    let to_progress = Progress { message: "another form".to_owned(), ..progress.clone() };
    let values = [
        other_args(&before.args),
        StoredValue::Output { from: output, to: to_output.clone() },
        StoredValue::Progress { from: progress, to: to_progress.clone() },
        StoredValue::AttemptFailure { delivery: 1, from: failure, to: other_failure() },
        StoredValue::Line { delivery: 2, number: 2, from: line, to: "another form".to_owned() },
    ];
    let rewrites: Vec<_> = values.into_iter().map(|value| of(&before, value)).collect();
    let count = rewrites.len();
    assert_eq!(stored(&given).rewrite(rewrites.clone()).await.unwrap(), vec![true; count]);
    let after = read(&given, &before).await;
    let args = Args::stored(b"\"another form\"");
    let expected = Job { args, output: Some(to_output), progress: Some(to_progress), ..before };
    assert_eq!(after, expected, "nothing else about it has changed");
    assert_eq!(stored(&given).attempts(id).await.unwrap()[0].failure, Some(other_failure()));
    let lines = stored(&given).logs(id, (0, 0), 9).await.unwrap();
    assert_eq!((lines.len(), lines[1].number, lines[1].text.as_str()), (2, 2, "another form"));
    assert_eq!(stored(&given).rewrite(rewrites).await.unwrap(), vec![false; count], "it was changed before");
}

async fn a_value_that_has_changed_or_is_of_another_job_is_not_rewritten(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    let first = given.take("mail").await;
    given.settle(first, retry_at(Due::In(seconds(600)))).await;
    let job = stored(&given).job(id).await.unwrap().unwrap();
    let other = finished(&given).await;
    let there = job.failure.clone().unwrap();
    let wrong = [
        of(&job, other_args(&Args::stored(b"\"something else\""))),
        Rewrite { id: other.id, ..of(&job, other_args(&job.args)) },
        of(&job, StoredValue::Failure { from: other_failure(), to: there.clone() }),
        Rewrite {
            id: other.id,
            ..of(&job, StoredValue::Failure { from: there.clone(), to: other_failure() })
        },
        of(&job, StoredValue::AttemptFailure { delivery: 9, from: there.clone(), to: other_failure() }),
        of(&job, StoredValue::Line { delivery: 1, number: 1, from: String::new(), to: "x".to_owned() }),
    ];
    let count = wrong.len();
    assert_eq!(stored(&given).rewrite(wrong.into()).await.unwrap(), vec![false; count]);
    assert_eq!(read(&given, &job).await, job);
    let right = of(&job, StoredValue::Failure { from: there, to: other_failure() });
    assert_eq!(stored(&given).rewrite(vec![right]).await.unwrap(), [true]);
    assert_eq!(read(&given, &job).await.failure, Some(other_failure()));
}

async fn rewriting_too_many_values_is_a_fault(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    let job = stored(&given).job(id).await.unwrap().unwrap();
    let many = vec![of(&job, other_args(&job.args)); limits::REWRITES + 1];
    assert!(matches!(stored(&given).rewrite(many).await, Err(Fault::Broken(_))));
    assert_eq!(read(&given, &job).await, job);
}
