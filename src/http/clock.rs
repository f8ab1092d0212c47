//! The simulated clock. These paths do not exist if the store runs on the system clock.

use actix_web::HttpResponse;
use actix_web::web::Payload;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::parameters::Plain;
use super::problem::Problem;
use super::{object, response, schemas};
use crate::board::Timestamp;

/// The time of the store.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Clock {
    #[schema(schema_with = schemas::time)]
    now: Timestamp,
}

/// A new time for the clock.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ClockSetting {
    #[schema(schema_with = schemas::time)]
    now: Timestamp,
}

/// Get the simulated clock
///
/// Returns the current time of the store. This path exists only with `--clock simulated=…`.
#[utoipa::path(
    get, path = "/v1/clock", operation_id = "getClock", tag = "clock",
    responses((status = 200, description = "The current time of the store.", body = Clock,
        example = json!({"now": "2026-01-02T00:00:00Z"}))),
)]
pub(super) async fn get(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    Ok(response::json(&Clock { now: call.service().now().await? }))
}

/// Advance the simulated clock
///
/// Sets the time of the store for all instances. The current time is accepted and changes nothing; an earlier time is
/// refused. This path exists only with `--clock simulated=…`.
#[utoipa::path(
    put, path = "/v1/clock", operation_id = "setClock", tag = "clock",
    request_body(content = ClockSetting, description = "The new time.",
        example = json!({"now": "2026-01-02T00:00:00Z"})),
    responses((status = 200, description = "The new time of the store.", body = Clock,
        example = json!({"now": "2026-01-02T00:00:00Z"}))),
)]
pub(super) async fn put(Plain(call): Plain, payload: Payload) -> Result<HttpResponse, Problem> {
    let body = call.json(payload).await?;
    let ClockSetting { now } = object::parse(&body)?;
    Ok(response::json(&Clock { now: call.service().set_clock(&call.caller, now).await? }))
}
