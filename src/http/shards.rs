//! The number of shards of a board, and its change.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Payload;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::parameters::Plain;
use super::problem::Problem;
use super::{object, response};
use crate::board::MAX_SHARDS;
use crate::service::ShardsState;

/// The number of shards of a board.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Shards)]
pub(super) struct ShardsShown {
    /// Number of shards; null for a board that is not spread over parts.
    #[schema(required = true)]
    shards: Option<u32>,
    /// The change that is going on, on whichever instance; null if there is none. Meanwhile writes to the board are
    /// answered `board_frozen`.
    #[schema(required = true)]
    change: Option<ChangeShown>,
    /// Why the last change that this instance began has failed; null if it has not. The board goes on as before.
    #[schema(required = true)]
    error: Option<String>,
}

/// A change of the number of shards.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ShardsChange)]
pub(super) struct ChangeShown {
    /// Number of shards that the board gets.
    shards: u32,
    /// Number of cells and values that are copied.
    contents: u64,
    /// Number of ids that are copied.
    ids: u64,
}

/// The number of shards that a board gets.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewShards {
    /// From 1 to 64.
    #[schema(minimum = 1, maximum = 64)]
    shards: u32,
}

impl ShardsShown {
    fn of(state: &ShardsState) -> Self {
        let ShardsState { board, progress, failed } = state;
        let change = board.redivision().zip(*progress).map(|(to, progress)| ChangeShown {
            shards: to.shards,
            contents: progress.contents,
            ids: progress.ids,
        });
        Self { shards: board.definition().shards, change, error: failed.clone() }
    }

    fn status(&self) -> StatusCode {
        if self.change.is_some() { StatusCode::ACCEPTED } else { StatusCode::OK }
    }
}

/// Get the number of shards
///
/// Returns the number of shards of the board, and how far a change of it is.
#[utoipa::path(
    get, path = "/v1/boards/{board}/shards", operation_id = "getShards", tag = "boards",
    responses((status = 200, description = "The number of shards.", body = ShardsShown,
        example = json!({"shards": 1, "change": {"shards": 24, "contents": 120000, "ids": 0}, "error": null}))),
)]
pub(super) async fn get(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let shards = call.service().shards(&call.caller, &call.board_name()?).await?;
    Ok(response::json(&ShardsShown::of(&shards)))
}

/// Change the number of shards
///
/// Copies everything that the board holds, with the ids of items, to this number of parts, and has the board use these.
/// Meanwhile the board is read as usual and writes to it are answered `board_frozen`; clients that repeat them lose
/// nothing. If the change fails, or the instance that makes it ends, the board goes on as before, at the latest after
/// half a minute.
///
/// Returns after a second at the latest; the change continues (202), and the number of shards can be read meanwhile. A
/// board that is small enough is done by then (200). Needs memory for a second copy of the board. Not for boards of the
/// mode `from_first`, and not during a dual run or an import. Cursors of the board end (`stale_cursor`).
#[utoipa::path(
    put, path = "/v1/boards/{board}/shards", operation_id = "changeShards", tag = "boards",
    request_body(content = NewShards, description = "The new number of shards.", example = json!({"shards": 24})),
    responses(
        (status = 200, description = "The board has this number of shards.", body = ShardsShown,
            example = json!({"shards": 24, "change": null, "error": null})),
        (status = 202, description = "The change has begun.", body = ShardsShown,
            example = json!({"shards": 1, "change": {"shards": 24, "contents": 24000, "ids": 0}, "error": null})),
    ),
)]
pub(super) async fn put(Plain(call): Plain, payload: Payload) -> Result<HttpResponse, Problem> {
    let name = call.board_name()?;
    let body = call.json(payload).await?;
    let NewShards { shards } = object::parse(&body)?;
    if !(1..=MAX_SHARDS).contains(&shards) {
        return Err(Problem::field(
            "shards",
            format!("'shards': {shards} is not a whole number from 1 to {MAX_SHARDS}"),
        ));
    }
    let shards = ShardsShown::of(&call.service().change_shards(&call.caller, &name, shards).await?);
    Ok(response::json_with(shards.status(), &shards))
}

/// End a change of the number of shards
///
/// Ends the change that is going on, on whichever instance: the board goes on with the shards that it had. Changes
/// nothing if there is none.
#[utoipa::path(
    delete, path = "/v1/boards/{board}/shards", operation_id = "endChangeOfShards", tag = "boards",
    responses((status = 200, description = "No change is going on.", body = ShardsShown,
        example = json!({"shards": 1, "change": null, "error": null}))),
)]
pub(super) async fn delete(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let shards = call.service().end_change_of_shards(&call.caller, &call.board_name()?).await?;
    Ok(response::json(&ShardsShown::of(&shards)))
}
