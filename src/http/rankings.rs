//! Rankings: pages, and the ranks of given subjects.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Payload;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::call::Call;
use super::export::{self, Format};
use super::frame::RankingFrame;
use super::problem::Problem;
use super::ranking_lines::{RankingLine, RankingLines};
use super::{cursor, object, response, schemas};
use crate::board::{Attributes, BoardTrack, Order, RankingTiers, Ranks, Shown, Subject, Tie};
use crate::service::{About, Cursor, ExportStart, Lookup, Page};

/// Maximum number of lines of a page, and of subjects of a lookup without ranks.
const MAX_LINES: u64 = 1_000;

/// Maximum number of subjects of a lookup with ranks. Each rank costs the store much more than a score does.
const MAX_RANKS: u64 = 200;

/// Maximum offset of a page and maximum number of lines of an export, which exceeds the number of subjects of any
/// board.
const MOST_SUBJECTS: u64 = 1_000_000_000;

/// A page of a ranking.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ranking {
    #[serde(flatten)]
    pub(super) frame: RankingFrame,
    /// The board's metric in its canonical form.
    #[schema(value_type = String, example = "COUNT(24h, like, post_id)")]
    pub(super) metric: Arc<str>,
    /// The lines, best first.
    #[schema(value_type = Vec<RankingLine>, max_items = 1000)]
    pub(super) items: RankingLines,
    /// Cursor of the next page; null on the last page.
    #[schema(required = true, max_length = 712)]
    pub(super) next: Option<String>,
    /// Cursor of the previous page; null on the first page.
    #[schema(required = true, max_length = 712)]
    pub(super) prev: Option<String>,
}

impl Ranking {
    /// Returns the response with a page that was read at a cursor or at an offset.
    pub(super) fn new(track: &BoardTrack, page: Page, cursor: Option<Cursor>) -> Self {
        let (prev, next) = cursor::beside(track, &page, cursor);
        Self {
            frame: RankingFrame::of(track, &page.frame, page.total),
            metric: track.canonical_metric().clone(),
            items: RankingLines::new(track, page),
            next,
            prev,
        }
    }
}

