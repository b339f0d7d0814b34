//! A small believable flow of jobs, so that whoever starts `tenure dev` sees something happen.

use std::time::Duration;

use tenure::{Chance, Clock, Draft, Error, SystemClock, Tenure};

use super::kinds::{BuildStar, Echo, Fail, Flaky, Sleep};
use crate::screen::complain;

const NAMES: [&str; 8] = ["Vega", "Rigel", "Mira", "Alcor", "Deneb", "Altair", "Capella", "Procyon"];
const GREETINGS: [&str; 4] = ["hello", "is anybody there?", "good morning", "all well here"];
const REASONS: [&str; 3] = ["no such planet", "the telescope is sold", "the orbit does not close"];
/// How long to wait after the store was away.
const AWAY: Duration = Duration::from_secs(1);

/// Enqueues a handful at once, then `per_second` for ever. It ends with a fault that does not pass.
pub(crate) async fn run(tenure: Tenure, per_second: f64) -> Result<(), Error> {
    let chance = Chance::from_system();
    tenure.enqueue_all(at_start()).await?;
    if per_second <= 0.0 {
        return Ok(());
    }
    for turn in 0_u64.. {
        // Spread, because real work does not come by the clock.
        SystemClock.sleep(Duration::from_secs_f64((0.5 + chance.fraction()) / per_second)).await;
        match tenure.enqueue_draft(next(turn, &chance)).await {
            Ok(_) => {}
            Err(Error::Fault(fault)) if fault.is_passing() => {
                complain(&format!("cannot enqueue a sample job: {fault}"));
                SystemClock.sleep(AWAY).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Jobs at the start.
pub(super) const AT_START: usize = 7;

fn at_start() -> Vec<Draft> {
    vec![
        Draft::of(&Echo { text: "hello, world".into() }),
        Draft::of(&BuildStar { name: "Sirius".into() }),
        Draft::of(&Flaky { failures: 2 }),
        Draft::of(&Sleep { seconds: 2.0 }),
        Draft::of(&Fail { reason: "no such planet".into() }),
        Draft::of(&Echo { text: "three seconds later".into() }).after(Duration::from_secs(3)),
        Draft::of(&BuildStar { name: "Polaris".into() }),
    ]
}

fn next(turn: u64, chance: &Chance) -> Draft {
    match turn % 8 {
        1 | 5 => Draft::of(&BuildStar { name: one_of(&NAMES, chance) }),
        2 => Draft::of(&Sleep { seconds: 1.0 + 5.0 * chance.fraction() }),
        3 => Draft::of(&Flaky { failures: 1 + u32::try_from(chance.below(2)).unwrap_or(0) }),
        6 => Draft::of(&Echo { text: "a little later".into() }).after(Duration::from_secs(2)),
        7 => Draft::of(&Fail { reason: one_of(&REASONS, chance) }),
        _ => Draft::of(&Echo { text: one_of(&GREETINGS, chance) }),
    }
}

fn one_of(words: &[&str], chance: &Chance) -> String {
    let at = chance.below(u64::try_from(words.len()).unwrap_or(u64::MAX));
    usize::try_from(at).ok().and_then(|at| words.get(at)).map_or_else(String::new, |word| (*word).to_owned())
}
