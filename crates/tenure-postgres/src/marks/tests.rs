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
/// The server's time of each claim.
const TIME: i64 = 40_000_000;

/// Notes a look that took so many milliseconds, and claimed what lies between these places of each lane.
fn note(marks: &mut Marks, look: &Behind, took: u64, places: &[(i32, Place, Place)], now: u64) {
    let places = places.iter().map(|(lane, first, last)| (*lane, (*first, *last))).collect();
    marks.looked(look, &Claimed { took: millis(took), places, at: TIME }, at(now));
}

/// A claim of a lane that is looked at alone.
fn claim(marks: &mut Marks, took: u64, now: u64) {
    let look = marks.begin(vec![1], at(now));
    note(marks, &look, took, &[(1, FIRST, LAST)], now);
}

fn begin(marks: &mut Marks, now: u64) -> Place {
    marks.begin(vec![1], at(now)).from[0]
}

/// A lane whose second look took so long.
fn slow(took: u64) -> Marks {
    let mut marks = Marks::default();
    claim(&mut marks, 1, 0);
    claim(&mut marks, took, 0);
    marks
}

#[test]
fn a_line_that_is_read_fast_is_read_whole() {
    let mut marks = Marks::default();
    for turn in 0..10 {
        assert_eq!(begin(&mut marks, turn), START);
        claim(&mut marks, 1, turn);
    }
}

#[test]
fn a_line_that_is_read_slowly_is_read_behind_its_mark_for_a_while() {
    let mut marks = slow(21);
    let begun = begin(&mut marks, 1);
    assert!(begun > START && begun < LAST, "{begun:?}");
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
    let under_way = marks.begin(vec![1], at(5_000));
    assert!(marks.looked_aside(&[1], millis(100), &[(1, LATE)], at(5_100)));
    note(&mut marks, &under_way, 1, &[(1, FIRST, LAST)], 5_101);
    let put_back = marks.begin(vec![1], at(5_102));
    assert!(put_back.from[0] < LATE);
    note(&mut marks, &put_back, 90, &[(1, LATE, LAST)], 5_190);
    assert!(begin(&mut marks, 5_191) > LATE);
    begin(&mut marks, 10_100);
    marks.looked_aside(&[1], millis(20), &[], at(10_200));
    assert!(marks.whole_in(&[1], at(10_201)).is_some(), "to pass much once was not usual");
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
    let look = marks.begin(vec![1], at(65_000));
    assert_eq!(look.from, [START]);
    marks.looked_in_vain(&look, at(65_000));
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
    assert!(begin(&mut marks, 5_001) > START);
    marks.joined(1, 0, Some(1));
    assert_eq!(begin(&mut marks, 5_001), START);
}

/// Wherever it began: it has not seen what committed after that.
#[test]
fn a_claim_that_was_under_way_does_not_pass_what_has_joined_its_line_since() {
    let mut marks = slow(100);
    let behind = marks.begin(vec![1], at(1));
    marks.joined(1, 0, Some(1));
    note(&mut marks, &behind, 1, &[(1, FIRST, LAST)], 2);
    let whole = marks.begin(vec![1], at(3));
    assert_eq!(whole.from, [START]);
    note(&mut marks, &whole, 100, &[(1, FIRST, LAST)], 4);
    assert!(begin(&mut marks, 5) > START);
    begin(&mut marks, 5_100);
    marks.looked_aside(&[1], millis(1), &[], at(5_101));
    let whole = marks.begin(vec![1], at(5_102));
    assert_eq!(whole.from, [START]);
    marks.joined(1, 0, Some(1));
    note(&mut marks, &whole, 100, &[(1, FIRST, LAST)], 5_200);
    assert_eq!(begin(&mut marks, 5_201), START);
}

