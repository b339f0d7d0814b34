//! The calendar.

use tenure::schedule::ClockChange;
use tenure::when::{cron, every};
use tenure::{CalendarAsk, Group, Overlap, Slots, TimerDraft, Timestamp};

use crate::timers::seen::{DAY, HOUR, MINUTE, Report, SECOND, begin, second, seconds_of, stores};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn timer(name: &str, when: impl Into<tenure::when::When>) -> TimerDraft {
    TimerDraft::new(name, when, &Report::default()).overlap(Overlap::QueueAll)
}

#[tokio::test]
async fn the_calendar_shows_what_was_and_what_will_be() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        timers.set(timer("a-six-hourly", every(HOUR * 6))).await.unwrap();
        timers.set(timer("b-daily", "daily 18:00")).await.unwrap();
        timers.set(timer("c-paused", every(HOUR))).await.unwrap();
        timers.pause("c-paused", "").await.unwrap();
        rig.clock.advance(HOUR * 13);
        rig.store.fire(10).await.unwrap();
        let day = timers.calendar(CalendarAsk::between(begin(), begin().after(DAY))).await.unwrap();
        assert_eq!(day.now, rig.clock_now());
        let coming: Vec<(&str, Vec<u64>)> = day
            .coming
            .iter()
            .map(|coming| {
                let Slots::Each(slots) = &coming.slots else { panic!("{coming:?}") };
                (coming.timer.as_str(), slots.iter().map(|slot| seconds_of(slot.at) / 3_600).collect())
            })
            .collect();
        assert_eq!(coming, [("a-six-hourly", vec![18]), ("b-daily", vec![18]), ("c-paused", vec![])]);
        assert_eq!(day.coming[1].schedule, "daily 18:00");
        assert!(day.coming[2].paused.is_some());
        let past: Vec<(u64, u64)> = day
            .past
            .iter()
            .map(|past| (seconds_of(past.record.first), seconds_of(past.record.last)))
            .collect();
        assert_eq!(past, [(21_600, 21_600), (43_200, 43_200)]);
        let empty = timers.calendar(CalendarAsk::between(begin(), begin())).await.unwrap_err();
        assert!(empty.to_string().starts_with("to: "), "{empty}");
    }
}

#[tokio::test]
async fn a_change_of_the_clocks_is_marked_before_and_after() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        rig.clock.advance(at("2026-03-28T12:00:00Z").since(begin()));
        timers.set(timer("nightly", cron("0 30 2 * * *").zone("Europe/Berlin"))).await.unwrap();
        let ask = || CalendarAsk::between(at("2026-03-28T00:00:00Z"), at("2026-03-31T00:00:00Z"));
        let before = timers.calendar(ask()).await.unwrap();
        let Slots::Each(slots) = &before.coming[0].slots else { panic!() };
        assert_eq!(
            slots.iter().map(|slot| (slot.at, slot.change)).collect::<Vec<_>>(),
            [(at("2026-03-29T01:30:00Z"), Some(ClockChange::Shifted)), (at("2026-03-30T00:30:00Z"), None)]
        );
        assert_eq!(timers.next("nightly", 1).await.unwrap()[0].change, Some(ClockChange::Shifted));
        rig.clock.advance(DAY);
        rig.store.fire(10).await.unwrap();
        let after = timers.calendar(ask()).await.unwrap();
        assert_eq!(after.past[0].change, Some(ClockChange::Shifted));
        assert_eq!(after.coming.len(), 1);
    }
}

