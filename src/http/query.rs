//! Many questions at once, each answered for itself.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::body::Object;
use super::codes::Code;
use super::evaluate::not_a_rule;
use super::openapi::{board_schema, problem_schema, subject_schema, time_schema};
use super::parameters::Parameters;
use super::problem::Problem;
use super::windows::{self, WindowValue};
use super::{HttpState, answer, body, events, large};
use crate::board::{BoardName, Metric, Subject, Timestamp};
use crate::service::{Feature, Hop, Hopped, Over, Question, Service, ServiceError, WindowQuestion};

/// The most questions of one request.
const MOST_QUESTIONS: usize = 1_000;
/// More questions than this make a request large: each may put 2,000 slots together.
const LARGE: usize = 100;
/// The most of them that hop: each is many reads.
const MOST_HOPS: usize = 10;
/// The most values that one hop follows, and how many it does if it is not told.
const MOST_FOLLOWED: u32 = 1_000;
const USUALLY_FOLLOWED: u32 = 100;

/// The answers to many questions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Answers {
    /// One for each question, in the order asked.
    answers: Vec<Answer>,
}

/// The answer to one question.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Answer {
    Window(Box<WindowValue>),
    Hop(HopValue),
    Refused(Refused),
}

/// A question that could not be answered; the others were.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RefusedQuestion)]
pub(super) struct Refused {
    #[schema(schema_with = problem_schema)]
    error: Problem,
}

/// How many different values two hops find.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HopValue {
    hop: HopShown,
    /// How many different values the followed subjects have on the second board.
    count: u64,
    /// The same.
    value: u64,
    /// How many values of the first board were followed.
    followed: u64,
    /// A bound, of the question or of a board, left something out: there are at least so many.
    capped: bool,
    /// The store's time when the first board answered.
    #[schema(schema_with = time_schema)]
    as_of: Timestamp,
}

