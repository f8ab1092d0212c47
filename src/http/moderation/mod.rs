//! Moderation: subjects that are hidden or frozen, one by one, many in a request, and their lists.

mod items;

use actix_web::HttpResponse;
use actix_web::web::Payload;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use self::items::{FrozenItem, HiddenItem};
use super::call::Call;
use super::parameters::Plain;
use super::problem::Problem;
use super::subject_changes::{self, SubjectsReceipt};
use super::{object, response, schemas};
use crate::board::{BoardName, ModerationChange, ModerationList, RankingKey, Subject, Visibility};
use crate::service::ModeratedRange;

/// Maximum number of subjects on a page of a list.
pub(super) const MAX_SUBJECTS: u64 = 1_000;
/// Maximum length of a cursor: the text of a key, a zero byte and a subject, in Base64.
const MAX_CURSOR: usize = ((2 * Subject::MAX_BYTES + 1) * 4).div_ceil(3);

/// Whether a subject is hidden.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Hiding {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    /// Whether the subject is in no ranking.
    hidden: bool,
    /// Whether its own standing has a rank all the same.
    shadow: bool,
}

/// Whether a subject is frozen.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Freezing {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    /// Whether nothing counts for the subject.
    frozen: bool,
}

/// How a subject is hidden.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HideSubject)]
pub(super) struct HideBody {
    /// Whether the standing of the subject has the rank that it would have if it alone were shown. Default: false.
    #[serde(default)]
    #[schema(required = false, example = true)]
    shadow: bool,
}

/// A body that says nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoFields {}

/// Makes a change of the subject in the path.
async fn change(call: &Call, change: ModerationChange) -> Result<(BoardName, Option<RankingKey>, Subject), Problem> {
    let by = call.parameters(&["by"])?.key()?;
    let (name, subject) = (call.board_name()?, call.subject()?);
    let board = call.service().board(&call.caller, &name).await?;
    call.service().moderate(&board, &subject, by.as_ref(), change).await?;
    Ok((name, by, subject))
}

async fn set_visibility(call: &Call, visibility: Visibility) -> Result<HttpResponse, Problem> {
    let (board, by, subject) = change(call, ModerationChange::Visibility(visibility)).await?;
    let (hidden, shadow) = (visibility.is_hidden(), visibility == Visibility::Shadowed);
    Ok(response::json(&Hiding { board, by, subject, hidden, shadow }))
}

async fn set_frozen(call: &Call, frozen: bool) -> Result<HttpResponse, Problem> {
    let (board, by, subject) = change(call, ModerationChange::Frozen(frozen)).await?;
    Ok(response::json(&Freezing { board, by, subject, frozen }))
}

/// Hide a subject
///
/// The subject goes on counting, and is in no ranking until it is shown again: in no page, rank, look-up, neighbors,
/// total, stream or export, of any window. Its own standing has its score, no rank, and `"hidden": true`. With
/// `"shadow": true` the standing has the rank that the subject would have, 1 plus the number of ranked subjects with a
/// better score, and does not say that it is hidden.
///
/// This holds for the subject on this board, or for a board whose metric has `BY` in the ranking of the key `by`. It
/// outlives the data of the subject, may be set before there is any, and ends with `DELETE …/subjects/{subject}`, which
/// removes the subject. Repeating the request changes nothing.
#[utoipa::path(
    put, path = "/v1/boards/{board}/subjects/{subject}/hidden", operation_id = "hideSubject", tag = "moderation",
    params(("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`.")),
    request_body(content = Option<HideBody>, description = "How it is hidden. Without a body: not as a shadow.", example = json!({"shadow": true})),
    responses((status = 200, description = "The subject is hidden.", body = Hiding, example = json!({
        "board": "hot-posts", "subject": "post-1", "hidden": true, "shadow": true}))),
)]
pub(super) async fn hide(call: Call, payload: Payload) -> Result<HttpResponse, Problem> {
    let body = call.optional_json(payload).await?;
    let HideBody { shadow } = body.map(|body| object::parse(&body)).transpose()?.unwrap_or_default();
    let visibility = if shadow { Visibility::Shadowed } else { Visibility::Hidden };
    set_visibility(&call, visibility).await
}

/// Show a hidden subject
///
/// The subject is in the rankings again, with everything that it has counted. A subject that is not hidden is not an
/// error.
#[utoipa::path(
    delete, path = "/v1/boards/{board}/subjects/{subject}/hidden", operation_id = "showSubject", tag = "moderation",
    params(("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`.")),
    responses((status = 200, description = "The subject is shown.", body = Hiding, example = json!({
        "board": "hot-posts", "subject": "post-1", "hidden": false, "shadow": false}))),
)]
pub(super) async fn show(call: Call) -> Result<HttpResponse, Problem> {
    set_visibility(&call, Visibility::Visible).await
}

