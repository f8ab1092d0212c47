//! How the scores of a ranking are distributed.

use std::fmt::Display;
use std::sync::Arc;

use actix_web::HttpResponse;
use serde::Serialize;
use utoipa::ToSchema;

use super::call::Call;
use super::frame::RankingFrame;
use super::problem::Problem;
use super::response;
use crate::board::{AmountError, BoardTrack, Order, Percentile, Shown, Value};
use crate::service::{About, AtScore};

/// Maximum number of percentiles, and of scores.
const MOST: usize = 100;
/// The percentiles without the parameter.
const PERCENTILES: &str = "0,25,50,75,90,95,99,100";

/// How the scores of a ranking are distributed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Distribution {
    #[serde(flatten)]
    frame: RankingFrame,
    /// The board's metric in its canonical form.
    #[schema(value_type = String, example = "COUNT(24h, like, post_id)")]
    metric: Arc<str>,
    /// The score at each percentile of the request, in their order.
    #[schema(max_items = 100)]
    percentiles: Vec<ScoreAt>,
    /// The ranges between the scores of the request, the lowest first: one more than there are scores; empty if there are
    /// none.
    #[schema(max_items = 101)]
    ranges: Vec<ScoreRange>,
}

/// The score at a percentile.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ScoreAtPercentile)]
struct ScoreAt {
    #[schema(minimum = 0, maximum = 100, example = 90)]
    percentile: f64,
    /// The worst score that has this percentile: that many percent of the ranked subjects, or more, have no better score.
    /// Null if no subject is ranked.
    #[schema(value_type = Option<f64>, format = "decimal", required = true)]
    score: Option<Shown>,
}

/// The subjects with scores in a range.
#[derive(Debug, Serialize, ToSchema)]
struct ScoreRange {
    /// The lowest score of the range; null if it has none.
    #[schema(value_type = Option<f64>, format = "decimal", required = true)]
    from: Option<Shown>,
    /// The score at which the range ends, which is not part of it; null if it has no end.
    #[schema(value_type = Option<f64>, format = "decimal", required = true)]
    to: Option<Shown>,
    /// Number of ranked subjects with a score in the range.
    subjects: u64,
}

/// Get the distribution of the scores
///
/// Returns the scores at given percentiles, and the numbers of subjects between given scores: for charts, and to say what
/// a good score is. All of it is exact. The percentile of a subject is the percentage of the ranked subjects that have no
/// better score, so 100 is the best score and 0 the worst, also on boards that rank the smallest first.
///
/// All numbers are of one instant; on a board with `shards` only the ranges are, and each percentile is of one of its own.
#[utoipa::path(
    get, path = "/v1/boards/{board}/distribution", operation_id = "getDistribution", tag = "rankings",
    params(
        ("percentiles" = String, Query, max_length = 1000, example = "50,90,99",
            description = "Up to 100 percentiles from 0 to 100, with up to three digits after the point, separated by commas. Default: 0,25,50,75,90,95,99,100."),
        ("scores" = String, Query, max_length = 4000, example = "10,100,1000",
            description = "Up to 100 scores, each greater than the one before, separated by commas: the bounds of the ranges. Default: none."),
        ("period" = String, Query, max_length = 32, example = "2026-11",
            description = "Period to read, on a board with a season: its name, `current` or `previous`. Default: the current one."),
        ("of" = String, Query, pattern = "^(next|previous)$", example = "next",
            description = "Edition to read: `next`, the successor, or `previous`. Default: the board itself."),
        ("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`."),
        ("window" = String, Query, example = "24h", pattern = "^(all|[1-9][0-9]{0,9}(s|m|h|d|w|mo|y))$",
            description = "Length of the window to read, one of the board's. Default: the main window."),
    ),
    responses((status = 200, description = "The distribution.", body = Distribution, example = json!({
        "board": "hot-posts", "metric": "COUNT(24h, like, post_id)",
        "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
        "as_of": "2026-01-02T10:07:00Z", "retiring": 0, "total": 1200,
        "percentiles": [{"percentile": 50.0, "score": 3}, {"percentile": 99.0, "score": 250}],
        "ranges": [{"from": null, "to": 10, "subjects": 900}, {"from": 10, "to": 100, "subjects": 260},
            {"from": 100, "to": null, "subjects": 40}]}))),
)]
pub(super) async fn distribution(call: Call) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["percentiles", "scores", "window", "of", "period", "by"])?;
    let texts = parameters.text("percentiles").unwrap_or(PERCENTILES);
    let percentiles = list("percentiles", texts, |text| text.parse::<Percentile>())?;
    let name = call.board_name()?;
    let track = call.service().window(&call.caller, &name, parameters.window()?, None).await?;
    let scores = match parameters.text("scores") {
        Some(texts) => list("scores", texts, |text| first_with_score(text, &track))?,
        None => Vec::new(),
    };
    let is_ascending = scores.windows(2).all(|pair| pair[0] < pair[1]);
    if !is_ascending {
        return Err(Problem::field("scores", "each of 'scores' must be greater than the one before"));
    }
    let About { of: track, answer } = call.service().distribution(&track, &percentiles, &scores).await?;
    let shown = |value: Value| value.shown(track.scale());
    let at = percentiles.iter().zip(answer.percentiles);
    Ok(response::json(&Distribution {
        frame: RankingFrame::of(&track, &answer.frame, answer.total),
        metric: track.canonical_metric().clone(),
        percentiles: at
            .map(|(percentile, score)| ScoreAt { percentile: percentile.as_f64(), score: score.map(shown) })
            .collect(),
        ranges: ranges(&track, answer.total, &scores, &answer.scores),
    }))
}

/// Parses a score. Returns the smallest value with that score, whatever its second key is.
fn first_with_score(text: &str, track: &BoardTrack) -> Result<Value, AmountError> {
    match Value::parse(text, track.kind(), track.decimals())? {
        Value::Exact(amount) => {
            let out_of_range = || AmountError::Range { text: text.to_owned(), decimals: track.decimals().digits() };
            track.scale().numbers_of(amount).map(|(smallest, _)| Value::Exact(smallest)).ok_or_else(out_of_range)
        }
        real @ Value::Real(_) => Ok(real),
    }
}

/// Returns the ranges between scores.
fn ranges(track: &BoardTrack, total: u64, scores: &[Value], at: &[AtScore]) -> Vec<ScoreRange> {
    let below = at.iter().map(|at| match track.order() {
        Order::Asc => at.better,
        Order::Desc => total.saturating_sub(at.better + at.equal),
    });
    let bounds = scores.iter().map(|score| score.shown(track.scale())).zip(below);
    let (mut ranges, mut from, mut counted) = (Vec::with_capacity(scores.len() + 1), None, 0);
    for (to, below) in bounds {
        ranges.push(ScoreRange { from: from.replace(to), to: Some(to), subjects: below.saturating_sub(counted) });
        counted = below;
    }
    if from.is_some() {
        ranges.push(ScoreRange { from, to: None, subjects: total.saturating_sub(counted) });
    }
    ranges
}

/// Parses a list of values that are separated by commas.
fn list<T, E: Display>(field: &str, texts: &str, parse: impl Fn(&str) -> Result<T, E>) -> Result<Vec<T>, Problem> {
    if texts.split(',').count() > MOST {
        return Err(Problem::field(field, format!("'{field}' may have at most {MOST} values")));
    }
    let parsed = texts.split(',').map(|text| {
        parse(text).map_err(|error| {
            let text: String = text.chars().take(40).collect();
            Problem::field(field, format!("'{field}': '{text}': {error}"))
        })
    });
    parsed.collect()
}
