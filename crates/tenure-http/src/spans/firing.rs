//! The spans of timers: that one has fired, which is where the trace of its job begins.

use std::sync::Arc;

use tenure::schedule::Rule;
use tenure::{Fate, JobId, SlotRecord};
use tokio::sync::broadcast::error::RecvError;

use super::{Kind, Span, Value};
use crate::api::Api;

/// Tells of timers as this program fires them, until it is dropped or the store is closed.
pub(crate) async fn tell(api: Api) {
    let mut fired = api.tenure().fired();
    loop {
        let records: Arc<[SlotRecord]> = match fired.recv().await {
            Ok(records) => records,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        for record in records.iter() {
            if let Fate::Ran { job } = record.fate {
                tell_one(&api, record, job).await;
            }
        }
    }
}

async fn tell_one(api: &Api, record: &SlotRecord, job: JobId) {
    let Some(context) = api.spans().of_firing(job).filter(|context| context.is_told) else { return };
    let text = |value: &dyn std::fmt::Display| Value::Text(value.to_string());
    let mut attributes = vec![
        ("faas.trigger", text(&"timer")),
        ("faas.time", text(&record.last)),
        ("tenure.schedule", text(&record.timer)),
        ("messaging.message.id", text(&job)),
    ];
    // One that was removed meanwhile has no schedule any more, and has fired all the same.
    if let Ok(Some(timer)) = api.tenure().store().timer(&record.timer).await {
        attributes.push(("tenure.kind", text(&timer.agreed.job.kind)));
        attributes.push(("messaging.destination.name", text(&timer.agreed.job.queue)));
        if let Rule::Cron(cron) = timer.agreed.schedule.rule() {
            attributes.push(("faas.cron", text(cron)));
        }
    }
    api.spans().tell(Span {
        context,
        parent: None,
        links: Vec::new(),
        name: format!("fire {}", record.timer),
        kind: Kind::Internal,
        began: record.at,
        ended: api.tenure().now(),
        attributes,
        error: None,
    });
}
