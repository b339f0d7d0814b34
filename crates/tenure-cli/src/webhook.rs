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

/// What can be done with webhooks.
#[derive(Debug, Subcommand)]
pub(crate) enum Webhooks {
    /// Lists them
    List(Asked<Nothing>),
    /// Has what happens told to a URL, and prints the secret with which it is signed, this once
    Add(Asked<Add>),
    /// Removes one
    Rm(Asked<Id>),
    /// Has something told to one, to try it
    Test(Asked<Id>),
    /// What one was told, and how that went
    Deliveries(Asked<Id>),
    /// Tells one something once more
    Redeliver(Asked<Redeliver>),
    /// Gives one a new secret, and prints it, this once; for a day the old one signs as well
    RotateSecret(Asked<Id>),
    /// Prints the secret with which callbacks of jobs are signed
    CallbackSecret(Asked<CallbackSecret>),
}

#[derive(Debug, Args)]
pub(crate) struct Nothing {}

#[derive(Debug, Args)]
pub(crate) struct Id {
    /// Its id, as `tenure webhook list` shows it
    id: String,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Where what happens is told
    #[arg(value_name = "HOOK-URL")]
    hook: String,
    /// What is told, such as job.failed, job.* or *; may be said often
    #[arg(long = "type", value_name = "TYPE", required = true)]
    types: Vec<String>,
    /// Of this queue only; may be said often
    #[arg(long = "queue", value_name = "QUEUE")]
    queues: Vec<String>,
    /// Of this kind only; may be said often
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CallbackSecret {
    /// Draws another one; for a day the old one signs as well
    #[arg(long)]
    rotate: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Redeliver {
    /// The id of the webhook
    id: String,
    /// The id of the delivery, as `tenure webhook deliveries` shows it
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
            with.client.ask(&Ask::delete(WEBHOOKS.of(&what.id)))?;
            tell(&format!("{} is told of nothing more", safe::line(&what.id)));
            Ok(())
        }),
        Webhooks::Test(Asked { connect, output, what }) => {
            done(&connect, output, move |with| accepted(with, &format!("{}/test", WEBHOOKS.of(&what.id))))
        }
        Webhooks::Deliveries(Asked { connect, output, what }) => done(&connect, output, move |with| {
            DELIVERIES.list_at(with, &format!("{}/deliveries", WEBHOOKS.of(&what.id)), None)
        }),
        Webhooks::Redeliver(Asked { connect, output, what }) => done(&connect, output, move |with| {
            let path = format!("{}/deliveries/{}/redeliver", WEBHOOKS.of(&what.id), escaped(&what.delivery));
            accepted(with, &path)
        }),
        Webhooks::RotateSecret(Asked { connect, output, what }) => done(&connect, output, move |with| {
            secret(with, &Ask::post(format!("{}/rotate-secret", WEBHOOKS.of(&what.id)), &json!({})))
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
    tell(&format!("made {}; its secret is shown this once:", safe::line(text(&made, "/id"))));
    print(&safe::line(text(&made, "/secret")));
    Ok(())
}

fn accepted(with: &mut With, path: &str) -> Result<(), Failure> {
    let accepted = with.client.ask(&Ask::post(path, &json!({})))?.json()?;
    tell("it will be delivered by:");
    print(&safe::line(text(&accepted, "/id")));
    Ok(())
}
