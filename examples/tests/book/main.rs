//! What the pages of the book show, one module for each page. The blocks of the pages stand here, line for line.

mod deploy;
mod first_job;
mod handlers;
mod in_your_service;
mod retries;
mod stores;
mod testing;
mod transactions;
mod workers;

/// What a test returns.
type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;
