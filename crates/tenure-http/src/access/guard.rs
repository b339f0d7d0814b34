//! What stands before every route: nobody passes who may not.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use axum::http::{Extensions, HeaderMap};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tenure::Timestamp;

use super::audited::{Noted, audited};
use super::strangers::Remote;
use super::tokens::{AccessToken, Proof, TokenQuotas};
use super::{Access, ClientCertificate, Needs, NoGrant, Principal, Reach, Scope, Within, last_used};
use crate::api::{Api, asks_to_reveal};
use crate::audit::{self, Act, Caller, Origin, Source, Target};
use crate::hide::View;
use crate::in_transit::counted;
use crate::memory::{Client, ClientSlot};
use crate::problem::{Problem, ProblemType};

/// What is told of an access token that is good no more.
const TAKEN_BACK: &str = "unknown, expired or revoked access token";

type Found = Arc<(AccessToken, String)>;

/// The refusal of a client that has not proved its identity.
const NO_HEADER: &str = "missing or repeated Authorization header; expected `Bearer` and an access token";
/// The right of operators.
const MANAGE: Needs = Needs::One(&[Scope::Manage]);
/// The digest of a client without a stored access token.
const NOT_STORED: String = String::new();

/// Returns `true` if the store has the access token, which can then be revoked.
pub(super) fn is_stored(found: &Found) -> bool {
    !found.1.is_empty()
}

/// Who asks, as far as that is known.
#[derive(Debug, Clone)]
pub(crate) struct Who(pub Option<Found>);

/// Marks a request that reaches only the client's own jobs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnOnly;

/// What stands before one route.
#[derive(Clone)]
pub(crate) struct Guard {
    pub api: Api,
    pub needs: Needs,
    pub within: Within,
    pub target: Target,
}

impl Who {
    fn scopes(&self) -> &[Scope] {
        self.0.as_ref().map_or(&[], |found| &found.0.scopes)
    }

    /// Returns the access token, unless the client has proved its identity in another way.
    pub(crate) fn token(&self) -> Option<&AccessToken> {
        self.0.as_ref().filter(|found| is_stored(found)).map(|found| &found.0)
    }

    /// Returns the name and scopes of a client that has proved its identity without an access token.
    pub(crate) fn principal(&self) -> Option<&AccessToken> {
        self.0.as_ref().filter(|found| !is_stored(found)).map(|found| &found.0)
    }

    /// The ID of the access token, if there is one.
    pub(crate) fn token_id(&self) -> Option<&str> {
        self.token().map(|token| token.id.as_str())
    }

    /// Returns the ID of the access token or the name of the principal, by which quotas count workers.
    pub(crate) fn counted_by(&self) -> Option<&str> {
        self.0.as_ref().map(|found| found.0.id.as_str())
    }

    /// Returns the name of the access token, which owns the jobs that the token enqueues.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.as_ref().map(|found| found.0.name.as_str())
    }

    /// Returns how much of a job the client sees. An access token sees hidden values only if it asks to reveal them and
    /// may. A claim does not use this: a worker gets its jobs as they are.
    pub(crate) fn view(&self, reveals: bool) -> View {
        match &self.0 {
            None => View::Plain,
            Some(_) if reveals && self.may_manage() => View::Revealed,
            Some(_) => View::Hidden,
        }
    }

    /// Returns `true` if the access token has the scope `read`.
    pub(crate) fn may_read(&self) -> bool {
        Needs::One(&[Scope::Read]).are_met(self.scopes())
    }

    /// Returns `true` if the access token has the scope `manage`.
    pub(crate) fn may_manage(&self) -> bool {
        MANAGE.are_met(self.scopes())
    }

    /// Which jobs he reaches.
    pub(crate) fn reach(&self) -> &Reach {
        static WHOLE: Reach = Reach::whole();
        self.0.as_ref().map_or(&WHOLE, |found| &found.0.reach)
    }

    /// Returns the quota of waiting jobs, and the name that they are counted by.
    pub(crate) fn waiting_quota(&self) -> Option<(&str, usize)> {
        let token = &self.0.as_ref()?.0;
        Some((&token.name, usize::try_from(token.quotas.max_waiting_jobs?).unwrap_or(usize::MAX)))
    }

    /// Returns `true` if the access token has a quota of its own.
    pub(crate) fn has_quotas(&self) -> bool {
        self.0.as_ref().is_some_and(|found| found.0.quotas != TokenQuotas::default())
    }

    /// Returns the reader of the audit log: it sees everything except hidden values.
    pub(crate) fn auditor() -> Self {
        let token = AccessToken {
            id: String::new(),
            name: "audit log".to_owned(),
            scopes: vec![Scope::Admin],
            reach: Reach::whole(),
            quotas: TokenQuotas::default(),
            created: Timestamp::EPOCH,
            expires: None,
            certificate_sha256: None,
            last_used: None,
        };
        Self(Some(Arc::new((token, NOT_STORED))))
    }
}