/// Freeze a subject
///
/// Nothing counts for the subject until that is ended: its items are rejected with `subject_frozen`, retractions and
/// samples included, and their ids are not remembered. What it has is read as before, and leaves the window slot by
/// slot. This holds for this board, or for a board whose metric has `BY` for the ranking of the key `by`; it outlives the
/// data of the subject, and ends with its removal. Repeating the request changes nothing.
#[utoipa::path(
    put, path = "/v1/boards/{board}/subjects/{subject}/frozen", operation_id = "freezeSubject", tag = "moderation",
    params(("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`.")),
    responses((status = 200, description = "The subject is frozen.", body = Freezing, example = json!({
        "board": "hot-posts", "subject": "post-1", "frozen": true}))),
)]
pub(super) async fn freeze(call: Call, payload: Payload) -> Result<HttpResponse, Problem> {
    // A body with `"frozen": false` must not freeze.
    if let Some(body) = call.optional_json(payload).await? {
        let NoFields {} = object::parse(&body)?;
    }
    set_frozen(&call, true).await
}

/// Unfreeze a subject
///
/// Items of the subject count again. A subject that is not frozen is not an error.
#[utoipa::path(
    delete, path = "/v1/boards/{board}/subjects/{subject}/frozen", operation_id = "unfreezeSubject", tag = "moderation",
    params(("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`.")),
    responses((status = 200, description = "The subject is not frozen.", body = Freezing, example = json!({
        "board": "hot-posts", "subject": "post-1", "frozen": false}))),
)]
pub(super) async fn unfreeze(call: Call) -> Result<HttpResponse, Problem> {
    set_frozen(&call, false).await
}

/// A page of a list of moderated subjects.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModeratedPage {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    /// Number of subjects of the list, whatever `by` and `prefix` select. On a board with several keys, a subject counts
    /// once for each.
    total: u64,
    /// The subjects, ordered by the bytes of key and subject.
    #[schema(max_items = 1000)]
    items: Vec<ModeratedSubject>,
    /// Cursor of the next page; null on the last page.
    #[schema(required = true, max_length = 1367)]
    next: Option<String>,
}

/// A moderated subject.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModeratedSubject {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    /// Whether the subject is in no ranking.
    hidden: bool,
    /// Whether its own standing has a rank all the same.
    shadow: bool,
    /// Whether nothing counts for the subject.
    frozen: bool,
}

async fn list(call: &Call, list: ModerationList) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["by", "prefix", "cursor", "limit"])?;
    let limit = u32::try_from(parameters.number("limit", 50, 1..=MAX_SUBJECTS)?).unwrap_or(u32::MAX);
    let (name, by) = (call.board_name()?, parameters.key()?);
    let after = parameters.text("cursor").map(parse_cursor).transpose()?;
    let prefix = parameters.text("prefix").unwrap_or_default();
    let range = ModeratedRange { key: by.as_ref(), prefix, after: after.as_deref() };
    // One more, which says whether there is a next page.
    let mut found = call.service().moderated(&call.caller, &name, list, range, limit.saturating_add(1)).await?;
    let next = cut(&mut found.items, limit);
    Ok(response::json(&ModeratedPage {
        board: name,
        total: found.total,
        next,
        items: found
            .items
            .into_iter()
            .map(|(subject, moderation)| {
                let (by, subject) = subject.split();
                let visibility = moderation.visibility;
                let (hidden, shadow) = (visibility.is_hidden(), visibility == Visibility::Shadowed);
                ModeratedSubject { by, subject, hidden, shadow, frozen: moderation.is_frozen }
            })
            .collect(),
    }))
}

/// Shortens a list, of which one more was read, to a page. Returns the cursor of the next page, if there is one.
pub(super) fn cut<T>(items: &mut Vec<(Subject, T)>, limit: u32) -> Option<String> {
    let has_next = items.len() > limit as usize;
    items.truncate(limit as usize);
    items.last().filter(|_| has_next).map(|(subject, _)| URL_SAFE_NO_PAD.encode(subject.as_str()))
}

/// Returns the stored subject in a cursor.
pub(super) fn parse_cursor(text: &str) -> Result<String, Problem> {
    let bytes = Some(text).filter(|text| text.len() <= MAX_CURSOR).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    let decoded = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.ok_or_else(|| Problem::field("cursor", "'cursor' must be 'next' of another page, unchanged"))
}

