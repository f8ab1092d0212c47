//! The removal of subjects: one, or several in a request; and that of values from all subjects.

use std::collections::HashSet;

use actix_web::HttpResponse;
use actix_web::web::Payload;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::call::Call;
use super::problem::Problem;
use super::{object, response, schemas};
use crate::board::{BoardName, Counted, RankingKey, Shown, Subject, Timestamp};
use crate::service::{AboutBoard, RemovedAll, RemovedValues};

/// Maximum number of subjects, or of values, that a request may remove.
const MAX_REMOVED: u64 = 1_000;

/// Returns the rankings from which to remove: that of a key, if one is given, and whether those of all keys.
fn rankings(call: &Call) -> Result<(Option<RankingKey>, bool), Problem> {
    let parameters = call.parameters(&["by", "all_keys"])?;
    let (by, all_keys) = (parameters.key()?, parameters.flag("all_keys", false)?);
    if all_keys && by.is_some() {
        return Err(Problem::field("all_keys", "give 'by' or 'all_keys=true', not both"));
    }
    Ok((by, all_keys))
}

/// The data of a removed subject.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RemovalReceipt {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    /// Score before the removal.
    #[schema(schema_with = schemas::score, required = true)]
    score: Option<Shown>,
    /// Number of slots of the window in which the subject had data; over all time, of the slots that are kept.
    live_slots: u64,
    /// Number of retiring slots in which the subject had data.
    retiring_slots: u64,
    /// The store's time of the removal.
    #[schema(schema_with = schemas::time)]
    as_of: Timestamp,
}

/// The answer to a removal.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Removal)]
pub(super) enum RemovalAnswer {
    One(RemovalReceipt),
    AllKeys(AllKeysReceipt),
}

/// The removal of a subject from the rankings of all keys.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AllKeysReceipt {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    /// Number of keys for which the subject had data.
    keys: u64,
    /// The store's time at the end of the removal.
    #[schema(schema_with = schemas::time)]
    as_of: Timestamp,
}

/// Remove a subject
///
/// Removes the subject from the ranking and all slots in one atomic step, and returns what was removed. A subject
/// without data is not an error. The subject can be counted again afterwards.
///
/// On a board whose metric has `BY`, `by` names the key of the ranking, or `all_keys=true` removes the subject from
/// those of all keys. That passes over everything that the board holds, in steps while other requests are answered: it
/// takes as long as an audit. What is counted for the subject in the meantime may stay.
///
/// On a board with several windows, the subject is removed from each in an atomic step of its own, and the response is
/// about the main window. What is counted for the subject in the meantime may be missing from some of them. The same
/// applies to a total over all time and the slots kept beside it. After an error, send the request again.
#[utoipa::path(
    delete, path = "/v1/boards/{board}/subjects/{subject}", operation_id = "removeSubject", tag = "subjects",
    params(
        ("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`."),
        ("all_keys" = bool, Query, example = false,
            description = "Whether to remove the subject from the rankings of all keys, instead of `by`. Default: false."),
    ),
    responses((status = 200, description = "The removed data.", body = RemovalAnswer, examples(
        ("one" = (value = json!({"board": "hot-posts", "subject": "post-1", "score": 17, "live_slots": 3,
            "retiring_slots": 0, "as_of": "2026-01-02T10:07:00Z"}))),
        ("all keys" = (value = json!({"board": "posts-by-community", "subject": "post-1", "keys": 3,
            "as_of": "2026-01-02T10:07:00Z"}))),
    ))),
)]
pub(super) async fn remove(call: Call) -> Result<HttpResponse, Problem> {
    let (by, all_keys) = rankings(&call)?;
    let (name, subject) = (call.board_name()?, call.subject()?);
    if all_keys {
        let names = HashSet::from([subject.clone()]);
        let RemovedAll { subjects: keys, as_of } =
            call.service().remove_from_all_keys(&call.caller, &name, &names).await?;
        return Ok(response::json(&RemovalAnswer::AllKeys(AllKeysReceipt { board: name, subject, keys, as_of })));
    }
    let board = call.service().board(&call.caller, &name).await?;
    let AboutBoard { of: board, answer: removal } = call.service().remove(&board, &subject, by.as_ref()).await?;
    Ok(response::json(&RemovalAnswer::One(RemovalReceipt {
        score: response::score(board.scale(), removal.score),
        live_slots: removal.live_slots,
        retiring_slots: removal.retiring_slots,
        as_of: removal.frame.as_of,
        board: name,
        by,
        subject,
    })))
}

/// A body with subjects to remove, or with values.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Removals)]
pub(super) struct RemovalsBody {
    // Each element is checked on its own, so that an error names its index.
    #[serde(default)]
    #[schema(schema_with = schemas::removed, required = false)]
    subjects: Option<Vec<serde_json::Value>>,
    #[serde(default)]
    #[schema(schema_with = schemas::removed_values, required = false)]
    values: Option<Vec<serde_json::Value>>,
}