#[tokio::test]
async fn the_changes_of_the_clocks_are_told_whether_a_slot_meets_them_or_not() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        timers.set(timer("a-noon", cron("0 0 12 * * *").zone("Europe/Berlin"))).await.unwrap();
        timers.set(timer("b-midnight", cron("0 0 0 * * *").zone("Europe/Berlin"))).await.unwrap();
        timers.set(timer("c-hourly", every(HOUR))).await.unwrap();
        let year = CalendarAsk::between(begin(), at("2027-01-01T00:00:00Z"));
        let changes = timers.calendar(year).await.unwrap().changes;
        let told: Vec<(&str, Timestamp, i64)> = changes
            .iter()
            .map(|told| (told.zone.as_str(), told.change.at, told.change.after - told.change.before))
            .collect();
        let (march, october) = (at("2026-03-29T01:00:00Z"), at("2026-10-25T01:00:00Z"));
        assert_eq!(told, [("Europe/Berlin", march, 3_600), ("Europe/Berlin", october, -3_600)]);
        let before = timers.calendar(CalendarAsk::between(begin(), march)).await.unwrap();
        assert_eq!(before.changes, [], "the end is not in the range");
        let after = timers.calendar(CalendarAsk::between(march, october)).await.unwrap();
        assert_eq!(after.changes.len(), 1);
    }
}

#[tokio::test]
async fn a_year_long_pause_is_seen_in_each_month_of_it() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        timers.set(timer("hourly", every(HOUR))).await.unwrap();
        timers.set(timer("other", every(HOUR))).await.unwrap();
        timers.pause("hourly", "").await.unwrap();
        // What somebody asks for meanwhile does not hide it.
        for _ in 0..12 {
            rig.clock.advance(DAY * 30);
            timers.trigger("hourly").await.unwrap();
        }
        timers.resume("hourly").await.unwrap();
        let month = |number: u32| {
            CalendarAsk::between(begin().after(DAY * 30 * number), begin().after(DAY * 30 * (number + 1)))
        };
        for number in 0..11 {
            let told = timers.calendar(month(number)).await.unwrap().beyond;
            assert_eq!(told.len(), 1, "in month {number}");
            let record = &told[0].record;
            assert_eq!((record.timer.as_str(), record.first, record.count), ("hourly", second(3_600), None));
            assert_eq!(record.last, begin().after(DAY * 360));
        }
        let last =
            timers.calendar(CalendarAsk { to: rig.clock_now().after(SECOND), ..month(11) }).await.unwrap();
        assert_eq!(last.beyond, []);
        assert!(last.past.iter().any(|past| past.record.first == second(3_600)));
    }
}

#[tokio::test]
async fn a_range_far_ahead_of_a_timer_with_many_runs_to_come_is_told_and_not_left_empty() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        timers.set(timer("seconds", every(SECOND).times(15_000))).await.unwrap();
        let hours = |from: u64, to: u64| CalendarAsk::between(second(from * 3_600), second(to * 3_600));
        let Slots::Groups(groups) = &timers.calendar(hours(4, 6)).await.unwrap().coming[0].slots else {
            panic!()
        };
        assert_eq!(groups.iter().map(|group| group.count).collect::<Vec<_>>(), [Some(601)]);
        // More than one page looks at: it is not known, and that is said.
        timers.set(timer("seconds", every(SECOND).times(100_000))).await.unwrap();
        let Slots::Groups(groups) = &timers.calendar(hours(24, 25)).await.unwrap().coming[0].slots else {
            panic!()
        };
        assert_eq!(groups.iter().map(|group| group.count).collect::<Vec<_>>(), [None]);
        assert_eq!(timers.next("seconds", usize::MAX).await.unwrap().len(), 10_000);
    }
}

#[tokio::test]
async fn dense_schedules_are_told_in_groups_and_cost_a_bounded_walk() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        timers.set(timer("each-minute", cron("0 * * * * *"))).await.unwrap();
        timers.set(timer("each-second", cron("* * * * * *"))).await.unwrap();
        timers.set(timer("some", every(MINUTE).times(150))).await.unwrap();
        let day = timers.calendar(CalendarAsk::between(begin(), begin().after(DAY))).await.unwrap();
        let groups = |index: usize| -> Vec<Group> {
            let Slots::Groups(groups) = &day.coming[index].slots else { panic!("{:?}", day.coming[index]) };
            groups.clone()
        };
        let minutes = groups(0);
        assert_eq!((minutes.len(), minutes[0].count, minutes[1].count), (24, Some(59), Some(60)));
        assert_eq!((minutes[1].from, minutes[1].to), (second(3_600), second(7_200)));
        let counted: u64 = minutes.iter().filter_map(|group| group.count).sum();
        assert_eq!(counted, 1_439);
        assert!(groups(1).iter().all(|group| group.count.is_none()), "too many to be counted");
        let some: Vec<Option<u64>> = groups(2).iter().map(|group| group.count).collect();
        assert_eq!(some, [Some(59), Some(60), Some(31)], "and then it has brought enough");

        let years = timers.calendar(CalendarAsk::between(begin(), at("2126-01-01T00:00:00Z"))).await.unwrap();
        for coming in &years.coming[..2] {
            let Slots::Groups(groups) = &coming.slots else { panic!("{coming:?}") };
            assert!((2..=64).contains(&groups.len()), "{}", groups.len());
        }
    }
}