/// List the hidden subjects of a board
///
/// Returns the hidden subjects, shadowed ones included, ordered by the bytes of key and subject. Each says also whether
/// it is frozen.
#[utoipa::path(
    get, path = "/v1/boards/{board}/hidden", operation_id = "listHidden", tag = "moderation",
    params(
        ("by" = String, Query, max_length = 512, description = "Key of the ranking whose subjects are listed, for a board whose metric has `BY`. Default: those of all keys."),
        ("prefix" = String, Query, max_length = 512, example = "post-", description = "Beginning of the subjects. With keys, only together with `by`. Upper and lower case differ."),
        ("cursor" = String, Query, max_length = 1367, description = "`next` of another page."),
        ("limit" = u64, Query, minimum = 1, maximum = 1000, example = 50, description = "Maximum number of subjects. Default: 50."),
    ),
    responses((status = 200, description = "A page of hidden subjects.", body = ModeratedPage, example = json!({
        "board": "hot-posts", "total": 1,
        "items": [{"subject": "post-1", "hidden": true, "shadow": true, "frozen": false}], "next": null}))),
)]
pub(super) async fn list_hidden(call: Call) -> Result<HttpResponse, Problem> {
    list(&call, ModerationList::Hidden).await
}

/// List the frozen subjects of a board
///
/// Returns the frozen subjects, ordered by the bytes of key and subject. Each says also whether it is hidden.
#[utoipa::path(
    get, path = "/v1/boards/{board}/frozen", operation_id = "listFrozen", tag = "moderation",
    params(
        ("by" = String, Query, max_length = 512, description = "Key of the ranking whose subjects are listed, for a board whose metric has `BY`. Default: those of all keys."),
        ("prefix" = String, Query, max_length = 512, example = "post-", description = "Beginning of the subjects. With keys, only together with `by`. Upper and lower case differ."),
        ("cursor" = String, Query, max_length = 1367, description = "`next` of another page."),
        ("limit" = u64, Query, minimum = 1, maximum = 1000, example = 50, description = "Maximum number of subjects. Default: 50."),
    ),
    responses((status = 200, description = "A page of frozen subjects.", body = ModeratedPage, example = json!({
        "board": "hot-posts", "total": 1,
        "items": [{"subject": "post-9", "hidden": false, "shadow": false, "frozen": true}], "next": null}))),
)]
pub(super) async fn list_frozen(call: Call) -> Result<HttpResponse, Problem> {
    list(&call, ModerationList::Frozen).await
}

/// Hide and show many subjects
///
/// Accepts a single subject, a batch `{"subjects":[…]}`, or a stream of any length as `application/x-ndjson` with one
/// subject per line. Each is hidden, or with `"hidden": false` shown, as by `PUT` and `DELETE …/subjects/{subject}/hidden`.
/// An invalid one does not affect the others: `rejected` lists it with its reason and its `index` or `line`. The request
/// can be sent again after an error: repeated changes change nothing.
#[utoipa::path(
    post, path = "/v1/boards/{board}/hidden", operation_id = "hideSubjects", tag = "moderation",
    request_body(description = "A single subject, a batch or a stream.", content(
        (items::HiddenBody = "application/json", examples(
            ("one" = (summary = "A single subject", value = json!({"subject": "post-9"}))),
            ("batch" = (summary = "A batch", value = json!({"subjects": [
                {"subject": "post-8", "shadow": true}, {"subject": "post-9", "hidden": false}]}))))),
        (String = "application/x-ndjson", example = "{\"subject\":\"post-8\"}\n{\"subject\":\"post-9\",\"hidden\":false}\n"),
    )),
    responses((status = 200, description = "How many subjects were changed.", body = SubjectsReceipt, example = json!({
        "accepted": 2, "rejected": []}))),
)]
pub(super) async fn hide_several(Plain(call): Plain, payload: Payload) -> Result<HttpResponse, Problem> {
    subject_changes::change::<HiddenItem<'static>>(call, payload).await
}

/// Freeze and unfreeze many subjects
///
/// Accepts a single subject, a batch `{"subjects":[…]}`, or a stream of any length as `application/x-ndjson` with one
/// subject per line. Each is frozen, or with `"frozen": false` that is ended, as by `PUT` and
/// `DELETE …/subjects/{subject}/frozen`. An invalid one does not affect the others: `rejected` lists it with its reason
/// and its `index` or `line`. The request can be sent again after an error: repeated changes change nothing.
#[utoipa::path(
    post, path = "/v1/boards/{board}/frozen", operation_id = "freezeSubjects", tag = "moderation",
    request_body(description = "A single subject, a batch or a stream.", content(
        (items::FrozenBody = "application/json", examples(
            ("one" = (summary = "A single subject", value = json!({"subject": "post-9"}))),
            ("batch" = (summary = "A batch", value = json!({"subjects": [
                {"subject": "post-8"}, {"subject": "post-9", "frozen": false}]}))))),
        (String = "application/x-ndjson", example = "{\"subject\":\"post-8\"}\n{\"subject\":\"post-9\",\"frozen\":false}\n"),
    )),
    responses((status = 200, description = "How many subjects were changed.", body = SubjectsReceipt, example = json!({
        "accepted": 2, "rejected": []}))),
)]
pub(super) async fn freeze_several(Plain(call): Plain, payload: Payload) -> Result<HttpResponse, Problem> {
    subject_changes::change::<FrozenItem<'static>>(call, payload).await
}
