//! Who waits for jobs. Claims that wish for the same stand in one line, and one look of the store's serves the line: what
//! is due goes to whoever came first, and however many wait, something that happens wakes one of them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tenure::{HostId, Moment};
use tokio::sync::{oneshot, watch};

use super::claim::Claim;
use super::commands::{self, Calls};
use super::grant::Grant;
use super::places::{Place, Places};
use super::roll;
use super::settle;
use crate::access::{Reach, Who};
use crate::api::Api;
use crate::problem::{Problem, ProblemType};

/// A line looks so often, whatever is heard.
const LOOK: Duration = Duration::from_secs(5);
/// The first wait after a look for something that is due by now but was not granted; it doubles.
const FIRST_VAIN_WAIT: Duration = Duration::from_millis(1);
/// The first wait after a look that the store could not answer; it doubles.
const FIRST_FAULT_WAIT: Duration = Duration::from_millis(100);
/// Because something may be due, a line looks no sooner again than this for each line that there is: that many wish for
/// different jobs costs the store no more than that few do.
const APART_EACH: Duration = Duration::from_micros(500);
/// As many lines as usual workers make look at once.
const FREE_LINES: usize = 64;
/// As long as there is plenty, so many of a line are served at once.
const MOST_AT_ONCE: usize = 64;

/// The lines, by what is wished for.
#[derive(Default)]
pub(crate) struct Lines {
    lines: Mutex<BTreeMap<Wish, VecDeque<Waiting>>>,
    places: Places,
}

/// What those in a line have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wish {
    /// Queues as they were said: which `*` means may change.
    pub queues: Arc<Vec<String>>,
    /// Kinds.
    pub kinds: Arc<Vec<String>>,
    /// Jobs that the client may get. Clients with another reach wait in another line.
    pub reach: Reach,
}

/// A waiting claim. A disconnected client no longer receives.
struct Waiting {
    /// Client of the claim. Its token's quotas count the claim; a line can have claims of several clients.
    who: Who,
    /// Place of the claim, held until the claim leaves the line. If a client disconnects, the next look removes its claim.
    _place: Place,
    claim: Claim,
    holder: HostId,
    to: oneshot::Sender<Result<Grant, Problem>>,
}

/// What came of serving some of a line.
struct Served {
    /// `true` if at least one claim got jobs or an error, and no longer waits.
    any: bool,
    /// `true` if each claim got its maximum, so that more jobs may be due.
    plenty: bool,
    /// Time until a job becomes due for claims that got none.
    due_in: Option<Duration>,
    /// `true` if the store could not answer.
    failed: bool,
}

impl Served {
    /// Something becomes due then, if not before.
    fn sooner(&mut self, due_in: Option<Duration>) {
        self.due_in = self.due_in.into_iter().chain(due_in).min();
    }
}

/// Waits until something is granted to this claim; nothing if the wait is over or the server is about to end before that.
pub(crate) async fn wait(api: &Api, claim: Claim, holder: HostId, wait: Duration) -> Result<Grant, Problem> {
    let place = api.lines().places.take(api.quotas(), api.who().counted_by(), claim.bytes())?;
    let (to, mut granted) = oneshot::channel();
    // From before it joins: what is said in between is not missed.
    let worker = claim.says_who().then_some(holder);
    let told = told(api, worker, api.commands().calls());
    let beating = beat(api, worker);
    api.lines().join(api, Waiting { who: api.who().clone(), _place: place, claim, holder, to });
    tokio::select! {
        biased;
        // The line ends without a word only if it cannot go on.
        granted = &mut granted => granted.unwrap_or_else(|_| Ok(Grant::none(api.tenure()))),
        problem = told => Err(problem),
        () = beating => Ok(Grant::none(api.tenure())),
        () = api.over(wait) => Ok(Grant::none(api.tenure())),
    }
}

/// Ends when this worker is told through this server to take no more jobs: it hears so at once, wherever in the line it
/// stands. What other servers tell it hears when it is asked for.
async fn told(api: &Api, worker: Option<HostId>, mut calls: Calls) -> Problem {
    // Nobody knows the id of one that does not say it before it is answered.
    let Some(worker) = worker else { return std::future::pending().await };
    loop {
        // Once before the first call: what was said before is not called out again.
        if let Err(problem) = commands::check(api, worker).await
            && problem.problem_type() == ProblemType::WorkerQuiet
        {
            return problem;
        }
        calls.to(worker).await;
    }
}

/// Counts the open connection of a waiting worker as its heartbeat, for as long as it waits.
async fn beat(api: &Api, worker: Option<HostId>) {
    // A worker that sends no ID is not listed.
    let Some(worker) = worker else { return std::future::pending().await };
    loop {
        api.tenure().store().clock().sleep(roll::APART).await;
        roll::again(api, worker);
    }
}

