//! One field: a list of values, ranges and steps.

use super::super::BadSchedule;
use super::super::wall::digits;
use super::unit::{Unit, WEEKDAY, bits};
use super::{Dialect, unit};

/// A field as it is written, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written<'a> {
    pub text: &'a str,
    /// Bytes before it.
    pub offset: usize,
    pub unit: Unit,
    pub dialect: Dialect,
}

/// What a field matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Values {
    pub bits: u64,
    /// It is a list of single values: no `*`, no range and no step.
    pub points: bool,
}

impl<'a> Written<'a> {
    /// The elements of the list, each with its place.
    pub(super) fn elements(self) -> impl Iterator<Item = Self> {
        let mut offset = self.offset;
        self.text.split(',').map(move |text| {
            let element = Self { text, offset, ..self };
            offset += text.len() + 1;
            element
        })
    }

    pub(super) fn refuse(&self, wrong: impl std::fmt::Display) -> BadSchedule {
        BadSchedule::new(self.unit.name, wrong).at(self.offset)
    }

    /// A list of plain elements.
    pub(super) fn values(self) -> Result<Values, BadSchedule> {
        let mut all = Values { bits: 0, points: true };
        for element in self.elements() {
            let values = element.element()?;
            all = Values { bits: all.bits | values.bits, points: all.points && values.points };
        }
        Ok(all)
    }

    /// `*`, `5`, `5-9`, each with or without `/2`.
    pub(super) fn element(self) -> Result<Values, BadSchedule> {
        if self.text.is_empty() {
            return Err(self.refuse("empty element in a list").instead("remove the comma"));
        }
        let (base, step) = match self.text.split_once('/') {
            Some((base, step)) => (base, Some(step)),
            None => (self.text, None),
        };
        let written = Self { text: base, ..self };
        let (low, high) = written.range(step.is_some())?;
        let step = match step {
            Some(text) => Self { text, offset: self.offset + base.len() + 1, ..self }.step(low, high)?,
            None => 1,
        };
        let points = self.text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        Ok(Values { bits: sunday_once(bits(low, high, step), self.unit), points })
    }

    /// The ends of `*`, `a-b` or `a`. With a step behind it, `a` means `a` and all after it.
    fn range(self, with_step: bool) -> Result<(u8, u8), BadSchedule> {
        let unit = self.unit;
        if self.text == "*" {
            return Ok((unit.min, unit.max));
        }
        let Some((low, high)) = self.text.split_once('-') else {
            let value = self.value()?;
            return Ok((value, if with_step { unit.max.max(value) } else { value }));
        };
        let from = Self { text: low, ..self }.value()?;
        let end = Self { text: high, offset: self.offset + low.len() + 1, ..self };
        let mut to = end.value()?;
        // Monday to Sunday is what people write; where Sunday is 7 as well, it is what they mean.
        if unit == WEEKDAY && self.dialect == Dialect::Unix && to == 0 && from > 0 && high != "0" {
            to = 7;
        }
        if from > to {
            let wrong = format_args!("`{}` runs backwards, and a range cannot wrap around", self.text);
            return Err(self.refuse(wrong).instead(self.forwards(from, to)));
        }
        Ok((from, to))
    }

    /// What somebody who wrote a range backwards may have meant.
    fn forwards(&self, from: u8, to: u8) -> String {
        let named = self.text.starts_with(|c: char| c.is_ascii_alphabetic());
        let show = |value| self.unit.show(value, named);
        let range = |low, high| if low == high { show(low) } else { format!("{}-{}", show(low), show(high)) };
        let last = self.unit.max.max(from);
        let past = format!("`{},{}`", range(from, last), range(self.unit.min, to));
        if named { format!("write {past}") } else { format!("write `{}`, or {past}", range(to, from)) }
    }

    fn step(self, low: u8, high: u8) -> Result<u8, BadSchedule> {
        let Some(step) = digits(self.text) else {
            return Err(self.refuse(format_args!("{:?} is not a step", self.shown())).instead("a number"));
        };
        if step == 0 {
            return Err(self
                .refuse("a step of 0 never advances")
                .instead("write 1 or more, or omit the step"));
        }
        let room = high - low;
        if step > 1 && step > u32::from(room) {
            let wrong = format_args!("a step of {step} is longer than the range, so only {low} would match");
            let advice = match (self.unit, step) {
                (unit::MINUTE | unit::SECOND, 60..) => {
                    format!("write `{low}`, or `every {step}{}` for a fixed interval", &self.unit.name[..1])
                }
                _ => format!("write `{low}` if that is intended"),
            };
            return Err(self.refuse(wrong).instead(advice));
        }
        Ok(u8::try_from(step).unwrap_or(1))
    }

