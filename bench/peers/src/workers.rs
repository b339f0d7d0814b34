//! The worker processes of one contestant.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Outcome;
use crate::meter::memory_mib;
use crate::program::{PATIENCE, Program};

/// How long one of them is listened to before the next.
const EAR: Duration = Duration::from_millis(1);

/// Processes that work on the same jobs.
pub struct Workers {
    programs: Vec<Program>,
    begun: Vec<u64>,
}

impl Workers {
    pub fn new(programs: Vec<Program>) -> Self {
        Self { begun: vec![0; programs.len()], programs }
    }

    pub fn processes(&self) -> Vec<u32> {
        self.programs.iter().map(Program::process).collect()
    }

    pub fn start(&mut self) -> Outcome {
        self.programs.iter_mut().try_for_each(|program| program.say("work"))
    }

    /// With how many jobs they have begun, all together, as far as one hears.
    pub fn begun(&mut self) -> Outcome<u64> {
        for (program, begun) in self.programs.iter_mut().zip(&mut self.begun) {
            while let Some(told) = program.hear(EAR)? {
                *begun = told["done"].as_u64().unwrap_or(*begun);
            }
        }
        Ok(self.begun.iter().sum())
    }

    /// Waits until they have begun with so many jobs.
    pub fn reach(&mut self, jobs: u64) -> Outcome {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            let begun = self.begun()?;
            if begun >= jobs {
                return Ok(());
            }
            if begun != last {
                (last, since) = (begun, Instant::now());
            }
            if since.elapsed() > PATIENCE {
                return Err(format!("stuck after {begun} of {jobs} jobs").into());
            }
        }
    }

    /// Stops them; answers what they have seen, all together, and the memory of the largest.
    pub fn stop(&mut self) -> Outcome<Value> {
        let memory = self.processes().into_iter().filter_map(memory_mib).fold(0.0, f64::max);
        self.programs.iter_mut().try_for_each(|program| program.say("stop"))?;
        let mut results = Vec::new();
        for program in &mut self.programs {
            results.push(last_word(program)?);
        }
        let mut seen = together(&results);
        seen["memory_mib"] = json!(memory);
        Ok(seen)
    }
}

/// What follows the last `done`.
fn last_word(program: &mut Program) -> Outcome<Value> {
    loop {
        let answer = program.hear(PATIENCE)?.ok_or("it did not stop")?;
        if answer.get("done").is_none() {
            return Ok(answer);
        }
    }
}

/// Jobs add up; time goes from the first start of all to the last. Waits and pauses are those of who had most jobs.
fn together(results: &[Value]) -> Value {
    let number = |result: &Value, name: &str| result[name].as_f64().unwrap_or(0.0);
    let busy: Vec<&Value> = results.iter().filter(|result| number(result, "jobs") > 0.0).collect();
    let most = busy.iter().max_by(|a, b| number(a, "jobs").total_cmp(&number(b, "jobs")));
    let mut seen = most.map_or(json!({}), |most| (**most).clone());
    let first = busy.iter().map(|result| number(result, "first_ms")).fold(f64::INFINITY, f64::min);
    let last = busy.iter().map(|result| number(result, "last_ms")).fold(0.0, f64::max);
    seen["jobs"] = json!(busy.iter().map(|result| number(result, "jobs")).sum::<f64>());
    seen["seconds"] = json!(((last - first) / 1e3).max(0.0));
    for name in ["first_ms", "last_ms"] {
        seen.as_object_mut().map(|seen| seen.remove(name));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_have_seen_is_one() {
        let result = |jobs: u64, first: f64, last: f64| json!({ "jobs": jobs, "first_ms": first, "last_ms": last, "p50_ms": jobs as f64 });
        let seen = together(&[result(30, 1000.0, 3000.0), result(70, 1500.0, 3500.0), result(0, 0.0, 0.0)]);
        assert_eq!(seen, json!({ "jobs": 100.0, "seconds": 2.5, "p50_ms": 70.0 }));
        assert_eq!(together(&[])["jobs"], 0.0);
    }
}
