//! Each attempt stands in a span, so that whatever a handler tells of is found by its job.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use tenure::testing::Lab;
use tenure::{Failed, Job, Run, Tenure, Worker};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps spans, and in which of them each event was.
#[derive(Clone, Default)]
pub(super) struct Listener(Arc<Heard>);

#[derive(Default)]
struct Heard {
    last: AtomicU64,
    spans: Mutex<BTreeMap<u64, (String, Fields)>>,
    within: Mutex<Vec<u64>>,
    events: Mutex<Vec<Told>>,
}

/// An event.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) level: tracing::Level,
    fields: Fields,
    within: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct Fields(BTreeMap<String, String>);

impl Told {
    pub(super) fn field(&self, name: &str) -> &str {
        self.fields.0.get(name).map(String::as_str).unwrap_or_default()
    }
}

impl Listener {
    pub(super) fn events(&self) -> Vec<Told> {
        self.0.events.lock().unwrap().clone()
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let number = self.0.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = Fields::default();
        span.record(&mut fields);
        self.0.spans.lock().unwrap().insert(number, (span.metadata().name().to_owned(), fields));
        Id::from_u64(number)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let within = self.0.within.lock().unwrap().last().copied();
        let level = *event.metadata().level();
        self.0.events.lock().unwrap().push(Told { level, fields, within });
    }

    fn enter(&self, span: &Id) {
        self.0.within.lock().unwrap().push(span.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.0.within.lock().unwrap().pop();
    }
}

#[derive(Serialize, Deserialize)]
struct Speak;

impl Job for Speak {
    const KIND: &'static str = "speak";
    const QUEUE: &'static str = "voices";
    type Output = ();
}

async fn speak(_: Run<()>, _: Speak) -> Result<(), Failed> {
    tokio::task::yield_now().await;
    tracing::info!("I speak");
    Err(Failed::retry("try again"))
}

#[tokio::test(flavor = "current_thread")]
async fn what_a_handler_tells_stands_in_the_span_of_its_attempt() {
    let listener = Listener::default();
    let _listening = tracing::subscriber::set_default(listener.clone());
    let mut lab = Lab::new(|tenure| Worker::new(tenure, ()).queue("voices", 2).job(speak));
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let id = lab.tenure().enqueue(Speak).meta("traceparent", parent).await.unwrap().id();
    lab.turn().await.unwrap();
    lab.advance(std::time::Duration::from_secs(3_600));
    lab.turn().await.unwrap();
    let holder = lab.tenure().jobs().get(id).await.unwrap().holder.unwrap();
    tracing::info!("outside");
    let events = listener.events();
    let spans = listener.0.spans.lock().unwrap().clone();
    let spoken: Vec<_> = events.iter().filter(|told| told.field("message") == "I speak").collect();
    assert_eq!(spoken.len(), 2, "{events:?}");
    for (number, told) in spoken.iter().enumerate() {
        let (name, Fields(fields)) = &spans[&told.within.expect("it is in a span")];
        assert_eq!(name, "attempt");
        let attempt = (number + 1).to_string();
        let expected = [
            ("attempt", attempt.as_str()),
            ("job.id", &id.to_string()),
            ("kind", "speak"),
            ("queue", "voices"),
            ("trace_id", &parent[3..35]),
            ("worker", &holder.to_string()),
        ];
        let told: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(told, expected);
    }
    let outside = events.iter().find(|told| told.field("message") == "outside").unwrap();
    assert_eq!(outside.within, None, "a span ends with its attempt");
}

#[derive(Serialize, Deserialize)]
struct Follow;

impl Job for Follow {
    const KIND: &'static str = "follow";
    type Output = ();
}

/// Jobs that a handler enqueues belong to the trace of its job, whichever handle it uses.
#[tokio::test]
async fn follow_up_jobs_stay_in_the_trace_of_their_job() {
    let mut lab = Lab::new(|tenure| {
        let own = tenure.clone();
        let follow = |run: Run<Tenure>, _: Follow| async move {
            if run.job().terms.meta.contains_key("again") {
                return Ok(());
            }
            run.app().enqueue(Follow).meta("again", "1").await?;
            run.tenure().enqueue(Speak).await?;
            Ok(())
        };
        let blocking = |run: Run<Tenure>, _: Block| {
            tokio::runtime::Handle::current().block_on(run.tenure().enqueue(Speak).into_future())?;
            Ok(())
        };
        Worker::new(tenure, own).queue("default", 4).job(follow).blocking_job(blocking)
    });
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    lab.tenure().enqueue(Follow).meta("traceparent", parent).await.unwrap();
    lab.tenure().enqueue(Block).meta("traceparent", parent).await.unwrap();
    lab.drain().await.unwrap();
    lab.tenure().enqueue(Speak).queue("outside").await.unwrap();
    let ask = tenure::PageAsk { at_most: 10, ..tenure::PageAsk::default() };
    let jobs = lab.tenure().jobs().page(ask).await.unwrap().jobs;
    assert_eq!(jobs.len(), 6, "two jobs, three that they enqueued, and one outside");
    for job in jobs {
        let trace = job.terms.meta.get("traceparent").map(String::as_str);
        assert_eq!(trace, (job.queue.as_str() != "outside").then_some(parent), "{}", job.kind);
    }
}

#[derive(Serialize, Deserialize)]
struct Block;

impl Job for Block {
    const KIND: &'static str = "block";
    type Output = ();
}
