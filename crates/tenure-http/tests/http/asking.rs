//! A service to be asked, and what it answers.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenure::testing::Lab;
use tenure::{Failed, Job, Run, Tenure, Worker};
use tenure_http::{Asked, Problem};
use tower::ServiceExt;

#[derive(Serialize, Deserialize)]
pub struct BuildStar {
    pub name: String,
}

impl Job for BuildStar {
    const KIND: &'static str = "build_star";
    type Output = u64;
}

#[derive(Serialize, Deserialize)]
pub struct Fall;

impl Job for Fall {
    const KIND: &'static str = "fall";
    type Output = ();
}

/// All routes on a store in memory, with a worker whose turns are taken by hand.
pub struct Service {
    lab: Lab<()>,
    app: Router,
}

/// Somebody who asks.
#[derive(Clone)]
pub struct Asker {
    app: Router,
}

/// What was answered.
#[derive(Debug)]
pub struct Told {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Told {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no header {name}: {self:?}")).to_str().unwrap()
    }

    pub fn id(&self) -> String {
        self.json()["id"].as_str().unwrap().to_owned()
    }
}

impl Asker {
    /// Asks this service.
    pub fn to(app: Router) -> Self {
        Self { app }
    }

    /// Somebody who asks all routes on this handle.
    pub fn of(tenure: &Tenure) -> Self {
        Self { app: tenure_http::api(tenure) }
    }
}

impl Service {
    pub fn new() -> Self {
        let lab = Lab::new(|tenure| {
            Worker::new(tenure, ()).queue("default", 8).job(build_star).job(fall).bulk_operations(2)
        });
        let app = tenure_http::api(lab.tenure());
        Self { lab, app }
    }

    pub fn tenure(&self) -> &Tenure {
        self.lab.tenure()
    }

    pub fn advance(&mut self, span: Duration) {
        self.lab.advance(span);
    }

    /// Somebody who asks another server on the same store.
    pub fn other_server(&self) -> Asker {
        Asker { app: tenure_http::api(self.tenure()) }
    }

    /// Somebody who asks a service that enqueues by itself.
    pub fn own(&self) -> Asker {
        async fn create(
            State(tenure): State<Tenure>,
            headers: HeaderMap,
            asked: Asked,
            Json(star): Json<BuildStar>,
        ) -> Result<Response, Problem> {
            let asked = match headers.get("x-user") {
                Some(user) => asked.client(user.to_str().unwrap()),
                None => asked,
            };
            asked.enqueue(&tenure, star).await
        }
        // Enqueues in its own way, such as within a transaction, and has the client told.
        async fn create_itself(
            State(tenure): State<Tenure>,
            asked: Asked,
            Json(star): Json<BuildStar>,
        ) -> Result<Response, Problem> {
            let accepted = tenure.enqueue(star).await?;
            Ok(asked.accepted(&tenure, accepted.id()).await)
        }
        let app = Router::new().route("/stars", post(create)).route("/suns", post(create));
        let app = app.route("/comets", post(create_itself));
        Asker { app: app.with_state(self.tenure().clone()) }
    }

    /// Somebody who asks a server that lets nobody in without an access token.
    pub fn guarded(&self) -> Asker {
        Asker { app: tenure_http::guarded_api(self.tenure()) }
    }

    /// Asks from a task of its own.
    pub fn asker(&self) -> Asker {
        Asker { app: self.app.clone() }
    }

    pub async fn get(&self, path: &str) -> Told {
        self.asker().get(path).await
    }

    pub async fn post(&self, path: &str, body: &str) -> Told {
        self.ask("POST", path, &[], body).await
    }

    pub async fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Told {
        self.asker().ask(method, path, headers, body).await
    }

    /// Sends a job a line.
    pub async fn lines(&self, path: &str, lines: &str) -> Told {
        self.asker().send("POST", path, &["content-type: application/x-ndjson"], lines).await
    }

    /// Does all that is due.
    pub async fn work(&mut self) {
        self.lab.turn().await.unwrap();
    }
}

impl Asker {
    /// Somebody who asks all routes on this store.
    pub fn on(tenure: &Tenure) -> Self {
        Self { app: tenure_http::api(tenure) }
    }

    /// Somebody who asks a server that lets nobody in without an access token.
    pub fn guarded_on(tenure: &Tenure) -> Self {
        Self { app: tenure_http::guarded_api(tenure) }
    }

    /// Asks, with headers such as `Prefer: wait=1` and a body of JSON, if that is not empty.
    pub async fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Told {
        let json = (!body.is_empty() && !headers.iter().any(|header| header.starts_with("content-type")))
            .then_some("content-type: application/json");
        let headers: Vec<&str> = headers.iter().copied().chain(json).collect();
        self.send(method, path, &headers, body).await
    }

    async fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Told {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost:8368");
        for header in headers {
            let (name, value) = header.split_once(": ").unwrap();
            request = request.header(name, value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let response = self.app.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Told { status: parts.status, headers: parts.headers, text }
    }

    pub async fn get(&self, path: &str) -> Told {
        self.ask("GET", path, &[], "").await
    }

    /// Reads what is sent on and on as text, until this was in it.
    pub async fn read_until(&self, path: &str, text: &str) -> String {
        let request = Request::get(path).header("host", "localhost:8368").header("accept", "text/plain");
        let response = self.app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (mut body, mut read) = (response.into_body(), String::new());
        while !read.contains(text) {
            let frame = body.frame().await.expect("it ended before").unwrap();
            read.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
        read
    }
}

async fn build_star(run: Run<()>, star: BuildStar) -> Result<u64, Failed> {
    run.progress(0.5, "heating").map_err(Failed::for_good)?;
    if star.name != "nameless" {
        run.place("/stars/7").map_err(Failed::for_good)?;
    }
    Ok(7)
}

async fn fall(_run: Run<()>, _job: Fall) -> Result<(), Failed> {
    Err(Failed::for_good("it fell"))
}