/// Lets a request through to its route if whoever sends it may, and writes down what needs to be.
pub(crate) async fn guarded(
    State(Guard { api, needs, within, target }): State<Guard>,
    mut request: Request,
    next: Next,
) -> Response {
    // What only needs the right to look changes nothing, however it is asked.
    let changes = !request.method().is_safe() && needs != Needs::One(&[Scope::Read]);
    let who = match who(&api, (needs, within), request.headers(), request.extensions()).await {
        Ok(who) => who,
        Err(problem) => {
            if matches!(problem.problem_type(), ProblemType::Unauthenticated | ProblemType::RateLimited) {
                let origin = Origin::of(request.extensions());
                let act = Act::of(&Who(None), &target, &request).refused(request.headers());
                audit::record_refusal(&api, origin, act.answered(problem.problem_type().status()));
            }
            return refused(problem);
        }
    };
    if api.is_read_only() && changes && !matches!(needs, Needs::Nothing | Needs::Optional | Needs::Anyone) {
        let detail = "this server is read-only; send changes to another server";
        return Problem::new(ProblemType::ReadOnly, detail).into_response();
    }
    let reveals = who.0.is_some() && asks_to_reveal(request.uri().query());
    if reveals && !who.may_manage() {
        let detail = "showing hidden values requires the scope manage";
        return Problem::new(ProblemType::Forbidden, detail).with("needs", "manage").into_response();
    }
    let is_command = request.extensions().get::<Caller>().is_some_and(|caller| caller.source == Source::Cli);
    let scopes = if is_command { &[Scope::Admin] } else { who.scopes() };
    let is_audited = reveals || (changes && needs.is_audited(scopes));
    let is_operators = who.0.is_none() || MANAGE.are_met(scopes);
    let noted =
        is_audited.then(|| Noted { act: Act::of(&who, &target, &request), target, changes, is_operators });
    let client = Client::of(api.access(), &who, request.extensions());
    if let Some(slot) = request.extensions().get::<ClientSlot>() {
        slot.note(&client);
    }
    if let Err(lack) = api.transfer().responses.check_debt(&client) {
        return Problem::from(lack).into_response();
    }
    request.extensions_mut().insert(client.clone());
    request.extensions_mut().insert(who.clone());
    if who.0.is_some() && needs.are_met_by_enqueue_alone(who.scopes()) {
        request.extensions_mut().insert(OwnOnly);
    }
    let waits = who.0.is_some() && request.headers().contains_key("prefer");
    let count = Count { client, is_change: changes };
    let done = done(&api, (noted, count), request, next);
    let response = if waits {
        tokio::select! {
            biased;
            response = done => response,
            // What he has asked for goes on or not as if he had hung up.
            () = api.followed().taken_back(api.tenure().clone(), who.clone()) => {
                return refused(Problem::new(ProblemType::Unauthenticated, TAKEN_BACK));
            }
        }
    } else {
        done.await
    };
    api.followed().until_taken_back(api.tenure().clone(), who, response)
}

/// The client that a response counts against.
pub(super) struct Count {
    client: Client,
    is_change: bool,
}

impl Count {
    /// Counts a response. Call it before writing the audit entry: a response that waits for the entry takes memory, too.
    pub(super) fn response(self, api: &Api, response: Response) -> Response {
        counted(&api.transfer().responses, self.client, self.is_change, response)
    }
}

/// Serves a request, and writes its audit entry if it needs one.
async fn done(api: &Api, (noted, count): (Option<Noted>, Count), request: Request, next: Next) -> Response {
    let Some(noted) = noted else { return count.response(api, next.run(request).await) };
    let api = api.clone();
    // In a task: the entry is written even if the client hangs up.
    let done = tokio::spawn(async move { audited(&api, (noted, count), request, next).await });
    done.await.unwrap_or_else(|_| {
        let detail = "internal error; see the server log";
        Problem::new(ProblemType::Internal, detail).into_response()
    })
}