impl Lines {
    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().values().flatten().filter(|waiting| !waiting.to.is_closed()).count()
    }

    /// How far apart a line looks because something may be due.
    fn apart(&self) -> Duration {
        let beyond = self.lock().len().saturating_sub(FREE_LINES);
        APART_EACH.saturating_mul(u32::try_from(beyond).unwrap_or(u32::MAX)).min(LOOK)
    }

    /// Takes the last place in its line. If there was no line, somebody begins to look for it.
    fn join(&self, api: &Api, mut waiting: Waiting) {
        let wish = waiting.claim.wish(api);
        let mut lines = self.lock();
        match lines.entry(wish) {
            Entry::Occupied(mut line) => {
                waiting.claim.share(line.key());
                line.get_mut().push_back(waiting);
            }
            Entry::Vacant(line) => {
                tokio::spawn(serve(api.for_client(Who(None)), line.key().clone()));
                line.insert(VecDeque::from([waiting]));
            }
        }
    }

    /// Takes the first ones out of a line; those who have gone are left out. A line without anybody is given up.
    fn first(&self, wish: &Wish, most: usize) -> Vec<Waiting> {
        let mut lines = self.lock();
        let Some(line) = lines.get_mut(wish) else { return Vec::new() };
        line.retain(|waiting| !waiting.to.is_closed());
        if line.is_empty() {
            lines.remove(wish);
            return Vec::new();
        }
        line.drain(..line.len().min(most)).collect()
    }

    /// Gives them back their places, before all others.
    fn put_back(&self, wish: &Wish, waiting: Vec<Waiting>) {
        let mut lines = self.lock();
        let line = lines.entry(wish.clone()).or_default();
        waiting.into_iter().rev().for_each(|one| line.push_front(one));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Wish, VecDeque<Waiting>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a line up if whoever serves it does not come to its end: those in it are told nothing was granted.
struct Serving<'a> {
    api: &'a Api,
    wish: &'a Wish,
    is_over: bool,
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.api.lines().lock().remove(self.wish);
        }
    }
}

/// What a line hears.
struct Heard {
    due: watch::Receiver<u64>,
    /// When it last looked because it was called.
    last: Option<Moment>,
}

/// Serves a line until nobody is in it, or the server is about to end.
async fn serve(api: Api, wish: Wish) {
    let mut serving = Serving { api: &api, wish: &wish, is_over: false };
    serve_to_the_end(&api, &wish).await;
    serving.is_over = true;
}

async fn serve_to_the_end(api: &Api, wish: &Wish) {
    let mut heard = Heard { due: api.tenure().store().due(), last: None };
    let (mut at_once, mut vain, mut fault) = (1, FIRST_VAIN_WAIT, FIRST_FAULT_WAIT);
    loop {
        // What is called out from here on is heard below.
        heard.due.mark_unchanged();
        let first = api.lines().first(wish, at_once);
        // A server that is about to end grants nothing: nobody would know its tokens.
        if first.is_empty() || api.is_draining() {
            return;
        }
        let served = serve_some(api, wish, first).await;
        if served.plenty {
            at_once = (at_once * 2).min(MOST_AT_ONCE);
            continue;
        }
        at_once = 1;
        // Whoever is first now is asked for himself: only a look that finds nothing tells when there will be something.
        if served.any {
            continue;
        }
        let pause = match (served.failed, served.due_in) {
            (true, _) => doubled(&mut fault),
            (false, None) => LOOK,
            // Something is due that was not granted: to somebody else, for instance.
            (false, Some(Duration::ZERO)) => doubled(&mut vain),
            (false, Some(due_in)) => due_in.min(LOOK),
        };
        if !served.failed {
            fault = FIRST_FAULT_WAIT;
        }
        if rest(api, &mut heard, pause, served.failed).await {
            vain = FIRST_VAIN_WAIT;
        }
    }
}

/// Waits for so long, or until something may be due or the server is about to end; answers whether something may be due.
async fn rest(api: &Api, heard: &mut Heard, pause: Duration, deaf: bool) -> bool {
    let clock = api.tenure().store().clock();
    let last = heard.last;
    let called = async {
        let called = heard.due.changed().await.is_ok();
        let rest = last.map(|at| api.lines().apart().saturating_sub(clock.moment().since(at)));
        if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
            clock.sleep(rest).await;
        }
        called
    };
    let called = tokio::select! {
        biased;
        () = api.drained() => return false,
        // A store that cannot answer is not asked at each hint.
        called = called, if !deaf => called,
        () = clock.sleep(pause) => return false,
    };
    heard.last = Some(clock.moment());
    called
}

fn doubled(wait: &mut Duration) -> Duration {
    *wait = (*wait * 2).min(LOOK);
    *wait
}

/// Asks for each of them; whoever is given nothing has his place back.
async fn serve_some(api: &Api, wish: &Wish, some: Vec<Waiting>) -> Served {
    let asked = some.iter().map(|one| ask(api.for_client(one.who.clone()), &one.claim, one.holder));
    let answers = join_all(asked).await;
    let mut served = Served { any: false, plenty: true, due_in: None, failed: false };
    let mut empty = Vec::new();
    for (one, answer) in some.into_iter().zip(answers) {
        match answer {
            Ok(grant) if grant.len() == 0 => {
                served.plenty = false;
                served.sooner(grant.due_in());
                empty.push(one);
            }
            Ok(grant) => {
                served.any = true;
                served.plenty &= grant.len() >= one.claim.most();
                // If he has gone, the grant gives itself back.
                let _ = one.to.send(Ok(grant));
            }
            Err(problem) => {
                // What is wrong with one of them is nothing to those behind: they are asked for at once.
                let is_fault = problem.problem_type().status().is_server_error();
                (served.plenty, served.failed) = (false, served.failed || is_fault);
                served.any |= !is_fault;
                // He may have gone, and then there is nobody to tell.
                let _ = one.to.send(Err(problem));
            }
        }
    }
    api.lines().put_back(wish, empty);
    served
}

async fn ask(api: Api, claim: &Claim, holder: HostId) -> Result<Grant, Problem> {
    api.transfer().responses.check(api.client())?;
    // Which queues there are may have changed since.
    let ask = claim.ask_as(&api, holder).await?;
    settle::grant(&api, ask).await?.admitted(&api, 0)
}
