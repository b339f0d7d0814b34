//! Sign-ins with an identity provider that misbehaves, and attacks on the way back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tenure::{Chance, Clock, ManualClock, MemoryStore, Tenure};
use tenure_http::{
    Access, Grants, Oidc, OidcAttempt, OidcCallback, OidcError, OidcOptions, OidcRequest, OidcSignIn,
    Options, Remote, Scope, Server,
};
use tokio::net::TcpListener;
use tower::ServiceExt;

/// An identity provider whose answers a test changes.
#[derive(Clone)]
struct Provider {
    issuer: String,
    tenure: Tenure,
    state: Arc<Mutex<Answers>>,
}

#[derive(Default)]
struct Answers {
    key: u8,
    claims: Value,
    user_info: Value,
    challenge: String,
    nonce: String,
    is_down: bool,
    asked: Vec<&'static str>,
}

struct Site {
    clock: ManualClock,
    provider: Provider,
    server: Server,
    oidc: Oidc,
}

impl Provider {
    async fn start(tenure: &Tenure) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(Answers { key: 1, ..Answers::default() }));
        let provider = Self { issuer, tenure: tenure.clone(), state };
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(description))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .route("/me", get(user_info))
            .with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        provider
    }

    fn set(&self, set: impl FnOnce(&mut Answers)) {
        set(&mut self.state.lock().unwrap());
    }

    fn asked(&self, what: &str) -> usize {
        self.state.lock().unwrap().asked.iter().filter(|asked| **asked == what).count()
    }
}