#[test]
fn a_line_of_several_priorities_or_rounds_has_no_mark() {
    for last in [(1, 0, 1, 2), (0, 4, 1, 2)] {
        let mut marks = slow(99);
        begin(&mut marks, 6_000);
        marks.looked_aside(&[1], millis(1), &[], at(6_001));
        let look = marks.begin(vec![1], at(6_002));
        note(&mut marks, &look, 99, &[(1, (0, 0, 1, 1), last)], 6_003);
        assert_eq!(begin(&mut marks, 6_004), START);
        assert!(marks.whole_in(&[1], at(6_004)).is_none());
    }
}

fn both(marks: &mut Marks, now: u64) -> Behind {
    marks.begin(vec![1, 2], at(now))
}

/// Two lanes, of which the first look claimed something of the first, up to this place, and took long.
fn beside(last: Place) -> Marks {
    let mut marks = Marks::default();
    let look = both(&mut marks, 0);
    note(&mut marks, &look, 99, &[(1, last, last)], 0);
    marks
}

#[test]
fn a_line_of_which_nothing_was_claimed_beside_another_is_passed_about_as_far() {
    let mut marks = beside(LAST);
    let begun = both(&mut marks, 1);
    assert!(begun.from[1] > START && begun.from[1] < begun.from[0] && begun.from[0] < LAST, "{begun:?}");
    assert_eq!(marks.take_asked(), [(vec![1, 2], begun.from.clone())]);
    let further = (0, 0, 27_000_000, 19);
    note(&mut marks, &begun, 1, &[(1, FIRST, further)], 2);
    let moved = both(&mut marks, 3);
    assert!(moved.from[1] > begun.from[1] && moved.from[1] < moved.from[0] && moved.from[0] < further);
    note(&mut marks, &moved, 1, &[(1, FIRST, LAST)], 4);
    assert_eq!(both(&mut marks, 5).from[1], moved.from[1], "it does not go back");
}

#[test]
fn a_line_is_not_passed_as_far_as_jobs_of_less_priority_and_may_be_passed_as_far_as_the_usual() {
    let mut marks = beside((50, 0, 16_000_000, 8));
    let begun = both(&mut marks, 1);
    assert_eq!((begun.from[0].0, begun.from[1]), (50, (0, 0, TIME - BESIDE_MICROS, 0)));
    // Nothing is known of what is less urgent than what was claimed.
    let mut marks = beside((-5, 0, 16_000_000, 8));
    let begun = both(&mut marks, 1);
    assert_eq!((begun.from[0].0, begun.from[1]), (-5, START));
    // An urgent one was the last of its line.
    note(&mut marks, &begun, 1, &[(2, (-5, 0, 1, 1), (-5, 0, 1, 1))], 2);
    let begun = both(&mut marks, 3);
    note(&mut marks, &begun, 1, &[(1, FIRST, LAST)], 4);
    assert_eq!(both(&mut marks, 5).from[1], (0, 0, LAST.2 - BESIDE_MICROS, 0));
}

#[test]
fn what_is_found_in_one_of_several_lines_is_not_passed_until_it_was_looked_at() {
    for found in [LATE, (-5, 0, 16_000_000, 3), (50, 0, 1, 3)] {
        let mut marks = beside((50, 0, 17_000_000, 8));
        let look = both(&mut marks, 1);
        note(&mut marks, &look, 1, &[(1, FIRST, LAST), (2, (50, 0, 1, 2), (50, 0, 2_000_000, 3))], 1);
        let under_way = both(&mut marks, 1);
        assert!(marks.looked_aside(&[1, 2], millis(99), &[(2, found)], at(2)), "{found:?}");
        note(&mut marks, &under_way, 1, &[(1, FIRST, LAST)], 3);
        let put_back = both(&mut marks, 4);
        assert!(put_back.from[1] < found && put_back.from[1] > START);
        // Somebody else had it by then, or it has to wait for others: it is passed, or else the line is read whole once.
        note(&mut marks, &put_back, 95, &[(1, FIRST, LAST)], 100);
        let next = both(&mut marks, 101);
        let took = if next.from[1] == START { 95 } else { 1 };
        note(&mut marks, &next, took, &[(1, FIRST, LAST)], 101);
        let passed = both(&mut marks, 102).from[1];
        assert!(passed == (0, 0, LAST.2 - BESIDE_MICROS, 0), "{passed:?}");
        both(&mut marks, 5_100);
        marks.looked_aside(&[1, 2], millis(20), &[], at(5_200));
        assert!(both(&mut marks, 5_201).from[0] > START, "to pass much once more was not usual");
    }
}

