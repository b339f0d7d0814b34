use tenure_core::{Fence, Holder, HostId, LeaseAct, LeaseOutcome, LeaseRefusal, Ttl, limits};
use tenure_store::LeaseWish;

use super::*;
use crate::holding::Loss;

mod asking;
mod together;
mod told;

const TTL: Duration = Duration::from_secs(15);

/// A book, a clock that is moved by hand, and the requests that nobody has answered yet.
struct Desk {
    book: Book,
    at: Duration,
    sent: Vec<(u64, Vec<LeaseWish>)>,
}

impl Desk {
    fn new() -> Self {
        Self { book: Book::new(Chance::seeded(7)), at: Duration::ZERO, sent: Vec::new() }
    }

    fn now(&self) -> Now {
        Now { moment: Moment::from_start(self.at), time: Timestamp::EPOCH.after(self.at) }
    }

    /// Takes an input in; answers the news, and keeps the requests that follow.
    fn put(&mut self, input: Input) -> Vec<Output> {
        let mut news = self.book.step(self.now(), input);
        news.extend(self.book.step(self.now(), Input::Tick));
        let (sent, news) = news.into_iter().partition(|output| matches!(output, Output::Send { .. }));
        self.keep(sent);
        news
    }

    fn keep(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            if let Output::Send { request, wishes, .. } = output {
                self.sent.push((request, wishes));
            }
        }
    }

    fn ask(&mut self, number: Number, name: &str, waits: bool) -> Vec<Output> {
        self.put(Input::Ask(number, Box::new(wanted(number, name, waits))))
    }

    /// Lets time pass, with a tick whenever the book wants one.
    fn pass(&mut self, span: Duration) -> Vec<Output> {
        let (end, mut news) = (self.at + span, Vec::new());
        while let Some(wakes) = self.book.wakes(self.now().moment)
            && wakes <= Moment::from_start(end)
        {
            self.at = self.at.max(wakes.since(Moment::from_start(Duration::ZERO)));
            news.extend(self.put(Input::Tick));
        }
        self.at = end;
        news
    }

    fn answer(&mut self, outcomes: impl Fn(&LeaseWish) -> LeaseOutcome) -> Vec<Output> {
        let mut news = Vec::new();
        for (request, wishes) in std::mem::take(&mut self.sent) {
            news.extend(self.put(Input::Answered(request, Ok(wishes.iter().map(&outcomes).collect()))));
        }
        news
    }

    fn until(&self) -> Option<Timestamp> {
        Some(self.now().time.after(TTL))
    }

    /// Answers every wish kindly.
    fn agree(&mut self) -> Vec<Output> {
        let until = self.until();
        self.answer(|wish| agree(wish, until))
    }

    fn held(&mut self, number: Number, name: &str) {
        self.ask(number, name, false);
        assert!(matches!(self.agree()[..], [Output::Granted { .. }]));
    }

    fn acts(&self) -> Vec<&LeaseAct> {
        self.sent.iter().flat_map(|(_, wishes)| wishes).map(|wish| &wish.act).collect()
    }
}

fn wanted(number: Number, name: &str, waits: bool) -> Ask {
    Ask {
        name: LeaseName::new(name).unwrap(),
        id: LeaseId::new([number, 0]),
        by: Holder { host: Some(HostId::new(Timestamp::EPOCH, 1)), ..Holder::default() },
        ttl: Ttl::For(TTL),
        waits,
        until: None,
    }
}

fn agree(wish: &LeaseWish, until: Option<Timestamp>) -> LeaseOutcome {
    match &wish.act {
        LeaseAct::Acquire { .. } => LeaseOutcome::Granted { fence: Fence::from_number(1), until },
        LeaseAct::Renew { .. } => LeaseOutcome::Renewed { until },
        LeaseAct::Release { .. } => LeaseOutcome::Released,
        LeaseAct::Leave { .. } => LeaseOutcome::Left,
        act @ (LeaseAct::Change { .. } | LeaseAct::Break { .. } | LeaseAct::Forget { .. }) => {
            panic!("{act:?} is not asked for")
        }
    }
}

fn held_by_another(desk: &Desk) -> LeaseOutcome {
    LeaseOutcome::Refused(LeaseRefusal::Held {
        by: Holder::named("another"),
        fence: Fence::from_number(1),
        since: Timestamp::EPOCH,
        until: desk.until(),
        waiting: 0,
    })
}

fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

#[test]
fn all_that_is_held_is_renewed_with_one_request_for_each_third() {
    let mut desk = Desk::new();
    for number in 1..=100 {
        desk.held(number, &format!("lease-{number}"));
        desk.pass(secs(0.1));
        desk.agree();
    }
    let (from, mut requests) = (desk.at, 0);
    while desk.at < from + secs(600.0) {
        desk.pass(secs(0.1));
        requests += desk.sent.len();
        desk.agree();
    }
    assert_eq!(desk.book.tally().held, 100);
    assert!((105..=121).contains(&requests), "{requests} requests in 120 thirds");
}

