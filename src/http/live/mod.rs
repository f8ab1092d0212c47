//! Streams of live rankings, as server-sent events.
//!
//! `views` reads pages and sends what has `change`d between two of them; a `listener` writes the events of its views as
//! [`sse`] text.

mod change;
mod listener;
mod shares;
mod sse;
mod views;

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use actix_web::web::Data;
use futures_util::future::join_all;

pub(super) use self::change::RankingChange;
use self::listener::Listened;
pub use self::views::LiveViews;
use self::views::ViewKey;
use super::admission::Validity;
use super::call::Call;
use super::limits::Open;
use super::parameters::{parse_attribute_names, parse_edition, parse_key, parse_window};
use super::problem::Problem;
use crate::board::BoardName;
use crate::service::{EditionChoice, WindowChoice};

/// The header with the id of the last event that a client received.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The longest interval at which a view of the stream is read.
pub(super) const ROLLTOP_INTERVAL: HeaderName = HeaderName::from_static("rolltop-interval");
/// The media type of server-sent events.
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
/// Tells reverse proxies not to collect the response.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The allowed limits, the default first. There are few, so that listeners share views.
const LIMITS: [(&str, u32); 4] = [("10", 10), ("25", 25), ("50", 50), ("100", 100)];
/// The allowed intervals in seconds, the default first.
const INTERVALS: [(&str, u32); 4] = [("1s", 1), ("5s", 5), ("15s", 15), ("1m", 60)];
/// The longest time without a byte, in seconds.
const SILENCE: u32 = 15;
/// The maximum number of views of a stream.
const MAX_VIEWS: usize = 20;

/// Registers the descriptions of the metrics with the recorder.
pub(super) fn describe() {
    listener::describe();
    views::describe();
}

/// Follow the first lines of a ranking
///
/// Returns a stream of server-sent events, for `EventSource` in a browser:
///
/// - `page`, the first event: the same as the response to `GET /v1/boards/{board}/rankings` with this `limit` and
///   `window`. Its `id` is the `ETag` of that response. If the client sends this id as `Last-Event-ID`, which browsers
///   do when they connect again, and nothing has changed since, there is no `page`. A `page` later in the stream
///   replaces all lines: the board was defined again.
/// - `change`: a `RankingChange`, whenever lines, `total`, `window` or `retiring` have changed, including when slots
///   leave the window. Its `id` is the `ETag` of the page with the change.
/// - `problem`: a `Problem`. If it is an error of the store, the stream continues, and the next `change` says that the
///   view can be read again. Otherwise, for example if the board was removed, the stream ends.
///
/// The ranking is read once in each `interval` for all streams with the same parameters, and what changed in between is
/// in one event. If many rankings are followed from the address of the client, it is read every 15 seconds, or less
/// often if `interval` says so; the header `Rolltop-Interval` has the interval in use. A stream has no history: it
/// begins at the present page, on any instance. There is at least a comment every 15 seconds. A stream ends if its
/// client reads too slowly and when the instance stops; browsers then connect again.
///
/// Browsers open at most six connections to an origin with HTTP/1.1. `GET /v1/stream` follows several views on one.
#[utoipa::path(
    get, path = "/v1/boards/{board}/stream", operation_id = "followRanking", tag = "rankings",
    params(
        ("limit" = u32, Query, minimum = 10, maximum = 100, example = 10, description = "Number of lines: 10, 25, 50 or 100. Default: 10."),
        ("interval" = String, Query, example = "1s", pattern = "^(1s|5s|15s|1m)$",
            description = "Time between two reads: `1s`, `5s`, `15s` or `1m`. Default: `1s`."),
        ("of" = String, Query, pattern = "^(next|previous)$", example = "next",
            description = "Edition to read: `next`, the successor, or `previous`. Default: the board itself."),
        ("by" = String, Query, max_length = 512, description = "Key of the ranking, for a board whose metric has `BY`."),
        ("attributes" = String, Query, max_length = 2080, example = "name,picture",
            description = "Names of the attributes that each line shows, with commas between them, or `*` for all. Default: none."),
        ("window" = String, Query, example = "24h", pattern = "^(all|[1-9][0-9]{0,9}(s|m|h|d|w|mo|y))$",
            description = "Length of the window to read, one of the board's. Default: the main window."),
        ("Last-Event-ID" = String, Header, description = "Id of the last event that the client received."),
    ),
    responses((status = 200, description = "A stream of events.", headers(
        ("rolltop-interval" = String, description = "The interval in use."),
    ), content((String = "text/event-stream",
        example = "retry: 2000\n\nevent: page\nid: W/\"6f1c\"\ndata: {\"board\":\"hot-posts\",\"items\":[]}\n\n\
            event: change\nid: W/\"90ab\"\ndata: {\"window\":{\"from\":\"2026-01-01T11:00:00Z\",\
            \"to\":\"2026-01-02T11:00:00Z\",\"slots\":24},\"as_of\":\"2026-01-02T10:07:00Z\",\"retiring\":0,\
            \"total\":1,\"rows\":[{\"position\":1,\"rank\":1,\"subject\":\"post-1\",\"score\":1}],\"gone\":[]}\n\n"),
    ))),
)]
pub(super) async fn one(call: Call, live: Data<LiveViews>) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters(&["limit", "interval", "window", "of", "by", "attributes"])?;
    let key = ViewKey {
        board: call.board_name()?,
        window: parameters.window()?,
        limit: choice("limit", parameters.text("limit"), &LIMITS)?,
        interval: choice("interval", parameters.text("interval"), &INTERVALS)?,
    };
    let open = call.open()?;
    let known = call.request.headers().get(LAST_EVENT_ID).and_then(|id| id.to_str().ok());
    let live = live.into_inner();
    let subscription = live.subscribe(&call.caller, key, known, call.client()).await?;
    let views = vec![Listened { name: None, view: Ok(subscription) }];
    Ok(stream(&live, Validity::of(&call.caller, &call.state), open, views))
}