/// Get a page of the ranking, or all of it
///
/// Returns up to `limit` lines of the ranking, read atomically: from the best line on, from `offset` on, or where
/// `cursor` says. Subjects with equal scores share a rank and are ordered by name, on a `desc` board backward. A page
/// with an offset beyond the end is empty.
///
/// On a board with several windows, `window` chooses the one whose ranking is read; `metric` in the response names it.
/// A cursor belongs to one window, so `window` may be omitted.
///
/// `next` and `prev` are cursors of the pages after and before this one. A cursor is a place in the ranking, not a
/// number of lines: a subject whose score does not change is on exactly one of the pages that are read one after the
/// other, however others move in the meantime. A subject that moves past the place may be on two of these pages or on
/// none.
///
/// With `Accept: application/x-ndjson` or `Accept: text/csv` the response is an export: a stream of all lines from the
/// same start on, or of the first `limit` of them. A `cursor` must then be the `next` of a page. NDJSON has one
/// `RankingEntry` per line, and as its last line an `ExportEnd`. CSV has the columns `rank`, `subject` and `score` and
/// a header. If `Accept` names several formats, that with the highest `q` is used, and JSON if it is one of several
/// with the same.
///
/// An export does not show one instant. It is read in pages of 1,000 lines, as the client takes them, and each page
/// continues at the place of the last line before it. So a subject whose score does not change is in the export exactly
/// once; one that moves may be in it twice or not at all; and ranks are those of the time of their page.
/// `Rolltop-As-Of` is the instant of the first page, `as_of` in the last line of NDJSON that of the last one.
///
/// An export of NDJSON is complete only if its last line has `"complete": true`. After an error on the way that line
/// has `"complete": false` and the `problem`; `next` is the cursor at which to continue. CSV has no such line: after an
/// error the connection is closed before the end of the chunked body.
#[utoipa::path(
    get, path = "/v1/boards/{board}/rankings", operation_id = "getRanking", tag = "rankings",
    params(
        ("offset" = u64, Query, minimum = 0, maximum = 1000000000, description = "Number of lines to skip. Default: 0."),
        ("cursor" = String, Query, max_length = 712, description = "`next` or `prev` of another page of this board, or `next` \
            of an export. Not together with `offset`."),
        ("period" = String, Query, max_length = 32, example = "2026-11",
            description = "Period to read, on a board with a season: its name, `current` or `previous`. Default: the current one."),
        ("of" = String, Query, pattern = "^(next|previous)$", example = "next",
            description = "Edition to read: `next`, the successor, or `previous`. Default: the board itself."),
        ("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`."),
        ("attributes" = String, Query, max_length = 2080, example = "name,picture",
            description = "Names of the attributes that each line shows, with commas between them, or `*` for all. Default: none."),
        ("window" = String, Query, example = "24h", pattern = "^(all|[1-9][0-9]{0,9}(s|m|h|d|w|mo|y))$",
            description = "Length of the window to read, one of the board's. Default: the main window, or the one that `cursor` belongs to."),
        ("limit" = u64, Query, minimum = 1, maximum = 1000000000, example = 50, description = "Maximum number of lines. Of a \
            page 1 to 1,000, default: 50; of an export 1 to 1,000,000,000, default: all."),
    ),
    responses((status = 200, description = "A page of the ranking, or an export.", headers(
        ("rolltop-as-of" = String, description = "Of an export: the instant of its first page."),
    ), content(
        (Ranking = "application/json", example = json!({
            "board": "hot-posts", "metric": "COUNT(24h, like, post_id)",
            "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
            "as_of": "2026-01-02T10:07:00Z", "retiring": 0, "total": 1234,
            "items": [{"rank": 1, "subject": "post-1", "score": 17}],
            "next": cursor::EXAMPLE, "prev": null})),
        (String = "application/x-ndjson", example = "{\"rank\":1,\"subject\":\"post-1\",\"score\":17}\n\
            {\"complete\":true,\"board\":\"hot-posts\",\"window\":{\"from\":\"2026-01-01T11:00:00Z\",\
            \"to\":\"2026-01-02T11:00:00Z\",\"slots\":24},\"as_of\":\"2026-01-02T10:07:00Z\",\"retiring\":0,\"total\":1,\
            \"metric\":\"COUNT(24h, like, post_id)\",\"first_as_of\":\"2026-01-02T10:07:00Z\",\"lines\":1,\"next\":null,\
            \"problem\":null}\n"),
        (String = "text/csv", example = "rank,subject,score\r\n1,post-1,17\r\n"),
    ))),
)]
pub(super) async fn page(call: Call) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["offset", "cursor", "window", "of", "period", "by", "attributes", "limit"])?;
    let format = Format::requested(&call.request);
    let offset = parameters.number("offset", 0, 0..=MOST_SUBJECTS)?;
    let most = if format.is_some() { MOST_SUBJECTS } else { MAX_LINES };
    let limit = parameters.number("limit", 50, 1..=most)?;
    let cursor = cursor::requested(&parameters, cursor::parse)?;
    let of_cursor = cursor.as_ref().map(|cursor| cursor.track);
    let track = call.service().window(&call.caller, &call.board_name()?, parameters.window()?, of_cursor).await?;
    if let Some(format) = format {
        if format == Format::Csv {
            export::check_columns(&track)?;
        }
        let start = cursor.map_or(ExportStart::Offset(offset), ExportStart::Cursor);
        let limit = parameters.text("limit").map(|_| limit);
        let open = call.open()?;
        let export = call.service().export(&call.caller, &track, start, limit)?;
        // Boxed, because every page would have room for what only an export needs.
        return Box::pin(export::respond(&call.request, open, format, export)).await;
    }
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let About { of: track, answer: page } = match &cursor {
        Some(cursor) => call.service().page_at(&track, cursor, limit).await?,
        None => call.service().page(&track, offset, limit).await?,
    };
    Ok(response::json(&Ranking::new(&track, page, cursor)))
}

