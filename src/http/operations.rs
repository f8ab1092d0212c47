//! For whoever runs the service: is it alive, is it ready, what does it measure, what does it speak.

use std::time::Duration;

use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::codes::Code;
use super::problem::Problem;
use super::{HttpState, answer, meters};

/// How the instance is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ready {
    #[serde(flatten)]
    health: Health,
    /// What a person has to look at, although requests are answered: boards that cannot be read, or that wait for a
    /// decision.
    warnings: Vec<String>,
}

/// A word on how it is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`, or `ready`.
    status: &'static str,
    /// The kind of store, `embedded` or `redis`.
    store: &'static str,
    /// The version of the service.
    version: &'static str,
}

impl Health {
    fn new(state: &HttpState, status: &'static str) -> Self {
        Self { status, store: state.service.store_kind(), version: env!("CARGO_PKG_VERSION") }
    }
}

/// Is it alive?
///
/// 200 while the process serves requests, whatever the store does. For liveness probes: restarting helps only
/// where this fails.
#[utoipa::path(
    get, path = "/healthz", operation_id = "getHealth", tag = "operations",
    responses((status = 200, description = "It is.", body = Health,
        example = json!({"status": "ok", "store": "embedded", "version": "0.1.0"}))),
)]
pub(super) async fn health(state: Data<HttpState>) -> HttpResponse {
    answer::json(&Health::new(&state, "ok"))
}

/// Is it ready for requests?
///
/// 200 if the store can be reached and written to and no board's rollover is overdue by a minute; else 503 with
/// the `reasons`. The embedded store cannot be written to while its disk is short of space, refuses writes, or has not
/// confirmed any for 5 s, and while its clock is doubted after a start. A Redis cannot while it may evict keys, and
/// after it was emptied until the boards of the configuration are defined again. `warnings` names single boards that a
/// person has to look at: the other boards are served, so they do not make the instance unready. For readiness probes
/// and load balancers.
#[utoipa::path(
    get, path = "/readyz", operation_id = "getReadiness", tag = "operations",
    responses((status = 200, description = "It is.", body = Ready,
        example = json!({"status": "ready", "store": "embedded", "version": "0.1.0", "warnings": []}))),
)]
pub(super) async fn readiness(state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    let readiness = state.service.readiness().await;
    if readiness.is_ready() {
        return Ok(answer::json(&Ready { health: Health::new(&state, "ready"), warnings: readiness.warnings }));
    }
    let store = readiness.store.err().map(|error| error.to_string());
    let overdue = readiness.overdue.iter().map(|board| format!("the rollover of board '{board}' is overdue"));
    let reasons: Vec<String> = store.into_iter().chain(overdue).collect();
    let detail = reasons.join("; ");
    let problem = Problem::new(Code::NotReady, detail).with("reasons", reasons).with("warnings", readiness.warnings);
    Err(problem.retry_after(Duration::from_secs(1)))
}

/// Get metrics
///
/// In the text format of Prometheus. A board's series go when it is removed.
#[utoipa::path(
    get, path = "/metrics", operation_id = "getMetrics", tag = "operations",
    responses((status = 200, description = "The metrics.", body = String, content_type = "text/plain",
        example = "# TYPE rolltop_increments_total counter\nrolltop_increments_total{outcome=\"accepted\"} 17\n")),
)]
pub(super) async fn metrics(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    match &state.options.metrics {
        Some(recorder) => {
            state.service.observe().await;
            let known = state.service.known_boards();
            let text = meters::of_known_boards(&recorder.render(), |board| known.contains(board));
            Ok(HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(text))
        }
        None => Err(super::routes::nothing_at(request.path())),
    }
}

/// The document, written once and served as it is.
pub(super) struct Document(pub(super) Bytes);

/// Get this document
///
/// The OpenAPI description of the service.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "getOpenApi", tag = "operations",
    responses((status = 200, description = "The description.", content_type = "application/json", body = Object)),
)]
pub(super) async fn openapi(document: Data<Document>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(document.0.clone())
}
