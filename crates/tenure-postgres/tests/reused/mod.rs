//! Schemas that are used again: to make one takes longer than most tests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use own_postgres::Server;
use tenure_postgres::{Options, PostgresStore};
use tenure_store::Clock;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls};

/// As after the first step, before any program has used it. Who still uses it has a connection by its name.
const EMPTY: &str = "DO $$ DECLARE t record; BEGIN
    FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'SCHEMA' AND tablename <> 'migration' LOOP
        EXECUTE format('DELETE FROM SCHEMA.%I', t.tablename);
    END LOOP;
    PERFORM setval(format('SCHEMA.%I', sequencename)::regclass, start_value, false)
        FROM pg_sequences WHERE schemaname = 'SCHEMA';
    INSERT INTO SCHEMA.meta (name, value) VALUES ('floor', 0), ('bar', 0), ('looked', 0), ('ttl', 0);
END $$";
const IN_USE: &str = "SELECT DISTINCT application_name FROM pg_stat_activity WHERE application_name LIKE 'store!_%' ESCAPE '!'";

const PATIENCE: Duration = Duration::from_secs(300);

/// Makes each store in a schema in which nothing is left of an earlier one.
pub struct Schemas {
    server: Server,
    made: Mutex<Vec<Made>>,
    number: AtomicUsize,
    client: Client,
    /// Tests have their own; the connection outlives them.
    _runtime: Runtime,
}

struct Made {
    schema: String,
    store: Weak<PostgresStore>,
}

impl Schemas {
    pub fn new(server: Server) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (client, connection) = runtime.block_on(tokio_postgres::connect(&server.url(), NoTls)).unwrap();
        runtime.spawn(connection);
        Self { server, made: Mutex::default(), number: AtomicUsize::new(0), client, _runtime: runtime }
    }

    /// A store with nothing in it.
    pub async fn store(&self, clock: Arc<dyn Clock>) -> Arc<PostgresStore> {
        let schema = self.schema().await;
        let mut options = Options::default();
        options.schema.clone_from(&schema);
        options.application_name.clone_from(&schema);
        options.readers = 1;
        // What is slow is not wrong: a machine with much else to do may stand still for longer than a program would wait.
        (options.patience, options.connecting) = (PATIENCE, PATIENCE);
        let store = PostgresStore::open(&self.server.url(), options, Some(clock)).await.unwrap();
        let made = Made { schema, store: Arc::downgrade(&store) };
        self.made.lock().unwrap().push(made);
        store
    }

    async fn schema(&self) -> String {
        let in_use = self.client.query(IN_USE, &[]).await.unwrap();
        let in_use: Vec<String> = in_use.iter().map(|row| row.get(0)).collect();
        let free = {
            let mut made = self.made.lock().unwrap();
            let is_free = |made: &Made| made.store.strong_count() == 0 && !in_use.contains(&made.schema);
            made.iter().position(is_free).map(|index| made.swap_remove(index).schema)
        };
        let Some(schema) = free else {
            return format!("store_{}", self.number.fetch_add(1, Ordering::Relaxed));
        };
        self.client.batch_execute(&EMPTY.replace("SCHEMA", &schema)).await.unwrap();
        schema
    }

    /// Whatever was done to a store, nothing is in its tables that must never be. Those are looked at that are there.
    pub fn nothing_is_wrong(&self) -> bool {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let schemas: Vec<String> = self.made.lock().unwrap().iter().map(|made| made.schema.clone()).collect();
        let mut wrong = 0;
        for schema in schemas {
            let mut options = Options::default();
            options.schema.clone_from(&schema);
            (options.patience, options.connecting) = (PATIENCE, PATIENCE);
            let findings = runtime.block_on(tenure_postgres::check(&self.server.url(), options)).unwrap();
            findings.iter().for_each(|found| eprintln!("{schema}: {}: {}", found.about, found.what));
            wrong += findings.len();
        }
        wrong == 0
    }
}