/// The hops as they were asked for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Hops)]
pub(super) struct HopShown {
    from: HopFrom,
    to: HopTo,
    #[schema(minimum = 1, maximum = 1000)]
    most: u32,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HopFrom {
    #[schema(schema_with = board_schema)]
    board: BoardName,
    #[schema(schema_with = subject_schema)]
    subject: Subject,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HopTo {
    #[schema(schema_with = board_schema)]
    board: BoardName,
}

impl HopValue {
    fn of(hop: Hop, found: &Hopped) -> Self {
        Self {
            hop: HopShown {
                from: HopFrom { board: hop.from, subject: hop.subject },
                to: HopTo { board: hop.to },
                most: hop.most,
            },
            count: found.count,
            value: found.count,
            followed: found.followed,
            capped: found.capped,
            as_of: found.as_of,
        }
    }
}

impl Answer {
    fn of(question: &Question, feature: &Feature) -> Self {
        Answer::Window(Box::new(match question {
            Question::Window(asked) => WindowValue::of(feature, asked.over, asked.as_of),
            Question::Metric { metric, .. } => WindowValue::of(feature, Over::Whole, None).with_metric(metric),
        }))
    }
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Self {
        Answer::Refused(Refused { error: problem.concealed().unwrap_or(problem) })
    }
}

impl From<ServiceError> for Answer {
    fn from(error: ServiceError) -> Self {
        Problem::from(error).into()
    }
}

/// A question as it was sent.
enum Asked {
    Question(Question),
    Hop(Hop),
}

/// Ask many questions
///
/// Up to 1,000 questions, answered in their order from one read of the store: what a subject has over a window of a
/// board (`board` and `subject`, with `last`, `from`, `as_of` and `edge` as for `…/window`); what a metric says for given
/// `fields`, from whichever board serves it; or the two-hop count. One that cannot be answered gets an `error` of its
/// own, a problem as requests get it, and holds up none of the others. One question may also be the body itself.
///
/// A metric is served by a board that differs from it in nothing but a longer window, from its newest slots, as many as
/// cover the metric's window (one more where the board has `cover` `full`). Of several the one with the finest slots
/// serves, then an unranked one, then the first by name; a `from_first` board only for just its own window, and only
/// where no other does.
///
/// The two-hop count is the number of different values on the second board of all the values that the subject has on the
/// first: of `users-per-device` and `devices-per-user` the different devices of the users seen on this device, itself
/// included. Both must be COUNT_DISTINCT. `most` (100 if absent, 1,000 at most) bounds the values followed, and those
/// read of each; `capped` says that something was left out. At most 10 questions of a request may hop.
#[utoipa::path(
    post, path = "/v1/query", operation_id = "query", tag = "features",
    request_body(content = super::openapi::QueriesBody, description = "The questions.", examples(
        ("many" = (value = json!({"queries": [
            {"board": "device-logins", "subject": "device-1", "last": "5m"},
            {"metric": "COUNT(30m, login, device_id)", "fields": {"device_id": "device-1"}},
            {"board": "nothing", "subject": "device-1"}]}))),
        ("two hops" = (value = json!({"queries": [{"hop": {
            "from": {"board": "users-per-device", "subject": "device-1"}, "to": {"board": "devices-per-user"},
            "most": 1000}}]}))),
        ("one" = (value = json!({"metric": "COUNT(30m, login, device_id)", "fields": {"device_id": "device-1"}}))),
    )),
    responses((status = 200, description = "The answers, in the order asked.", body = Answers, examples(
        ("many" = (value = json!({"answers": [
            {"board": "device-logins", "subject": "device-1", "last": "5m",
                "window": {"from": "2026-01-02T10:03:00Z", "to": "2026-01-02T10:08:00Z", "slots": 5},
                "count": 2, "value": 2, "edge": "slots", "as_of": "2026-01-02T10:07:00Z", "retiring": 0},
            {"board": "device-logins", "subject": "device-1", "metric": "COUNT(30m, login, device_id)",
                "window": {"from": "2026-01-02T09:38:00Z", "to": "2026-01-02T10:08:00Z", "slots": 30},
                "count": 4, "value": 4, "edge": "slots", "as_of": "2026-01-02T10:07:00Z", "retiring": 0},
            {"error": {"type": "urn:rolltop:problem:unknown_board", "title": "No such board", "status": 404,
                "detail": "there is no board 'nothing'; define it with PUT /v1/boards/nothing",
                "code": "unknown_board", "board": "nothing"}}]}))),
        ("two hops" = (value = json!({"answers": [{"hop": {
            "from": {"board": "users-per-device", "subject": "device-1"}, "to": {"board": "devices-per-user"},
            "most": 1000}, "count": 7, "value": 7, "followed": 3, "capped": false,
            "as_of": "2026-01-02T10:07:00Z"}]}))),
    ))),
)]
pub(super) async fn query(
    request: HttpRequest,
    payload: Payload,
    state: Data<HttpState>,
) -> Result<HttpResponse, Problem> {
    Parameters::read(&request, &[])?;
    let body = body::read_json(&request, payload, &state.options).await?;
    let asked: Vec<Result<Asked, Problem>> = questions(&body)?;
    let hops = asked.iter().filter(|asked| matches!(asked, Ok(Asked::Hop(_)))).count();
    if hops > MOST_HOPS {
        let detail = format!("{hops} of the questions hop; at most {MOST_HOPS} may");
        return Err(Problem::new(Code::TooLarge, detail).with("limit", MOST_HOPS));
    }
    let is_large = asked.len() > LARGE;
    let answer = move || async move { answer::text(&Answers { answers: answers(&state.service, asked).await }) };
    Ok(answer::written(StatusCode::OK, large::handle(is_large, answer).await?))
}

/// Each in its place: those about windows and metrics in one call of the store, then the hops one by one.
async fn answers(service: &Service, asked: Vec<Result<Asked, Problem>>) -> Vec<Answer> {
    let questions = asked.iter().filter_map(|asked| match asked {
        Ok(Asked::Question(question)) => Some(question.clone()),
        _ => None,
    });
    let mut features = service.features(questions.collect()).await.into_iter();
    let mut answers = Vec::with_capacity(asked.len());
    for asked in asked {
        answers.push(match asked {
            Err(problem) => problem.into(),
            Ok(Asked::Hop(hop)) => match service.hop(&hop).await {
                Ok(found) => Answer::Hop(HopValue::of(hop, &found)),
                Err(error) => error.into(),
            },
            Ok(Asked::Question(question)) => match features.next() {
                Some(Ok(feature)) => Answer::of(&question, &feature),
                Some(Err(error)) => error.into(),
                None => Problem::new(Code::Internal, "a question was not answered").into(),
            },
        });
    }
    answers
}