async fn description(State(provider): State<Provider>) -> Result<Json<Value>, StatusCode> {
    provider.set(|answers| answers.asked.push("description"));
    if provider.state.lock().unwrap().is_down {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let at = |path: &str| format!("{}/{path}", provider.issuer);
    Ok(Json(json!({
        "issuer": provider.issuer,
        "authorization_endpoint": at("authorize"),
        "token_endpoint": at("token"),
        "jwks_uri": at("keys"),
        "userinfo_endpoint": at("me"),
    })))
}

fn pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

async fn keys(State(provider): State<Provider>) -> Json<Value> {
    provider.set(|answers| answers.asked.push("keys"));
    let key = provider.state.lock().unwrap().key;
    let x = BASE64_URL_SAFE_NO_PAD.encode(pair(key).public_key());
    Json(json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": key.to_string() }] }))
}

async fn user_info(State(provider): State<Provider>, headers: HeaderMap) -> Json<Value> {
    provider.set(|answers| answers.asked.push("me"));
    assert_eq!(headers["authorization"], "Bearer at");
    Json(provider.state.lock().unwrap().user_info.clone())
}

/// Checks the client and the PKCE verifier, and signs the claims that the test has set.
async fn token(
    State(provider): State<Provider>,
    headers: HeaderMap,
    form: String,
) -> (StatusCode, Json<Value>) {
    provider.set(|answers| answers.asked.push("token"));
    let answers = provider.state.lock().unwrap();
    let field = |name: &str| {
        let found = form.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        found.unwrap_or_default().to_owned()
    };
    // Both halves are encoded as in a form (RFC 6749, section 2.3.1).
    let basic = format!("Basic {}", BASE64_STANDARD.encode("tenure:hush%20hush"));
    if headers["authorization"] != basic.as_str() {
        return (StatusCode::UNAUTHORIZED, Json(json!({ "error": "invalid_client" })));
    }
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier")));
    if challenge != answers.challenge
        || field("code") != "good"
        || field("grant_type") != "authorization_code"
    {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" })));
    }
    let now = provider.tenure.now().as_micros() / 1_000_000;
    let mut claims = json!({
        "iss": provider.issuer, "sub": "7", "aud": "tenure", "exp": now + 300, "iat": now, "nonce": answers.nonce,
    });
    for (name, value) in answers.claims.as_object().into_iter().flatten() {
        claims[name] = value.clone();
    }
    let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let header = json!({ "alg": "EdDSA", "kid": answers.key.to_string() });
    let message = format!("{}.{}", part(header), part(claims));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(pair(answers.key).sign(message.as_bytes()));
    (StatusCode::OK, Json(json!({ "id_token": format!("{message}.{signature}"), "access_token": "at" })))
}

impl Site {
    async fn start() -> Self {
        let clock = ManualClock::new();
        let memory = MemoryStore::new(Arc::new(clock.clone()) as Arc<dyn Clock>);
        let tenure = Tenure::on(Arc::new(memory), Chance::seeded(1));
        let provider = Provider::start(&tenure).await;
        provider.set(|answers| answers.claims = json!({ "groups": ["ops"] }));
        let mut options = Options::default();
        options.bind = ([127, 0, 0, 1], 0).into();
        options.access = Access::Tokens;
        options.public_url = Some("https://jobs.example.com/t/".to_owned());
        options.unknown_tokens_per_minute = 3;
        options.grants = Grants::new(vec!["group:ops=manage".parse().unwrap()]);
        let server = Server::bind(&tenure, options).await.unwrap();
        let mut oidc = OidcOptions::new(&provider.issuer, "tenure");
        oidc.client_secret = Some("hush hush".to_owned());
        let oidc = server.oidc(oidc).unwrap();
        Self { clock, provider, server, oidc }
    }

    /// Begins an attempt as a browser would, and tells the provider of it.
    async fn begin(&self, name: &str) -> Result<OidcAttempt, OidcError> {
        let attempt = OidcAttempt {
            state: format!("state {name}"),
            nonce: format!("nonce {name}"),
            verifier: "v".repeat(43) + name,
        };
        let url = self.oidc.start(&attempt).await?;
        let field =
            |name: &str| url.split(['?', '&']).find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        assert_eq!(field("code_challenge_method"), Some("S256"));
        assert_eq!(
            field("redirect_uri"),
            Some("https%3A%2F%2Fjobs.example.com%2Ft%2Fui%2Fsign-in%2Fcallback")
        );
        let challenge = field("code_challenge").unwrap().to_owned();
        assert!(!url.contains(&attempt.verifier));
        self.provider.set(|answers| {
            answers.challenge = challenge;
            answers.nonce.clone_from(&attempt.nonce);
        });
        Ok(attempt)
    }

    async fn finish(&self, attempt: Option<&OidcAttempt>, query: Value) -> Result<OidcSignIn, OidcError> {
        let callback: OidcCallback = serde_json::from_value(query).unwrap();
        let remote = Some(Remote([192, 0, 2, 1].into()));
        let request = OidcRequest { remote, request_id: None, path: "/ui/sign-in/callback".to_owned() };
        self.oidc.finish(attempt, &callback, &request).await
    }

    /// A whole sign-in.
    async fn sign_in(&self, name: &str) -> Result<OidcSignIn, OidcError> {
        let attempt = self.begin(name).await?;
        self.finish(Some(&attempt), json!({ "code": "good", "state": attempt.state })).await
    }

    async fn audit(&self) -> Vec<Value> {
        let request = axum::http::Request::get("/v1/audit").header("host", "localhost");
        let request = request.body(axum::body::Body::empty()).unwrap();
        let Ok(response) = self.server.own_contract().oneshot(request).await;
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        serde_json::from_slice::<Value>(&bytes).unwrap()["items"].as_array().unwrap().clone()
    }
}

#[tokio::test]
async fn a_sign_in_has_the_scopes_of_the_groups_and_is_recorded() {
    let site = Site::start().await;
    site.provider.set(|answers| {
        answers.claims =
            json!({ "groups": ["ops", "dev"], "name": "Ada", "email": "ada@example.com", "email_verified": true });
    });
    let found = site.sign_in("1").await.unwrap();
    assert_eq!((found.principal.name.as_str(), found.label.as_str()), ("oidc:7", "ada@example.com"));
    assert_eq!(found.principal.scopes, [Scope::Manage]);
    let audit = site.audit().await;
    let entry = &audit[0];
    assert_eq!((&entry["who"], &entry["source"]), (&"oidc:7".into(), &"dashboard".into()));
    assert_eq!((&entry["object"]["kind"], &entry["address"]), (&"sign-in".into(), &"192.0.2.1".into()));
    assert_eq!(entry["after"]["scopes"], json!(["manage"]));
    assert!(!entry.to_string().contains("eyJ"), "a token in the log: {entry}");
}

#[tokio::test]
async fn a_new_key_is_fetched_and_unknown_keys_do_not_flood_the_provider() {
    let site = Site::start().await;
    site.sign_in("1").await.unwrap();
    site.provider.set(|answers| answers.key = 2);
    site.clock.advance(Duration::from_secs(9));
    let early = site.sign_in("2").await.unwrap_err();
    assert!(early.to_string().contains("unknown key"), "{early}");
    assert_eq!(site.provider.asked("keys"), 1);
    site.clock.advance(Duration::from_secs(1));
    site.sign_in("3").await.unwrap();
    assert_eq!((site.provider.asked("keys"), site.provider.asked("description")), (2, 1));
}

#[tokio::test]
async fn an_attempt_is_finished_once_and_only_by_its_browser() {
    let site = Site::start().await;
    let attempt = site.begin("1").await.unwrap();
    let query = json!({ "code": "good", "state": attempt.state });
    let other = OidcAttempt { state: "state of another browser".to_owned(), ..attempt.clone() };
    for attempt in [None, Some(&other)] {
        assert!(matches!(site.finish(attempt, query.clone()).await, Err(OidcError::Expired)));
    }
    assert_eq!(site.provider.asked("token"), 0, "the provider was not asked");
    site.finish(Some(&attempt), query.clone()).await.unwrap();
    assert!(matches!(site.finish(Some(&attempt), query).await, Err(OidcError::Expired)), "used before");
    assert_eq!(site.provider.asked("token"), 1);
}

#[tokio::test]
async fn a_token_for_another_attempt_is_refused() {
    let site = Site::start().await;
    let attempt = site.begin("1").await.unwrap();
    site.provider.set(|answers| answers.nonce = "nonce of another attempt".to_owned());
    let query = json!({ "code": "good", "state": attempt.state });
    let refused = site.finish(Some(&attempt), query).await.unwrap_err();
    assert!(refused.to_string().contains("nonce"), "{refused}");
    // A code that an attacker has put into the way back was issued for another verifier.
    let attempt = site.begin("2").await.unwrap();
    site.provider.set(|answers| answers.challenge = "of another verifier".to_owned());
    let query = json!({ "code": "good", "state": attempt.state });
    assert!(matches!(site.finish(Some(&attempt), query).await, Err(OidcError::Denied(_))));
    // A refusal is recorded by a task.
    while site.audit().await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(site.audit().await[0]["who"], "anonymous");
}

#[tokio::test]
async fn a_response_of_another_issuer_or_with_an_error_is_refused() {
    let site = Site::start().await;
    let attempt = site.begin("1").await.unwrap();
    let state = &attempt.state;
    let iss = json!({ "code": "good", "state": state, "iss": "https://evil.example" });
    let error = json!({ "error": "access_denied", "state": state });
    let odd = json!({ "error": "<script>", "state": state });
    for (query, why) in [(iss, "another issuer"), (error, "access_denied"), (odd, "unknown error")] {
        let refused = site.finish(Some(&attempt), query).await.unwrap_err();
        assert!(matches!(&refused, OidcError::Denied(text) if text.contains(why)), "{refused}");
    }
    assert_eq!(site.provider.asked("token"), 0);
}

#[tokio::test]
async fn failed_sign_ins_are_throttled_by_address() {
    let site = Site::start().await;
    for number in 0..3 {
        let attempt = site.begin(&format!("denied {number}")).await.unwrap();
        let denied = json!({ "state": attempt.state, "error": "access_denied" });
        assert!(matches!(site.finish(Some(&attempt), denied).await, Err(OidcError::Denied(_))));
    }
    assert!(matches!(site.sign_in("1").await, Err(OidcError::TooMany(_))));
    assert_eq!(site.provider.asked("token"), 0);
    assert!(matches!(site.finish(None, json!({ "state": "x" })).await, Err(OidcError::Expired)));
    site.clock.advance(Duration::from_secs(60));
    site.sign_in("2").await.unwrap();
}

#[tokio::test]
async fn responses_without_the_cookie_lock_out_no_person_at_the_same_address() {
    let site = Site::start().await;
    for _ in 0..10 {
        assert!(matches!(site.finish(None, json!({ "state": "x" })).await, Err(OidcError::Expired)));
    }
    let attempt = site.begin("1").await.unwrap();
    for _ in 0..10 {
        let forged = json!({ "code": "bad", "state": "x" });
        assert!(matches!(site.finish(Some(&attempt), forged).await, Err(OidcError::Expired)));
    }
    site.sign_in("2").await.unwrap();
}

#[tokio::test]
async fn a_person_without_a_scope_is_named_in_the_audit_log() {
    let site = Site::start().await;
    site.provider.set(|answers| answers.claims = json!({ "groups": ["guests"] }));
    assert!(matches!(site.sign_in("1").await, Err(OidcError::NoScope(_))));
    // A task writes the entry.
    let entry = loop {
        if let Some(entry) = site.audit().await.pop() {
            break entry;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((&entry["who"], &entry["status"]), (&"oidc:7".into(), &403.into()));
}

#[tokio::test]
async fn a_provider_that_is_down_is_asked_seldom_and_no_fault_of_the_client() {
    let site = Site::start().await;
    site.provider.set(|answers| answers.is_down = true);
    for _ in 0..5 {
        assert!(matches!(site.sign_in("1").await, Err(OidcError::Provider(_))));
    }
    assert_eq!(site.provider.asked("description"), 1);
    assert!(site.audit().await.is_empty());
    site.provider.set(|answers| answers.is_down = false);
    site.clock.advance(Duration::from_secs(10));
    site.sign_in("2").await.unwrap();
    // An hour later it is down again: what was known of it still counts.
    site.provider.set(|answers| answers.is_down = true);
    site.clock.advance(Duration::from_secs(3_600));
    site.sign_in("3").await.unwrap();
}

#[tokio::test]
async fn groups_come_from_the_user_info_of_the_same_person() {
    let site = Site::start().await;
    site.provider.set(|answers| {
        answers.claims = Value::Null;
        answers.user_info = json!({ "sub": "7", "groups": ["ops"] });
    });
    assert_eq!(site.sign_in("1").await.unwrap().principal.scopes, [Scope::Manage]);
    site.provider.set(|answers| answers.user_info["sub"] = "8".into());
    assert!(matches!(site.sign_in("2").await, Err(OidcError::Provider(_))), "of another person");
    site.provider.set(|answers| answers.user_info = json!({ "sub": "7", "groups": ["guests"] }));
    assert!(matches!(site.sign_in("3").await, Err(OidcError::NoScope(_))));
    // Groups in the signed token count before those of the user info.
    site.provider.set(|answers| {
        answers.claims = json!({ "groups": [] });
        answers.user_info = json!({ "sub": "7", "groups": ["ops"] });
    });
    assert!(matches!(site.sign_in("4").await, Err(OidcError::NoScope(_))));
}

#[tokio::test]
async fn settings_that_would_send_secrets_in_plain_text_are_refused() {
    let site = Site::start().await;
    for issuer in [
        "http://id.example",
        "id.example",
        "https://user@id.example",
        "https://id.example?a=b",
        "http://10.0.0.1",
    ] {
        assert!(site.server.oidc(OidcOptions::new(issuer, "tenure")).is_err(), "{issuer}");
    }
    assert!(site.server.oidc(OidcOptions::new("https://id.example", "")).is_err());
    let mut options = OidcOptions::new("https://id.example", "tenure");
    options.scopes = vec!["a b".to_owned()];
    assert!(site.server.oidc(options).is_err());
}

#[tokio::test]
async fn a_header_that_names_people_needs_a_proxy_and_tokens() {
    let tenure = Tenure::open("memory:").await.unwrap();
    let bind = async |proxy: bool, access| {
        let mut options = Options::default();
        options.bind = ([127, 0, 0, 1], 0).into();
        options.access = access;
        options.proxy_sign_in = Some(tenure_http::ProxySignIn::new("X-Forwarded-User", None).unwrap());
        options.trusted_proxies = proxy.then(|| "127.0.0.1".parse().unwrap()).into_iter().collect();
        Server::bind(&tenure, options).await.map(drop)
    };
    assert!(bind(true, Access::Tokens).await.is_ok());
    assert!(bind(false, Access::Tokens).await.unwrap_err().to_string().contains("--trusted-proxy"));
    assert!(bind(true, Access::Open).await.unwrap_err().to_string().contains("--auth tokens"));
}