/// A body with subjects to look up.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Lookup)]
pub(super) struct LookupBody {
    // Each element is checked on its own, so that an error names its index.
    #[schema(schema_with = schemas::subjects)]
    subjects: Vec<serde_json::Value>,
    /// Whether to return rank and percentile on the whole board, for at most 200 subjects. Default: true.
    #[serde(default = "with_ranks")]
    #[schema(value_type = bool, required = false)]
    ranks: bool,
}

fn with_ranks() -> bool {
    true
}

/// Given subjects with their scores and ranks.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LookupResult {
    #[serde(flatten)]
    frame: RankingFrame,
    /// The board's metric in its canonical form.
    #[schema(value_type = String, example = "COUNT(24h, like, post_id)")]
    metric: Arc<str>,
    /// The given subjects, each once: ranked ones in the order of the board, then those that are not ranked.
    #[schema(max_items = 1000)]
    items: Vec<LookupEntry>,
}

/// A given subject with its score and ranks.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LookupEntry {
    /// Rank on the whole board; null if the subject is not ranked, or with `"ranks": false`.
    #[schema(required = true, minimum = 1)]
    rank: Option<u64>,
    /// Rank among the given subjects; null if the subject is not ranked.
    #[schema(required = true, minimum = 1)]
    rank_among: Option<u64>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    #[schema(schema_with = schemas::score, required = true)]
    score: Option<Shown>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tie, required = false)]
    tie: Option<Tie>,
    /// Percentage of ranked subjects whose score is not better; null if the subject is not ranked, or with
    /// `"ranks": false`.
    #[schema(required = true, minimum = 0, maximum = 100)]
    percentile: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tier, required = false)]
    tier: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::rank_before, required = false)]
    from: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::attributes, required = false)]
    attributes: Option<Attributes>,
}

/// Look up given subjects
///
/// Returns scores and ranks of the given subjects, for example the posts of a page or a list of friends, read
/// atomically. Duplicates are ignored. With `"ranks": false` there may be more subjects, and `rank` and `percentile`
/// are null.
#[utoipa::path(
    post, path = "/v1/boards/{board}/rankings/lookup", operation_id = "lookUpSubjects", tag = "rankings",
    params(
        ("ranks" = bool, Query, example = true, description = "The same as the member `ranks` of the body. Default: true."),
        ("period" = String, Query, max_length = 32, example = "2026-11",
            description = "Period to read, on a board with a season: its name, `current` or `previous`. Default: the current one."),
        ("of" = String, Query, pattern = "^(next|previous)$", example = "next",
            description = "Edition to read: `next`, the successor, or `previous`. Default: the board itself."),
        ("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`."),
        ("attributes" = String, Query, max_length = 2080, example = "name,picture",
            description = "Names of the attributes that each line shows, with commas between them, or `*` for all. Default: none."),
        ("window" = String, Query, example = "24h", pattern = "^(all|[1-9][0-9]{0,9}(s|m|h|d|w|mo|y))$",
            description = "Length of the window to read, one of the board's. Default: the main window."),
    ),
    request_body(content = LookupBody, description = "1 to 200 subjects, or 1 to 1,000 with `\"ranks\": false`.",
        example = json!({"subjects": ["post-1", "post-2", "post-9"]})),
    responses((status = 200, description = "The subjects with their scores and ranks.", body = LookupResult, example = json!({
        "board": "hot-posts", "metric": "COUNT(24h, like, post_id)",
        "window": {"from": "2026-01-01T11:00:00Z", "to": "2026-01-02T11:00:00Z", "slots": 24},
        "as_of": "2026-01-02T10:07:00Z", "retiring": 0, "total": 1234,
        "items": [{"rank": 1, "rank_among": 1, "subject": "post-1", "score": 17, "percentile": 100.0},
                  {"rank": 311, "rank_among": 2, "subject": "post-2", "score": 4, "percentile": 74.8784},
                  {"rank": null, "rank_among": null, "subject": "post-9", "score": 0, "percentile": null}]}))),
)]
pub(super) async fn lookup(call: Call, payload: Payload) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["ranks", "window", "of", "period", "by", "attributes"])?;
    let ranks_in_query = parameters.flag("ranks", true)?;
    let name = call.board_name()?;
    let choice = parameters.window()?;
    let body = call.json(payload).await?;
    let (subjects, ranks) = parse_lookup(&body, ranks_in_query)?;
    let track = call.service().window(&call.caller, &name, choice, None).await?;
    let About { of: track, answer: found } = call.service().lookup(&track, &subjects, ranks).await?;
    Ok(response::json(&LookupResult {
        frame: RankingFrame::of(&track, &found.frame, found.total),
        metric: track.canonical_metric().clone(),
        items: entries(&track, subjects, found, ranks),
    }))
}

