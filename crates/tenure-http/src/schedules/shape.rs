//! From the words of the wire to a schedule and its policies.

use tenure::schedule::{Bounds, Calendar, Jitter, Rule, Zone};
use tenure::{CatchUp, Invalid, OnEdit, Overlap, Policies, Schedule, Timer, limits, seconds};

use super::bad::told;
use crate::problem::Problem;
use crate::wire::{
    CatchUpName, OnEditName, OverlapName, PreviewAsk, RuleSpec, SchedulePatch, ScheduleSpec, instant,
};

/// All that makes a schedule.
pub(super) struct Shape {
    rule: Rule,
    zone: Zone,
    except: Calendar,
    bounds: Bounds,
    jitter: Option<Jitter>,
}

impl Shape {
    pub(super) fn of_spec(spec: &ScheduleSpec) -> Result<Self, Problem> {
        let (rule, zone) = ruled(&spec.spec, spec.time_zone.as_deref(), &Zone::utc())?;
        let bounds = Bounds {
            starts_at: said_instant("starts_at", spec.starts_at.as_deref())?,
            ends_at: said_instant("ends_at", spec.ends_at.as_deref())?,
            most_runs: spec.max_runs.map(u64::from),
        };
        Ok(Self { rule, zone, except: calendar(&spec.except)?, bounds, jitter: jitter(spec.jitter_seconds)? })
    }

    pub(super) fn of_preview(ask: &PreviewAsk) -> Result<Self, Problem> {
        let (rule, zone) = ruled(&ask.spec, ask.time_zone.as_deref(), &Zone::utc())?;
        let bounds = Bounds {
            starts_at: said_instant("starts_at", ask.starts_at.as_deref())?,
            ends_at: said_instant("ends_at", ask.ends_at.as_deref())?,
            most_runs: ask.max_runs.map(u64::from),
        };
        Ok(Self { rule, zone, except: calendar(&ask.except)?, bounds, jitter: jitter(ask.jitter_seconds)? })
    }

    /// The schedule of a timer with what shall be otherwise.
    pub(super) fn of_patch(timer: &Timer, patch: &SchedulePatch) -> Result<Self, Problem> {
        let now = &timer.agreed.schedule;
        let kept = match &patch.time_zone {
            None => now.zone().clone(),
            Some(_) => Zone::utc(),
        };
        let said = patch.time_zone.as_ref().and_then(Option::as_deref);
        let (rule, zone) = match &patch.spec {
            Some(spec) => ruled(spec, said, &kept)?,
            None => (now.rule().clone(), said.map_or(Ok(kept), named_zone)?),
        };
        let mut bounds = now.bounds();
        if let Some(at) = &patch.starts_at {
            bounds.starts_at = said_instant("starts_at", at.as_deref())?;
        }
        if let Some(at) = &patch.ends_at {
            bounds.ends_at = said_instant("ends_at", at.as_deref())?;
        }
        bounds.most_runs = patch.max_runs.map_or(bounds.most_runs, |most| most.map(u64::from));
        Ok(Self {
            rule,
            zone,
            except: patch
                .except
                .as_ref()
                .map_or_else(|| Ok(now.calendar().clone()), |days| calendar(days))?,
            bounds,
            jitter: patch.jitter_seconds.map_or(Ok(now.jitter()), jitter)?,
        })
    }

    /// The schedule, if there is anything left of it.
    pub(super) fn schedule(self) -> Result<Schedule, Problem> {
        let (bounds, except) = (self.bounds, self.except);
        let schedule = Schedule::new(self.rule).in_zone(self.zone).map_err(|bad| told("time_zone", bad))?;
        let schedule = schedule.within(bounds).map_err(|bad| {
            let field = if bad.field == "most_runs" { "max_runs" } else { "ends_at" };
            told(field, bad)
        })?;
        let schedule = schedule.except(except).map_err(|bad| told("except", bad))?;
        Ok(match self.jitter {
            Some(jitter) => schedule.with_jitter(jitter),
            None => schedule,
        })
    }
}

/// The policies that are meant.
pub(super) fn policies(spec: &ScheduleSpec) -> Result<Policies, Invalid> {
    Ok(Policies {
        catch_up: catch_up(spec.catch_up, spec.catch_up_max)?,
        max_lateness: lateness(spec.max_lateness_seconds)?,
        overlap: overlap(spec.overlap, spec.overlap_max)?,
        on_edit: on_edit(spec.on_edit),
        run_on_start: false,
    })
}

