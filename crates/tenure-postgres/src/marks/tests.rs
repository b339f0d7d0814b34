//! What is passed, and what is not.

use super::*;

fn at(millis: u64) -> Moment {
    Moment::from_start(Duration::from_millis(millis))
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const FIRST: Place = (0, 0, 15_000_000, 7);
const LAST: Place = (0, 0, 16_000_000, 8);
const LATE: Place = (0, 0, 1_000_000, 9);

/// A look at one lane that claimed what lies between these places.
fn looked(marks: &mut Marks, from: Place, took: u64, places: (Place, Place), now: u64) {
    marks.looked(&[(1, from)], millis(took), &BTreeMap::from([(1, places)]), at(now));
}

fn begin(marks: &mut Marks, now: u64) -> Place {
    marks.begin(&[1], at(now))[0]
}

/// A lane whose second look took so long.
fn slow(took: u64) -> Marks {
    let mut marks = Marks::default();
    looked(&mut marks, START, 1, (FIRST, LAST), 0);
    looked(&mut marks, START, took, (FIRST, LAST), 0);
    marks
}

#[test]
fn a_line_that_is_read_fast_is_read_whole() {
    let mut marks = Marks::default();
    for turn in 0..10 {
        assert_eq!(begin(&mut marks, turn), START);
        looked(&mut marks, START, 1, (FIRST, LAST), turn);
    }
}

#[test]
fn a_line_that_is_read_slowly_is_read_behind_its_mark_for_a_while() {
    let mut marks = slow(21);
    let begun = begin(&mut marks, 1);
    assert!(begun > START && begun < LAST, "{begun:?}");
    assert_eq!(marks.begin(&[2], at(1)), [START], "another lane");
    assert!(begin(&mut marks, 3_999) > START && marks.whole_in(&[1], at(3_999)) == Some(millis(1)));
    assert!(marks.take_asked().is_empty());
    assert_eq!(begin(&mut marks, 4_000), begun, "200 times 20 milliseconds later somebody else looks");
    assert_eq!(begin(&mut marks, 4_001), begun);
    assert_eq!(marks.take_asked(), [(vec![1], vec![begun])]);
    assert!(!marks.looked_aside(&[1], millis(23), &[], at(4_023)));
    assert_eq!(begin(&mut marks, 4_024), begun);
    assert!(marks.take_asked().is_empty() && marks.whole_in(&[1], at(4_024)).is_some());
}

#[test]
fn what_a_look_aside_has_found_is_not_passed_by_a_claim_that_was_under_way() {
    let mut marks = slow(100);
    let mark = begin(&mut marks, 5_000);
    assert!(marks.looked_aside(&[1], millis(100), &[(1, LATE)], at(5_100)));
    looked(&mut marks, mark, 1, (FIRST, LAST), 5_101);
    let put_back = begin(&mut marks, 5_102);
    assert!(put_back < LATE);
    // Who takes it passes much, which is not usual.
    looked(&mut marks, put_back, 90, (LATE, LAST), 5_190);
    assert!(begin(&mut marks, 5_191) > LATE);
    begin(&mut marks, 10_100);
    assert!(!marks.looked_aside(&[1], millis(100), &[], at(10_200)));
    assert!(marks.whole_in(&[1], at(10_201)).is_some(), "and a look at the whole is still a slow one");
}

#[test]
fn what_a_look_aside_has_found_is_claimed_next() {
    let mut marks = slow(100);
    let mark = begin(&mut marks, 5_000);
    assert_eq!(marks.take_asked(), [(vec![1], vec![mark])]);
    assert!(marks.looked_aside(&[1], millis(100), &[(1, LATE)], at(5_100)));
    assert!(begin(&mut marks, 5_101) < LATE);
}

#[test]
fn a_line_at_which_nobody_looks_aside_is_looked_at_by_a_claim_in_the_end() {
    let mut marks = slow(100);
    assert!(begin(&mut marks, 60_000) > START, "nobody was asked before");
    assert_eq!(marks.take_asked().len(), 1);
    let soon = marks.whole_in(&[1], at(60_001));
    assert_eq!(soon, Some(millis(4_999)), "so long it may take until something is found");
    assert!(begin(&mut marks, 64_999) > START);
    assert_eq!(begin(&mut marks, 65_000), START);
    marks.looked(&[(1, START)], Duration::ZERO, &BTreeMap::new(), at(65_000));
    assert!(begin(&mut marks, 65_001) > START, "it has found nothing");
}

#[test]
fn a_line_that_is_fast_again_is_read_whole() {
    let mut marks = slow(100);
    begin(&mut marks, 5_000);
    marks.looked_aside(&[1], millis(1), &[], at(5_001));
    assert_eq!(begin(&mut marks, 5_002), START);
}

#[test]
fn nothing_that_came_in_before_the_mark_waits_for_long() {
    let mut marks = slow(5_000);
    assert!(marks.take_asked().is_empty() && begin(&mut marks, 4_999) > START);
    assert!(begin(&mut marks, 5_000) > START && marks.take_asked().len() == 1);
    marks.looked_aside(&[1], millis(5_000), &[], at(5_000));
    marks.joined(1, 0, None);
    let mark = begin(&mut marks, 5_001);
    assert!(mark > START);
    marks.joined(1, 0, Some(1));
    assert_eq!(begin(&mut marks, 5_001), START);
    // A claim that was under way when it came has not looked there.
    looked(&mut marks, mark, 1, (FIRST, LAST), 5_002);
    assert_eq!(begin(&mut marks, 5_003), START);
}

#[test]
fn a_line_of_several_priorities_or_rounds_has_no_mark() {
    for last in [(1, 0, 1, 2), (0, 4, 1, 2)] {
        let mut marks = slow(99);
        looked(&mut marks, START, 99, ((0, 0, 1, 1), last), 1);
        assert_eq!(begin(&mut marks, 2), START);
        assert!(marks.whole_in(&[1], at(2)).is_none());
    }
}

const BOTH: [i32; 2] = [1, 2];

/// A look at two lanes that claimed something of the first, up to this place.
fn looked_at_both(marks: &mut Marks, from: &[Place], took: u64, last: Place, now: u64) {
    let of: Vec<(i32, Place)> = BOTH.into_iter().zip(from.iter().copied()).collect();
    marks.looked(&of, millis(took), &BTreeMap::from([(1, (last, last))]), at(now));
}

#[test]
fn a_line_of_which_nothing_was_claimed_beside_another_is_passed_about_as_far() {
    let mut marks = Marks::default();
    looked_at_both(&mut marks, &[START; 2], 99, LAST, 0);
    let begun = marks.begin(&BOTH, at(1));
    assert!(begun[1] > START && begun[1] < begun[0] && begun[0] < LAST, "{begun:?}");
    assert_eq!(marks.take_asked(), [(BOTH.to_vec(), begun.clone())]);
    let further = (0, 0, 27_000_000, 19);
    looked_at_both(&mut marks, &begun, 1, further, 2);
    let moved = marks.begin(&BOTH, at(3));
    assert!(moved[1] > begun[1] && moved[1] < moved[0] && moved[0] < further);
    looked_at_both(&mut marks, &moved, 1, (5, 0, 38_000_000, 20), 4);
    assert_eq!(marks.begin(&BOTH, at(5))[1], moved[1], "what joins it in its own priority is seen");
    looked_at_both(&mut marks, &moved, 1, LAST, 6);
    assert_eq!(marks.begin(&BOTH, at(7))[1], moved[1]);
}

#[test]
fn a_line_of_which_nothing_is_known_is_not_passed_as_far_as_jobs_of_less_priority() {
    let mut marks = Marks::default();
    looked_at_both(&mut marks, &[START; 2], 99, (50, 0, 16_000_000, 8), 0);
    let begun = marks.begin(&BOTH, at(1));
    assert!(begun[0] > START && begun[1] == START, "{begun:?}");
}

#[test]
fn what_is_found_in_one_of_several_lines_is_not_passed_until_it_was_looked_at() {
    let mut marks = Marks::default();
    looked_at_both(&mut marks, &[START; 2], 99, LAST, 0);
    let begun = marks.begin(&BOTH, at(1));
    assert!(marks.looked_aside(&BOTH, millis(99), &[(2, LATE)], at(2)));
    looked_at_both(&mut marks, &begun, 1, LAST, 3);
    let put_back = marks.begin(&BOTH, at(4));
    assert!(put_back[1] < LATE, "that look was under way");
    // Somebody else had it by then.
    looked_at_both(&mut marks, &put_back, 95, LAST, 100);
    assert!(marks.begin(&BOTH, at(101))[1] > LATE);
    marks.begin(&BOTH, at(5_100));
    assert!(!marks.looked_aside(&BOTH, millis(99), &[], at(5_200)));
    assert!(marks.begin(&BOTH, at(5_201))[0] > START, "to pass much once more was not usual");
}

#[test]
fn a_line_that_is_read_alone_is_fast_though_it_is_slow_beside_another() {
    let mut marks = Marks::default();
    looked_at_both(&mut marks, &[START; 2], 99, LAST, 0);
    assert!(marks.begin(&BOTH, at(1))[0] > START);
    assert_eq!(marks.begin(&[1], at(1)), [START]);
    // One that is forgotten is read whole beside others, which says nothing of how long it takes behind marks.
    marks.looked_aside(&BOTH, millis(99), &[], at(2));
    marks.joined(2, 0, Some(1));
    for turn in 10..50 {
        let begun = marks.begin(&BOTH, at(turn));
        assert!(begun[0] > START && begun[1] == START);
        marks.looked(
            &[(1, begun[0]), (2, START)],
            millis(90),
            &BTreeMap::from([(1, (LAST, LAST)), (2, (FIRST, LAST))]),
            at(turn),
        );
        marks.joined(2, 0, Some(1));
    }
    assert!(marks.whole_in(&BOTH, at(50)).is_some());
    marks.begin(&BOTH, at(5_100));
    marks.looked_aside(&BOTH, millis(20), &[], at(5_200));
    assert!(marks.whole_in(&BOTH, at(5_201)).is_some(), "20 ms are no usual look");
}