#[test]
fn a_lease_is_doubted_then_lost_at_its_deadline_and_no_answer_brings_it_back() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    let sent = desk.at;
    let news = desk.pass(secs(12.4));
    let doubtful = |output: &Output| matches!(output, Output::Doubtful { number: 1, .. });
    assert!(news.iter().all(doubtful) && news.len() == 1, "{news:?}");
    assert!(desk.sent.len() >= 3, "it was tried again: {}", desk.sent.len());
    let news = desk.pass(secs(0.2));
    let at = Timestamp::EPOCH.after(sent + secs(12.5));
    assert_eq!(news, [Output::Lost { number: 1, loss: Loss::Expired { at } }]);
    assert_eq!(desk.agree(), []);
    assert_eq!(
        desk.put(Input::LetGo(1)),
        [Output::Gone { number: 1, end: Gone::Lost(Loss::Expired { at }) }]
    );
    assert!(desk.book.is_empty() && desk.sent.is_empty(), "what is lost is not given back");
}

#[test]
fn a_good_answer_counts_from_when_its_request_was_sent() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    desk.pass(secs(6.0));
    let sent: Vec<_> = desk.sent.iter().map(|(request, _)| *request).collect();
    assert_eq!(sent.len(), 1);
    let renewed_at = desk.book.requests[&sent[0]].sent;
    desk.pass(secs(1.4));
    let news = desk.agree();
    let [Output::Renewed { deadline: Some(deadline), .. }] = news[..] else { panic!("{news:?}") };
    assert_eq!(deadline.since(renewed_at), secs(12.5));
}

#[test]
fn what_holds_up_a_request_does_not_hold_up_all_others_again() {
    let mut desk = Desk::new();
    for number in 1..=64 {
        desk.held(number, &format!("lease-{number:02}"));
    }
    let (slow, mut lost) = (LeaseName::new("lease-37").unwrap(), Vec::new());
    for _ in 0..1_000 {
        let news = desk.pass(secs(0.1));
        lost.extend(news.into_iter().filter(|output| matches!(output, Output::Lost { .. })));
        // A request in which the slow one stands is not answered.
        desk.sent.retain(|(_, wishes)| wishes.iter().all(|wish| wish.name != slow));
        desk.agree();
    }
    assert!(matches!(lost[..], [Output::Lost { number: 37, .. }]), "{lost:?}");
}

/// T018: a release whose reply was lost is repeated, and being answered that nobody holds it is no loss.
#[test]
fn a_release_whose_reply_was_lost_is_repeated() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    desk.put(Input::LetGo(1));
    let (request, _) = desk.sent.pop().unwrap();
    desk.put(Input::Answered(request, Err(Fault::Unknown("a lost reply".into()))));
    desk.pass(secs(0.1));
    assert_eq!(desk.sent.len(), 1);
    let news = desk.answer(|_| LeaseOutcome::Refused(LeaseRefusal::NotHeld));
    assert_eq!(news, [Output::Gone { number: 1, end: Gone::Free }]);
}

#[test]
fn a_release_that_finds_another_holder_says_so() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    desk.put(Input::LetGo(1));
    let fence = Fence::from_number(2);
    let news = desk.answer(|_| LeaseOutcome::Refused(LeaseRefusal::Lost { fence }));
    assert_eq!(news, [Output::Gone { number: 1, end: Gone::Lost(Loss::TakenAway { fence }) }]);
}

#[test]
fn a_release_is_given_up_when_the_lease_has_lapsed_by_itself() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    desk.put(Input::LetGo(1));
    let news = desk.pass(secs(16.6));
    assert!(matches!(news[..], [Output::Gone { number: 1, end: Gone::Unheard(_) }]), "{news:?}");
    assert!(desk.book.is_empty());
}

/// T025: a release does not wait for a renewal that is under way, and the renewal's answer is nothing to it.
#[test]
fn a_release_overtakes_a_renewal() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    desk.pass(secs(6.0));
    assert_eq!(desk.acts().len(), 1);
    desk.put(Input::LetGo(1));
    assert_eq!(desk.acts().len(), 2);
    let (renewal, _) = desk.sent.remove(0);
    let until = desk.until();
    assert_eq!(desk.put(Input::Answered(renewal, Ok(vec![LeaseOutcome::Renewed { until }]))), []);
    assert_eq!(desk.agree(), [Output::Gone { number: 1, end: Gone::Free }]);
    assert!(desk.book.is_empty());
}

