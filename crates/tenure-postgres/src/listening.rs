//! Hints from one program to the others: told on one connection, which also hears those of others once anybody here wants
//! to: who only hands out jobs is not woken up by what others tell. All of it may be lost; where it cannot be had, everybody
//! looks from time to time.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tenure_store::{Fault, FaultCause};
use tokio::sync::{mpsc, oneshot, watch};

use crate::connection::Connection;
use crate::connector::Ear;
use crate::database::Database;
use crate::fault::Effect;
use crate::link::Link;
use crate::memory::{Memory, Told};
use crate::patience::{pause, within};
use crate::query::Query;

/// How soon after one another hints are sent.
const APART: Duration = Duration::from_millis(5);
/// How long it may take until others hear of what is no hint for them.
const LATER: Duration = Duration::from_millis(100);
/// How often everybody looks where nothing is heard.
const LOOK: Duration = Duration::from_secs(1);
/// How long the end of a program waits until others have been told what happened last.
const LAST: Duration = Duration::from_secs(1);
/// How long a program waits to hear itself.
const ECHO: Duration = Duration::from_secs(2);

/// A hint may be lost, so its transaction need not wait for the disk: whoever hears it hears it sooner.
const TELL: &str = "SELECT set_config('synchronous_commit', 'off', true), pg_notify(current_schema()::text || ':tenure', $1)";
/// Who tells something and does not listen.
pub(crate) const NOBODY: i32 = 0;
const WHO: &str = "SELECT pg_backend_pid()";

/// What was heard, and who said it.
type Heard = mpsc::UnboundedReceiver<(i32, String)>;

/// Tells others what happens here, and hears what happens there once that is wanted, until the store is closed.
/// Whoever opens the store is told when the first has begun, or cannot be had.
pub(crate) async fn work(
    database: Arc<Database>,
    memory: Arc<Memory>,
    mut closed: watch::Receiver<bool>,
    begun: oneshot::Sender<()>,
) {
    let listening = async {
        let mut begun = Some(begun);
        let mut logged = String::new();
        loop {
            let lost = listen(&database, &memory, &mut begun).await;
            begun = None;
            if database.is_short() {
                tracing::debug!(%lost, "polling while connections are shared");
                while database.is_short() {
                    pause(LOOK).await;
                    Told::UNPOLLED.publish(&memory.bulletin);
                }
                continue;
            }
            // Once for each cause: during an outage the same one returns every second.
            let why = lost.to_string();
            if why != logged {
                tracing::warn!(lost = why, "lost the LISTEN connection; polling until it is restored");
                logged = why;
            }
            pause(LOOK).await;
            Told::ALL.publish(&memory.bulletin);
        }
    };
    tokio::select! {
        biased;
        _ = closed.wait_for(|closed| *closed) => {}
        () = listening => {}
    }
}

/// Tells, and listens once anybody wants to hear, until that does not work any more.
async fn listen(database: &Database, memory: &Memory, first: &mut Option<oneshot::Sender<()>>) -> Fault {
    let (ear, mut heard) = ear();
    let mut connection = match database.connect(Some(ear)).await {
        Ok(connection) => connection,
        Err(fault) => {
            if fault.cause() == Some(FaultCause::TooManyConnections) {
                database.shortage.wait(1, database.time.clock().moment()).await;
            }
            return fault;
        }
    };
    if connection.is_pooled() {
        *first = None;
        return only_tell(&mut connection, memory).await;
    }
    let me = match who(&mut connection).await {
        Ok(me) => me,
        Err(fault) => return fault,
    };
    *first = None;
    let told =
        tell_and_hear(&mut connection, memory, &mut heard, me, wanted_or_short(database, memory)).await;
    memory.let_speak(0);
    if let Err(fault) = told {
        return fault;
    }
    if let Err(fault) = begin(&mut connection, &mut heard, &database.options.schema, me).await {
        return fault;
    }
    // What was told before that is looked for.
    Told::ALL.publish(&memory.bulletin);
    let told = tell_and_hear(&mut connection, memory, &mut heard, me, database.shortage.begun()).await;
    memory.let_speak(0);
    told.err().unwrap_or_else(|| Fault::Unavailable("no listener".to_owned()))
}

