//! One program while it runs: a thread attends to it, and whoever wants something of it leaves word here.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::{Clock, SystemClock, limits};
use tenure_apps::{Idle, LineLimit};
use tenure_program::{End, Event, Kept, Notice, Program, Progress, Reins, Running, Source};
use tokio::sync::oneshot;

use super::lease::{HeldUntil, Lease};

/// How often it is looked whether the program has to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How often it is looked what it has used.
const LOOK_AT_USE: Duration = Duration::from_secs(1);
/// Lines of a continuous app that wait to be written down.
const WAITING: usize = 5_000;

/// Why a program has to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    /// Somebody cancelled its job.
    Cancelled(String),
    /// Its job, or the lease that makes it the only one, may be somebody else's.
    Lost,
    /// The host stops.
    HostStops,
    /// Somebody has stopped the app.
    Stopped(String),
    /// It has taken longer than it may.
    TimedOut(Duration),
    /// It has done nothing for too long; told in words.
    Idle(String),
}

/// What is kept of what it says.
pub(super) enum Lines {
    /// How it began and how it ended, for a run.
    OfARun(Kept),
    /// As much as a rate allows, for what never ends.
    ForEver(Saying),
}

/// What one run of a continuous app says.
pub(super) struct Saying {
    /// What all its runs may say together.
    limit: Arc<Mutex<LineLimit>>,
    /// How old the limit was when this run began.
    since: Duration,
    waiting: VecDeque<String>,
    /// How many were dropped because nobody took them.
    dropped: u64,
}

/// How it is stopped, and when without being asked.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    pub(super) stopping_wait: Duration,
    /// How long it may take to end if it works for nobody any more: somebody else is about to begin.
    pub(super) last_words: Duration,
    pub(super) signal_after: Duration,
    pub(super) timeout: Option<Duration>,
    pub(super) idle: Option<Duration>,
}

/// How it went.
#[derive(Debug)]
pub(super) struct Went {
    /// None if it did not begin; the reason stands in the words.
    pub(super) end: Option<End>,
    pub(super) why: Option<Why>,
    /// What it left as its result, or why that cannot be kept.
    pub(super) result: Result<Option<Vec<u8>>, String>,
    /// The location that it named.
    pub(super) location: Option<String>,
    /// In words.
    pub(super) words: String,
    /// How long it ran.
    pub(super) took: Duration,
}

struct State {
    lines: Lines,
    progress: Option<Progress>,
    location: Option<String>,
    why: Option<Why>,
    is_to_be_killed: bool,
}

/// Shared by whoever attends and whoever asks.
pub(super) struct Desk {
    state: Mutex<State>,
}

