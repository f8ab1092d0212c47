//! Operation of the service: liveness, readiness, metrics and the OpenAPI document.

use std::time::Duration;

use actix_web::http::header::{CONTENT_ENCODING, ContentEncoding};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use super::call::Call;
use super::codes::Code;
use super::problem::Problem;
use super::service_error;
use super::state::HttpState;
use super::{compression, metrics, response};
use crate::access::Scope;

/// Readiness of the instance.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ready {
    #[serde(flatten)]
    health: Health,
    /// Boards that need the attention of an operator although the instance is ready: their definition cannot be read,
    /// or they are held for a decision.
    warnings: Vec<String>,
}

/// Status of the instance.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok` or `ready`.
    status: &'static str,
    /// Kind of store: `embedded` or `redis`.
    store: &'static str,
    /// Version of the service.
    version: &'static str,
}

impl Health {
    fn new(state: &HttpState, status: &'static str) -> Self {
        Self { status, store: state.service.store_kind(), version: env!("CARGO_PKG_VERSION") }
    }
}

/// Liveness probe
///
/// Returns 200 while the process serves requests, whatever the state of the store. A restart of the process helps only
/// if this fails.
#[utoipa::path(
    get, path = "/healthz", operation_id = "getHealth", tag = "operations",
    responses((status = 200, description = "The process is up.", body = Health,
        example = json!({"status": "ok", "store": "embedded", "version": "0.1.0"}))),
)]
pub(super) async fn health(state: Data<HttpState>) -> HttpResponse {
    response::json(&Health::new(&state, "ok"))
}

/// Readiness probe
///
/// Returns 200 if the store can be reached and written to and no rollover is overdue by a minute, otherwise 503 with
/// `reasons`. The embedded store cannot be written to while its disk is short of space, refuses writes or has not
/// confirmed a write for 5 s, and while its clock is not trusted after a start. A Redis store cannot be written to
/// while it may evict keys, and after it was emptied until the configured boards are defined again. `warnings` lists
/// what needs the attention of an operator and does not make the instance unready: single boards, because others are
/// served, and memory that is short, because existing data is.
#[utoipa::path(
    get, path = "/readyz", operation_id = "getReadiness", tag = "operations",
    responses((status = 200, description = "The instance is ready.", body = Ready,
        example = json!({"status": "ready", "store": "embedded", "version": "0.1.0", "warnings": []}))),
)]
pub(super) async fn readiness(call: Call) -> Result<HttpResponse, Problem> {
    let mut readiness = call.service().readiness().await;
    // They name boards.
    let is_told_why = call.caller.may(Scope::Metrics) && call.caller.sees_all();
    if !is_told_why {
        readiness.warnings.clear();
    }
    if readiness.is_ready() {
        return Ok(response::json(&Ready { health: Health::new(&call.state, "ready"), warnings: readiness.warnings }));
    }
    let store = readiness.store.err().map(|error| service_error::detail_of(&error));
    let overdue = readiness.overdue.iter().map(|board| format!("the rollover of board '{board}' is overdue"));
    let reasons: Vec<String> = store.into_iter().chain(overdue).collect();
    if !is_told_why {
        let detail = "the instance is not ready; the reasons are told to keys with the scope metrics and all boards";
        return Err(Problem::new(Code::NotReady, detail).retry_after(Duration::from_secs(1)));
    }
    let detail = reasons.join("; ");
    let problem = Problem::new(Code::NotReady, detail).with("reasons", reasons).with("warnings", readiness.warnings);
    Err(problem.retry_after(Duration::from_secs(1)))
}

/// Get metrics
///
/// Returns the metrics in the Prometheus text format. The series of a board end when the board is removed, and so do
/// those of a source.
#[utoipa::path(
    get, path = "/metrics", operation_id = "getMetrics", tag = "operations",
    responses((status = 200, description = "The metrics.", body = String, content_type = "text/plain",
        example = "# TYPE rolltop_increments_total counter\nrolltop_increments_total{outcome=\"accepted\"} 17\n")),
)]
pub(super) async fn metrics(call: Call) -> Result<HttpResponse, Problem> {
    match &call.state.options.metrics {
        Some(recorder) => {
            call.service().observe().await;
            let (known, recorder) = (call.service().known_boards(&call.caller), recorder.clone());
            let sources = call.service().known_sources(&call.caller);
            call.state.sent_items.keep(|source| call.service().knows_source(source));
            // With thousands of boards this takes longer than the other requests of the worker should wait.
            let rendered = spawn_blocking(move || {
                let is_source = |name: &str| sources.contains(name);
                metrics::without_unknown(&recorder.render(), |board| known.contains(board), is_source)
            });
            let text = rendered.await.map_err(|error| {
                Problem::new(Code::Internal, format!("the thread that writes the metrics failed: {error}"))
            })?;
            Ok(HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(text))
        }
        None => Err(Problem::not_found(call.request.path())),
    }
}

/// The OpenAPI document as JSON, serialized once, and compressed once for each coding.
pub(super) struct Document {
    json: Bytes,
    compressed: Mutex<Vec<(ContentEncoding, Bytes)>>,
}

impl Document {
    pub(super) fn new(json: String) -> Self {
        Self { json: json.into(), compressed: Mutex::default() }
    }
}

/// Get the OpenAPI document
///
/// Returns the OpenAPI document of the service.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "getOpenApi", tag = "operations",
    responses((status = 200, description = "The document.", content_type = "application/json", body = Object)),
)]
pub(super) async fn openapi(request: HttpRequest, document: Data<Document>) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response.content_type("application/json");
    let Some(coding) = compression::accepted(&request) else { return response.body(document.json.clone()) };
    let known = document.compressed.lock().iter().find(|(known, _)| *known == coding).map(|(_, body)| body.clone());
    let body = known.or_else(|| {
        let body = compression::compressed(coding, &document.json)?;
        document.compressed.lock().push((coding, body.clone()));
        Some(body)
    });
    match body {
        Some(body) => response.insert_header((CONTENT_ENCODING, coding.as_str())).body(body),
        None => response.body(document.json.clone()),
    }
}