/// Follow several rankings on one connection
///
/// Returns a stream like that of `GET /v1/boards/{board}/stream`, with the events of up to 20 views. The data of each
/// event is an object with the member `view`, the text of the parameter, and a member named as the event with its data,
/// for example `{"view": "hot-posts,limit=25", "change": {…}}`. Events have no ids, so a stream always begins with all
/// pages.
///
/// A view that is not valid or cannot be read has a `problem` as its only event, and the others go on. If none can be
/// read, the response is the problem of the first.
#[utoipa::path(
    get, path = "/v1/stream", operation_id = "followRankings", tag = "rankings",
    params(
        ("view" = Vec<String>, Query, explode = true, min_items = 1, max_items = 20, example = json!(["hot-posts,limit=25"]),
            description = "A view: the name of a board, then `,limit=`, `,window=` and `,of=` if they are not the default, `,attributes=` with `;` between the names, then `,by=` with the key of the ranking if the metric of the board has `BY`. Up to 20 times."),
        ("interval" = String, Query, example = "1s", pattern = "^(1s|5s|15s|1m)$",
            description = "Time between two reads: `1s`, `5s`, `15s` or `1m`. Default: `1s`."),
    ),
    responses((status = 200, description = "A stream of events.", headers(
        ("rolltop-interval" = String, description = "The longest interval in use for one of the views."),
    ), content((String = "text/event-stream",
        example = "retry: 2000\n\nevent: page\ndata: {\"view\":\"hot-posts,limit=25\",\"page\":{\"board\":\"hot-posts\",\
            \"items\":[]}}\n\n"),
    ))),
)]
pub(super) async fn several(call: Call, live: Data<LiveViews>) -> Result<HttpResponse, Problem> {
    let parameters = call.parameters_with_list(&["view", "interval"], "view")?;
    let interval = choice("interval", parameters.text("interval"), &INTERVALS)?;
    let names: Vec<&str> = parameters.texts("view").collect();
    if names.is_empty() || names.len() > MAX_VIEWS {
        let detail = format!("'view' must be given 1 to {MAX_VIEWS} times, not {}", names.len());
        return Err(Problem::field("view", detail).with("minimum", 1).with("maximum", MAX_VIEWS));
    }
    let open = call.open()?;
    let live = live.into_inner();
    let client = call.client();
    let subscribe = async |name: &str| live.subscribe(&call.caller, parse_view(name, interval)?, None, client).await;
    let subscriptions = join_all(names.iter().map(|name| subscribe(name))).await;
    if let Some(Err(problem)) = subscriptions.first()
        && subscriptions.iter().all(Result::is_err)
    {
        return Err(problem.clone());
    }
    let views = names.into_iter().zip(subscriptions).map(|(name, subscription)| Listened {
        name: Some(name.to_owned()),
        view: subscription.map_err(|problem| views::problem_event(&problem)),
    });
    Ok(stream(&live, Validity::of(&call.caller, &call.state), open, views.collect()))
}