/// Waits until hints are wanted here, or others need the connection.
async fn wanted_or_short(database: &Database, memory: &Memory) {
    tokio::select! {
        () = memory.wanted.rung() => {}
        () = database.shortage.begun() => {}
    }
}

/// Tells, and takes in what is heard, until something happens.
async fn tell_and_hear(
    connection: &mut Connection,
    memory: &Memory,
    heard: &mut Heard,
    me: i32,
    until: impl Future<Output = ()>,
) -> Result<(), Fault> {
    let (mut is_resting, mut rest, mut until) = (true, pin!(pause(APART)), pin!(until));
    // Whoever told others before may have been called, and have told nothing yet.
    memory.ring_again();
    loop {
        let waiting = something_to_tell(memory);
        tokio::select! {
            biased;
            said = heard.recv() => match said {
                Some((who, text)) => {
                    if who != me && !is_said_by(&text, me) {
                        Told::read(&text).publish(&memory.bulletin);
                    }
                    memory.ring_again();
                    continue;
                }
                None => return Err(Fault::Unavailable("lost the LISTEN connection".to_owned())),
            },
            () = &mut until => return Ok(()),
            () = &mut rest, if is_resting => {
                is_resting = false;
                memory.let_speak(me);
                continue;
            }
            () = memory.spoke.notified() => memory.ring_again(),
            () = waiting, if !is_resting => {
                let Some(untold) = memory.take_untold() else { continue };
                memory.let_speak(0);
                connection.run(&[tell(hint(untold.told(), me))], Effect::None).await?;
                untold.done();
            }
        }
        rest.set(pause(APART));
        is_resting = true;
    }
}

/// A hint in the name of the program that listens as `me`.
pub(crate) fn hint(told: Told, me: i32) -> String {
    format!("{} {me}", told.as_text())
}

/// What tells others a hint, on whatever connection.
pub(crate) fn tell(hint: String) -> Query {
    Query::new(TELL).with(hint)
}

fn is_said_by(text: &str, me: i32) -> bool {
    text.rsplit_once(' ').is_some_and(|(_, who)| who.parse() == Ok(me))
}

/// Tells what happens here, where nothing is heard. Until that does not work.
async fn only_tell(connection: &mut Connection, memory: &Memory) -> Fault {
    // Whoever told others before may not have come to it.
    memory.ring_again();
    let telling = async {
        loop {
            something_to_tell(memory).await;
            if let Err(fault) = tell_untold(connection, memory).await {
                return fault;
            }
        }
    };
    tokio::select! {
        biased;
        fault = telling => fault,
        fault = look_at_times(memory) => fault,
    }
}

/// Has everybody here look once a second who does not look from time to time anyway. It does not end.
async fn look_at_times(memory: &Memory) -> Fault {
    loop {
        pause(LOOK).await;
        Told::UNPOLLED.publish(&memory.bulletin);
    }
}

/// Waits until there is something to tell.
async fn something_to_tell(memory: &Memory) {
    let soon = async {
        memory.later.notified().await;
        pause(LATER).await;
    };
    tokio::select! {
        biased;
        () = memory.urgent.notified() => {}
        () = soon => {}
    }
}

/// Tells what was not told yet.
async fn tell_untold(connection: &mut Connection, memory: &Memory) -> Result<(), Fault> {
    if let Some(untold) = memory.take_untold() {
        connection.run(&[tell(hint(untold.told(), NOBODY))], Effect::None).await?;
        untold.done();
        pause(APART).await;
    }
    Ok(())
}

/// Tells what is still untold when the store is closed and all that it had accepted is done.
pub(crate) async fn tell_last(mut link: Link) {
    let memory = Arc::clone(&link.memory);
    let Some(untold) = memory.take_untold() else { return };
    let telling = async {
        let connection = link.connection().await?;
        connection.run(&[tell(hint(untold.told(), NOBODY))], Effect::None).await
    };
    // A hint may be lost, and nobody shall wait long for the end of his program because of one.
    match within(LAST, telling).await {
        Some(Ok(_)) => untold.done(),
        Some(Err(fault)) => {
            tracing::debug!(%fault, "failed to notify other processes; they will find the change by polling")
        }
        None => {
            tracing::debug!("failed to notify other processes in time; they will find the change by polling")
        }
    }
}

