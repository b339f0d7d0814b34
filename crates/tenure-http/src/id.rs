//! What a path names: a job by its id, anything else by its name.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use tenure::JobId;

use crate::problem::{Problem, ProblemType};

/// The id in the path of a request.
pub(crate) struct Id(pub JobId);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(text) =
            path.map_err(|_| Problem::new(ProblemType::Malformed, "the path is not valid UTF-8"))?;
        Ok(Self(text.parse()?))
    }
}

/// The name in the path of a request. One with a slash is written with `%2F`.
pub(crate) struct Named(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(text)| Self(text))
            .map_err(|_| Problem::new(ProblemType::Malformed, "the path is not valid UTF-8"))
    }
}
