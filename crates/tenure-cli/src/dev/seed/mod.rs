//! `tenure dev --seed`: a shop with a past and a present, so that every page has something to show.

mod clock;
mod contract;
mod past;
mod present;
mod programs;
mod shop;

use axum::Router;
use serde_json::json;
use tenure::{Chance, Tenure};
use tenure_http::Server;
use tokio::task::JoinHandle;

pub(super) use self::clock::CatchingUp;
use self::contract::Contract;
use self::past::Past;
use self::present::{Present, wait_in_line};
use self::programs::Programs;
use self::shop::WORKERS;
use crate::exit::Failure;

/// Chance comes from here: the shop has the same past each time.
const SEED: u64 = 8368;

/// What goes on in the shop; it ends when this is dropped.
pub(super) struct GoingOn(Vec<JoinHandle<()>>);

impl Drop for GoingOn {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Fills in the past, unless it is there already, and goes on from it.
pub(super) async fn begin(
    tenure: &Tenure,
    clock: &CatchingUp,
    server: Option<&Server>,
) -> Result<GoingOn, Failure> {
    let contract = Contract(routes(tenure, server));
    let workers: Vec<String> = WORKERS.iter().map(|_| tenure.remote().draw_worker().to_string()).collect();
    let programs = Programs::new(tenure);
    let known = contract.get("/v1/kinds/send_email").await.is_ok();
    if known {
        clock.pass(clock::PAST);
    } else {
        let chance = Chance::seeded(SEED);
        let (tenure, contract, chance, programs) = (tenure, &contract, &chance, &programs);
        if let Some(server) = server {
            hook(contract, server).await?;
        }
        Past { tenure, contract, clock, chance, programs, workers: workers.clone() }.happen().await?;
    }
    let present = Present::new(contract.clone(), Chance::from_system(), workers, programs);
    Ok(GoingOn(vec![tokio::spawn(present.go_on()), tokio::spawn(wait_in_line(contract))]))
}

/// Those of the server, which lets webhooks be told on this machine.
fn routes(tenure: &Tenure, server: Option<&Server>) -> Router {
    server.map_or_else(|| tenure_http::api(tenure), Server::contract)
}

/// One webhook that takes what it is told, and one that nobody listens to.
async fn hook(contract: &Contract, server: &Server) -> Result<(), Failure> {
    let taken = format!("http://{}{}", server.address(), super::http::HOOK);
    contract.post("/v1/webhooks", json!({ "url": taken, "types": ["job.failed", "lease.*"] })).await?;
    let silent = json!({ "url": "http://127.0.0.1:9/pager", "types": ["job.failed"], "queues": ["billing"] });
    contract.post("/v1/webhooks", silent).await.map(drop)
}
