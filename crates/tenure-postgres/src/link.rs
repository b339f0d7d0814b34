//! A connection that is made when somebody needs it, and made anew when it is of no use any more.

use std::sync::Arc;

use tenure_store::Fault;

use crate::connection::Connection;
use crate::database::Database;
use crate::epoch;

/// A connection that is made when somebody needs it. A task has one for itself.
pub(crate) struct Link {
    pub database: Arc<Database>,
    connection: Option<Connection>,
}

impl Link {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self { database, connection: None }
    }

    /// A connection on which nothing is going on.
    pub(crate) async fn connection(&mut self) -> Result<&mut Connection, Fault> {
        let sound = self.connection.take().filter(Connection::is_sound);
        let connection = match sound {
            Some(connection) => connection,
            None => {
                let mut connection = self.database.connect(None).await?;
                epoch::compare(&mut connection, &self.database.time).await?;
                connection
            }
        };
        Ok(self.connection.insert(connection))
    }

    /// A connection to a database in which there may be no tables yet.
    pub(crate) async fn first_connection(&mut self) -> Result<&mut Connection, Fault> {
        let connection = self.database.connect(None).await?;
        Ok(self.connection.insert(connection))
    }
}
