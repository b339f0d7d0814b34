//! The conformance suite of Tenure: what a store has to do, as tests; one named test a sentence.
//!
//! A store's `tests/conformance.rs`, declared with `harness = false`, is this:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use tenure_conformance::{Maker, Making};
//! use tenure_store::{Clock, Store};
//!
//! struct Fresh;
//!
//! impl Maker for Fresh {
//!     fn make(&self, clock: Arc<dyn Clock>) -> Making<'_> {
//!         # fn my_store(_: Arc<dyn Clock>) -> Arc<dyn Store> { unimplemented!() }
//!         Box::pin(async move { my_store(clock) })
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     tenure_conformance::run(Fresh)
//! }
//! ```
//!
//! Then `cargo test` prints each sentence, and takes a part of a name to run only those.

// A test that unwraps fails where it stands, with what it found; there is nobody to hand an error to.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod after;
mod apps;
mod attempts;
mod breaks;
mod by_end;
mod change;
mod clock_steps;
mod closing;
mod copies;
mod counts;
mod edits;
mod enqueue;
mod explain;
mod generator;
mod given;
mod heads;
mod hints;
mod histories;
mod hosts;
mod keyed;
mod keyed_races;
mod lease_calls;
mod lease_histories;
mod lease_history;
mod lease_pages;
mod lease_races;
mod leases;
mod ledger;
mod ledger_pages;
mod limit;
mod limit_said;
mod naive;
mod needed;
mod operation;
mod ordering;
mod put_back;
mod queue_limit;
mod queue_terms;
mod races;
mod rate;
mod records;
mod renew;
mod report;
mod reserve;
mod rewriting;
mod settle;
mod share;
mod spoiled;
mod standing;
mod tend;
mod tickets;
mod timer_races;
mod timers;
mod unique;
mod views;
mod wishes;

use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use tokio::runtime::{Builder, Runtime};

use given::Given;
pub use naive::{Around, Checker, Depth, Rows, Since};
use tenure_store::{Clock, Store};

/// A store, sooner or later.
pub type Making<'a> = Pin<Box<dyn Future<Output = Arc<dyn Store>> + Send + 'a>>;

/// Steps after which a random history reads all of a store in any case.
pub const RARELY: usize = histories::LOOKS;

/// Makes the stores that are tested.
pub trait Maker: Send + Sync {
    /// A new store on this clock, with nothing in it and nothing shared with an earlier one.
    fn make(&self, clock: Arc<dyn Clock>) -> Making<'_>;

    /// How many random histories of each sort it goes through if `TENURE_HISTORIES` does not say.
    fn histories(&self) -> u64 {
        histories::HISTORIES
    }

    /// Number of steps of the random history with this seed after which the naive checker looks at the store. Only a look
    /// after each step checks all of its rules. For a store that answers slowly, [`RARELY`] costs little.
    fn steps_per_look(&self, _seed: u64) -> usize {
        1
    }
}

/// Runs the suite as the command line asks, prints as `cargo test` does, and answers how it went.
#[must_use]
pub fn run(maker: impl Maker + 'static) -> ExitCode {
    let maker: Arc<dyn Maker> = Arc::new(maker);
    let of_stores = all().into_iter().map(|test| trial(test, Arc::clone(&maker)));
    let of_checkers = naive::tests::tests().into_iter().chain(lease_history::tests::tests());
    let trials = of_stores.chain(of_checkers).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn all() -> Vec<Test> {
    [
        apps::tests(),
        after::tests(),
        attempts::tests(),
        breaks::tests(),
        by_end::tests(),
        change::tests(),
        edits::tests(),
        closing::tests(),
        copies::tests(),
        counts::tests(),
        enqueue::tests(),
        explain::tests(),
        heads::tests(),
        hints::tests(),
        histories::tests(),
        hosts::tests(),
        lease_calls::tests(),
        clock_steps::tests(),
        lease_histories::tests(),
        lease_pages::tests(),
        lease_races::tests(),
        leases::tests(),
        ledger::tests(),
        ledger_pages::tests(),
        keyed_races::tests(),
        limit::tests(),
        limit_said::tests(),
        needed::tests(),
        ordering::tests(),
        put_back::tests(),
        queue_limit::tests(),
        queue_terms::tests(),
        races::tests(),
        rate::tests(),
        records::tests(),
        renew::tests(),
        report::tests(),
        reserve::tests(),
        rewriting::tests(),
        settle::tests(),
        share::tests(),
        spoiled::tests(),
        standing::tests(),
        tend::tests(),
        tickets::tests(),
        timer_races::tests(),
        timers::tests(),
        unique::tests(),
        views::tests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// One sentence of the contract, and how to find out whether it holds.
struct Test {
    sentence: &'static str,
    threads: Threads,
    run: Box<dyn Fn(Given) -> Running + Send>,
}

/// A test on its way.
type Running = Pin<Box<dyn Future<Output = ()>>>;

/// What a test runs on.
#[derive(Clone, Copy)]
enum Threads {
    /// The thread of the test, so that nothing but the test decides what happens when.
    One,
    /// Several, so that calls meet.
    Several,
}

fn test<F, Run>(sentence: F) -> Test
where
    F: Fn(Given) -> Run + Send + 'static,
    Run: Future<Output = ()> + 'static,
{
    Test {
        sentence: name_of::<F>(),
        threads: Threads::One,
        run: Box::new(move |given| Box::pin(sentence(given))),
    }
}

fn race<F, Run>(sentence: F) -> Test
where
    F: Fn(Given) -> Run + Send + 'static,
    Run: Future<Output = ()> + 'static,
{
    Test { threads: Threads::Several, ..test(sentence) }
}

/// `noun::sentence`, by which a function of this suite is called on the command line.
fn name_of<F>() -> &'static str {
    let path = std::any::type_name::<F>();
    path.split_once("::").map_or(path, |(_, name)| name)
}

/// A test of a checker of this suite, which needs no store.
fn own<F: Fn() + Send + 'static>(sentence: F) -> Trial {
    Trial::test(name_of::<F>(), move || {
        sentence();
        Ok(())
    })
}

fn trial(test: Test, maker: Arc<dyn Maker>) -> Trial {
    Trial::test(test.sentence, move || {
        runtime(test.threads)?.block_on(async {
            let given = Given::new(maker).await;
            let store = Arc::clone(&given.store);
            (test.run)(given).await;
            // The tests of closing have closed it already.
            let _ = store.close().await;
        });
        Ok(())
    })
}

fn runtime(threads: Threads) -> std::io::Result<Runtime> {
    match threads {
        Threads::One => Builder::new_current_thread().enable_all().build(),
        Threads::Several => Builder::new_multi_thread().worker_threads(4).enable_all().build(),
    }
}
