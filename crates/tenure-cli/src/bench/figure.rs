//! One measured figure, as a line of JSON.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::meter::Spent;

/// One measured figure. The first six keys are fixed; scripts rely on them.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    figure: &'static str,
    jobs: u64,
    jobs_per_s: Option<f64>,
    cpu_us_per_job: Option<f64>,
    db_cpu_us_per_job: Option<f64>,
    wal_bytes_per_job: Option<f64>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// One round of a measurement.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) jobs: usize,
    pub(crate) spent: Spent,
    /// What else was measured, by its key.
    pub(crate) more: Vec<(&'static str, f64)>,
}

impl Figure {
    /// A figure for which only what is added to it makes sense.
    pub(crate) fn bare(figure: &'static str, jobs: usize) -> Self {
        Self {
            figure,
            jobs: jobs as u64,
            jobs_per_s: None,
            cpu_us_per_job: None,
            db_cpu_us_per_job: None,
            wal_bytes_per_job: None,
            more: Map::new(),
        }
    }

    /// The medians of some rounds, each key for itself.
    pub(crate) fn of(figure: &'static str, rounds: &[Round]) -> Self {
        let jobs = rounds.iter().map(|round| round.jobs).max().unwrap_or_default();
        let middle = |value: fn(&Round) -> Option<f64>| median(rounds.iter().filter_map(value));
        let mut made = Self {
            jobs_per_s: middle(|round| Some(round.jobs as f64 / round.spent.seconds)).map(whole),
            cpu_us_per_job: middle(|round| Some(round.cpu_us_per_job())).map(rounded),
            // The database runs in this process: all its CPU is in the figure above.
            db_cpu_us_per_job: Some(0.0),
            wal_bytes_per_job: middle(|round| Some(round.spent.written? / round.jobs as f64)).map(whole),
            ..Self::bare(figure, jobs)
        };
        for (index, (key, _)) in rounds.first().iter().flat_map(|round| &round.more).enumerate() {
            let values = rounds.iter().filter_map(|round| round.more.get(index).map(|(_, value)| *value));
            made = made.with(key, median(values).map(rounded));
        }
        if rounds.len() > 1 {
            made = made.with("rounds", rounds.len());
        }
        made
    }

    /// Says one thing more.
    pub(crate) fn with(mut self, key: &str, value: impl Serialize) -> Self {
        self.more.insert(key.to_owned(), json!(value));
        self
    }

    /// Says one thing more, if there is something to say.
    pub(crate) fn with_some(self, key: &str, value: Option<impl Serialize>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Says all of these, too.
    pub(crate) fn with_all(mut self, more: &Map<String, Value>) -> Self {
        self.more.extend(more.clone());
        self
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a figure has only text for keys, so JSON can say it")
    }
}

impl Round {
    pub(crate) fn cpu_us_per_job(&self) -> f64 {
        self.spent.cpu_us / self.jobs as f64
    }
}

/// The value in the middle; of two, their mean.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some((values[middle - 1] + upper) / 2.0)
}

/// The value below which this share of all values lies.
pub(crate) fn share(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

/// To three decimals: more is noise, and less would hide a microsecond in a millisecond.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn whole(value: f64) -> f64 {
    value.round()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(cpu_us: f64) -> Round {
        Round {
            jobs: 10,
            spent: Spent { seconds: 2.0, cpu_us, written: None },
            more: vec![("p50_ms", cpu_us / 100.0)],
        }
    }

    #[test]
    fn a_figure_has_the_fixed_keys_and_the_medians_of_its_rounds() {
        let figure = Figure::of("life", &[round(900.0), round(100.0), round(200.0)]);
        let json: Value = serde_json::from_str(&figure.to_json()).unwrap();
        for key in
            ["figure", "jobs", "jobs_per_s", "cpu_us_per_job", "db_cpu_us_per_job", "wal_bytes_per_job"]
        {
            assert!(json.get(key).is_some(), "{key}");
        }
        assert_eq!((&json["jobs_per_s"], &json["cpu_us_per_job"]), (&json!(5.0), &json!(20.0)));
        assert_eq!((&json["p50_ms"], &json["rounds"]), (&json!(2.0), &json!(3)));
    }

    #[test]
    fn medians_and_shares_are_what_their_names_say() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0].into_iter()), Some(2.5));
        assert_eq!(median(std::iter::empty()), None);
        let mut values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!((share(&mut values, 0.5), share(&mut values, 0.99)), (50.0, 99.0));
    }
}