#[tokio::test]
async fn the_calendar_is_read_page_by_page() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        for number in 0..5 {
            timers.set(timer(&format!("timer-{number}"), every(SECOND * 10))).await.unwrap();
        }
        for _ in 0..6 {
            rig.clock.advance(SECOND * 10);
            rig.store.fire(10).await.unwrap();
        }
        let (mut names, mut slots, mut pages) = (Vec::new(), 0, 0);
        let first = CalendarAsk { at_most: (2, 7), ..CalendarAsk::between(begin(), second(120)) };
        let mut ask = Some(first.clone());
        while let Some(page) = ask.take() {
            let page = timers.calendar(page).await.unwrap();
            pages += 1;
            names.extend(page.coming.iter().map(|coming| coming.timer.to_string()));
            if page.next_timer.is_some() {
                ask = Some(CalendarAsk { behind_timer: page.next_timer, ..first.clone() });
            }
        }
        assert_eq!((names.len(), pages), (5, 3));
        let mut ask = Some(first.clone());
        while let Some(page) = ask.take() {
            let page = timers.calendar(page).await.unwrap();
            assert!(page.past.len() <= 7);
            slots += page.past.len();
            if page.next_record.is_some() {
                ask = Some(CalendarAsk { behind_record: page.next_record, ..first.clone() });
            }
        }
        assert_eq!(slots, 30);
    }
}

impl crate::common::Rig {
    fn clock_now(&self) -> Timestamp {
        tenure::Clock::now(&self.clock)
    }
}

#[tokio::test]
async fn the_hours_of_a_calendar_tell_what_was_and_what_will_be() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        timers.set(timer("a-often", cron("0 */5 * * * *"))).await.unwrap();
        timers.set(timer("b-daily", "daily 18:30")).await.unwrap();
        timers.set(timer("c-paused", every(HOUR))).await.unwrap();
        timers.set(timer("d-few", every(HOUR).times(3))).await.unwrap();
        timers.set(timer("e-second", every(SECOND))).await.unwrap();
        timers.pause("c-paused", "").await.unwrap();
        timers.pause("e-second", "").await.unwrap();
        for step in [MINUTE * 5; 14].into_iter().chain([MINUTE * 2]) {
            rig.clock.advance(step);
            rig.store.fire(100).await.unwrap();
        }
        timers.resume("e-second").await.unwrap();
        let day = || CalendarAsk::between(begin(), begin().after(DAY));
        let told = timers.calendar_hours(day()).await.unwrap();
        let of = |name: &str| told.timers.iter().find(|(known, _)| known.as_str() == name).unwrap().1;
        let often = of("a-often");
        assert_eq!((often.coming[0], often.coming[1], often.coming[23]), (Some(0), Some(9), Some(12)));
        // Midnight is not after it was set, and two of the hour that is now have passed.
        assert_eq!((often.past.clone(), often.ran), ([(0, 11), (1, 3)].into(), 14));
        assert_eq!((often.next, often.schedule.as_str()), (Some(second(4_500)), "0 */5 * * * *"));
        let daily = of("b-daily");
        assert_eq!((daily.coming.iter().flatten().sum::<u64>(), daily.coming[18]), (1, Some(1)));
        assert!(of("c-paused").coming.is_empty());
        assert_eq!(of("d-few").coming[..5], [Some(0), Some(0), Some(1), Some(1), Some(0)]);
        assert_eq!(of("e-second").coming[23], Some(3_600));
        assert_eq!((told.cut_before, told.next_timer.as_ref()), (None, None));
        // Page by page what is on record is told once.
        let first = CalendarAsk { at_most: (2, 1), ..day() };
        let first = timers.calendar_hours(first).await.unwrap();
        let rest = CalendarAsk { behind_timer: first.next_timer.clone(), ..day() };
        let rest = timers.calendar_hours(rest).await.unwrap();
        assert!(first.timers.values().any(|timer| timer.ran > 0));
        assert!(rest.timers.values().all(|timer| timer.past.is_empty()) && rest.timers.len() == 3);
        let long = CalendarAsk::between(begin(), begin().after(DAY * 43));
        let wrong = timers.calendar_hours(long).await.unwrap_err().to_string();
        assert!(wrong.starts_with("to: "), "{wrong}");
    }
}