/// The removal of several subjects.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RemovalsReceipt {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    /// Number of subjects that had data in slots of the main window; with `all_keys=true`, of any window, and a subject
    /// counts once for each key.
    subjects: u64,
    /// The store's time at the end of the removal.
    #[schema(schema_with = schemas::time)]
    as_of: Timestamp,
}

/// The removal of values from all subjects.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ValueRemovalsReceipt {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    /// Number of values found; a value counts once for each subject that had it. One that is seen again in the meantime
    /// may be counted twice.
    values: u64,
    /// Number of those that stay, because they are in final periods of a season, which do not change any more. They are
    /// deleted when the period is packed, or leaves the archive.
    final_periods: u64,
    /// Whether an edition of the board counts approximately. It stores no values, and what it has counted of one stays
    /// in its numbers.
    approximate: bool,
    /// The store's time at the end of the removal.
    #[schema(schema_with = schemas::time)]
    as_of: Timestamp,
}

/// The answer to the removal of several subjects, or of values.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum RemovalsAnswer {
    Subjects(RemovalsReceipt),
    Values(ValueRemovalsReceipt),
}

/// Remove several subjects, or values
///
/// Removes up to 1,000 subjects as `DELETE …/subjects/{subject}` removes one. With `all_keys=true`, on a board whose
/// metric has `BY`, they are removed from the rankings of all keys in one pass over everything that the board holds,
/// which takes as long for 1,000 subjects as for one. After an error, send the request again.
///
/// With `values` in place of `subjects`, removes up to 1,000 values of a COUNT_DISTINCT board, or persons of a board with
/// a cap, from all subjects, such as the likes that a person gave: from all windows, and from the other edition if there is
/// one, also if they were taken back. Unlike a retraction this stores nothing about the value. It is one pass over everything that the board holds,
/// in steps while other requests are answered. A value that was counted before the request, and is not seen again, is
/// gone when it is answered; one that is seen later counts. On a board whose metric has `BY`, `by` restricts the removal
/// to the subjects in the ranking of a key. What counts approximately stores no values, from which one could be removed:
/// if no edition of the board stores them, the request is refused (`no_values`).
#[utoipa::path(
    post, path = "/v1/boards/{board}/removals", operation_id = "removeSubjects", tag = "subjects",
    params(
        ("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`."),
        ("all_keys" = bool, Query, example = false,
            description = "Whether to remove the subjects from the rankings of all keys, instead of `by`. Default: false."),
    ),
    request_body(content = RemovalsBody, description = "1 to 1,000 subjects, or values.", examples(
        ("subjects" = (value = json!({"subjects": ["post-1", "post-2"]}))),
        ("values" = (value = json!({"values": ["user-7"]}))),
    )),
    responses((status = 200, description = "The subjects, or values, were removed.", body = RemovalsAnswer, examples(
        ("subjects" = (value = json!({"board": "hot-posts", "subjects": 2, "as_of": "2026-01-02T10:07:00Z"}))),
        ("values" = (value = json!({"board": "users-per-device", "values": 3, "final_periods": 0, "approximate": false,
            "as_of": "2026-01-02T10:07:00Z"}))),
    ))),
)]
pub(super) async fn remove_several(call: Call, payload: Payload) -> Result<HttpResponse, Problem> {
    let (by, all_keys) = rankings(&call)?;
    let name = call.board_name()?;
    let body = call.json(payload).await?;
    let RemovalsBody { subjects, values } = object::parse(&body)?;
    let subjects = match (subjects, values) {
        (Some(subjects), None) => object::distinct("subjects", &subjects, MAX_REMOVED, Subject::parse)?,
        (None, Some(values)) => {
            let values = object::distinct("values", &values, MAX_REMOVED, Counted::parse)?;
            let values = HashSet::from_iter(values);
            let RemovedValues { values, final_periods, approximate, as_of } =
                call.service().remove_values(&call.caller, &name, &values, by.as_ref()).await?;
            let receipt = ValueRemovalsReceipt { board: name, by, values, final_periods, approximate, as_of };
            return Ok(response::json(&RemovalsAnswer::Values(receipt)));
        }
        _ => return Err(Problem::field("subjects", "give 'subjects' or 'values', one of the two")),
    };
    let RemovedAll { subjects, as_of } = match all_keys {
        true => call.service().remove_from_all_keys(&call.caller, &name, &HashSet::from_iter(subjects)).await?,
        false => call.service().remove_several(&call.caller, &name, subjects, by.as_ref()).await?,
    };
    Ok(response::json(&RemovalsAnswer::Subjects(RemovalsReceipt { board: name, by, subjects, as_of })))
}
