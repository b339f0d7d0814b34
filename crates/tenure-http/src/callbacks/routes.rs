//! Webhooks over HTTP.

use axum::body::Body;
use axum::extract::{OriginalUri, Path};
use axum::http::header::{CACHE_CONTROL, HeaderMap, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use tenure::{
    Cursor, Filter, Invalid, JobId, JobRecord, Kind, Name, Order, PageAsk, QueueName, State as JobState,
};

use super::delivery;
use super::end;
use super::event::{self, EventDocument};
use super::signature::Secret;
use super::target::Target;
use super::webhook::{self, Disabled, Kept, KeptSecret, Webhook, Webhooks, no_secret, rotated};
use super::wire::{
    CallbackSecret, DeliveryAccepted, DeliveryDocument, DeliveryPage, NAMES, NewWebhookDocument, WebhookAsk,
    WebhookDocument, WebhookList, WebhookPatch,
};
use crate::answer::{self, json};
use crate::api::Api;
use crate::body;
use crate::jobs::act::Nothing;
use crate::paging::Paging;
use crate::problem::{Problem, ProblemType};
use crate::query::Query;
use crate::wire::AttemptDocument;

/// The largest body.
const BODY_BYTES: usize = 64 * 1024;
/// Bytes of an id, which may be a name that somebody gives.
const ID_BYTES: usize = 64;
/// Deliveries of a page at most: each comes with its attempts.
const PAGE: usize = 200;

/// What is asked for, if it may be, and the secret that was said.
async fn asked(api: &Api, headers: &HeaderMap, body: Body) -> Result<(WebhookAsk, Option<Secret>), Problem> {
    let ask: WebhookAsk = body::json(headers, &body::read(api, body, BODY_BYTES).await?)?;
    check_url(api, &ask.url)?;
    check_types(&ask.types)?;
    check_queues(&ask.queues)?;
    check_kinds(&ask.kinds)?;
    let secret = ask.secret.as_deref().map(Secret::read).transpose()?;
    Ok((ask, secret))
}

fn new(api: &Api, ask: &WebhookAsk, secret: &Secret) -> Kept {
    let WebhookAsk { url, types, queues, kinds, .. } = ask;
    let (secrets, created) = (vec![KeptSecret::of(secret)], api.tenure().now());
    let [types, queues, kinds] = [types, queues, kinds].map(Clone::clone);
    Kept {
        url: url.clone(),
        types,
        queues,
        kinds,
        secrets,
        created,
        behind: 0,
        disabled: None,
        skipped: None,
    }
}

/// `POST /v1/webhooks`
pub(crate) async fn create(api: Api, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let (ask, secret) = asked(&api, &headers, body).await?;
    let secret = secret.map_or_else(|| Secret::draw().map_err(no_secret), Ok)?;
    let made = Webhooks::of(api.tenure()).create(new(&api, &ask, &secret)).await?;
    api.teller().look();
    Ok(told_once(StatusCode::CREATED, &made, &secret))
}

/// `PUT /v1/webhooks/{webhook_id}`
pub(crate) async fn put(
    api: Api,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (ask, said) = asked(&api, &headers, body).await?;
    check_id(&id)?;
    let (webhooks, now) = (Webhooks::of(api.tenure()), api.tenure().now());
    let is_so = |kept: &Kept| {
        let signs = |secret: &Secret| webhook::secrets(&kept.secrets, now).first() == Some(secret);
        (&kept.url, &kept.types, &kept.queues, &kept.kinds) == (&ask.url, &ask.types, &ask.queues, &ask.kinds)
            && said.as_ref().is_none_or(signs)
    };
    let there = match webhooks.find(&id).await? {
        Some(there) if is_so(&there.kept) => return Ok(json(StatusCode::OK, &WebhookDocument::of(&there))),
        there => there,
    };
    if there.is_none() {
        let secret = said.clone().map_or_else(|| Secret::draw().map_err(no_secret), Ok)?;
        if let Some(made) = webhooks.create_as(&id, new(&api, &ask, &secret)).await? {
            api.teller().look();
            return Ok(told_once(StatusCode::CREATED, &made, &secret));
        }
    }
    let change = |kept: &mut Kept| {
        let [types, queues, kinds] = [&ask.types, &ask.queues, &ask.kinds].map(Clone::clone);
        (kept.types, kept.queues, kept.kinds) = (types, queues, kinds);
        kept.url.clone_from(&ask.url);
        if let Some(secret) = &said
            && webhook::secrets(&kept.secrets, now).first() != Some(secret)
        {
            rotated(&mut kept.secrets, secret, now);
        }
    };
    let changed = webhooks.change(&id, change, Vec::new()).await?;
    api.teller().look();
    Ok(json(StatusCode::OK, &WebhookDocument::of(&changed.ok_or_else(|| none(&id))?)))
}

/// `GET /v1/webhooks`
pub(crate) async fn list(api: Api, OriginalUri(uri): OriginalUri) -> Result<Response, Problem> {
    let paging = Paging::read(uri.query())?;
    let all = Webhooks::of(api.tenure()).all().await?;
    let (webhooks, next_cursor) = paging.cut(&all, |webhook| webhook.id.clone());
    let items = webhooks.into_iter().map(WebhookDocument::of).collect();
    Ok(answer::page(&uri, next_cursor.clone().as_deref(), &WebhookList { items, next_cursor }))
}

/// `GET /v1/webhooks/{webhook_id}`
pub(crate) async fn get(api: Api, Path(id): Path<String>) -> Result<Response, Problem> {
    Ok(json(StatusCode::OK, &WebhookDocument::of(&find(&api, &id).await?)))
}

/// `PATCH /v1/webhooks/{webhook_id}`
pub(crate) async fn patch(
    api: Api,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let patch: WebhookPatch = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    find(&api, &id).await?;
    patch.url.as_deref().map_or(Ok(()), |url| check_url(&api, url))?;
    patch.types.as_deref().map_or(Ok(()), check_types)?;
    patch.queues.as_deref().map_or(Ok(()), check_queues)?;
    patch.kinds.as_deref().map_or(Ok(()), check_kinds)?;
    let now = api.tenure().now();
    let change = |kept: &mut Kept| {
        let set = |place: &mut Vec<String>, value: &Option<Vec<String>>| {
            if let Some(value) = value {
                place.clone_from(value);
            }
        };
        set(&mut kept.types, &patch.types);
        set(&mut kept.queues, &patch.queues);
        set(&mut kept.kinds, &patch.kinds);
        if let Some(url) = &patch.url {
            kept.url.clone_from(url);
        }
        match patch.enabled {
            Some(true) => kept.disabled = None,
            Some(false) if kept.disabled.is_none() => {
                kept.disabled = Some(Disabled { at: now, why: "disabled by request".to_owned() });
            }
            Some(false) | None => {}
        }
    };
    let changed = Webhooks::of(api.tenure()).change(&id, change, Vec::new()).await?;
    api.teller().look();
    Ok(json(StatusCode::OK, &WebhookDocument::of(&changed.ok_or_else(|| none(&id))?)))
}

/// `DELETE /v1/webhooks/{webhook_id}`
pub(crate) async fn delete(api: Api, Path(id): Path<String>) -> Result<Response, Problem> {
    check_id(&id)?;
    match Webhooks::of(api.tenure()).remove(&id).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(none(&id)),
    }
}

