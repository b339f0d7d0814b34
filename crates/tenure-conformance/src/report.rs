//! What reporting promises, and reading the log.

use tenure_core::{Due, LogLine, Progress, Reserved, Verdict, limits};

use super::given::{Given, TTL, held, retry_at, seconds};
use super::{Test, test};
use tenure_store::{Change, Held, Report, Reported};

pub(super) fn tests() -> Vec<Test> {
    vec![
        test(progress_is_kept_and_replaced),
        test(a_report_without_progress_leaves_what_is_there),
        test(a_report_changes_nothing_but_progress_and_log),
        test(lines_are_read_back_in_order),
        test(lines_that_are_there_are_not_kept_twice),
        test(a_line_that_comes_after_a_later_one_is_not_kept),
        test(lines_without_a_number_are_kept_behind_what_is_there),
        test(each_delivery_numbers_its_own_lines),
        test(the_log_goes_on_behind_a_line),
        test(the_log_is_read_in_bounded_pieces),
        test(a_job_that_is_not_there_has_no_log),
        test(lines_beyond_the_limit_are_not_kept),
        test(lines_go_with_the_record_of_their_attempt),
        test(a_report_under_an_old_fence_is_refused_and_keeps_nothing),
        test(a_report_after_the_settlement_is_refused_and_keeps_nothing),
        test(a_report_about_a_job_that_is_not_there_is_refused),
        test(a_lapsed_holder_that_nobody_has_replaced_may_still_report),
        test(reports_are_answered_one_by_one_in_order),
        test(reporting_nothing_is_answered_with_nothing),
    ]
}

fn half() -> Option<Progress> {
    Some(Progress::new(0.5, "half of it, ø").unwrap())
}

fn line(reserved: &Reserved, number: u32) -> LogLine {
    let started = reserved.job().started.unwrap();
    LogLine::new(reserved.job().delivery, number, started, &format!("line {number}"))
}

fn lines(reserved: &Reserved, numbers: impl IntoIterator<Item = u32>) -> Vec<LogLine> {
    numbers.into_iter().map(|number| line(reserved, number)).collect()
}

async fn report(given: &Given, held: Held, progress: Option<Progress>, lines: Vec<LogLine>) -> Reported {
    let answers = given.store.report(vec![Report { held, progress, lines }]).await.unwrap();
    assert_eq!(answers.len(), 1);
    answers[0]
}

async fn log(given: &Given, reserved: &Reserved, numbers: impl IntoIterator<Item = u32>) {
    assert_eq!(report(given, held(reserved), None, lines(reserved, numbers)).await, Reported::Kept);
}

async fn read(given: &Given, reserved: &Reserved) -> Vec<LogLine> {
    given.store.logs(reserved.job().id, (0, 0), 100_000).await.unwrap()
}

async fn progress_is_kept_and_replaced(given: Given) {
    let reserved = given.running().await;
    for fraction in [0.25, 1.0 / 3.0, 0.0] {
        let progress = Some(Progress::new(fraction, "ø").unwrap());
        assert_eq!(report(&given, held(&reserved), progress.clone(), vec![]).await, Reported::Kept);
        assert_eq!(given.job(reserved.job().id).await.progress, progress);
    }
}

async fn a_report_without_progress_leaves_what_is_there(given: Given) {
    let reserved = given.running().await;
    report(&given, held(&reserved), half(), vec![]).await;
    log(&given, &reserved, 1..=1).await;
    assert_eq!(given.job(reserved.job().id).await.progress, half());
}

async fn a_report_changes_nothing_but_progress_and_log(given: Given) {
    let reserved = given.running().await;
    given.pass(seconds(1));
    report(&given, held(&reserved), half(), lines(&reserved, 1..=2)).await;
    let mut expected = reserved.job().clone();
    expected.progress = half();
    assert_eq!(given.job(expected.id).await, expected);
}

async fn lines_are_read_back_in_order(given: Given) {
    let reserved = given.running().await;
    log(&given, &reserved, 1..=2).await;
    log(&given, &reserved, [3, 7]).await;
    assert_eq!(read(&given, &reserved).await, lines(&reserved, [1, 2, 3, 7]));
}

