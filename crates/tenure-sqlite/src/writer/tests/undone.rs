//! A commit that fails leaves nothing behind: not in the file, not in memory, and not on the bulletin.

use tenure_store::Hints;

use super::*;

/// From now on, the commit of a transaction that does this to a row fails, although all of its statements succeed.
fn fail_commits_after(writer: &Writer, change: &str) {
    let trigger = format!(
        "PRAGMA foreign_keys = ON;
         CREATE TABLE parent (id INTEGER PRIMARY KEY);
         CREATE TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER orphan AFTER {change} BEGIN INSERT INTO child VALUES (1); END"
    );
    writer.conn.execute_batch(&trigger).unwrap();
}

fn commit_again(writer: &Writer) {
    writer.conn.execute_batch("DROP TRIGGER orphan").unwrap();
}

#[test]
fn a_commit_that_fails_publishes_nothing() {
    let (_directory, mut writer) = filled();
    let (calls, mut events) = (writer.bulletin.calls(), writer.bulletin.events());
    fail_commits_after(&writer, "INSERT ON job");
    let (lost, mut answer) = enqueue(4, "default", 10);
    writer.write(vec![lost]);
    answer.try_recv().unwrap().unwrap_err();
    assert_eq!((writer.bulletin.calls(), events.try_recv().ok()), (calls, None));
    commit_again(&writer);
    let (again, mut answer) = enqueue(4, "default", 10);
    writer.write(vec![again]);
    answer.try_recv().unwrap().unwrap();
    assert!(writer.bulletin.calls() > calls && events.try_recv().is_ok());
}

/// A writer recognizes its own hints by a counter in the file, which the next process counts up to the same number.
#[test]
fn a_commit_that_fails_hides_no_hint_of_another_process() {
    let (_directory, mut writer) = filled();
    writer.write(vec![reserve(1).0]);
    fail_commits_after(&writer, "UPDATE ON meta");
    let wish = Change::Cancel { grace: Duration::from_secs(60), reason: "enough".to_owned() };
    let running = JobId::new(Timestamp::EPOCH, 1);
    let (cancel, mut answer) = change(wish, Selection::Ids(vec![running]));
    writer.write(vec![cancel]);
    answer.try_recv().unwrap().unwrap_err();
    commit_again(&writer);
    let other = Connection::open(&writer.path).unwrap();
    other.execute("UPDATE meta SET value = value + 1 WHERE name = 'asked'", []).unwrap();
    let asked = writer.bulletin.asked();
    writer.write(vec![reserve(0).0]);
    assert!(asked.has_changed().unwrap());
}
