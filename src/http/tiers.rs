//! The tiers of a board.

use actix_web::HttpResponse;
use actix_web::web::Payload;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::object::Object;
use super::parameters::Plain;
use super::problem::Problem;
use super::{object, response, schemas};
use crate::board::{BoardName, TierForm, Tiers, TiersError};

/// A part of a ranking with a name. One of `rank`, `top` and `score` says what a subject must reach.
#[derive(ToSchema)]
#[schema(as = Tier)]
#[expect(dead_code, reason = "only describes `TierForm`, which the layer of boards has")]
struct TierSchema {
    /// 1 to 64 characters, none of them a control character.
    #[schema(min_length = 1, max_length = 64, example = "gold")]
    name: String,
    /// Rank of at most this.
    #[schema(minimum = 1, maximum = 1000000000, required = false, nullable = false)]
    rank: Option<u64>,
    /// Percentage of the ranked subjects, above 0 and at most 100, with up to three digits after the point. A subject is in
    /// the tier if those that are not worse than it, itself included, are at most this many, rounded up. So the tier never
    /// has more than its share, and subjects that tie are all in it or all not.
    #[schema(exclusive_minimum = 0, maximum = 100, required = false, nullable = false, example = 5)]
    top: Option<f64>,
    /// This score or a better one.
    #[schema(format = "decimal", required = false, nullable = false)]
    score: Option<f64>,
}

/// The tiers of a board.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tiers)]
struct TiersShown {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    /// The tiers, the best first. A subject is in the first one that it reaches.
    #[schema(value_type = Vec<TierSchema>, max_items = 16)]
    tiers: Vec<TierForm>,
}

/// The tiers that a board gets.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewTiers)]
struct NewTiers {
    /// The tiers, the best first; none to remove them.
    #[schema(value_type = Vec<TierSchema>, max_items = 16)]
    tiers: Vec<Box<RawValue>>,
}

impl NewTiers {
    /// Parses each tier by itself, so that errors name it.
    fn parse(&self) -> Result<Tiers, Problem> {
        if self.tiers.len() > Tiers::MAX {
            return Err(TiersError::TooMany { given: self.tiers.len() }.into());
        }
        let form = |(index, raw): (usize, &RawValue)| {
            let tier = Object::nested(&format!("tiers[{index}]"), raw, &["name", "rank", "top", "score"])?;
            tier.parse_as::<TierForm>()
        };
        let forms = self.tiers.iter().map(|raw| &**raw).enumerate().map(form).collect::<Result<_, _>>()?;
        Ok(Tiers::from_forms(forms)?)
    }
}

impl From<TiersError> for Problem {
    fn from(error: TiersError) -> Self {
        Problem::field("tiers", format!("'tiers': {error}"))
    }
}

/// Get the tiers of a board
///
/// Returns the tiers, the best first. A board has none until they are set.
#[utoipa::path(
    get, path = "/v1/boards/{board}/tiers", operation_id = "getTiers", tag = "boards",
    responses((status = 200, description = "The tiers.", body = TiersShown, example = json!({
        "board": "hot-posts", "tiers": [{"name": "gold", "top": 5}, {"name": "silver", "rank": 100}]}))),
)]
pub(super) async fn get(Plain(call): Plain) -> Result<HttpResponse, Problem> {
    let board = call.board_name()?;
    let tiers = call.service().tiers(&call.caller, &board).await?;
    Ok(response::json(&TiersShown { board, tiers: tiers.forms() }))
}

/// Set the tiers of a board
///
/// Replaces the tiers. From then on each line of a ranking has the name of the best tier that its subject reaches, exactly
/// as of the instant of the response: in pages, neighbors, look-ups, standings, exports and streams, of each window and
/// each key. They are not part of the definition, and nothing that is stored depends on them. Removed with the board.
///
/// Other instances use them within two seconds.
#[utoipa::path(
    put, path = "/v1/boards/{board}/tiers", operation_id = "setTiers", tag = "boards",
    request_body(content = NewTiers, description = "Up to 16 tiers.", example = json!({"tiers": [
        {"name": "gold", "top": 5}, {"name": "silver", "rank": 100}, {"name": "bronze", "score": 10}]})),
    responses((status = 200, description = "The tiers are set.", body = TiersShown, example = json!({
        "board": "hot-posts", "tiers": [
            {"name": "gold", "top": 5}, {"name": "silver", "rank": 100}, {"name": "bronze", "score": 10}]}))),
)]
pub(super) async fn put(Plain(call): Plain, payload: Payload) -> Result<HttpResponse, Problem> {
    let board = call.board_name()?;
    let body = call.json(payload).await?;
    let tiers = object::parse::<NewTiers>(&body)?.parse()?;
    let tiers = call.service().set_tiers(&call.caller, &board, tiers).await?;
    Ok(response::json(&TiersShown { board, tiers: tiers.forms() }))
}
