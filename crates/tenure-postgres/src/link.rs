//! A connection that is made when somebody needs it, and made anew when it is of no use any more.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tenure_store::Fault;

use crate::connection::Connection;
use crate::database::Database;
use crate::fault::Effect;
use crate::memory::Memory;
use crate::patience::pause;
use crate::query::Query;
use crate::shortage::{self, is_about_room};

/// How often what met somebody else is tried: in all for half a second.
const TRIES: u32 = 9;

/// A connection that is made when somebody needs it. A task has one for itself.
pub(crate) struct Link {
    pub database: Arc<Database>,
    pub memory: Arc<Memory>,
    connection: Option<Connection>,
    /// For how long it waits, if less than others.
    patience: Option<Duration>,
}

impl Link {
    pub(crate) fn new(database: Arc<Database>, memory: Arc<Memory>) -> Self {
        Self { database, memory, connection: None, patience: None }
    }

    /// The same for a task that waits no longer than this for the server, and a fraction of it for a lock.
    pub(crate) fn hurried(self, patience: Duration) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// A connection on which nothing is going on.
    pub(crate) async fn connection(&mut self) -> Result<&mut Connection, Fault> {
        let connection = match self.idle().await {
            Some(connection) => connection,
            None => {
                let mut connection = self.connect().await?;
                if let Some(patience) = self.patience {
                    connection.hurry(patience).await?;
                }
                connection
            }
        };
        Ok(self.connection.insert(connection))
    }

    /// Makes a connection, as soon as the server has room for one.
    async fn connect(&self) -> Result<Connection, Fault> {
        let mut tries = 0;
        loop {
            let connected = self.database.connect(None).await;
            tries += 1;
            if !is_about_room(&connected) || tries == shortage::TRIES {
                return connected;
            }
            self.database.shortage.wait(tries, self.database.time.clock().moment()).await;
        }
    }

    /// Waits for the next thing to do. During a shortage, others have the connection meanwhile.
    pub(crate) async fn rest<T>(&mut self, next: impl Future<Output = T>) -> T {
        self.share();
        let mut next = pin!(next);
        tokio::select! {
            biased;
            next = &mut next => return next,
            () = self.database.shortage.begun(), if self.connection.is_some() => self.connection = None,
        }
        next.await
    }

    /// Closes the connection during a shortage.
    pub(crate) fn share(&mut self) {
        if self.connection.is_some() && self.database.is_short() {
            self.connection = None;
        }
    }

    /// Closes the connection.
    pub(crate) fn disconnect(&mut self) {
        self.connection = None;
    }

    /// Returns true if there is a connection.
    pub(crate) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Notes that the server was told, on the connection that there is, for how long jobs are granted.
    pub(crate) fn told_ttl(&mut self, ttl: i64) {
        if let Some(connection) = &mut self.connection {
            connection.ttl_told = connection.ttl_told.max(ttl);
        }
    }

    /// The connection on which a transaction is open.
    pub(crate) fn in_transaction(&mut self) -> Result<&mut Connection, Fault> {
        let open = self.connection.as_mut().filter(|connection| connection.in_transaction);
        open.ok_or_else(|| Fault::Unavailable("the transaction has ended; retry".to_owned()))
    }

    /// The connection that there is, if it is good for something new. What a call left undone on it is undone.
    async fn idle(&mut self) -> Option<Connection> {
        let connection = self.connection.take()?;
        if connection.met_pooler {
            self.database.found_pooler();
        }
        let is_right = |connection: &Connection| connection.is_pooled() == self.database.is_pooled();
        let mut connection = Some(connection).filter(Connection::is_sound).filter(is_right)?;
        if connection.in_transaction {
            connection.run(&[Query::new("ROLLBACK")], Effect::None).await.ok()?;
            connection.in_transaction = false;
        }
        Some(connection)
    }

    /// Whether it is known by now that a pooler is there. The last call may have found out.
    pub(crate) fn knows_pooler(&self) -> bool {
        if self.connection.as_ref().is_some_and(|connection| connection.met_pooler) {
            self.database.found_pooler();
        }
        self.database.is_pooled()
    }

    /// Whether the last call was refused because somebody else kept a lock for too long.
    pub(crate) fn waited_in_vain(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.waited_in_vain)
    }

    /// Whether the last call was refused because of what somebody else did at the same time, and may be tried again. It
    /// is, after a moment that grows, so that the other comes to its end.
    pub(crate) async fn may_try_again(&mut self, tries: &mut u32) -> bool {
        let met =
            self.connection.as_mut().is_some_and(|connection| std::mem::take(&mut connection.met_somebody));
        let is_lost = self.connection.as_ref().is_some_and(|connection| !connection.is_sound());
        let met = met || cfg!(mutant = "postgres-lost-commit-repeated") && is_lost;
        *tries += 1;
        if !met || *tries >= TRIES {
            return false;
        }
        pause(Duration::from_millis(1 << *tries)).await;
        true
    }
}
