//! Attributes of subjects: what stands beside a subject in rankings, one by one, many in a request, and their list.

use std::future::ready;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Payload;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::call::Call;
use super::codes::ItemCode;
use super::increments::ranking;
use super::items::{ItemError, TextField, given, item};
use super::moderation::{MAX_SUBJECTS, cut, parse_cursor};
use super::parameters::Plain;
use super::problem::Problem;
use super::subject_changes::{self, Refused, SubjectChange, SubjectsReceipt};
use super::{body, response, schemas};
use crate::access::Scope;
use crate::board::{Attributes, AttributesChange, AttributesError, Board, BoardName, RankingKey, Subject};
use crate::service::{self, ModeratedRange, Service};

/// Maximum number of bytes of a body with the attributes of one subject, with escapes and white space.
const MAX_BODY: usize = 16 << 10;

/// The attributes of a subject.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SubjectAttributes {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    /// Absent for a caller that may not see them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::all_attributes, required = false)]
    attributes: Option<Attributes>,
}

item! {
    /// Attributes to merge with those of a subject.
    #[schema(as = AttributesChange)]
    pub(super) struct AttributesItem<'a> {
        #[schema(schema_with = schemas::subject)]
        subject: TextField<'a>,
        #[schema(schema_with = schemas::by, required = false)]
        by: TextField<'a>,
        #[schema(schema_with = schemas::attributes_or_null, required = true)]
        attributes: Option<&'a RawValue>,
    }
    /// A single subject or a batch.
    enum AttributesBody;
    /// A batch of subjects.
    struct AttributesBatch {
        /// The subjects. One that does not match this schema is rejected on its own.
        subjects
    }
    invalid: ItemCode::InvalidSubject
}

impl SubjectChange for AttributesItem<'static> {
    type Item<'a> = AttributesItem<'a>;
    type Change = AttributesChange;

    async fn board(call: &Call) -> Result<Arc<Board>, Problem> {
        Ok(call.service().keeper(&call.caller, &call.board_name()?).await?)
    }

    fn parse(item: AttributesItem<'_>, board: &Board) -> Result<(Subject, AttributesChange), ItemError> {
        let AttributesItem { subject, by, attributes } = item;
        let subject = ranking::subject(subject, by, board)?;
        let change = match attributes {
            None => {
                let detail = "'attributes' is missing; null removes all of the subject";
                return Err(ItemError::structural(ItemCode::InvalidAttributes, "attributes", detail));
            }
            Some(raw) => match given(Some(raw)) {
                None => AttributesChange::clear(),
                Some(raw) => AttributesChange::merging(raw).map_err(|error| ItemError::of_attributes(&error))?,
            },
        };
        Ok((subject, change))
    }

    async fn make(
        service: &Service,
        of: &BoardName,
        board: &Arc<Board>,
        changes: &[(Subject, AttributesChange)],
    ) -> service::Result<Refused> {
        // Since the request began, the board may have got a definition that names another one.
        service.check_keeper(of, board).await?;
        let outcomes = service.set_attributes(board, changes).await?.into_iter().enumerate();
        Ok(outcomes.filter_map(|(at, outcome)| Some((at, ItemError::of_attributes(&outcome.err()?)))).collect())
    }
}

fn problem(error: &AttributesError) -> Problem {
    Problem::field("attributes", error.to_string())
}

/// Changes the attributes of the subject in the path, and returns those that it has then. The change is read from the
/// request when the caller is known to be allowed to make it.
async fn change(
    call: &Call,
    sent: impl Future<Output = Result<AttributesChange, Problem>>,
) -> Result<HttpResponse, Problem> {
    let by = call.parameters(&["by"])?.key()?;
    let (name, subject, service) = (call.board_name()?, call.subject()?, call.service());
    let keeper = service.keeper(&call.caller, &name).await?;
    let change = sent.await?;
    // While the body was sent, the board may have got a definition that names another one.
    service.check_keeper(&name, &keeper).await?;
    let (keeper, stored) = service.stored_subject(&keeper, &subject, by.as_ref()).await?;
    if let Some(Err(error)) = service.set_attributes(&keeper, &[(stored, change)]).await?.pop() {
        return Err(problem(&error));
    }
    shown(call, name, &keeper, subject, by).await
}

async fn shown(
    call: &Call,
    board: BoardName,
    keeper: &Arc<Board>,
    subject: Subject,
    by: Option<RankingKey>,
) -> Result<HttpResponse, Problem> {
    let attributes = match call.caller.may(Scope::View) {
        true => Some(call.service().attributes(keeper, &subject, by.as_ref()).await?),
        false => None,
    };
    Ok(response::json(&SubjectAttributes { board, by, subject, attributes }))
}