    /// A number or a name.
    pub(super) fn value(self) -> Result<u8, BadSchedule> {
        let (unit, last) = (self.unit, self.unit.last(self.dialect));
        if self.text.is_empty() {
            return Err(self.refuse("missing value"));
        }
        let Some(number) = digits(self.text) else {
            return self.name();
        };
        match u8::try_from(number) {
            Ok(value) if (unit.min..=last).contains(&value) => Ok(value),
            _ => {
                let wrong = self.refuse(format_args!("{number} is out of range"));
                Err(match (unit == WEEKDAY, number) {
                    (true, 7) => wrong.instead("write 0 for Sunday, or use the unix dialect for 7"),
                    _ => wrong.instead(unit.allowed(self.dialect)),
                })
            }
        }
    }

    /// A name: three letters or more of the English one.
    fn name(self) -> Result<u8, BadSchedule> {
        let (text, names) = (self.text.to_ascii_lowercase(), self.unit.names);
        let begins = |long: &str, short: &str| long.to_ascii_lowercase().starts_with(short);
        let fits: Vec<(u8, &str)> =
            (self.unit.min..).zip(names.iter().copied()).filter(|(_, name)| begins(name, &text)).collect();
        match fits.as_slice() {
            [(value, _)] if text.len() >= 3 => return Ok(*value),
            [] => {}
            fits => {
                let wrong = self.refuse(format_args!("`{}` is too short for a name", self.text));
                let names: Vec<&str> = fits.iter().map(|(_, name)| &name[..3]).collect();
                return Err(wrong.instead(format_args!("write {}", names.join(" or "))));
            }
        }
        let wrong = self.refuse(format_args!("{:?} is not a valid {}", self.shown(), self.unit.name));
        if self.has_special_form() {
            return Err(match (self.dialect, self.unit) {
                (Dialect::Ncrontab, _) => {
                    wrong.instead("use the unix dialect for `?`, `L`, `W` and `#` in days and weekdays")
                }
                (Dialect::Unix, unit::DAY) => wrong.instead("write `L`, `L-3`, `LW` or `15W`, or `?` alone"),
                (Dialect::Unix, WEEKDAY) => wrong.instead("write `5L` or `FRI#2`, or `?` alone"),
                (Dialect::Unix, _) => wrong.instead("use `?`, `L`, `W` and `#` in days and weekdays only"),
            });
        }
        if let Some(name) = names.iter().find(|name| text.get(..3).is_some_and(|three| begins(name, three))) {
            return Err(wrong.instead(format_args!("write {name} or {}", &name[..3])));
        }
        Err(match self.text {
            "H" => wrong.instead("set a jitter on the schedule to spread its runs"),
            _ => wrong.instead(self.unit.allowed(self.dialect)),
        })
    }

    /// Is it like `L`, `15W`, `FRIL`, `MON#1` or `?`, written right or wrong?
    fn has_special_form(&self) -> bool {
        let upper = self.text.to_ascii_uppercase();
        let plain = upper.trim_start_matches(['L', 'W']).trim_end_matches(['L', 'W']);
        let is_weekday = |name: &str| {
            name.len() >= 3 && WEEKDAY.names.iter().any(|long| long.to_ascii_uppercase().starts_with(name))
        };
        upper.contains(['#', '?'])
            || (matches!(self.unit, unit::DAY | WEEKDAY)
                && plain.len() < upper.len()
                && (plain.is_empty()
                    || digits(plain.trim_start_matches('-')).is_some()
                    || plain.split('-').all(is_weekday)))
    }

    fn shown(&self) -> String {
        crate::invalid::cut(self.text, 32)
    }
}

/// Sunday is bit 0, however it was written.
fn sunday_once(bits: u64, unit: Unit) -> u64 {
    if unit == WEEKDAY && bits & 1 << 7 != 0 { bits & !(1 << 7) | 1 } else { bits }
}
