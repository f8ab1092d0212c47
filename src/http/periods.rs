//! The periods of a board with a season.

use actix_web::HttpResponse;
use serde::Serialize;
use utoipa::ToSchema;

use super::call::Call;
use super::frame::PeriodShown;
use super::problem::Problem;
use super::ranking_lines::{RankingLine, RankingLines};
use super::{response, schemas};
use crate::board::{BoardEdition, BoardName, PeriodName};
use crate::service::{About, Page, PeriodFilter};

/// Maximum number of periods of a response, more than a board has.
const MAX_PERIODS: u64 = 200;
/// Maximum and default number of lines of each period.
const MAX_WINNERS: u64 = 10;
const DEFAULT_WINNERS: u64 = 3;

/// The periods of a board.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PeriodList {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    /// The periods, the oldest first.
    items: Vec<PeriodItem>,
    /// Name to give as `after` for the periods after these; null if there are none.
    #[schema(value_type = Option<String>, required = true, example = json!(null))]
    next: Option<PeriodName>,
}

/// A period with the first lines of its ranking.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PeriodWithWinners)]
pub(super) struct PeriodItem {
    #[serde(flatten)]
    period: PeriodShown,
    /// Number of ranked subjects. Absent on a board without a ranking, and on one with `BY` unless `by` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    total: Option<u64>,
    /// The first lines of the ranking. Absent like `total`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<RankingLine>, required = false, max_items = 10)]
    winners: Option<RankingLines>,
}

/// The periods before and after one was closed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ClosedPeriod {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    /// The period that was closed.
    #[schema(value_type = PeriodShown)]
    closed: Option<PeriodShown>,
    /// The period that is current now.
    #[schema(value_type = PeriodShown)]
    current: Option<PeriodShown>,
}

/// Close the current period
///
/// Ends the current period of a board whose season has `every` `manual`, and begins the next one. Items from before that
/// still count in the closed one until its `grace` is over; after that, and not before, the next one can be closed.
///
/// Name the period that you want to close: then a call that is repeated because its answer was lost does nothing. Without
/// a name each call closes the period that is current.
#[utoipa::path(
    post, path = "/v1/boards/{board}/close", operation_id = "closePeriod", tag = "boards",
    params(("period" = String, Query, max_length = 32, example = "3",
        description = "Name of the period to close. Default: the current one.")),
    responses((status = 200, description = "The period is closed.", body = ClosedPeriod, example = json!({
        "board": "tournament",
        "closed": {"name": "3", "start": "2026-01-01T00:00:00Z", "end": "2026-01-02T10:07:00Z", "final": false},
        "current": {"name": "4", "start": "2026-01-02T10:07:00Z", "end": null, "final": false}}))),
)]
pub(super) async fn close(call: Call) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["period"])?;
    let (board, period) = (call.board_name()?, parameters.text("period").map(PeriodName::new));
    let [closed, current] = call.service().close_period(&call.caller, &board, period.as_ref()).await?;
    let [closed, current] = [closed, current].map(|edition| PeriodShown::of(&edition));
    Ok(response::json(&ClosedPeriod { board, closed, current }))
}

/// List the periods of a board
///
/// Returns the periods that a board with a season has, the oldest first: those of its archive, the one that has just ended
/// as long as its grace lasts, and the current one. Each has the first lines of its ranking.
///
/// To do something when a period has ended, such as giving out rewards, read `?final=true&after=` with the name of the
/// last period that you have handled: the response has those that have become final since, and they do not change any
/// more, except that hidden and removed subjects are missing. The line of a removed one may stay, without the subject.
#[utoipa::path(
    get, path = "/v1/boards/{board}/periods", operation_id = "listPeriods", tag = "rankings",
    params(
        ("final" = bool, Query, example = true, description = "`true`: only periods in which nothing counts any more. Default: false."),
        ("after" = String, Query, max_length = 32, example = "2026-10",
            description = "Only periods after the one of this name, which the board need not have any more."),
        ("winners" = u64, Query, minimum = 1, maximum = 10, example = 3, description = "Number of lines of each period. Default: 3."),
        ("limit" = u64, Query, minimum = 1, maximum = 200, example = 100, description = "Maximum number of periods. Default: 200."),
        ("by" = String, Query, max_length = 512, description = "Key of the rankings, for a board whose metric has `BY`."),
        ("attributes" = String, Query, max_length = 2080, example = "name,picture",
            description = "Names of the attributes that each line shows, with commas between them, or `*` for all. Default: none."),
    ),
    responses((status = 200, description = "The periods.", body = PeriodList, example = json!({
        "board": "best-sellers", "items": [
            {"name": "2026-10", "start": "2026-10-01T00:00:00Z", "end": "2026-11-01T00:00:00Z", "final": true,
                "total": 1234, "winners": [{"rank": 1, "subject": "seller-1", "score": 17}]},
            {"name": "2026-11", "start": "2026-11-01T00:00:00Z", "end": "2026-12-01T00:00:00Z", "final": false,
                "total": 12, "winners": [{"rank": 1, "subject": "seller-2", "score": 3}]}],
        "next": null}))),
)]
pub(super) async fn list(call: Call) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["final", "after", "winners", "limit", "by", "attributes"])?;
    let filter = PeriodFilter {
        is_final: parameters.flag("final", false)?,
        after: parameters.text("after").map(PeriodName::new),
        limit: parameters.number("limit", MAX_PERIODS, 1..=MAX_PERIODS)? as usize,
        attributes: parameters.attributes()?,
    };
    let winners = parameters.number("winners", DEFAULT_WINNERS, 1..=MAX_WINNERS)? as u32;
    let (board, key) = (call.board_name()?, parameters.key()?);
    let limit = filter.limit;
    let ahead = PeriodFilter { limit: limit + 1, ..filter };
    let mut periods = call.service().periods(&call.caller, &board, &ahead, key.as_ref(), winners).await?;
    let has_more = periods.len() > limit;
    periods.truncate(limit);
    let next = periods.last().filter(|_| has_more).and_then(|(edition, _)| edition.period_name());
    let item = |(edition, read): (BoardEdition, Option<About<Page>>)| {
        let (total, winners) = match read {
            Some(About { of, answer }) => (Some(answer.total), Some(RankingLines::new(&of, answer))),
            None => (None, None),
        };
        Some(PeriodItem { period: PeriodShown::of(&edition)?, total, winners })
    };
    Ok(response::json(&PeriodList { board, items: periods.into_iter().filter_map(item).collect(), next }))
}