/// The policies of before with what shall be otherwise.
pub(super) fn patched(before: Policies, patch: &SchedulePatch) -> Result<Policies, Invalid> {
    let mut after = before;
    match (patch.catch_up, patch.catch_up_max, before.catch_up) {
        (None, None, _) => {}
        (None, most, CatchUp::All { .. }) => after.catch_up = catch_up(CatchUpName::All, most)?,
        (name, most, _) => after.catch_up = catch_up(name.unwrap_or(CatchUpName::One), most)?,
    }
    match (patch.overlap, patch.overlap_max, before.overlap) {
        (None, None, _) => {}
        (None, most, Overlap::Allow { .. }) => after.overlap = overlap(OverlapName::Allow, most)?,
        (name, most, _) => after.overlap = overlap(name.unwrap_or(OverlapName::Skip), most)?,
    }
    if let Some(most) = patch.max_lateness_seconds {
        after.max_lateness = lateness(most)?;
    }
    after.on_edit = patch.on_edit.map_or(before.on_edit, on_edit);
    Ok(after)
}

fn ruled(spec: &RuleSpec, said: Option<&str>, usual: &Zone) -> Result<(Rule, Zone), Problem> {
    let (rule, own) = spec.rule()?;
    let said = said.map(named_zone).transpose()?;
    if let (Some(own), Some(said)) = (&own, &said)
        && own != said
    {
        return Err(Invalid::new(
            "time_zone",
            said.name(),
            format_args!("none, or {}, the zone of the rule", own.name()),
        )
        .into());
    }
    Ok((rule, own.or(said).unwrap_or_else(|| usual.clone())))
}

fn named_zone(name: &str) -> Result<Zone, Problem> {
    Zone::named(name).map_err(|bad| told("time_zone", bad))
}

fn calendar(days: &[String]) -> Result<Calendar, Problem> {
    Calendar::of(days).map_err(|bad| told("except", bad))
}

fn jitter(longest: Option<f64>) -> Result<Option<Jitter>, Problem> {
    let Some(longest) = longest else { return Ok(None) };
    let longest = seconds("jitter_seconds", longest)?;
    Jitter::within(longest).map(Some).map_err(|bad| told("jitter_seconds", bad))
}

fn said_instant(field: &str, text: Option<&str>) -> Result<Option<tenure::Timestamp>, Invalid> {
    text.map(|text| instant(field, text)).transpose()
}

fn lateness(most: Option<f64>) -> Result<Option<std::time::Duration>, Invalid> {
    most.map(|most| seconds("max_lateness_seconds", most)).transpose()
}

fn catch_up(name: CatchUpName, most: Option<u32>) -> Result<CatchUp, Invalid> {
    let usual = u32::try_from(limits::CATCH_UP).unwrap_or(u32::MAX);
    match (name, most) {
        (CatchUpName::All, most) => Ok(CatchUp::All { most: most.unwrap_or(usual) }),
        (CatchUpName::Skip, None) => Ok(CatchUp::Skip),
        (CatchUpName::One, None) => Ok(CatchUp::One),
        (CatchUpName::Skip | CatchUpName::One, Some(most)) => {
            Err(Invalid::new("catch_up_max", most, "none, unless catch_up is `all`"))
        }
    }
}

fn overlap(name: OverlapName, most: Option<u32>) -> Result<Overlap, Invalid> {
    let usual = u32::try_from(limits::OPEN_JOBS).unwrap_or(u32::MAX);
    match (name, most) {
        (OverlapName::Allow, most) => Ok(Overlap::Allow { most: most.unwrap_or(usual) }),
        (OverlapName::Skip, None) => Ok(Overlap::Skip),
        (OverlapName::QueueOne, None) => Ok(Overlap::QueueOne),
        (OverlapName::QueueAll, None) => Ok(Overlap::QueueAll),
        (OverlapName::CancelPrevious, None) => Ok(Overlap::CancelPrevious),
        (
            OverlapName::Skip | OverlapName::QueueOne | OverlapName::QueueAll | OverlapName::CancelPrevious,
            Some(most),
        ) => Err(Invalid::new("overlap_max", most, "none, unless overlap is `allow`")),
    }
}

fn on_edit(name: OnEditName) -> OnEdit {
    match name {
        OnEditName::Keep => OnEdit::Keep,
        OnEditName::Drop => OnEdit::Drop,
    }
}
