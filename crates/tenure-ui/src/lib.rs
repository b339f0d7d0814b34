//! Dashboard for Tenure: shows jobs, queues, schedules, leases and workers, and acts on them.
//!
//! The server renders the pages, and they work without JavaScript. Mount them in an axum app under any prefix:
//!
//! ```no_run
//! # async fn mount(tenure: tenure::Tenure) -> axum::Router {
//! axum::Router::new().merge(tenure_ui::at("/admin/jobs", &tenure))
//! # }
//! ```
//!
//! Everyone who can reach such an app has full access; [`Dashboard`] restricts it. The pages call the routes of the HTTP API
//! in the same process, so scopes, read-only mode and hidden values are enforced in one place.

mod acts;
mod ansi;
mod asking;
mod assets;
mod attempt;
mod compact;
mod drafts;
mod forms;
#[cfg(test)]
mod fuzz;
mod guard;
mod headers;
mod hooks;
mod ids;
mod key;
mod layout;
mod likes;
mod live;
mod many;
mod masked;
mod oidc;
mod pages;
mod parts;
mod plans;
mod programs;
mod said;
mod secret;
mod settings;
mod stays;
mod tree;
mod unreadable;
mod views;
mod visit;

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::response::Redirect;
use axum::routing::{get, post};
use tenure::Tenure;
use tenure_http::Oidc;
use tokio::sync::{OnceCell, Semaphore};

use crate::key::Keys;
use crate::stays::Stays;

/// Returns the dashboard's routes, with full access for everyone who can reach the app.
pub fn routes<S: Clone + Send + Sync + 'static>(tenure: &Tenure) -> Router<S> {
    Dashboard::over(tenure, tenure_http::api(tenure)).routes()
}

/// Returns the dashboard under this path, to merge into an axum app, with full access for everyone who can reach it.
pub fn at<S: Clone + Send + Sync + 'static>(path: &str, tenure: &Tenure) -> Router<S> {
    Dashboard::over(tenure, tenure_http::api(tenure)).at(path)
}

/// Builds the routes of the dashboard.
#[derive(Debug, Clone)]
pub struct Dashboard {
    tenure: Tenure,
    api: Router,
    read_only: bool,
    prefix: String,
    oidc: Option<Oidc>,
}

/// What all pages share.
pub(crate) struct Shared {
    tenure: Tenure,
    api: Router,
    read_only: bool,
    /// What a proxy takes off addresses before they come here, without a slash at the end.
    prefix: String,
    oidc: Option<Oidc>,
    stays: Stays,
    keys: OnceCell<Keys>,
    /// Places for pages that are told what happens.
    looking: Arc<Semaphore>,
}

type Ui = Arc<Shared>;

impl Shared {
    /// The key of what stands in forms, which the store has.
    async fn keys(&self) -> &Keys {
        self.keys.get_or_init(|| Keys::of(&self.tenure, self.read_only)).await
    }
}

impl Dashboard {
    /// Creates a dashboard on these API routes, which decide who may see and change what: [`tenure_http::api`],
    /// [`tenure_http::guarded_api`] or those of a [`tenure_http::Server`].
    #[must_use]
    pub fn over(tenure: &Tenure, api: Router) -> Self {
        Self { tenure: tenure.clone(), api, read_only: false, prefix: String::new(), oidc: None }
    }

    /// Hides all actions and rejects every change.
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Self {
        Self { read_only, ..self }
    }

    /// Sets the path prefix that a reverse proxy strips, such as `/jobs-admin`, so that links include it.
    #[must_use]
    pub fn behind(self, prefix: &str) -> Self {
        let prefix = prefix.trim_matches('/');
        let prefix = if prefix.is_empty() { String::new() } else { format!("/{prefix}") };
        Self { prefix, ..self }
    }

    /// Lets people sign in with an identity provider as well as with an access token. See [`tenure_http::Server::oidc`].
    #[must_use]
    pub fn sign_in_with(self, oidc: Oidc) -> Self {
        Self { oidc: Some(oidc), ..self }
    }

