//! What clients write into the database beside the store, each in a transaction that asks the store first.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use tenure::{Clock, Fence, InTransaction, JobId, LeaseId, LeaseName, Run, SystemClock, Tenure};
use tenure_store::{Prepared, TxnRequest};
use tokio_postgres::Client;

use super::history::Left;
use super::servers::connect;

const TABLES: &str = "CREATE TABLE effect (number bigserial PRIMARY KEY, job text NOT NULL);
    CREATE TABLE written (number bigserial PRIMARY KEY, what text NOT NULL, fence bigint NOT NULL)";
/// Who has heard nothing for so long does not know what became of its transaction.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why it is not known that something was written. Whatever it was, the transaction and its connection are given up.
pub type NotKnown = Box<dyn std::error::Error + Send + Sync>;

/// The connections of a program's own.
pub struct Effects {
    url: String,
    idle: Mutex<Vec<Client>>,
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Effects")
    }
}

impl Effects {
    pub fn new(url: &str) -> Self {
        let url = format!("{url}?target_session_attrs=read-write&connect_timeout=3");
        Self { url, idle: Mutex::default() }
    }

    pub async fn prepare(&self) {
        connect(&self.url).await.unwrap().batch_execute(TABLES).await.unwrap();
    }

    /// Writes under a lease, whatever its holder may believe.
    pub async fn write(
        &self,
        tenure: &Tenure,
        name: &LeaseName,
        id: LeaseId,
        fence: Fence,
    ) -> Result<(), NotKnown> {
        let mut client = self.client().await?;
        in_time(async {
            let mut tx = client.transaction().await?;
            let check = Prepared::new(TxnRequest::CheckLease { name: name.clone(), id, fence });
            let call = tenure.store().extras().joint.unwrap().statement(&check)?;
            let mut checked = &mut tx;
            InTransaction::ask(&mut checked, &call).await?;
            let fence = i64::try_from(fence.number())?;
            tx.execute("INSERT INTO written (what, fence) VALUES ($1, $2)", &[&name.as_str(), &fence])
                .await?;
            Ok(tx.commit().await?)
        })
        .await?;
        self.idle.lock().unwrap().push(client);
        Ok(())
    }

    /// Ends a job together with its effect.
    pub async fn complete<App>(&self, run: &Run<App>) -> Result<(), NotKnown> {
        let mut client = self.client().await?;
        in_time(async {
            let mut tx = client.transaction().await?;
            tx.execute("INSERT INTO effect (job) VALUES ($1)", &[&run.id().to_string()]).await?;
            run.complete_in(&mut tx).await?;
            Ok(tx.commit().await?)
        })
        .await?;
        self.idle.lock().unwrap().push(client);
        Ok(())
    }

    async fn client(&self) -> Result<Client, NotKnown> {
        let idle = self.idle.lock().unwrap().pop().filter(|client| !client.is_closed());
        match idle {
            Some(client) => Ok(client),
            None => in_time(async { Ok(connect(&self.url).await?) }).await,
        }
    }

    /// All that was kept.
    pub async fn read(&self, left: &mut Left) {
        let client = connect(&self.url).await.unwrap();
        for row in client.query("SELECT job FROM effect", &[]).await.unwrap() {
            left.effects.push(row.get::<_, &str>(0).parse::<JobId>().unwrap());
        }
        for row in client.query("SELECT what, fence FROM written ORDER BY number", &[]).await.unwrap() {
            let fence = u64::try_from(row.get::<_, i64>(1)).unwrap();
            left.writes.push((row.get(0), Fence::from_number(fence)));
        }
    }
}

async fn in_time<T>(what: impl Future<Output = Result<T, NotKnown>>) -> Result<T, NotKnown> {
    tokio::select! {
        biased;
        done = what => done,
        () = SystemClock.sleep(PATIENCE) => Err("nothing was heard".into()),
    }
}
