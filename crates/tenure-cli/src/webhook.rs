//! `tenure webhook`: who is told what happens.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::client::{Ask, escaped};
use crate::exit::Failure;
use crate::output::safe;
use crate::screen::{print, tell};
use crate::with::{Asked, Named, With, done, text};

const WEBHOOKS: Named = Named {
    path: "/v1/webhooks",
    columns: &["id", "url", "types", "enabled"],
    cells: |webhook, _| {
        let types: Vec<&str> =
            webhook["types"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let enabled = if webhook["enabled"] == true { "yes" } else { text(webhook, "/disabled_because") };
        vec![
            text(webhook, "/id").into(),
            text(webhook, "/url").into(),
            types.join(",").into(),
            enabled.into(),
        ]
    },
};

const DELIVERIES: Named = Named {
    path: "/v1/webhooks",
    columns: &["id", "event", "state", "attempt", "next", "error"],
    cells: |delivery, _| {
        let last = delivery["attempts"].as_array().and_then(|attempts| attempts.last());
        let error = last.map_or("", |attempt| text(attempt, "/error"));
        vec![
            text(delivery, "/id").into(),
            text(delivery, "/event_type").into(),
            text(delivery, "/state").into(),
            delivery["attempt"].to_string().into(),
            text(delivery, "/next_attempt_at").into(),
            error.into(),
        ]
    },
};

/// Commands for webhooks.
#[derive(Debug, Subcommand)]
pub(crate) enum Webhooks {
    /// List webhooks
    List(Asked<Nothing>),
    /// Add a webhook and print its signing secret once
    #[command(alias = "create")]
    Add(Asked<Add>),
    /// Delete a webhook
    #[command(aliases = ["delete", "remove"])]
    Rm(Asked<Id>),
    /// Send a test event to a webhook
    Test(Asked<Id>),
    /// List the deliveries of a webhook
    Deliveries(Asked<Id>),
    /// Send a delivery again
    Redeliver(Asked<Redeliver>),
    /// Replace the secret; the old one also signs for a day
    RotateSecret(Asked<Id>),
    /// Print the secret that signs callbacks of jobs
    CallbackSecret(Asked<CallbackSecret>),
}

#[derive(Debug, Args)]
pub(crate) struct Nothing {}

#[derive(Debug, Args)]
pub(crate) struct Id {
    /// Webhook id, or at least eight characters of it
    id: String,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// URL that receives the events
    #[arg(value_name = "HOOK-URL")]
    hook: String,
    /// Event type, such as job.failed, job.* or * (repeatable)
    #[arg(long = "type", value_name = "TYPE", required = true)]
    types: Vec<String>,
    /// Only events of this queue (repeatable)
    #[arg(long = "queue", value_name = "QUEUE")]
    queues: Vec<String>,
    /// Only events of this kind (repeatable)
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CallbackSecret {
    /// Replace the secret; the old one also signs for a day
    #[arg(long)]
    rotate: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Redeliver {
    /// Webhook id, or at least eight characters of it
    id: String,
    /// Delivery id from `tenure webhook deliveries`
    delivery: String,
}

pub(crate) fn run(webhooks: Webhooks) -> Result<(), Failure> {
    match webhooks {
        Webhooks::List(Asked { connect, output, what: Nothing {} }) => {
            done(&connect, output, |with| WEBHOOKS.list(with, None))
        }
        Webhooks::Add(Asked { connect, output, what }) => {
            done(&connect, output, move |with| add(with, &what))
        }
        Webhooks::Rm(Asked { connect, output, what }) => done(&connect, output, move |with| {
            let id = WEBHOOKS.whole(with, &what.id)?;
            with.client.ask(&Ask::delete(WEBHOOKS.of(&id)))?;
            tell(&format!("deleted webhook {}", safe::line(&id)));
            Ok(())
        }),
        Webhooks::Test(Asked { connect, output, what }) => done(&connect, output, move |with| {
            let id = WEBHOOKS.whole(with, &what.id)?;
            accepted(with, &format!("{}/test", WEBHOOKS.of(&id)))
        }),
        Webhooks::Deliveries(Asked { connect, output, what }) => done(&connect, output, move |with| {
            let id = WEBHOOKS.whole(with, &what.id)?;
            DELIVERIES.list_at(with, &format!("{}/deliveries", WEBHOOKS.of(&id)), None)
        }),
        Webhooks::Redeliver(Asked { connect, output, what }) => done(&connect, output, move |with| {
            let id = WEBHOOKS.whole(with, &what.id)?;
            let path = format!("{}/deliveries/{}/redeliver", WEBHOOKS.of(&id), escaped(&what.delivery));
            accepted(with, &path)
        }),
        Webhooks::RotateSecret(Asked { connect, output, what }) => done(&connect, output, move |with| {
            let id = WEBHOOKS.whole(with, &what.id)?;
            secret(with, &Ask::post(format!("{}/rotate-secret", WEBHOOKS.of(&id)), &json!({})))
        }),
        Webhooks::CallbackSecret(Asked { connect, output, what }) => done(&connect, output, move |with| {
            secret(
                with,
                &match what.rotate {
                    true => Ask::post("/v1/callback-secret/rotate", &json!({})),
                    false => Ask::get("/v1/callback-secret"),
                },
            )
        }),
    }
}

/// Prints the secret that is answered.
fn secret(with: &mut With, ask: &Ask) -> Result<(), Failure> {
    let told = with.client.ask(ask)?.json()?;
    print(&safe::line(text(&told, "/secret")));
    Ok(())
}

fn add(with: &mut With, Add { hook, types, queues, kinds }: &Add) -> Result<(), Failure> {
    let body = json!({ "url": hook, "types": types, "queues": queues, "kinds": kinds });
    let answer = with.client.ask(&Ask::post(WEBHOOKS.path, &body))?;
    if with.out.chosen().is_some() {
        return WEBHOOKS.one(with, &answer.text());
    }
    let made = answer.json()?;
    tell(&format!("created webhook {}; its secret, shown only once:", safe::line(text(&made, "/id"))));
    print(&safe::line(text(&made, "/secret")));
    Ok(())
}

fn accepted(with: &mut With, path: &str) -> Result<(), Failure> {
    let accepted = with.client.ask(&Ask::post(path, &json!({})))?.json()?;
    tell("delivery job:");
    print(&safe::line(text(&accepted, "/id")));
    Ok(())
}