fn stream(live: &LiveViews, validity: Validity, open: Open, views: Vec<Listened>) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response.insert_header((CONTENT_TYPE, EVENT_STREAM));
    response.insert_header((X_ACCEL_BUFFERING, HeaderValue::from_static("no")));
    let intervals = views.iter().filter_map(|listened| Some(listened.view.as_ref().ok()?.interval));
    let longest = intervals.max().and_then(|longest| INTERVALS.iter().find(|(_, interval)| *interval == longest));
    if let Some((text, _)) = longest {
        response.insert_header((ROLLTOP_INTERVAL, HeaderValue::from_static(text)));
    }
    response.streaming(listener::body(views, live.seconds(SILENCE), validity, Some(open)))
}

/// Returns the value of a text that must be one of a few: the first one if there is no text.
fn choice(field: &str, text: Option<&str>, choices: &[(&str, u32); 4]) -> Result<u32, Problem> {
    let Some(text) = text else { return Ok(choices[0].1) };
    choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        Problem::field(field, format!("'{field}' must be one of {}", names.join(", ")))
    })
}

/// Parses a view of a stream of several, such as `hot-posts,limit=25,window=7d`.
fn parse_view(text: &str, interval: u32) -> Result<ViewKey, Problem> {
    // Keys may have commas, and nothing else has this text.
    let (text, by) = match text.split_once(",by=") {
        Some((text, key)) => (text, Some(parse_key("view", key)?)),
        None => (text, None),
    };
    let mut parts = text.split(',');
    let board = BoardName::parse(parts.next().unwrap_or_default())
        .map_err(|error| Problem::field("view", format!("'view' must start with the name of a board: {error}")))?;
    let (mut limit, mut window) = (None, WindowChoice { by, ..WindowChoice::default() });
    for part in parts {
        match part.split_once('=') {
            Some(("limit", value)) if limit.is_none() => limit = Some(choice("limit", Some(value), &LIMITS)?),
            Some(("window", value)) if window.length.is_none() => window.length = Some(parse_window(value)?),
            Some(("attributes", value)) if window.attributes.is_none() => {
                // Between names of the parameter of one view stand commas.
                window.attributes = Some(parse_attribute_names(&value.replace(';', ","))?);
            }
            Some(("of", value)) if window.of == EditionChoice::Current => {
                window.of = EditionChoice::Role(parse_edition(value)?);
            }
            _ => {
                let detail = "'view' must be the name of a board, then ',limit=', ',window=', ',of=' and ',attributes=', with ';' between \
                              the names, at most once each, then ',by=' with the key of the ranking";
                return Err(Problem::field("view", detail));
            }
        }
    }
    Ok(ViewKey { board, window, limit: limit.unwrap_or(LIMITS[0].1), interval })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_parsed_strictly() {
        let parse = |text: &str| {
            let key = parse_view(text, 1).ok()?;
            Some((key.board.to_string(), key.limit, key.window.length.map(|window| window.to_string())))
        };
        let key_of = |text: &str| parse_view(text, 1).ok()?.window.by.map(|key| key.to_string());
        let view = |limit, window: Option<&str>| Some(("hot-posts".to_owned(), limit, window.map(str::to_owned)));
        assert_eq!(parse("hot-posts"), view(10, None));
        assert_eq!(parse("hot-posts,limit=100"), view(100, None));
        assert_eq!(parse("hot-posts,window=7d,limit=25"), view(25, Some("7d")));
        assert_eq!(parse("hot-posts,limit=25,by=a,limit=10,by=b"), view(25, None));
        assert_eq!(key_of("hot-posts,limit=25,by=a,limit=10,by=b").as_deref(), Some("a,limit=10,by=b"));
        for wrong in ["", ",limit=10", "hot-posts,", "hot-posts,limit", "hot-posts,limit=11", "hot-posts,limit=+10"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        let shown = parse_view("hot-posts,attributes=name;picture,limit=25", 1).ok().unwrap().window.attributes;
        assert_eq!(shown.unwrap().to_string(), "name,picture");
        for wrong in [
            "hot-posts,attributes=",
            "hot-posts,limit=10,limit=10",
            "hot-posts,window=",
            "hot-posts,interval=1s",
            "hot-posts,by=",
            "Hot Posts",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
