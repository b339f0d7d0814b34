//! Which store is meant, and in which form it is spoken of.

use std::future::Future;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tenure::{Error, OpenOptions, PostgresOptions};

use crate::dev::url_of;
use crate::exit::Failure;

/// Nobody waits behind these calls, and a statement that looks at much may take its time.
const PATIENCE: Duration = Duration::from_secs(120);

/// Arguments that all of them take.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// SQLite file or PostgreSQL database (postgres:// URL)
    #[arg(long, value_name = "FILE|URL", value_parser = crate::secrets::database_option())]
    db: String,
    /// PostgreSQL schema
    #[arg(long, alias = "db-schema", value_name = "NAME", default_value = "tenure")]
    schema: String,
    /// Output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    pub(crate) output: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Table,
    Json,
}

impl Target {
    pub(crate) fn url(&self) -> String {
        url_of(&self.db)
    }

    /// How the store is reached.
    pub(crate) fn options(&self) -> OpenOptions {
        let mut postgres = PostgresOptions::default();
        postgres.schema = self.schema.clone();
        postgres.patience = PATIENCE;
        postgres.application_name = "tenure db".to_owned();
        OpenOptions::new().postgres(postgres)
    }
}

/// Waits for what is asked of a store.
pub(crate) fn wait<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::System { what: "cannot start threads", source })?;
    Ok(runtime.block_on(work)?)
}
