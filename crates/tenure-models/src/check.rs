//! Searching a model, and telling what came of it.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::hash::Hash;
use std::time::Duration;

use stateright::report::{ReportData, ReportDiscovery, Reporter};
use stateright::{Checker, HasDiscoveries, Model, Path};

/// A model whose paths can be told in words.
pub trait Told: Model {
    /// What a step does, in one line.
    fn tell(&self, before: &Self::State, step: &Self::Action, after: &Self::State) -> String;

    /// Where all stand, in one line.
    fn stand(&self, state: &Self::State) -> String;

    /// The promise that is broken in this state.
    fn broken(&self, state: &Self::State) -> Option<&'static str>;

    /// What had to occur in the search and did not.
    fn unseen(&self) -> Vec<String>;
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Distinct states, those that differ only in names counted once.
    pub states: usize,
    /// Steps that were taken between them.
    pub steps: usize,
    /// The longest of the shortest paths to a state.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// The shortest path to a broken promise, if there is one.
    pub counterexample: Option<Counterexample>,
    /// What had to occur and did not.
    pub unseen: Vec<String>,
}

/// A counterexample: a broken promise and how it came to that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterexample {
    /// The promise.
    pub promise: &'static str,
    /// One line a step.
    pub path: Vec<String>,
}

/// Searches all states of a model, or as many as it takes to break a promise. With one thread
/// the path to it is the shortest.
///
/// `depth` bounds the length of the paths; a search with a bound is no proof, and does not ask for probes.
pub fn search<M>(model: M, threads: usize, depth: Option<usize>) -> Found
where
    M: Told + Send + Sync + 'static,
    M::State: Debug + Hash + Clone + PartialEq + Send + Sync + 'static,
    M::Action: Debug + Clone + PartialEq + Send + Sync + 'static,
{
    let mut stopwatch = Stopwatch::default();
    let mut checker = model.checker().threads(threads);
    if let Some(depth) = depth {
        checker = checker.target_max_depth(depth);
    }
    let checker =
        checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join_and_report(&mut stopwatch);
    let model = checker.model();
    let path = checker.discoveries().into_values().next();
    let counterexample = path.map(|path| told(model, path));
    Found {
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        took: stopwatch.took,
        unseen: if counterexample.is_some() || depth.is_some() { Vec::new() } else { model.unseen() },
        counterexample,
    }
}

fn told<M>(model: &M, path: Path<M::State, M::Action>) -> Counterexample
where
    M: Told,
    M::State: Clone + PartialEq,
    M::Action: Clone + PartialEq,
{
    let pairs = path.into_vec();
    let promise = pairs.last().and_then(|(last, _)| model.broken(last)).unwrap_or("it ends badly");
    let steps = pairs.iter().zip(pairs.iter().skip(1)).enumerate();
    let path = steps.filter_map(|(number, ((before, step), (after, _)))| {
        let told = model.tell(before, step.as_ref()?, after);
        Some(format!("{:3}. {told:<62} | {}", number + 1, model.stand(after)))
    });
    Counterexample { promise, path: path.collect() }
}

impl Found {
    /// Whether every promise was kept and everything that had to occur did.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.counterexample.is_none() && self.unseen.is_empty()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, steps, depth, .. } = self;
        write!(f, "{states} states, {steps} steps, depth {depth}, {:.1} s", self.took.as_secs_f64())?;
        if !self.unseen.is_empty() {
            write!(f, "\nnever seen: {}", self.unseen.join(", "))?;
        }
        self.counterexample.as_ref().map_or(Ok(()), |counterexample| write!(f, "\n{counterexample}"))
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken: {}", self.promise)?;
        self.path.iter().try_for_each(|line| write!(f, "\n{line}"))
    }
}

/// Takes the time from the checker, which has a clock.
#[derive(Default)]
struct Stopwatch {
    took: Duration,
}

impl<M: Model> Reporter<M> for Stopwatch {
    fn report_checking(&mut self, data: ReportData) {
        if data.done {
            self.took = data.duration;
        }
    }

    fn report_discoveries(&mut self, _: &M, _: BTreeMap<&'static str, ReportDiscovery<M>>)
    where
        M::Action: Debug,
        M::State: Debug + Hash,
    {
    }

    fn delay(&self) -> Duration {
        Duration::from_millis(20)
    }
}