/// Returns the change that a body with attributes is.
async fn sent(
    call: &Call,
    payload: Payload,
    parse: fn(&RawValue) -> Result<AttributesChange, AttributesError>,
) -> Result<AttributesChange, Problem> {
    let body = call.json(payload).await?;
    if body.len() > MAX_BODY {
        return Err(problem(&AttributesError::TooLong));
    }
    let object: &RawValue = serde_json::from_slice(&body).map_err(|error| body::malformed(&error))?;
    parse(object).map_err(|error| problem(&error))
}

/// Get the attributes of a subject
///
/// Returns the attributes of the subject that the board keeps, or the board that its definition names with `attributes`.
/// A subject without attributes has an empty object.
#[utoipa::path(
    get, path = "/v1/boards/{board}/subjects/{subject}/attributes", operation_id = "getAttributes", tag = "attributes",
    params(("by" = String, Query, max_length = 512, description = "Key of the ranking, if the board that keeps them has a metric with `BY`.")),
    responses((status = 200, description = "The attributes.", body = SubjectAttributes, example = json!({
        "board": "hot-posts", "subject": "post-1", "attributes": {"country": "DE", "name": "Ann"}}))),
)]
pub(super) async fn get(call: Call) -> Result<HttpResponse, Problem> {
    let by = call.parameters(&["by"])?.key()?;
    let (name, subject) = (call.board_name()?, call.subject()?);
    let keeper = call.service().keeper_to_read(&call.caller, &name).await?;
    shown(&call, name, &keeper, subject, by).await
}

/// Set the attributes of a subject
///
/// Replaces all attributes of the subject by those of the body: at most 32, whose object has at most 1,024 bytes. A name
/// has 1 to 64 letters, digits, `_`, `-` and `.`; a value is any JSON value, and is returned as it was sent. An attribute
/// that is `null` is left out. The subject need not have anything on the board. Setting attributes needs a secret key.
#[utoipa::path(
    put, path = "/v1/boards/{board}/subjects/{subject}/attributes", operation_id = "setAttributes", tag = "attributes",
    params(("by" = String, Query, max_length = 512, description = "Key of the ranking, if the board that keeps them has a metric with `BY`.")),
    request_body(content = std::collections::HashMap<String, serde_json::Value>, description = "All attributes.", example = json!({"name": "Ann", "country": "DE"})),
    responses((status = 200, description = "The attributes now.", body = SubjectAttributes, example = json!({
        "board": "hot-posts", "subject": "post-1", "attributes": {"country": "DE", "name": "Ann"}}))),
)]
pub(super) async fn put(call: Call, payload: Payload) -> Result<HttpResponse, Problem> {
    change(&call, sent(&call, payload, AttributesChange::replacing)).await
}

/// Change attributes of a subject
///
/// Sets the attributes of the body, and removes those that are `null` there; the others stay. What arrives last wins, for
/// each attribute. The bounds are those of the subject: what would exceed them changes nothing.
#[utoipa::path(
    patch, path = "/v1/boards/{board}/subjects/{subject}/attributes", operation_id = "changeAttributes", tag = "attributes",
    params(("by" = String, Query, max_length = 512, description = "Key of the ranking, if the board that keeps them has a metric with `BY`.")),
    request_body(content = std::collections::HashMap<String, serde_json::Value>, description = "Attributes to set, and `null` for those to remove.", example = json!({"country": null, "level": 12})),
    responses((status = 200, description = "The attributes now.", body = SubjectAttributes, example = json!({
        "board": "hot-posts", "subject": "post-1", "attributes": {"level": 12, "name": "Ann"}}))),
)]
pub(super) async fn patch(call: Call, payload: Payload) -> Result<HttpResponse, Problem> {
    change(&call, sent(&call, payload, AttributesChange::merging)).await
}

/// Remove the attributes of a subject
///
/// Removes all attributes of the subject, and nothing else. A subject without attributes is not an error.
#[utoipa::path(
    delete, path = "/v1/boards/{board}/subjects/{subject}/attributes", operation_id = "removeAttributes", tag = "attributes",
    params(("by" = String, Query, max_length = 512, description = "Key of the ranking, if the board that keeps them has a metric with `BY`.")),
    responses((status = 200, description = "The subject has no attributes.", body = SubjectAttributes, example = json!({
        "board": "hot-posts", "subject": "post-1", "attributes": {}}))),
)]
pub(super) async fn delete(call: Call) -> Result<HttpResponse, Problem> {
    change(&call, ready(Ok(AttributesChange::clear()))).await
}

