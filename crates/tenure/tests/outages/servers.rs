//! Two servers, of which one leads and the other follows.

use own_postgres::Server;
use tenure::{Clock, SystemClock};
use tokio_postgres::{Client, NoTls};

use super::MOMENT;

/// A replica that has lost its primary looks for it again soon.
const SETTINGS: &[&str] = &["max_connections=200", "wal_retrieve_retry_interval=100ms"];
/// What was acknowledged is with the system then, and outlives the death of all processes: no power is lost here.
const HASTY: &[&str] = &["fsync=off"];

pub struct Servers {
    both: [Server; 2],
    leader: usize,
}

impl Servers {
    /// As whoever installs them gets them.
    pub fn start() -> Self {
        Self::start_with(SETTINGS)
    }

    /// Those that do not wait for the disk.
    pub fn start_hasty() -> Self {
        Self::start_with(&[SETTINGS, HASTY].concat())
    }

    fn start_with(settings: &[&str]) -> Self {
        let leader = Server::start_with(settings).unwrap();
        let follower = leader.replica(settings).unwrap();
        Self { both: [leader, follower], leader: 0 }
    }

    /// Where whichever takes writes is found.
    pub fn url(&self) -> String {
        let [one, other] = [0, 1].map(|which| self.both[which].port());
        format!("postgres://postgres@127.0.0.1:{one},127.0.0.1:{other}/postgres")
    }

    pub fn leader(&self) -> &Server {
        &self.both[self.leader]
    }

    pub fn follower(&self) -> &Server {
        &self.both[1 - self.leader]
    }

    /// Kills every process of the leader, and starts it again after a while.
    pub async fn kill(&self, down_for: std::time::Duration) {
        self.leader().crash().unwrap();
        SystemClock.sleep(down_for).await;
        self.leader().start_again().unwrap();
    }

    /// Waits until the follower has all that was written by now.
    pub async fn catch_up(&self) {
        let at =
            number(self.leader(), "SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint").await;
        let heard = "SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint";
        while number(self.follower(), heard).await < at {
            SystemClock.sleep(MOMENT).await;
        }
    }

    /// From now on the leader acknowledges nothing that the follower has not on its disk.
    pub async fn synchronise(&self) {
        self.leader().set("synchronous_standby_names=*").unwrap();
        let waits =
            "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'";
        while number(self.leader(), waits).await == 0 {
            SystemClock.sleep(MOMENT).await;
        }
        self.catch_up().await;
    }

    /// The leader is lost for good, and the other one leads.
    pub fn fail_over(&mut self) {
        self.leader().crash().unwrap();
        self.follower().promote().unwrap();
        self.leader = 1 - self.leader;
    }

    /// The one that was lost comes back with nothing, and follows.
    pub fn replace(&self) {
        self.follower().follow(self.leader()).unwrap();
    }
}

pub async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn number(server: &Server, sql: &str) -> i64 {
    connect(&server.url()).await.unwrap().query_one(sql, &[]).await.unwrap().get(0)
}
