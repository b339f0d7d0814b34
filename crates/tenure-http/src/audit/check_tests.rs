//! Tests of the chain: each way to tamper with it is found.

use tenure::records::{Document, JournalEntry, Subject};
use tenure::{Name, Timestamp};

use super::super::chain::{Head, seal};
use super::super::log::tests::act;
use super::*;

/// A log of entries, and its head.
fn log(count: u64) -> (Vec<JournalEntry>, Head) {
    let (mut entries, mut head) = (Vec::new(), None);
    for number in 1..=count {
        let at = Timestamp::EPOCH.after(Duration::from_secs(number * 86_400));
        let until = at.after(Duration::from_secs(10 * 86_400));
        let (text, next) = seal(&act("/v1/queues/mail"), (at, until), head.as_ref()).unwrap();
        entries.push(entry(number, &text));
        head = Some(next);
    }
    (entries, head.unwrap())
}

fn entry(number: u64, text: &str) -> JournalEntry {
    JournalEntry {
        journal: Name::new("journal", JOURNAL).unwrap(),
        number,
        at: Timestamp::EPOCH,
        subject: Subject::new("/").unwrap(),
        value: Document::new(text.as_bytes()).unwrap(),
        expires: None,
    }
}

fn verify(entries: &[JournalEntry], head: &Head, day: u64) -> Option<Break> {
    let now = Timestamp::EPOCH.after(Duration::from_secs(day * 86_400));
    let mut chain = Chain { now, head: Some(head.clone()), ..Chain::default() };
    entries.iter().try_for_each(|entry| chain.follow(entry)).and_then(|()| chain.end(Some(head))).err()
}

#[test]
fn a_whole_chain_is_sound_and_old_entries_may_be_gone_once_their_retention_is_over() {
    let (entries, head) = log(6);
    assert_eq!(verify(&entries, &head, 7), None);
    assert_eq!(verify(&entries[2..], &head, 13), None);
    assert_eq!(verify(&[], &head, 17), None);
    assert_eq!(verify(&entries[2..], &head, 7), Some(Break::Missing { from: 1, to: 2 }));
    assert_eq!(verify(&[], &head, 7), Some(Break::CutOff { from: 1, to: 6 }));
}

#[test]
fn entries_without_a_hash_are_accepted_only_before_the_first_entry_with_one() {
    let (mut entries, head) = log(2);
    let old = r#"{"who":"ada","method":"POST","path":"/v1/queues/mail/pause","status":200}"#;
    entries.insert(0, entry(0, old));
    assert_eq!(verify(&entries, &head, 3), None);
    entries.insert(2, entry(9, old));
    assert_eq!(verify(&entries, &head, 3), Some(Break::Unchained { number: 9 }));
}

#[test]
fn a_changed_removed_moved_or_cut_entry_is_named() {
    let (entries, head) = log(6);
    let mut changed = entries.clone();
    let text = std::str::from_utf8(changed[2].value.as_bytes()).unwrap().replace("ada", "eve");
    changed[2] = entry(3, &text);
    assert_eq!(verify(&changed, &head, 7), Some(Break::Changed { sequence: 3 }));
    let mut removed = entries.clone();
    removed.remove(3);
    assert_eq!(verify(&removed, &head, 7), Some(Break::Missing { from: 4, to: 4 }));
    let mut moved = entries.clone();
    moved.swap(3, 4);
    assert_eq!(verify(&moved, &head, 7), Some(Break::Reordered { sequence: 4 }));
    let mut twice = entries.clone();
    twice.insert(4, entries[3].clone());
    assert_eq!(verify(&twice, &head, 7), Some(Break::Reordered { sequence: 4 }));
    assert_eq!(verify(&entries[..4], &head, 7), Some(Break::CutOff { from: 5, to: 6 }));
}

#[test]
fn a_replaced_entry_with_a_fitting_hash_is_named() {
    let (entries, head) = log(4);
    let forged = |place: usize| {
        let link = link(entries[place - 1].value.as_bytes()).unwrap();
        let before = Head { sequence: link.sequence, hash: link.hash, kept_until: Timestamp::EPOCH };
        let times = (Timestamp::EPOCH, Timestamp::EPOCH);
        let (text, _) = seal(&act("/v1/tokens"), times, Some(&before)).unwrap();
        let mut entries = entries.clone();
        entries[place] = entry(place as u64 + 1, &text);
        entries
    };
    assert_eq!(verify(&forged(2), &head, 5), Some(Break::Replaced { sequence: 4 }));
    assert_eq!(verify(&forged(3), &head, 5), Some(Break::OtherEnd { sequence: 4 }));
    let mut chain = Chain { head: None, ..Chain::default() };
    entries.iter().try_for_each(|entry| chain.follow(entry)).unwrap();
    assert_eq!(chain.end(None), Err(Break::NoHead));
}