async fn lines_that_are_there_are_not_kept_twice(given: Given) {
    let reserved = given.running().await;
    log(&given, &reserved, 1..=3).await;
    log(&given, &reserved, 1..=3).await;
    log(&given, &reserved, 2..=5).await;
    assert_eq!(read(&given, &reserved).await, lines(&reserved, 1..=5));
}

async fn a_line_that_comes_after_a_later_one_is_not_kept(given: Given) {
    let reserved = given.running().await;
    log(&given, &reserved, [5]).await;
    log(&given, &reserved, [2, 6]).await;
    assert_eq!(read(&given, &reserved).await, lines(&reserved, [5, 6]));
}

async fn lines_without_a_number_are_kept_behind_what_is_there(given: Given) {
    let reserved = given.running().await;
    log(&given, &reserved, [LogLine::NEXT, LogLine::NEXT]).await;
    log(&given, &reserved, [2, 5, LogLine::NEXT, 6, 7, LogLine::NEXT]).await;
    let kept: Vec<_> =
        read(&given, &reserved).await.into_iter().map(|line| (line.number, line.text)).collect();
    let kept: Vec<_> = kept.iter().map(|(number, text)| (*number, text.as_str())).collect();
    let next = "line 0";
    assert_eq!(kept, [(1, next), (2, next), (5, "line 5"), (6, next), (7, "line 7"), (8, next)]);
}

async fn each_delivery_numbers_its_own_lines(given: Given) {
    let first = given.running().await;
    log(&given, &first, 1..=2).await;
    let mut expected = lines(&first, 1..=2);
    given.settle(first, retry_at(Due::Now)).await;
    let second = given.take("mail").await;
    log(&given, &second, 1..=2).await;
    expected.extend(lines(&second, 1..=2));
    assert_eq!(read(&given, &second).await, expected);
}

async fn the_log_goes_on_behind_a_line(given: Given) {
    let first = given.running().await;
    log(&given, &first, 1..=3).await;
    given.settle(first, Verdict::Released).await;
    let second = given.take("mail").await;
    log(&given, &second, 1..=2).await;
    let read = async |behind| {
        let lines = given.store.logs(second.job().id, behind, 100).await.unwrap();
        lines.iter().map(|line| (line.delivery, line.number)).collect::<Vec<_>>()
    };
    assert_eq!(read((1, 2)).await, [(1, 3), (2, 1), (2, 2)]);
    assert_eq!(read((1, 9)).await, [(2, 1), (2, 2)]);
    assert_eq!(read((2, 1)).await, [(2, 2)]);
    assert_eq!(read((2, 2)).await, []);
}

async fn the_log_is_read_in_bounded_pieces(given: Given) {
    let reserved = given.running().await;
    log(&given, &reserved, 1..=5).await;
    let id = reserved.job().id;
    assert_eq!(given.store.logs(id, (0, 0), 2).await.unwrap(), lines(&reserved, 1..=2));
    assert_eq!(given.store.logs(id, (1, 2), 2).await.unwrap(), lines(&reserved, 3..=4));
    assert_eq!(given.store.logs(id, (1, 4), 2).await.unwrap(), lines(&reserved, 5..=5));
}

async fn a_job_that_is_not_there_has_no_log(given: Given) {
    let reserved = given.running().await;
    log(&given, &reserved, 1..=1).await;
    assert_eq!(given.store.logs(given.id(), (0, 0), 9).await.unwrap(), []);
    let id = reserved.job().id;
    given.succeed(reserved).await;
    assert_eq!(given.store.logs(id, (0, 0), 9).await.unwrap().len(), 1, "a finished job keeps its log");
    given.change(id, Change::Delete).await;
    assert_eq!(given.store.logs(id, (0, 0), 9).await.unwrap(), []);
}