async fn who(
    api: &Api,
    (needs, within): (Needs, Within),
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Who, Problem> {
    if api.access() == Access::Open || needs == Needs::Nothing {
        return Ok(Who(None));
    }
    // A token takes precedence, so that a client with a certificate can act with fewer rights.
    let found = if headers.contains_key(AUTHORIZATION) {
        by_token(api, headers, extensions.get::<Remote>().copied()).await?
    } else {
        match without_token(api, extensions).await? {
            Some(found) => found,
            None if needs == Needs::Optional => return Ok(Who(None)),
            None => return Err(unproven(extensions)),
        }
    };
    if is_stored(&found) {
        last_used::note(api, &found.0);
    }
    if let Some(rate) = found.0.quotas.max_requests_per_second {
        api.rates().take(&found.0.id, rate, api.tenure().store().clock().moment())?;
    }
    if !needs.are_met(&found.0.scopes) {
        let holder = if is_stored(&found) { "access token " } else { "" };
        let detail = format!("this requires the scope {needs}, which {holder}{} lacks", found.0.id);
        return Err(Problem::new(ProblemType::Forbidden, detail).with("needs", needs.to_string()));
    }
    if within == Within::Whole && !found.0.reach.is_whole() {
        let detail = format!(
            "this concerns the whole store, but access token {} is limited to some queues or kinds",
            found.0.id
        );
        return Err(Problem::new(ProblemType::Forbidden, detail).with("within", within.to_string()));
    }
    Ok(Who(Some(found)))
}

/// Returns the access token that is bound to the client's certificate, else the client that a grant names.
async fn without_token(api: &Api, extensions: &Extensions) -> Result<Option<Found>, Problem> {
    if let Some(certificate) = extensions.get::<ClientCertificate>() {
        let bound = api.known().find(api.tenure(), &Proof::of_certificate(certificate)).await?;
        if bound.is_some() {
            return Ok(bound);
        }
    }
    let principal = extensions.get::<Principal>();
    Ok(principal.map(|principal| Arc::new((principal.token(), NOT_STORED))))
}

/// Refuses a client without a token. A certificate or a local user is no guess, so the refusal does not count as one.
fn unproven(extensions: &Extensions) -> Problem {
    let detail = match (extensions.get::<NoGrant>(), extensions.get::<ClientCertificate>()) {
        (Some(none), _) => none.detail.to_string(),
        (None, Some(ClientCertificate(sha256))) => format!(
            "no access token is bound to the client certificate {sha256}, and no grant names it; bind one with \
             `tenure token create --certificate-sha256`, or send a bearer token"
        ),
        (None, None) => NO_HEADER.to_owned(),
    };
    Problem::new(ProblemType::Unauthenticated, detail)
}

/// Returns the access token in the header.
async fn by_token(api: &Api, headers: &HeaderMap, remote: Option<Remote>) -> Result<Found, Problem> {
    let nobody = |detail: &str| Problem::new(ProblemType::Unauthenticated, detail);
    let mut said = headers.get_all(AUTHORIZATION).iter();
    let (Some(said), None) = (said.next(), said.next()) else {
        return Err(nobody(NO_HEADER));
    };
    let text = said.to_str().ok().and_then(|said| {
        let (scheme, text) = said.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(text.trim())
    });
    let text =
        text.ok_or_else(|| nobody("invalid Authorization header; expected `Bearer` and an access token"))?;
    // Other clients may share this address. Their bad tokens must not lock out a valid one, so every token is looked up.
    let found = match Proof::of_text(text) {
        Some(proof) => api.known().find(api.tenure(), &proof).await?,
        None => None,
    };
    found.ok_or_else(|| unknown(api, remote))
}

/// Refuses an unknown token and counts it. Beyond the limit of the address, the response is 429 with `Retry-After`.
fn unknown(api: &Api, remote: Option<Remote>) -> Problem {
    let now = api.tenure().store().clock().moment();
    let Some(remote) = remote else { return Problem::new(ProblemType::Unauthenticated, TAKEN_BACK) };
    if let Some(wait) = api.strangers().wait(remote, api.unknown_tokens_per_minute(), now) {
        let detail = "too many unknown access tokens from this address; retry after the delay in Retry-After";
        return Problem::new(ProblemType::RateLimited, detail).retry_after(wait);
    }
    api.strangers().note(remote, now);
    Problem::new(ProblemType::Unauthenticated, TAKEN_BACK)
}

fn refused(problem: Problem) -> Response {
    let is_unknown = problem.problem_type() == ProblemType::Unauthenticated;
    let mut response = problem.into_response();
    if is_unknown {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