/// Whether a program hears hints here.
pub(crate) async fn is_heard(database: &Database) -> Result<bool, Fault> {
    let (ear, mut heard) = ear();
    let mut connection = database.connect(Some(ear)).await?;
    if connection.is_pooled() {
        return Ok(false);
    }
    let me = who(&mut connection).await?;
    Ok(begin(&mut connection, &mut heard, &database.options.schema, me).await.is_ok())
}

/// An ear, and where what it hears comes out.
fn ear() -> (Ear, Heard) {
    let (said, heard) = mpsc::unbounded_channel();
    let ear = Box::new(move |notification: tokio_postgres::Notification| {
        // Nobody hears it any more once the connection is given up.
        let _ = said.send((notification.process_id(), notification.payload().to_owned()));
    });
    (ear, heard)
}

/// Who tells something on this connection.
async fn who(connection: &mut Connection) -> Result<i32, Fault> {
    let who = connection.read(Query::new(WHO)).await?;
    Ok(who.first().map_or(NOBODY, |row| row.get(0)))
}

/// Begins to listen, and finds out whether this program hears itself: behind some poolers nobody does.
async fn begin(connection: &mut Connection, heard: &mut Heard, schema: &str, me: i32) -> Result<(), Fault> {
    connection.execute_text(&format!("LISTEN \"{schema}:tenure\"")).await?;
    connection.run(&[tell(String::new())], Effect::None).await?;
    let echo = async {
        while let Some((who, _)) = heard.recv().await {
            if who == me {
                return true;
            }
        }
        false
    };
    match within(ECHO, echo).await {
        Some(true) => Ok(()),
        Some(false) | None => Err(Fault::Unavailable(
            "notifications do not arrive on this connection, perhaps because of a pooler; polling instead"
                .to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use own_postgres::Server;
    use tenure_store::Hints;

    use super::*;
    use crate::plans::fresh;

    #[tokio::test]
    async fn nobody_is_woken_up_by_others_before_he_wants_to_hear() {
        let server = Server::start_hasty().unwrap();
        let mut other = fresh(&server).await;
        let (database, memory) = (Arc::clone(&other.database), Arc::new(Memory::default()));
        let (close, closed) = watch::channel(false);
        let (begun, begins) = oneshot::channel();
        let working = tokio::spawn(work(database, Arc::clone(&memory), closed, begun));
        assert!(begins.await.is_err(), "it is dropped when hints can be told");
        let mut due = memory.bulletin.due();
        let hint = || tell(hint(Told::read("d"), NOBODY));
        for _ in 0..3 {
            other.connection().await.unwrap().run(&[hint()], Effect::None).await.unwrap();
        }
        memory.wanted.ring();
        due.changed().await.unwrap();
        assert_eq!(
            *due.borrow_and_update(),
            1,
            "whoever begins to listen looks, and has heard nothing before"
        );
        other.connection().await.unwrap().run(&[hint()], Effect::None).await.unwrap();
        due.changed().await.unwrap();
        assert_eq!(*due.borrow(), 2);
        close.send(true).unwrap();
        working.await.unwrap();
    }

    #[tokio::test]
    async fn what_nobody_came_to_tell_is_told_at_the_end() {
        let server = Server::start_hasty().unwrap();
        let link = fresh(&server).await;
        let (database, memory) = (Arc::clone(&link.database), Arc::clone(&link.memory));
        let (ear, mut heard) = ear();
        let mut other = database.connect(Some(ear)).await.unwrap();
        let me = who(&mut other).await.unwrap();
        begin(&mut other, &mut heard, &database.options.schema, me).await.unwrap();
        memory.publish(crate::news::News::of_due());
        // Somebody has begun to tell it, and is stopped.
        drop(memory.take_untold());
        tell_last(link).await;
        let said = within(ECHO * 30, heard.recv()).await.expect("it is told");
        assert_eq!(said.unwrap().1, hint(Told::read("wd"), NOBODY));
        assert!(memory.take_untold().is_none());
    }
}
