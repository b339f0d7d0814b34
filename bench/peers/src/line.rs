//! What was measured of one contestant in one round.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::Outcome;
use crate::meter::Cost;

/// The values of one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub figure: &'static str,
    pub contestant: &'static str,
    pub round: usize,
    values: BTreeMap<String, f64>,
}

impl Line {
    pub fn new(figure: &'static str, contestant: &'static str) -> Self {
        Self { figure, contestant, round: 0, values: BTreeMap::new() }
    }

    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.values.insert(name.to_owned(), value);
        self
    }

    /// All numbers of an answer.
    pub fn with_all(mut self, answer: &Value) -> Self {
        for (name, value) in answer.as_object().into_iter().flatten() {
            if let Some(number) = value.as_f64() {
                self.values.insert(name.clone(), number);
            }
        }
        self
    }

    /// What it cost, by the job, if the number of jobs is known.
    pub fn with_cost(self, cost: Cost) -> Outcome<Self> {
        let jobs = self.get("jobs").filter(|jobs| *jobs > 0.0).ok_or("no job has begun")?;
        let rate = self.get("seconds").map(|seconds| jobs / seconds.max(1e-6));
        let by_job = |seconds: f64| seconds * 1e6 / jobs;
        let mut line = self
            .with("client_us", by_job(cost.client))
            .with("cpu_us", by_job(cost.client + cost.database.unwrap_or(0.0)));
        if let Some(database) = cost.database {
            line = line.with("database_us", by_job(database));
        }
        if let Some(log) = cost.log {
            line = line.with("wal_bytes", log / jobs);
        }
        Ok(match rate {
            Some(rate) => line.with("jobs_per_s", rate),
            None => line,
        })
    }

    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }

    /// The same line, as of this round.
    pub fn of_round(self, round: usize) -> Self {
        Self { round, ..self }
    }

    pub fn to_json(&self) -> Value {
        let mut line = json!({ "contestant": self.contestant, "figure": self.figure, "round": self.round });
        for (name, value) in &self.values {
            line[name] = json!((value * 1e3).round() / 1e3);
        }
        line
    }
}

/// One value of a contestant in a figure, by round.
pub fn by_round(lines: &[Line], figure: &str, contestant: &str, name: &str) -> Vec<(usize, f64)> {
    lines
        .iter()
        .filter(|line| line.figure == figure && line.contestant == contestant)
        .filter_map(|line| Some((line.round, line.get(name)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_told_by_the_job() {
        let line =
            Line::new("drain", "floor").with_all(&json!({ "jobs": 1000, "seconds": 0.5, "p50_ms": null }));
        let line =
            line.with_cost(Cost { client: 0.002, database: Some(0.02), log: Some(640_000.0) }).unwrap();
        let told = ["client_us", "database_us", "cpu_us", "wal_bytes", "jobs_per_s"];
        let told: Vec<i64> = told.iter().map(|name| line.get(name).unwrap().round() as i64).collect();
        assert_eq!(told, [2, 20, 22, 640, 2000]);
        assert_eq!(line.get("p50_ms"), None);
        let nothing = Cost { client: 0.0, database: None, log: None };
        assert!(Line::new("drain", "floor").with_cost(nothing).is_err());
    }

    #[test]
    fn what_a_store_does_not_know_is_not_told() {
        let line = Line::new("drain", "floor-sqlite").with("jobs", 1000.0);
        let line = line.with_cost(Cost { client: 0.005, database: None, log: None }).unwrap();
        assert_eq!(line.get("cpu_us").map(f64::round), Some(5.0));
        assert_eq!((line.get("database_us"), line.get("wal_bytes")), (None, None));
    }
}