/// Every key that a question of any form may have.
const KEYS: [&str; 9] = ["board", "subject", "last", "from", "as_of", "edge", "metric", "fields", "hop"];

/// The questions of a body, each by itself.
fn questions(body: &[u8]) -> Result<Vec<Result<Asked, Problem>>, Problem> {
    let mut known = vec!["queries"];
    known.extend(KEYS);
    let object = Object::parse(body, &known)?;
    if !object.has("queries") {
        return Ok(vec![Ok(question(&object)?)]);
    }
    object.only(&["queries"])?;
    let given: Vec<&RawValue> = object.required("queries")?;
    if given.len() > MOST_QUESTIONS {
        let detail = format!("'queries' may have {MOST_QUESTIONS} questions; here are {}", given.len());
        return Err(Problem::new(Code::TooLarge, detail).with("limit", MOST_QUESTIONS));
    }
    let each = |(index, raw)| question(&Object::part(&format!("queries[{index}]"), raw, &KEYS)?);
    Ok(given.into_iter().enumerate().map(each).collect())
}

fn question(object: &Object<'_>) -> Result<Asked, Problem> {
    match (object.has("board"), object.has("metric"), object.has("hop")) {
        (true, false, false) => {
            object.only(&["board", "subject", "last", "from", "as_of", "edge"])?;
            let text = |key| object.optional::<String>(key);
            Ok(Asked::Question(Question::Window(WindowQuestion {
                board: board(object)?,
                subject: subject(object)?,
                over: windows::over(text("last")?.as_deref(), text("from")?.as_deref())?,
                as_of: text("as_of")?.map(|text| windows::time("as_of", &text)).transpose()?,
                edge: windows::edge(text("edge")?.as_deref())?,
            })))
        }
        (false, true, false) => {
            object.only(&["metric", "fields"])?;
            let text: String = object.required("metric")?;
            let metric: Metric = text.parse().map_err(|error| not_a_rule("metric", &error))?;
            let fields = events::fields(object.optional("fields")?)?;
            let subject = metric.subject_of(&fields).map_err(ServiceError::from)?;
            Ok(Asked::Question(Question::Metric { metric, subject }))
        }
        (false, false, true) => hop(object.required("hop")?).map(Asked::Hop),
        _ => Err(Problem::field("board", "give 'board' and 'subject', or 'metric' and 'fields', or 'hop'")),
    }
}

fn hop(raw: &RawValue) -> Result<Hop, Problem> {
    let object = Object::part("hop", raw, &["from", "to", "most"])?;
    let from = Object::part("from", object.required("from")?, &["board", "subject"])?;
    let to = Object::part("to", object.required("to")?, &["board"])?;
    let most = object.optional::<u32>("most")?.unwrap_or(USUALLY_FOLLOWED);
    if !(1..=MOST_FOLLOWED).contains(&most) {
        let detail = format!("'most' must be a whole number from 1 to {MOST_FOLLOWED}");
        return Err(Problem::field("most", detail).with("minimum", 1).with("maximum", MOST_FOLLOWED));
    }
    Ok(Hop { from: board(&from)?, subject: subject(&from)?, to: board(&to)?, most })
}

/// A board's name; one that none can have is unknown like any other.
fn board(object: &Object<'_>) -> Result<BoardName, Problem> {
    let text: String = object.required("board")?;
    BoardName::parse(&text).map_err(|error| {
        let name: String = text.chars().take(64).collect();
        Problem::new(Code::UnknownBoard, format!("there is no board '{name}': {error}")).with("board", name)
    })
}

fn subject(object: &Object<'_>) -> Result<Subject, Problem> {
    let text: String = object.required("subject")?;
    Subject::parse(&text).map_err(|error| Problem::field("subject", format!("'subject': {error}")))
}