/// Change attributes of many subjects
///
/// Accepts a single subject, a batch `{"subjects":[…]}`, or a stream of any length as `application/x-ndjson` with one
/// subject per line. The attributes of each are merged with those that it has, as by `PATCH …/subjects/{subject}/attributes`,
/// in their order; `"attributes": null` removes all. An invalid one does not affect the others: `rejected` lists it with its
/// reason and its `index` or `line`. The request can be sent again after an error.
#[utoipa::path(
    post, path = "/v1/boards/{board}/attributes", operation_id = "changeAttributesOfSubjects", tag = "attributes",
    request_body(description = "A single subject, a batch or a stream.", content(
        (AttributesBody = "application/json", examples(
            ("one" = (summary = "A single subject", value = json!({"subject": "post-9", "attributes": {"title": "Hello"}}))),
            ("batch" = (summary = "A batch", value = json!({"subjects": [
                {"subject": "post-8", "attributes": {"title": "Hello", "draft": null}},
                {"subject": "post-9", "attributes": null}]}))))),
        (String = "application/x-ndjson", example = "{\"subject\":\"post-8\",\"attributes\":{\"title\":\"Hello\"}}\n"),
    )),
    responses((status = 200, description = "How many subjects were changed.", body = SubjectsReceipt, example = json!({
        "accepted": 2, "rejected": []}))),
)]
pub(super) async fn change_several(Plain(call): Plain, payload: Payload) -> Result<HttpResponse, Problem> {
    subject_changes::change::<AttributesItem<'static>>(call, payload).await
}

/// A page of the subjects that have attributes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DescribedPage {
    #[schema(schema_with = schemas::board)]
    board: BoardName,
    /// Number of subjects that have attributes, whatever `by` and `prefix` select.
    total: u64,
    /// The subjects, ordered by the bytes of key and subject.
    #[schema(max_items = 1000)]
    items: Vec<DescribedSubject>,
    /// Cursor of the next page; null on the last page.
    #[schema(required = true, max_length = 1367)]
    next: Option<String>,
}

/// A subject with its attributes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DescribedSubject {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    #[schema(schema_with = schemas::all_attributes)]
    attributes: Attributes,
}

/// List the subjects that have attributes
///
/// Returns subjects with their attributes, ordered by the bytes of key and subject: those that the board keeps, or the board
/// that its definition names with `attributes`.
#[utoipa::path(
    get, path = "/v1/boards/{board}/attributes", operation_id = "listAttributes", tag = "attributes",
    params(
        ("by" = String, Query, max_length = 512, description = "Key of the ranking whose subjects are listed, if the board that keeps them has a metric with `BY`. Default: those of all keys."),
        ("prefix" = String, Query, max_length = 512, example = "post-", description = "Beginning of the subjects. With keys, only together with `by`. Upper and lower case differ."),
        ("cursor" = String, Query, max_length = 1367, description = "`next` of another page."),
        ("limit" = u64, Query, minimum = 1, maximum = 1000, example = 50, description = "Maximum number of subjects. Default: 50."),
    ),
    responses((status = 200, description = "A page of subjects.", body = DescribedPage, example = json!({
        "board": "hot-posts", "total": 1,
        "items": [{"subject": "post-1", "attributes": {"name": "Ann"}}], "next": null}))),
)]
pub(super) async fn list(call: Call) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["by", "prefix", "cursor", "limit"])?;
    let limit = u32::try_from(parameters.number("limit", 50, 1..=MAX_SUBJECTS)?).unwrap_or(u32::MAX);
    let (name, by) = (call.board_name()?, parameters.key()?);
    let after = parameters.text("cursor").map(parse_cursor).transpose()?;
    let prefix = parameters.text("prefix").unwrap_or_default();
    let range = ModeratedRange { key: by.as_ref(), prefix, after: after.as_deref() };
    let keeper = call.service().keeper_to_read(&call.caller, &name).await?;
    // One more, which says whether there is a next page.
    let mut found = call.service().described(&keeper, range, limit.saturating_add(1)).await?;
    let next = cut(&mut found.items, limit);
    let items = found.items.into_iter().map(|(subject, attributes)| {
        let (by, subject) = subject.split();
        DescribedSubject { by, subject, attributes }
    });
    Ok(response::json(&DescribedPage { board: name, total: found.total, items: items.collect(), next }))
}