#[test]
fn a_lease_without_end_is_asked_about_and_never_lost_by_time() {
    let mut desk = Desk::new();
    desk.put(Input::Ask(1, Box::new(Ask { ttl: Ttl::Endless, ..wanted(1, "x", false) })));
    desk.answer(|_| LeaseOutcome::Granted { fence: Fence::from_number(1), until: None });
    let news = desk.pass(secs(86_400.0));
    assert!(matches!(news[..], [Output::Doubtful { .. }]), "{news:?}");
    desk.sent.drain(..desk.sent.len() - 1);
    let news = desk.answer(|_| LeaseOutcome::Refused(LeaseRefusal::Broken));
    assert_eq!(news, [Output::Lost { number: 1, loss: Loss::Broken }]);
}

#[test]
fn what_was_broken_is_given_back_once_its_work_has_ended() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    desk.pass(secs(2.0));
    desk.put(Input::Broken);
    let until = desk.now().time.after(secs(10.0));
    let news = desk.answer(|_| LeaseOutcome::Refused(LeaseRefusal::Breaking { until }));
    assert_eq!(news, [Output::Lost { number: 1, loss: Loss::Broken }]);
    desk.put(Input::LetGo(1));
    assert_eq!(desk.acts(), [&LeaseAct::Release { id: LeaseId::new([1, 0]), fence: Fence::from_number(1) }]);
    desk.agree();
    assert!(desk.book.is_empty());
}

#[test]
fn a_hint_that_comes_right_after_a_renewal_is_not_forgotten() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    desk.put(Input::Broken);
    assert!(desk.sent.is_empty());
    desk.pass(secs(1.3));
    assert_eq!(desk.sent.len(), 1);
}

#[test]
fn hints_that_something_was_broken_do_not_renew_without_pause() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    let mut requests = 0;
    for _ in 0..1_000 {
        desk.put(Input::Broken);
        desk.pass(Duration::from_millis(10));
        requests += desk.sent.len();
        desk.agree();
    }
    assert!((4..=10).contains(&requests), "{requests} in ten seconds");
}

#[test]
fn a_book_that_is_closed_tells_everybody_and_takes_nothing_in() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    desk.ask(2, "x", true);
    let refusal = held_by_another(&desk);
    desk.answer(|_| refusal.clone());
    let news = desk.put(Input::Close);
    let closed = Output::Failed { number: 2, fault: Fault::Closed };
    assert_eq!(news, [Output::Lost { number: 1, loss: Loss::Closed }, closed]);
    assert_eq!(desk.acts(), [&LeaseAct::Leave { id: LeaseId::new([2, 0]) }]);
    assert_eq!(desk.ask(3, "y", false), [Output::Failed { number: 3, fault: Fault::Closed }]);
    desk.put(Input::LetGo(1));
    desk.agree();
    desk.agree();
    assert!(desk.book.is_empty());
}

#[test]
fn what_has_no_end_and_cannot_be_given_back_is_given_up_a_minute_after_all_have_gone() {
    let mut desk = Desk::new();
    desk.put(Input::Ask(1, Box::new(Ask { ttl: Ttl::Endless, ..wanted(1, "x", false) })));
    desk.agree();
    desk.put(Input::LetGo(1));
    desk.pass(secs(3_600.0));
    assert!(!desk.book.is_empty());
    desk.put(Input::Alone);
    desk.pass(secs(61.0));
    assert!(desk.book.is_empty());
}

/// §B.9: what is believed does not depend on the store's clock, but it is told that it steps.
#[test]
fn a_store_whose_clock_steps_is_told_of() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    let mut steps = Vec::new();
    for (round, ahead) in [0, 0, 3_600, 3_600, 0, 0].into_iter().enumerate() {
        desk.pass(secs(5.6));
        let until = Some(desk.now().time.after(TTL + Duration::from_secs(ahead)));
        let news = desk.answer(|_| LeaseOutcome::Renewed { until });
        for output in news {
            if let Output::ClockStepped { ahead, .. } = output {
                steps.push((round, ahead));
            }
        }
    }
    assert_eq!(steps, [(2, true), (4, false)]);
    assert_eq!((desk.book.tally().clock_steps, desk.book.tally().lost), (2, 0));
}

#[test]
fn how_late_the_keeper_woke_is_told() {
    let mut desk = Desk::new();
    desk.held(1, "x");
    let due = desk.book.wakes(desk.now().moment).unwrap();
    desk.at = due.since(Moment::from_start(Duration::ZERO)) + secs(3.0);
    desk.put(Input::Tick);
    desk.pass(secs(1.0));
    assert_eq!(desk.book.tally().latest_wake, secs(3.0));
}