    /// Returns the pages, to be nested under a prefix that ends in a slash.
    pub fn routes<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        let Self { tenure, api, read_only, prefix, oidc } = self;
        let (stays, keys) = (Stays::default(), OnceCell::new());
        let looking = Arc::new(Semaphore::new(live::MOST));
        let ui = Arc::new(Shared { tenure, api, read_only, prefix, oidc, stays, keys, looking });
        let new_job = get(pages::job_new::page).post(drafts::add).layer(forms::large());
        let new_schedule = get(pages::schedule_new::page).post(plans::add).layer(forms::large());
        let pages = Router::new()
            .route("/", get(pages::overview::page))
            .route("/jobs", get(pages::jobs::page))
            .route("/views", post(views::keep))
            .route("/views/forget", post(views::forget))
            .route("/new-job", new_job)
            .route("/jobs/{id}", get(pages::job::page))
            .route("/jobs/{id}/reveal", get(acts::revealed_once).post(acts::reveal))
            .route("/jobs/{id}/logs.txt", get(pages::logs::raw))
            .route("/jobs/{id}/{act}", post(acts::job))
            .route("/queues", get(pages::queues::page))
            .route("/queues/{name}", get(pages::queue::page))
            .route("/queues/{name}/{act}", post(acts::queue))
            .route("/schedules", get(pages::schedules::page))
            .route("/new-schedule", new_schedule)
            .route("/schedules/{name}", get(pages::schedule::page))
            .route("/schedules/{name}/{act}", post(acts::schedule))
            .route("/apps", get(pages::apps::page))
            .route("/apps/{sort}/{name}", get(pages::app::page))
            .route("/apps/{sort}/{name}/{act}", post(programs::act))
            .route("/leases", get(pages::leases::page))
            .route("/leases/{name}", get(pages::lease::page))
            .route("/leases/{name}/break", post(acts::break_lease))
            .route("/calendar", get(pages::calendar::page))
            .route("/bulk", get(pages::bulk::page))
            .route("/bulk/new", get(pages::bulk_new::page).post(many::begin))
            .route("/bulk/{id}", get(pages::bulk::one))
            .route("/bulk/{id}/cancel", post(many::cancel))
            .route("/events", get(pages::events::page))
            .route("/webhooks", get(pages::webhooks::page).post(hooks::add))
            .route("/webhooks/{id}", get(pages::webhook::page))
            .route("/webhooks/{id}/{act}", post(hooks::act))
            .route("/webhooks/{id}/deliveries/{delivery}/redeliver", post(hooks::redeliver))
            .route("/audit", get(pages::audit::page))
            .route("/workers", get(pages::workers::page))
            .route("/kinds", get(pages::kinds::page))
            .route("/kinds/{name}", get(pages::kind::page))
            .route("/workers/{id}", get(pages::worker::page))
            .route("/workers/{id}/{act}", post(acts::worker))
            .route("/live", get(live::get))
            .layer(forms::usual())
            .layer(middleware::from_fn_with_state(Arc::clone(&ui), forms::only_signed_in));
        let open = Router::new()
            .route("/sign-in", get(pages::sign_in::page).post(acts::sign_in))
            .route("/sign-in/start", get(oidc::start))
            .route("/sign-in/callback", get(oidc::callback))
            .route("/sign-out", post(acts::sign_out))
            .route("/settings", get(pages::settings::page).post(settings::keep))
            .route("/assets/{name}", get(assets::get))
            .layer(forms::small());
        pages
            .merge(open)
            .fallback(pages::nowhere)
            .layer(middleware::map_request(forms::copied))
            .layer(middleware::from_fn_with_state(Arc::clone(&ui), headers::set))
            .with_state(ui)
    }

    /// Returns the pages under this path, such as `/admin/jobs`, to merge into an axum app. The path without the last
    /// slash redirects to the first page.
    pub fn at<S: Clone + Send + Sync + 'static>(self, path: &str) -> Router<S> {
        let path = format!("/{}", path.trim_matches('/'));
        if path == "/" {
            return self.routes();
        }
        // Relative, because the app may be nested, or behind a proxy that strips a prefix.
        let home = format!("{}/", path.rsplit('/').next().unwrap_or_default());
        let lead = get(|| async move { Redirect::to(&home) });
        Router::new().route(&path, lead).nest(&format!("{path}/"), self.routes())
    }

    /// Returns the pages under `/ui/`, with redirects from `/` and `/ui`.
    pub fn mounted(self) -> Router {
        let home = format!("{}/ui/", self.prefix);
        let lead = || async move { Redirect::to(&home) };
        Router::new().route("/", get(lead.clone())).route("/ui", get(lead)).nest("/ui/", self.routes())
    }
}