#[tokio::test]
async fn a_timer_whose_slots_are_too_many_to_be_visited_takes_nothing_from_the_one_behind_it() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        rig.clock.advance(at("2026-03-20T12:00:00Z").since(begin()));
        for name in ["a-second", "b-second"] {
            timers.set(timer(name, cron("* * * * * *").zone("Europe/Berlin"))).await.unwrap();
        }
        timers.set(timer("c-few", every(SECOND).times(1_000_000))).await.unwrap();
        timers.set(timer("d-daily", "daily 18:30 in Europe/Berlin")).await.unwrap();
        let ask = CalendarAsk::between(at("2026-03-25T00:00:00Z"), at("2026-04-05T00:00:00Z"));
        let told = timers.calendar_hours(ask).await.unwrap();
        let of = |name: &str| told.timers.iter().find(|(known, _)| known.as_str() == name).unwrap().1;
        for name in ["a-second", "b-second"] {
            assert!(of(name).coming.contains(&None) && of(name).coming[0] == Some(3_600), "{name}");
        }
        assert!(of("c-few").coming.contains(&None));
        let days = of("d-daily").coming.iter().map(|hour| hour.unwrap()).sum::<u64>();
        assert_eq!(days, 11);
    }
}

#[tokio::test]
async fn slots_that_were_decided_together_count_in_the_hours_in_which_they_lie() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        timers.set(timer("a-often", every(MINUTE * 10))).await.unwrap();
        rig.clock.advance(HOUR * 10 + MINUTE * 5);
        rig.store.fire(100).await.unwrap();
        let from = begin().after(HOUR * 6);
        let told = timers.calendar_hours(CalendarAsk::between(from, from.after(DAY))).await.unwrap();
        let often = told.timers.values().next().unwrap();
        let late = timers.last_slots("a-often", 10).await.unwrap();
        assert!(late.iter().any(|record| record.count > Some(50)), "{late:?}");
        assert_eq!(often.past, [(0, 6), (1, 6), (2, 6), (3, 6), (4, 1)].into());
    }
}

#[tokio::test]
async fn what_is_told_of_the_past_by_the_hour_is_bounded_and_says_where_it_ends() {
    for rig in stores() {
        let timers = rig.tenure.timers();
        for number in 0..120 {
            timers.set(timer(&format!("minutely-{number}"), every(MINUTE))).await.unwrap();
        }
        let to = begin().after(DAY * 42);
        rig.clock.advance(DAY * 42 - HOUR);
        rig.store.fire(1_000).await.unwrap();
        let told = timers.calendar_hours(CalendarAsk::between(begin(), to)).await.unwrap();
        let hours = told.timers.values().map(|timer| timer.past.len()).sum::<usize>();
        assert!((90_000..=100_000).contains(&hours), "{hours}");
        assert!(told.cut_before > Some(begin().after(DAY * 41)) && told.cut_before < Some(to));
        let few = CalendarAsk { prefix: "minutely-11".to_owned(), ..CalendarAsk::between(begin(), to) };
        let told = timers.calendar_hours(few).await.unwrap();
        assert_eq!((told.timers.len(), told.cut_before), (11, None));
    }
}