async fn lines_beyond_the_limit_are_not_kept(given: Given) {
    let reserved = given.running().await;
    log(&given, &reserved, 1..=limits::LOG_LINES - 1).await;
    log(&given, &reserved, limits::LOG_LINES..=limits::LOG_LINES + 1).await;
    log(&given, &reserved, [limits::LOG_LINES + 2]).await;
    let last = given.store.logs(reserved.job().id, (1, limits::LOG_LINES - 1), 9).await.unwrap();
    assert_eq!(last, lines(&reserved, [limits::LOG_LINES]));
    given.release(reserved).await;
    let next = given.take("mail").await;
    log(&given, &next, [1]).await;
    let of_next = given.store.logs(next.job().id, (2, 0), 9).await.unwrap();
    assert_eq!(of_next, lines(&next, [1]), "the limit is one delivery's");
}

/// T009
async fn lines_go_with_the_record_of_their_attempt(given: Given) {
    let id = given.put(given.new_job("mail")).await;
    for _ in 0..limits::ATTEMPTS_KEPT + 5 {
        let reserved = given.take("mail").await;
        log(&given, &reserved, 1..=2).await;
        given.release(reserved).await;
    }
    let kept = given.store.logs(id, (0, 0), 100_000).await.unwrap();
    assert_eq!(kept.first().map(|line| line.delivery), Some(6));
    assert_eq!(kept.len(), 2 * limits::ATTEMPTS_KEPT as usize);
}

async fn a_report_under_an_old_fence_is_refused_and_keeps_nothing(given: Given) {
    let slow = given.running().await;
    given.pass(TTL);
    let quick = given.take("mail").await;
    let late = report(&given, held(&slow), half(), lines(&slow, 1..=2)).await;
    assert_eq!(late, Reported::Fenced);
    assert_eq!(given.job(quick.job().id).await, *quick.job());
    assert_eq!(read(&given, &quick).await, []);
}

async fn a_report_after_the_settlement_is_refused_and_keeps_nothing(given: Given) {
    for verdict in [Verdict::Succeeded(None), Verdict::Released] {
        let reserved = given.running().await;
        let (ownership, written) = (held(&reserved), lines(&reserved, 1..=2));
        given.settle(reserved, verdict).await;
        let job = given.job(ownership.id).await;
        assert_eq!(report(&given, ownership, half(), written).await, Reported::Fenced);
        assert_eq!(given.job(ownership.id).await, job);
        assert_eq!(given.store.logs(ownership.id, (0, 0), 9).await.unwrap(), []);
    }
}

async fn a_report_about_a_job_that_is_not_there_is_refused(given: Given) {
    let reserved = given.running().await;
    let unknown = Held { id: given.id(), ..held(&reserved) };
    assert_eq!(report(&given, unknown, half(), lines(&reserved, 1..=1)).await, Reported::Fenced);
    assert_eq!(given.job(reserved.job().id).await.progress, None);
}

async fn a_lapsed_holder_that_nobody_has_replaced_may_still_report(given: Given) {
    let reserved = given.running().await;
    given.pass(TTL);
    assert_eq!(report(&given, held(&reserved), half(), lines(&reserved, 1..=1)).await, Reported::Kept);
    assert_eq!(given.job(reserved.job().id).await.progress, half());
}

async fn reports_are_answered_one_by_one_in_order(given: Given) {
    let slow = given.running().await;
    given.pass(TTL);
    let quick = given.take("mail").await;
    let other = given.running().await;
    let tell = |reserved: &Reserved| Report {
        held: held(reserved),
        progress: half(),
        lines: lines(reserved, 1..=1),
    };
    let answers = given.store.report(vec![tell(&quick), tell(&slow), tell(&other)]).await.unwrap();
    assert_eq!(answers, [Reported::Kept, Reported::Fenced, Reported::Kept]);
    assert_eq!(read(&given, &quick).await, lines(&quick, 1..=1));
    assert_eq!(read(&given, &other).await, lines(&other, 1..=1));
}

async fn reporting_nothing_is_answered_with_nothing(given: Given) {
    assert_eq!(given.store.report(vec![]).await.unwrap(), []);
}