/// Ends the program if whoever asked for it is gone.
pub(super) struct KillOnDrop(Arc<Desk>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

impl Desk {
    /// Begins a program on a thread of its own; how it went comes through the channel. It ends when the guard is dropped, or
    /// at its lease's end if this process is stopped.
    pub(super) fn begin(
        lines: Lines,
        program: Program,
        terms: Terms,
        held_until: HeldUntil,
    ) -> std::io::Result<(Arc<Self>, oneshot::Receiver<Went>, KillOnDrop)> {
        let state = State { lines, progress: None, location: None, why: None, is_to_be_killed: false };
        let desk = Arc::new(Self { state: Mutex::new(state) });
        let (tell, went) = oneshot::channel();
        let theirs = Arc::clone(&desk);
        std::thread::Builder::new().name("tenure-app".to_owned()).spawn(move || {
            // Nobody listens any more if the guard was dropped.
            let _ = tell.send(theirs.attend(program, &terms, held_until));
        })?;
        let guard = KillOnDrop(Arc::clone(&desk));
        Ok((desk, went, guard))
    }

    /// A program that has said this, and has ended.
    #[cfg(test)]
    pub(super) fn that_has_heard<const N: usize>(lines: [&str; N]) -> Self {
        let mut kept = Kept::default();
        lines.into_iter().for_each(|line| kept.push(line.to_owned()));
        kept.end();
        let lines = Lines::OfARun(kept);
        Self {
            state: Mutex::new(State {
                lines,
                progress: None,
                location: None,
                why: None,
                is_to_be_killed: false,
            }),
        }
    }

    /// Tells it to stop. The first reason stands, but that it is lost comes before all others.
    pub(super) fn stop(&self, why: Why) {
        let mut state = self.lock();
        if state.why.is_none() || why == Why::Lost {
            state.why = Some(why);
        }
    }

    /// Ends it with all that it has started.
    pub(super) fn kill(&self) {
        self.lock().is_to_be_killed = true;
    }

    /// The same for whoever cannot wait until the host has stopped.
    pub(super) fn kill_with_its_host(&self) {
        self.stop(Why::HostStops);
        self.kill();
    }

    /// The next lines, and how far it has come if it has said that since.
    pub(super) fn heard(&self, lines: usize, bytes: usize) -> (Vec<String>, Option<Progress>) {
        let mut state = self.lock();
        let progress = state.progress.take();
        (state.lines.next(lines, bytes), progress)
    }

    /// Puts down a line about it.
    pub(super) fn say(&self, now: Duration, line: String) {
        self.lock().lines.push(now, line);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn attend(&self, program: Program, terms: &Terms, held_until: HeldUntil) -> Went {
        let mut lease = Lease::of(held_until, terms.last_words);
        let program = Program { deadline: lease.deadline(), ..program };
        let command: Vec<_> =
            program.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let running = match program.start() {
            Ok(running) => running,
            Err(error) => return self.did_not_begin(&error.to_string()),
        };
        let (end, took, stop) = self.until_the_end(&running, terms, &command.join(" "), &mut lease);
        // The lease is not held for longer than its program needs it.
        drop(lease);
        let why = self.lock().why.clone().filter(|_| stop.is_some());
        let mut words = end.words();
        if let Some(why) = &why {
            words.push_str(&format!(", after it was asked to stop: {}", why.words()));
        }
        let why = if end.is_expired { Some(Why::Lost) } else { why };
        if end.killed {
            words.push_str("; it was killed with all its children");
        }
        if end.left_behind > 0 {
            words.push_str(&format!("; ended {} processes left behind", end.left_behind));
        }
        let mut state = self.lock();
        state.lines.push(took, format!("run: {words}; {}", end.usage.words()));
        state.lines.end();
        let location = state.location.take();
        drop(state);
        let result = running.result(limits::OUTPUT_BYTES as u64).map_err(|error| error.to_string());
        Went { end: Some(end), why, result, location, words, took }
    }

    fn did_not_begin(&self, why: &str) -> Went {
        let words = format!("it did not start: {why}");
        let mut state = self.lock();
        state.lines.push(Duration::ZERO, format!("run: {words}"));
        state.lines.end();
        Went { end: None, why: None, result: Ok(None), location: None, words, took: Duration::ZERO }
    }

    fn until_the_end(
        &self,
        running: &Running,
        terms: &Terms,
        command: &str,
        lease: &mut Lease,
    ) -> (End, Duration, Option<Stop>) {
        let (clock, reins) = (SystemClock, running.reins());
        let began = clock.moment();
        let mut idle = terms.idle.map(Idle::of);
        let (mut next_look, mut next_use) = (Duration::ZERO, Duration::ZERO);
        let (mut stop, mut is_killed) = (None::<Stop>, false);
        loop {
            let event = running.next(LOOK);
            let now = clock.moment().since(began);
            match event {
                Some(Event::Line(line)) => {
                    idle.iter_mut().for_each(|idle| idle.heard(now));
                    self.say(now, labelled(&line));
                }
                Some(Event::Progress(progress)) => {
                    idle.iter_mut().for_each(|idle| idle.heard(now));
                    self.lock().progress = Some(progress);
                }
                Some(Event::Location(location)) => {
                    idle.iter_mut().for_each(|idle| idle.heard(now));
                    self.lock().location = Some(location);
                }
                Some(Event::Ended(end)) => return (end, now, stop),
                None => {}
            }
            if now < next_look {
                continue;
            }
            next_look = now + LOOK;
            lease.extend(&reins);
            if let Some(idle) = idle.as_mut().filter(|_| now >= next_use) {
                next_use = now + LOOK_AT_USE;
                if let Some(used) = reins.used() {
                    idle.used(now, used);
                }
                if idle.is_over(now) {
                    self.stop(Why::Idle(idle.words(command)));
                }
            }
            if let Some(timeout) = terms.timeout.filter(|timeout| now >= *timeout) {
                self.stop(Why::TimedOut(timeout));
            }
            let (why, is_to_be_killed) = {
                let state = self.lock();
                (state.why.clone(), state.is_to_be_killed)
            };
            if let Some(why) = &why {
                let told = stop.get_or_insert_with(|| {
                    self.say(now, format!("run: asked to stop: {}", why.words()));
                    reins.tell(Notice::ShutdownFile);
                    Stop { at: now, is_signalled: false }
                });
                match told.step(now, terms, *why == Why::Lost) {
                    Step::Wait => {}
                    Step::Signal => {
                        told.is_signalled = true;
                        reins.tell(Notice::Terminate);
                    }
                    Step::Kill => is_killed = self.kill_once(&reins, is_killed, now),
                }
            }
            if is_to_be_killed {
                is_killed = self.kill_once(&reins, is_killed, now);
            }
        }
    }

    fn kill_once(&self, reins: &Reins, is_killed: bool, now: Duration) -> bool {
        if !is_killed {
            let killed = match reins.kill() {
                true => "it is killed with all its children",
                false => "its supervisor ended before it",
            };
            self.say(now, format!("run: it did not stop in time: {killed}"));
        }
        true
    }
}

/// A program that was told to stop.
struct Stop {
    at: Duration,
    is_signalled: bool,
}

/// What comes next for a program that was told to stop.
enum Step {
    Wait,
    Signal,
    Kill,
}

impl Stop {
    /// The shutdown file is there. Then, for whoever does not look for it, the signal; then the end of all of it.
    fn step(&self, now: Duration, terms: &Terms, is_lost: bool) -> Step {
        let since = now.saturating_sub(self.at);
        let (signal_after, wait) = match is_lost {
            // Somebody else may be about to do the same.
            true => (Duration::ZERO, terms.stopping_wait.min(terms.last_words)),
            false => (terms.signal_after.min(terms.stopping_wait), terms.stopping_wait),
        };
        match (since >= wait, since >= signal_after && !self.is_signalled) {
            (true, _) => Step::Kill,
            (false, true) => Step::Signal,
            (false, false) => Step::Wait,
        }
    }
}

impl Lines {
    fn push(&mut self, now: Duration, line: String) {
        match self {
            Self::OfARun(kept) => kept.push(line),
            Self::ForEver(saying) => saying.push(now, line),
        }
    }

    fn end(&mut self) {
        match self {
            Self::OfARun(kept) => kept.end(),
            Self::ForEver(saying) => {
                let word = lock(&saying.limit).word();
                saying.waiting.extend(word);
            }
        }
    }

    fn next(&mut self, lines: usize, bytes: usize) -> Vec<String> {
        match self {
            Self::OfARun(kept) => kept.next(lines, bytes),
            Self::ForEver(saying) => saying.next(lines),
        }
    }
}

impl Saying {
    /// A run begins when what limits all of them is so old.
    pub(super) fn new(limit: Arc<Mutex<LineLimit>>, since: Duration) -> Self {
        lock(&limit).begin_run();
        Self { limit, since, waiting: VecDeque::new(), dropped: 0 }
    }

    fn push(&mut self, now: Duration, line: String) {
        let kept = lock(&self.limit).take(self.since + now, line);
        self.waiting.extend(kept);
        while self.waiting.len() > WAITING {
            self.waiting.pop_front();
            self.dropped += 1;
        }
    }

    fn next(&mut self, lines: usize) -> Vec<String> {
        let dropped = std::mem::take(&mut self.dropped);
        let word = (dropped > 0).then(|| format!("run: {dropped} lines omitted"));
        let most = self.waiting.len().min(lines);
        word.into_iter().chain(self.waiting.drain(..most)).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Why {
    pub(super) fn words(&self) -> String {
        match self {
            Self::Cancelled(reason) => format!("its job was cancelled: {reason}"),
            Self::Lost => "another host has taken it over".to_owned(),
            Self::HostStops => "its host is stopping".to_owned(),
            Self::Stopped(reason) if reason.is_empty() => "it was stopped by an operator".to_owned(),
            Self::Stopped(reason) => format!("it was stopped by an operator: {reason}"),
            Self::TimedOut(after) => format!("it exceeded its timeout of {} s", after.as_secs_f64()),
            Self::Idle(words) => words.clone(),
        }
    }
}

fn labelled(line: &tenure_program::Line) -> String {
    match line.source {
        Source::Out => format!("out: {}", line.text),
        Source::Err => format!("err: {}", line.text),
    }
}
