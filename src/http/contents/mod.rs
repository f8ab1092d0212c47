//! Contents of boards: what a board holds, out and in.

mod cursor;
mod export;
mod import;
mod lines;
mod parts;

use actix_web::HttpResponse;
use actix_web::web::Payload;
use serde::Serialize;
use utoipa::ToSchema;

use self::cursor::After;
use self::import::{ImportLines, ImportReceipt};
use self::lines::{ContentsEnd, ContentsHeader, ContentsLine};
use super::admission::Validity;
use super::body::Format;
use super::call::Call;
use super::codes::Code;
use super::items::stream;
use super::parameters::Plain;
use super::problem::Problem;
use super::response;
use crate::service::{ContentsPosition, ImportId, ServiceError};

/// A line of contents: the first, one with contents, or the last.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "for the document: lines are written one by one")]
enum AnyLine {
    First(Box<ContentsHeader>),
    Part(Box<ContentsLine<'static>>),
    Last(Box<ContentsEnd>),
}

/// Get the contents of a board
///
/// Returns what the board holds, exactly, as a stream of lines: what each subject has in each slot of each window, and
/// how many items were counted in each slot. Scores follow from that. The first line has the definition, the last one
/// says whether the contents are complete, and whether the board has changed while they were read. Ids of items are not
/// part of the contents.
///
/// A connection that broke is continued with the `cursor` of the last line that has one: give it as `after`, and drop
/// the lines after it. The cursor is refused (`stale_cursor`) if the board was defined again, and on the embedded store
/// after a restart; then begin again.
#[utoipa::path(
    get, path = "/v1/boards/{board}/contents", operation_id = "getContents", tag = "boards",
    params(("after" = String, Query, description = "The `cursor` of a line, to continue after it.")),
    responses((status = 200, description = "The contents.", content((AnyLine = "application/x-ndjson",
        example = json!("{\"contents\":1,\"export\":\"5f1c2a9d04b7e386\",\"board\":\"hot-posts\",…}\n{\"n\":1,\"track\":0,\"slot\":1767222000000,\"sums\":[[\"post-1\",17],[\"post-2\",3]]}\n{\"complete\":true,…}\n"))))),
)]
pub(super) async fn get(call: Call) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["after"])?;
    let name = call.board_name()?;
    let board = call.service().board(&call.caller, &name).await?;
    let after =
        match parameters.text("after") {
            Some(text) => Some(After::parse(text).ok_or_else(|| {
                Problem::field("after", "'after' must be the 'cursor' of a line of contents, unchanged")
            })?),
            None => None,
        };
    let is_continued = after.is_some();
    let open = call.open()?;
    let from = after.as_ref().map_or_else(ContentsPosition::default, |after| after.position.clone());
    let (walk, before) = call.service().contents(&call.caller, &board, from).await?;
    let (generation, tracks) = (walk.board().generation(), walk.board().edition().tracks().len());
    if let Some(after) = &after
        && !(after.export.is_of_same_board(ImportId::new(generation, 0)) && after.last.len() == tracks)
    {
        return Err(ServiceError::StaleCursor(name).into());
    }
    let after = after.unwrap_or_else(|| After {
        export: ImportId::new(generation, rand::random()),
        n: 0,
        last: vec![0; tracks],
        position: ContentsPosition::default(),
    });
    Ok(export::respond(&call.request, open, &after, is_continued, walk, before))
}

/// Import contents into a board
///
/// Merges lines of contents into a board, which may be in use: counts, sums and measurements are added, and so on, as
/// if the board had counted the events of both. Each request begins with the first line of the contents; the other
/// lines may be divided among requests, in their order. A line is merged once, however often it is sent. With the last
/// line the import ends. Until then the board refuses samples and removals of subjects.
///
/// The board must have the metric and the decimals of the contents, and slots that consist of theirs (for
/// `COUNT_DISTINCT` any slots). Contents of boards with `mode = "from_first"` cannot be imported. A board that takes
/// samples must not have received any.
#[utoipa::path(
    post, path = "/v1/boards/{board}/contents", operation_id = "importContents", tag = "boards",
    request_body(description = "Lines of contents.", content((AnyLine = "application/x-ndjson",
        example = json!("{\"contents\":1,\"export\":\"5f1c2a9d04b7e386\",\"board\":\"hot-posts\",\"definition\":{\"metric\":\"COUNT(24h, like, post_id)\",\"slot\":\"1h\"},\"as_of\":\"2026-01-02T10:07:00Z\"}\n{\"n\":1,\"prev\":0,\"track\":0,\"slot\":1767348000000,\"sums\":[[\"post-1\",17],[\"post-2\",3]]}\n{\"n\":2,\"prev\":1,\"track\":0,\"events\":[[1767348000000,20]]}\n{\"complete\":true,\"last\":[2]}\n")))),
    responses((status = 200, description = "What became of the lines.", body = ImportReceipt)),
)]
pub(super) async fn import(Plain(call): Plain, payload: Payload) -> Result<HttpResponse, Problem> {
    let name = call.board_name()?;
    if call.format()? != Format::Ndjson {
        let detail = "contents are lines of JSON; send them as application/x-ndjson";
        return Err(Problem::new(Code::UnsupportedMediaType, detail));
    }
    let incoming = call.incoming(payload, Format::Ndjson)?;
    call.service().board(&call.caller, &name).await?;
    let limits = call.item_limits();
    let handler = ImportLines::new(&call.state, &call.caller, &name);
    let validity = Validity::of(&call.caller, &call.state);
    let receipt = stream::process(&handler, incoming, &call.state.options, limits, validity).await?;
    Ok(response::json(&receipt))
}

/// The answer to the end of an import.
#[derive(Serialize, ToSchema)]
struct ImportEnded {
    /// Whether it was open.
    #[schema(example = true)]
    ended: bool,
}

/// End an import
///
/// Ends an import that was given up, so that the board takes samples and removals again. What is merged stays, and the
/// import cannot be continued.
#[utoipa::path(
    delete, path = "/v1/boards/{board}/import", operation_id = "endImport", tag = "boards",
    params(("id" = String, Query, example = "5f1c2a9d04b7e386", description = "The id of the import: `export` of the contents.")),
    responses((status = 200, description = "Whether it was open.", body = ImportEnded)),
)]
pub(super) async fn end(call: Call) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["id"])?;
    let name = call.board_name()?;
    let id = parameters.text("id").and_then(ImportId::parse);
    let id = id.ok_or_else(|| Problem::field("id", "'id' must be the 16 hex digits of the import"))?;
    Ok(response::json(&ImportEnded { ended: call.service().end_import(&call.caller, &name, id).await? }))
}
