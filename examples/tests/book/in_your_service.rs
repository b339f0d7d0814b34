//! Tenure's routes behind the login of a service.

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use tenure::Tenure;
use tower::ServiceExt;

use crate::Outcome;

async fn require_login(request: Request, next: Next) -> Response {
    if request.headers().contains_key("x-user") {
        next.run(request).await
    } else {
        StatusCode::UNAUTHORIZED.into_response()
    }
}

fn behind_a_login(tenure: &Tenure) -> Router {
    let internal: Router = tenure_http::api(tenure).merge(tenure_ui::at("/admin/jobs", tenure));
    Router::new().merge(internal.layer(middleware::from_fn(require_login)))
}

#[tokio::test]
async fn the_open_routes_stand_behind_the_login() -> Outcome {
    let tenure = Tenure::open("memory:").await?;
    for path in ["/v1/jobs", "/admin/jobs/"] {
        let ask = |user: Option<&str>| {
            let request = Request::builder().uri(path);
            let request = user.into_iter().fold(request, |request, user| request.header("x-user", user));
            behind_a_login(&tenure).oneshot(request.body(axum::body::Body::empty()).expect("a request"))
        };
        assert_eq!(ask(None).await?.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(ask(Some("ada")).await?.status(), StatusCode::OK);
    }
    Ok(())
}
