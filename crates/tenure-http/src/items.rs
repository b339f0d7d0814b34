//! Status pages of jobs in your own service.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::http::request::Parts;
use tenure::{JobRecord, Tenure};

use crate::api::{Api, Rules};
use crate::routes;
use crate::site::Fields;
use crate::wire::JobDocument;

/// The fields that a status page shows by default: nothing that the service enqueued with the job, and no error text.
const FIELDS: [&str; 13] = [
    "id",
    "state",
    "status",
    "created_at",
    "run_at",
    "started_at",
    "finished_at",
    "cancel_requested_at",
    "progress",
    "result",
    "resource_location",
    "resourceLocation",
    "links",
];

type May = Arc<dyn Fn(&Parts, &JobRecord) -> bool + Send + Sync>;

/// The status pages of jobs, `GET` and `DELETE /queue/{id}`, to merge into your own service.
///
/// A function of yours decides which requests may see or cancel which job:
///
/// ```
/// use axum::Router;
/// use tenure::Tenure;
/// use tenure_http::Items;
///
/// #[derive(Clone)]
/// struct Customer(String); // your middleware inserts it into the request's extensions
///
/// fn status_pages(tenure: &Tenure) -> Router {
///     let items = Items::new(tenure, |request, job| {
///         let customer = request.extensions.get::<Customer>();
///         customer.is_some_and(|customer| job.terms.meta.get("customer") == Some(&customer.0))
///     });
///     items.routes()
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Items {
    tenure: Tenure,
    rules: ItemRules,
}

/// The rules of status pages.
#[derive(Clone)]
pub(crate) struct ItemRules {
    pub(crate) may: May,
    pub(crate) fields: Fields,
}

impl Items {
    /// Creates the status pages. `may` decides whether a request may see the job, or cancel it if the method is
    /// `DELETE`. A job that a request may not see is not found.
    pub fn new(tenure: &Tenure, may: impl Fn(&Parts, &JobRecord) -> bool + Send + Sync + 'static) -> Self {
        Self { tenure: tenure.clone(), rules: ItemRules { may: Arc::new(may), fields: shown() } }
    }

    /// Shows these fields of a job instead of the default ones, which leave out the args, metadata and errors. `GET
    /// /v1/jobs/{id}` documents all fields.
    ///
    /// # Panics
    /// If a job has no such field.
    #[must_use]
    pub fn show(mut self, fields: &[&str]) -> Self {
        let schema = schemars::SchemaGenerator::default().into_root_schema_for::<JobDocument>();
        let known = schema.get("properties").and_then(|known| known.as_object());
        for field in fields {
            assert!(known.is_some_and(|known| known.contains_key(*field)), "a job has no field {field:?}");
        }
        self.rules.fields = set(fields);
        self
    }

    /// Returns the routes.
    pub fn routes<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        let api = Api::new(&self.tenure, Rules { items: Some(self.rules), ..Rules::default() });
        routes::router(routes::items(), &api).with_state(api.served())
    }
}

/// The fields that are shown by default.
pub(crate) fn shown() -> Fields {
    set(&FIELDS)
}

fn set(fields: &[&str]) -> Fields {
    Arc::new(fields.iter().map(|field| (*field).to_owned()).collect::<BTreeSet<_>>())
}

impl fmt::Debug for ItemRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemRules").field("fields", &self.fields).finish_non_exhaustive()
    }
}
