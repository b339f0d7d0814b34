//! A schedule in plain words, for people who do not read cron.

mod cron;
mod rrule;
mod words;

use std::time::Duration;

use super::{Rule, Schedule, Times};
use crate::Timestamp;
use words::{and, length, plural, weekdays_of};

impl Schedule {
    /// What it does, in plain words: "every weekday at 09:30, Europe/Berlin".
    ///
    /// ```
    /// use tenure_core::schedule::Schedule;
    ///
    /// let say = |text: &str| Schedule::parse(text).map(|schedule| schedule.describe());
    /// assert_eq!(say("30 9 * * MON-FRI in Europe/Berlin")?, "every weekday at 09:30, Europe/Berlin");
    /// assert_eq!(say("0 */5 * * * *")?, "every 5 minutes, UTC");
    /// assert_eq!(say("unix 0 18 LW * *")?, "on the last working day of every month at 18:00, UTC");
    /// # Ok::<(), tenure_core::schedule::BadSchedule>(())
    /// ```
    #[must_use]
    pub fn describe(&self) -> String {
        let rules: Vec<String> = self.rule.parts().iter().map(describe_rule).collect();
        let mut parts = vec![rules.join("; ")];
        if self.rule.speaks_of_local_time() || !self.except.is_empty() {
            parts.push(self.zone.to_string());
        }
        if let Rule::Rrule(rule) = &self.rule {
            parts.extend(rule.describe_end());
            parts.extend(rule.describe_exceptions());
        }
        self.describe_bounds(&mut parts);
        parts.join(", ")
    }

    /// What is allowed and may not be meant, each as a sentence.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let idle = self.zone_is_idle().then(|| {
            format!("the time zone {} has no effect: this schedule does not depend on local time", self.zone)
        });
        let of_cron = self.rule.parts().iter().filter_map(|rule| {
            let Rule::Cron(cron) = rule else { return None };
            Some(cron.warnings())
        });
        of_cron.flatten().chain(idle).collect()
    }

    /// Whether it has a zone and neither the rule nor the days that are left out ask for one.
    fn zone_is_idle(&self) -> bool {
        !self.rule.speaks_of_local_time() && self.except.is_empty() && self.zone != super::Zone::utc()
    }

    fn describe_bounds(&self, parts: &mut Vec<String>) {
        if let Some(start) = self.bounds.starts_at {
            parts.push(format!("from {}", instant(start)));
        }
        if let Some(end) = self.bounds.ends_at {
            parts.push(format!("until {}", instant(end)));
        }
        match self.bounds.most_runs {
            Some(1) => parts.push("once".to_owned()),
            Some(most) => parts.push(format!("at most {most} times")),
            None => {}
        }
        let left_out: Vec<String> = self.except.clone().into();
        match left_out.len() {
            0 => {}
            1..=4 => parts.push(format!("except on {}", and(&left_out))),
            number => parts.push(format!("except on {number} days")),
        }
        if let Some(jitter) = self.jitter.filter(|jitter| jitter.longest() > Duration::ZERO) {
            parts.push(format!("delayed by up to {}", plural(jitter.longest())));
        }
    }
}

fn describe_rule(rule: &Rule) -> String {
    match rule {
        Rule::Cron(cron) => cron.describe(),
        Rule::Times(times) => describe_times(times),
        Rule::Rrule(rule) => rule.describe(),
        Rule::Every(every) => match every.anchor() {
            Some(anchor) => format!("every {}, counted from {}", length(every.span()), instant(anchor)),
            None => format!("every {}", length(every.span())),
        },
        Rule::Delay(delay) => format!("{} after each run", plural(delay.span())),
        Rule::At(at) => match at.instants() {
            [once] => format!("once, at {}", instant(*once)),
            all => format!("{} times: {}", all.len(), shortened(all)),
        },
        Rule::AnyOf(rules) => rules.iter().map(describe_rule).collect::<Vec<_>>().join("; "),
    }
}

fn describe_times(times: &Times) -> String {
    let at = |list: &[super::wall::TimeOfDay]| and(&list.iter().map(ToString::to_string).collect::<Vec<_>>());
    if times.are_daily() {
        return format!("every day at {}", at(times.on(0)));
    }
    let lists = times.by_list().into_iter().map(|(days, list)| {
        let bits = days
            .iter()
            .filter_map(|day| super::times::weekday(day).ok())
            .fold(0, |bits, day| bits | 1 << day);
        format!("every {} at {}", weekdays_of(bits), at(list))
    });
    lists.collect::<Vec<_>>().join("; ")
}

/// `2026-03-29 02:30 UTC`, with seconds if there are any.
fn instant(at: Timestamp) -> String {
    let text = at.to_string();
    let (date, time) = text.split_once('T').unwrap_or((&text, ""));
    let time = time.trim_end_matches('Z').trim_end_matches(".000000").trim_end_matches(":00");
    // Midnight loses its minutes by the same trimming.
    let time = if time.len() == 2 { format!("{time}:00") } else { time.to_owned() };
    format!("{date} {time} UTC")
}

fn shortened(all: &[Timestamp]) -> String {
    let shown: Vec<String> = all.iter().take(3).map(|at| instant(*at)).collect();
    if all.len() > 3 { format!("{}, and more", shown.join(", ")) } else { and(&shown) }
}