#[test]
fn what_a_line_that_is_read_whole_takes_beside_others_says_nothing_of_their_marks() {
    let mut marks = beside(LAST);
    assert!(both(&mut marks, 1).from[0] > START);
    marks.looked_aside(&[1, 2], millis(99), &[], at(2));
    for turn in 10..50 {
        marks.joined(2, 0, Some(1));
        let look = both(&mut marks, turn);
        assert!(look.from[0] > START && look.from[1] == START);
        note(&mut marks, &look, 90, &[(1, FIRST, LAST), (2, FIRST, LAST)], turn);
    }
    both(&mut marks, 5_100);
    marks.looked_aside(&[1, 2], millis(20), &[], at(5_200));
    assert!(marks.whole_in(&[1, 2], at(5_201)).is_some(), "20 ms are no usual look");
}

/// Here claims take long because they claim much: nobody's snapshot is old.
#[test]
fn lines_of_which_one_never_has_a_mark_are_read_whole_once_it_is_known_how_long_that_takes() {
    let mut marks = Marks::default();
    let mut behind = 0;
    for turn in 0..1_000 {
        let look = both(&mut marks, turn * 20);
        behind += u32::from(look.from[0] > START);
        for (lanes, _) in marks.take_asked() {
            marks.looked_aside(&lanes, millis(1), &[], at(turn * 20));
        }
        note(&mut marks, &look, 8, &[(1, FIRST, LAST), (2, (0, 0, 1, 1), (7, 0, 1, 2))], turn * 20);
    }
    assert!(behind < 100, "{behind}");
}

#[test]
fn lanes_that_are_looked_at_alone_and_beside_others_have_their_marks_in_common_and_not_their_pace() {
    let mut marks = beside(LAST);
    assert!(both(&mut marks, 1).from[0] > START);
    assert_eq!(begin(&mut marks, 1), START, "it is not known to take long");
    let further = (0, 0, 27_000_000, 19);
    let look = marks.begin(vec![1], at(2));
    note(&mut marks, &look, 1, &[(1, FIRST, further)], 2);
    assert!(both(&mut marks, 3).from[0] > LAST);
}

#[test]
fn what_is_kept_in_mind_is_bounded() {
    let mut marks = Marks::default();
    for set in 0..2 * i32::try_from(SETS).unwrap() {
        let look = marks.begin(vec![set, set + 1], at(1));
        note(&mut marks, &look, 99, &[(set, FIRST, LAST)], 1);
        assert!(marks.whole_in(&[set, set + 1], at(1)).is_some() && marks.paces.len() <= SETS);
    }
    for lane in 0..i32::try_from(LANES + 10).unwrap() {
        let look = marks.begin(vec![lane], at(1));
        note(&mut marks, &look, 99, &[(lane, FIRST, LAST)], 1);
    }
    assert_eq!(marks.of.len(), LANES);
}

#[test]
fn what_was_found_before_a_mark_is_looked_for_closely_by_all() {
    let mut marks = slow(21);
    for lanes in [vec![1], vec![1, 2]] {
        while marks.begin(lanes.clone(), at(1)).closely {}
    }
    assert!(marks.looked_aside(&[1], millis(1), &[(1, LATE)], at(2)));
    for lanes in [vec![1], vec![1, 2]] {
        assert!(marks.begin(lanes, at(3)).closely);
    }
}
