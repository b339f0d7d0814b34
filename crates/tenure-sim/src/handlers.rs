//! The handlers: each does what its job's script says, and writes down what it does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure::{Failed, Run, Stopping};
use tenure_core::{Fence, QueueName};
use tenure_store::{Chance, Clock};

use crate::asks::{Chore, How, Script, Sole, Work};
use crate::gate::Gate;
use crate::history::{What, Who};
use crate::holders::{Task, write_to};
use crate::probes::Probe;
use crate::world::World;

/// A handler that works says so at least so often.
const SLICE: Duration = Duration::from_millis(700);

/// What the handlers of a host share.
pub(crate) struct App {
    pub(crate) who: Who,
    pub(crate) world: Arc<World>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) chance: Chance,
    pub(crate) slots: BTreeMap<QueueName, usize>,
    pub(crate) all_slots: usize,
}

pub(crate) async fn work(run: Run<App>, job: Work) -> Result<u64, Failed> {
    play(run, job.0).await
}

pub(crate) async fn chore(run: Run<App>, job: Chore) -> Result<u64, Failed> {
    play(run, job.0).await
}

/// A job whose attempt holds a lease.
pub(crate) async fn sole(run: Run<App>, job: Sole) -> Result<u64, Failed> {
    let app = run.app();
    let pass = run.singleton().cloned();
    let task = pass.as_ref().map(|pass| Task::begin(app.who, &app.world, &app.gate, pass));
    if let Some(pass) = &pass {
        write_to(&app.world, app.who, &app.chance, pass);
    }
    let done = play(run.clone(), job.script).await;
    if let (Some(task), Some(pass)) = (&task, &pass) {
        task.go_on(pass);
    }
    done
}

pub(crate) async fn play(run: Run<App>, script: Script) -> Result<u64, Failed> {
    let mut stage = Stage::enter(&run);
    let outcome = act(&run, &script).await;
    if matches!(run.stopping(), Some(Stopping::Lost)) {
        run.app().world.book.hit(Probe::BelieverStopped);
    }
    stage.done = true;
    outcome.map(|()| script.ask)
}

async fn act(run: &Run<App>, script: &Script) -> Result<(), Failed> {
    let delivery = run.job().delivery;
    match &script.how {
        How::Done => Ok(()),
        How::Works { ms } => works(run, *ms).await,
        How::Deaf { ms } => {
            deaf(run, *ms).await;
            Ok(())
        }
        How::Chats { ms, lines } => chats(run, *ms, *lines).await,
        How::Fails { times, ms } => {
            works(run, *ms).await?;
            if run.attempt() <= *times { Err(Failed::retry("as the script says")) } else { Ok(()) }
        }
        How::FailsForGood => Err(Failed::for_good("as the script says")),
        How::Panics { times } if run.attempt() <= *times => {
            // A panic that is planned shall not fill the log: this way no hook is called.
            std::panic::resume_unwind(Box::new("as the script says"))
        }
        How::Panics { .. } => Ok(()),
        How::Snoozes { times, ms } if delivery <= *times => Err(Failed::snooze(Duration::from_millis(*ms))),
        How::Releases { times } if delivery <= *times => Err(Failed::release()),
        How::Snoozes { .. } | How::Releases { .. } => Ok(()),
        How::Begets { ask, id } => {
            let app = run.app();
            app.world.book.note(app.who, What::Asks { ask: *ask, id: Some(*id) });
            let queue = run.job().queue.as_str();
            let child = Script { ask: *ask, how: How::Done };
            let accepted = run.tenure().enqueue(Work(child)).queue(queue).id(*id).await?;
            app.world.book.note(app.who, What::Told { ask: *ask, accepted });
            Ok(())
        }
    }
}

async fn works(run: &Run<App>, ms: u64) -> Result<(), Failed> {
    let mut left = Duration::from_millis(ms);
    while !left.is_zero() {
        believe(run);
        let slice = left.min(SLICE);
        run.sleep(slice).await?;
        left -= slice;
    }
    Ok(())
}

async fn deaf(run: &Run<App>, ms: u64) {
    let mut left = Duration::from_millis(ms);
    while !left.is_zero() {
        believe(run);
        let slice = left.min(SLICE);
        run.app().clock.sleep(slice).await;
        left -= slice;
    }
}

async fn chats(run: &Run<App>, ms: u64, lines: u32) -> Result<(), Failed> {
    for line in 1..=lines {
        run.log(&format!("line {line}"));
        run.progress(f64::from(line) / f64::from(lines), "on its way")?;
        works(run, ms / u64::from(lines)).await?;
    }
    run.place(&format!("/done/{}", run.job().seq))?;
    Ok(())
}

/// Writes down whether the handler goes on as the holder.
fn believe(run: &Run<App>) {
    let app = run.app();
    if !app.gate.is_open() {
        return;
    }
    let (seq, fence) = (run.job().seq, run.fence());
    let what = if run.is_held() { What::Believes { seq, fence } } else { What::KnowsLost { seq, fence } };
    app.world.book.note(app.who, what);
}

/// A handler at work; it leaves whatever becomes of it.
struct Stage {
    who: Who,
    world: Arc<World>,
    seq: u64,
    fence: Fence,
    queue: QueueName,
    done: bool,
}

impl Stage {
    fn enter(run: &Run<App>) -> Self {
        let (app, job) = (run.app(), run.job());
        let (seq, fence, queue) = (job.seq, job.fence, job.queue.clone());
        let slots = app.slots.get(&queue).copied().unwrap_or(0);
        let began = What::Began { seq, fence, queue: queue.clone(), slots, all_slots: app.all_slots };
        app.world.book.note(app.who, began);
        Self { who: app.who, world: Arc::clone(&app.world), seq, fence, queue, done: false }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let (seq, fence, queue, done) = (self.seq, self.fence, self.queue.clone(), self.done);
        self.world.book.note(self.who, What::Left { seq, fence, queue, done });
    }
}