/// Parses a body. Returns each subject once, in the order of first occurrence, and whether ranks are requested: unless
/// the body or the query says otherwise.
fn parse_lookup(body: &[u8], ranks_in_query: bool) -> Result<(Vec<Subject>, bool), Problem> {
    let LookupBody { subjects: given, ranks } = object::parse(body)?;
    let ranks = ranks && ranks_in_query;
    let (most, limits) = match ranks {
        true => (MAX_RANKS, format!("1 to {MAX_RANKS} elements, or 1 to {MAX_LINES} with \"ranks\": false")),
        false => (MAX_LINES, format!("1 to {MAX_LINES} elements")),
    };
    if given.is_empty() || given.len() as u64 > most {
        let detail = format!("'subjects' must have {limits}, not {}", given.len());
        return Err(Problem::field("subjects", detail).with("minimum", 1).with("maximum", most));
    }
    Ok((object::distinct("subjects", &given, most, Subject::parse)?, ranks))
}

/// Orders the subjects as the board does, with their ranks. Unranked subjects follow in the order given.
fn entries(track: &BoardTrack, subjects: Vec<Subject>, found: Lookup, ranks: bool) -> Vec<LookupEntry> {
    let (mut ranked, mut absent) = (Vec::new(), Vec::new());
    // Without ranks nothing is known of tiers.
    let tiers = RankingTiers::of(track, found.total).filter(|_| ranks);
    let counts = found.ranks.into_iter().zip(found.not_worse);
    for (subject, (score, (rank, not_worse))) in subjects.into_iter().zip(found.scores.into_iter().zip(counts)) {
        match score {
            Some(score) => {
                let tier = tiers.as_ref().zip(rank).and_then(|(tiers, rank)| tiers.tier(rank, not_worse, score));
                ranked.push((score, subject, rank, tier));
            }
            None => absent.push(subject),
        }
    }
    ranked.sort_unstable();
    if track.order() == Order::Desc {
        ranked.reverse();
    }
    let mut items = Vec::with_capacity(ranked.len() + absent.len());
    let mut last = None;
    for (position, (value, subject, rank, tier)) in (1..).zip(ranked) {
        let rank_among = match last {
            Some((rank, last_value)) if last_value == value && track.ranks() == Ranks::Shared => rank,
            _ => position,
        };
        last = Some((rank_among, value));
        let percentile = rank.map(|rank| response::percentile(found.total, rank.saturating_sub(1)));
        let score = response::score(track.scale(), value);
        let (tie, tier, from) = (value.tie(track.scale()), tier.cloned(), track.rank_before(&subject));
        let attributes = track.attributes_of(&subject);
        let rank_among = Some(rank_among);
        items.push(LookupEntry { rank, rank_among, subject, score, tie, percentile, tier, from, attributes });
    }
    let score = response::score(track.scale(), track.kind().absent());
    let entry = |subject| {
        let (from, attributes) = (track.rank_before(&subject), track.attributes_of(&subject));
        let (rank, rank_among, percentile) = (None, None, None);
        LookupEntry { rank, rank_among, subject, score, tie: None, percentile, tier: None, from, attributes }
    };
    items.extend(absent.into_iter().map(entry));
    items
}