/// `POST /v1/webhooks/{webhook_id}/rotate-secret`
pub(crate) async fn rotate(
    api: Api,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let Nothing {} = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    check_id(&id)?;
    let (secret, now) = (Secret::draw().map_err(no_secret)?, api.tenure().now());
    let change = |kept: &mut Kept| rotated(&mut kept.secrets, &secret, now);
    let changed = Webhooks::of(api.tenure()).change(&id, change, Vec::new()).await?;
    Ok(told_once(StatusCode::OK, &changed.ok_or_else(|| none(&id))?, &secret))
}

fn of_callbacks(secret: &Secret) -> Response {
    let mut response = json(StatusCode::OK, &CallbackSecret { secret: secret.text() });
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// `GET /v1/callback-secret`
pub(crate) async fn callback_secret(api: Api) -> Result<Response, Problem> {
    Ok(of_callbacks(&end::secret(api.tenure()).await?))
}

/// `POST /v1/callback-secret/rotate`
pub(crate) async fn rotate_callback_secret(
    api: Api,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let Nothing {} = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    Ok(of_callbacks(&end::rotate(api.tenure()).await?))
}

/// `POST /v1/webhooks/{webhook_id}/test`
pub(crate) async fn test(
    api: Api,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let Nothing {} = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let webhook = find(&api, &id).await?;
    let event_id = format!("test.{}", api.tenure().new_id());
    let mut event = EventDocument::of("webhook.test", event_id, &webhook.id, api.tenure().now());
    event.data = serde_json::json!({ "webhook_id": webhook.id });
    let text = serde_json::to_vec(&event).unwrap_or_default();
    accepted(&api, delivery::draft(&webhook.id, &event.id, &text)?).await
}

/// `GET /v1/webhooks/{webhook_id}/deliveries`
pub(crate) async fn deliveries(
    api: Api,
    Path(id): Path<String>,
    OriginalUri(uri): OriginalUri,
) -> Result<Response, Problem> {
    let query = Query::read(uri.query(), &["state", "cursor", "limit"])?;
    let webhook = find(&api, &id).await?;
    let filter = Filter {
        queues: vec![QueueName::new(delivery::QUEUE)?],
        tags: vec![Name::new("tag", &delivery::tag(&webhook.id))?],
        states: query.sought("state")?,
        ..Filter::default()
    };
    let ask = PageAsk {
        filter,
        after: query.one::<Cursor>("cursor")?,
        at_most: query.limit(PAGE)?,
        order: Order::NewestFirst,
        ..PageAsk::default()
    };
    let page = api.tenure().jobs().page(ask).await?;
    let mut items = Vec::new();
    for job in &page.jobs {
        items.push(shown(&api, job).await?);
    }
    let next_cursor = page.next.map(|next| next.to_string());
    Ok(paged(&uri, DeliveryPage { items, next_cursor }))
}

/// `POST /v1/webhooks/{webhook_id}/deliveries/{id}/redeliver`
pub(crate) async fn redeliver(
    api: Api,
    Path((webhook, job)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let Nothing {} = body::json(&headers, &body::read(&api, body, BODY_BYTES).await?)?;
    let (webhook, id) = (find(&api, &webhook).await?, job.parse::<JobId>()?);
    let job = api.job(id).await?;
    let told = (job.kind.as_str() == delivery::KIND).then(|| delivery::delivers(&job)).flatten();
    let Some((_, text, _)) = told.filter(|(of, _, _)| *of == webhook.id) else {
        let detail = format!("webhook {} has no delivery {id}", webhook.id);
        return Err(Problem::new(ProblemType::NotFound, detail));
    };
    accepted(&api, delivery::again(&webhook.id, &text)?).await
}

fn paged(uri: &Uri, page: DeliveryPage) -> Response {
    answer::page(uri, page.next_cursor.clone().as_deref(), &page)
}

async fn accepted(api: &Api, draft: tenure::Draft) -> Result<Response, Problem> {
    let id = api.tenure().enqueue_draft(draft).await?.id();
    Ok(DeliveryAccepted::of(id).told(api.site(), id))
}

async fn shown(api: &Api, job: &JobRecord) -> Result<DeliveryDocument, Problem> {
    let event = delivery::delivers(job).map(|(_, _, event)| event);
    let attempts = api.tenure().jobs().attempts(job.id).await?;
    let (next, finished) = match job.state {
        JobState::Waiting { due, .. } | JobState::Blocked { due, .. } => (Some(due), None),
        JobState::Running { .. } => (None, None),
        JobState::Finished { at, .. } => (None, Some(at)),
    };
    Ok(DeliveryDocument {
        id: job.id.to_string(),
        event_id: event.as_ref().map(|event| event.id.clone()),
        event_type: event.map(|event| event.event_type),
        state: job.state.name(api.tenure().now()).as_str(),
        attempt: job.attempt,
        created_at: job.created.to_string(),
        next_attempt_at: next.map(|next| next.to_string()),
        finished_at: finished.map(|finished| finished.to_string()),
        attempts: attempts.iter().map(AttemptDocument::of).collect(),
    })
}

/// The answer with a secret, which nobody on the way may keep.
fn told_once(status: StatusCode, webhook: &Webhook, secret: &Secret) -> Response {
    let document = NewWebhookDocument { secret: secret.text(), webhook: WebhookDocument::of(webhook) };
    let mut response = json(status, &document);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn find(api: &Api, id: &str) -> Result<Webhook, Problem> {
    check_id(id)?;
    Webhooks::of(api.tenure()).find(id).await?.ok_or_else(|| none(id))
}

fn none(id: &str) -> Problem {
    Problem::new(ProblemType::NotFound, format!("webhook {id} not found"))
}

fn check_id(id: &str) -> Result<(), Invalid> {
    let is_fit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'.' | b'_' | b'-');
    if (1..=ID_BYTES).contains(&id.len()) && id.bytes().all(is_fit) {
        return Ok(());
    }
    Err(Invalid::new("webhook id", "invalid value", "1 to 64 characters of 0-9 a-z . _ -"))
}

pub(crate) fn check_url(api: &Api, url: &str) -> Result<(), Invalid> {
    Target::read(url)?.check(api.allowed())
}

fn check_types(types: &[String]) -> Result<(), Invalid> {
    if types.is_empty() {
        return Err(Invalid::new("types", "none", "at least one, such as job.failed, job.* or *"));
    }
    check_number("types", types)?;
    types.iter().try_for_each(|pattern| event::check_pattern(pattern))
}

pub(crate) fn check_queues(queues: &[String]) -> Result<(), Invalid> {
    check_number("queues", queues)?;
    let wrong = |wrong: Invalid| Invalid { field: "queues".to_owned(), ..wrong };
    queues.iter().try_for_each(|name| QueueName::new(name).map(drop).map_err(wrong))
}

pub(crate) fn check_kinds(kinds: &[String]) -> Result<(), Invalid> {
    check_number("kinds", kinds)?;
    let wrong = |wrong: Invalid| Invalid { field: "kinds".to_owned(), ..wrong };
    kinds.iter().try_for_each(|name| Kind::new(name).map(drop).map_err(wrong))
}

fn check_number(field: &str, names: &[String]) -> Result<(), Invalid> {
    if names.len() <= NAMES {
        return Ok(());
    }
    Err(Invalid::new(field, format_args!("{} entries", names.len()), format_args!("at most {NAMES}")))
}
