//! The simulated clock. On the system clock these paths do not exist.

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::Object;
use super::openapi::time_schema;
use super::parameters::Parameters;
use super::problem::Problem;
use super::{HttpState, answer, body};
use crate::board::Timestamp;

/// The store's time.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Clock {
    #[schema(schema_with = time_schema)]
    now: Timestamp,
}

/// Read the simulated clock
///
/// Only with `--clock simulated=…`: without it this path does not exist.
#[utoipa::path(
    get, path = "/v1/clock", operation_id = "getClock", tag = "clock",
    responses((status = 200, description = "What it reads.", body = Clock,
        example = json!({"now": "2026-01-02T00:00:00Z"}))),
)]
pub(super) async fn get(request: HttpRequest, state: Data<HttpState>) -> Result<HttpResponse, Problem> {
    Parameters::read(&request, &[])?;
    Ok(answer::json(&Clock { now: state.service.now().await? }))
}

/// Move the simulated clock forward
///
/// All instances of the store share it. The same time again is fine; an earlier one is refused. Only with
/// `--clock simulated=…`: without it this path does not exist.
#[utoipa::path(
    put, path = "/v1/clock", operation_id = "setClock", tag = "clock",
    request_body(content = super::openapi::ClockBody, description = "The time it shall read.",
        example = json!({"now": "2026-01-02T00:00:00Z"})),
    responses((status = 200, description = "What it reads now.", body = Clock,
        example = json!({"now": "2026-01-02T00:00:00Z"}))),
)]
pub(super) async fn put(
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
) -> Result<HttpResponse, Problem> {
    Parameters::read(&request, &[])?;
    let body = body::read_json(&request, payload, &state.options).await?;
    let to: Timestamp = Object::parse(&body, &["now"])?.required("now")?;
    Ok(answer::json(&Clock { now: state.service.set_clock(to).await? }))
}
