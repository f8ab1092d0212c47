//! Prometheus metrics of requests and of the items in them.
//!
//! Handles are looked up once per worker, not per request. Labels have few values: the path template, the method, the
//! status class.

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use actix_web::Error;
use actix_web::dev::ServiceResponse;
use actix_web::http::{Method, StatusCode};
use actix_web::web::Data;
use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use super::body_memory::BODY_MEMORY;
use super::codes::ItemCode;
use super::counts::{Counts, EventCounts};
use super::sent_items::{SOURCE_ITEMS, SOURCE_NEWEST};

/// Number of completed requests, by `route`, `method` and `status` (`2xx`, …).
pub const REQUESTS: &str = "rolltop_http_requests_total";
/// Seconds from the head of the request to the head of the response, by `route`, `method` and `status` (`2xx`, …): a
/// histogram. A series exists from the first request on that it has counted.
pub const DURATION: &str = "rolltop_http_request_duration_seconds";
/// Number of requests in progress.
pub const IN_FLIGHT: &str = "rolltop_http_requests_in_flight";
/// Number of increments by `outcome`: `accepted`, `duplicate`, or the code of the rejection. Includes samples, and one
/// increment for each board that an event was sent to.
pub const INCREMENTS: &str = "rolltop_increments_total";
/// Number of events by `outcome`: `accepted` by at least one board, `duplicate`, `unmatched`, `unknown`, or `rejected`;
/// events of sources also `repeated`, or `waiting` beside what other boards did with them.
pub const EVENTS: &str = "rolltop_events_total";

/// Registers the descriptions of all metrics with the recorder.
pub(super) fn describe() {
    describe_counter!(REQUESTS, "Completed requests by route, method and status class");
    describe_histogram!(
        DURATION,
        metrics::Unit::Seconds,
        "Time from the head of a request to the head of its response"
    );
    describe_gauge!(IN_FLIGHT, "Requests in progress");
    describe_gauge!(BODY_MEMORY, metrics::Unit::Bytes, "Memory that the request bodies in progress take");
    describe_counter!(INCREMENTS, "Increments by outcome: accepted, duplicate, or the code of the rejection");
    describe_counter!(SOURCE_ITEMS, "Items of a source by outcome: accepted, duplicate, repeated, rejected, passed");
    describe_gauge!(
        SOURCE_NEWEST,
        metrics::Unit::Seconds,
        "Unix time of the newest item of a source that a board has counted"
    );
    describe_counter!(
        EVENTS,
        "Events by outcome: accepted, duplicate, unmatched, unknown, rejected, repeated, waiting"
    );
}

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Methods with separate series; all others share one.
const METHODS: [Method; 4] = [Method::GET, Method::POST, Method::PUT, Method::DELETE];

/// Metrics of one route.
pub(super) struct RouteMetrics {
    /// One entry for each of [`METHODS`] that the route supports; the last entry is for all others.
    methods: Vec<(Option<Method>, MethodMetrics)>,
    in_flight: Gauge,
}

struct MethodMetrics {
    by_class: [Counter; CLASSES.len()],
    /// Created when needed: a histogram has many lines, and most routes never answer with most classes.
    durations: [OnceCell<Histogram>; CLASSES.len()],
    route: &'static str,
    method: &'static str,
}

/// Counts a request or a stream as in progress until dropped, even if the client disconnects before its end.
pub(super) struct InProgress(Gauge);

impl InProgress {
    pub(super) fn new(gauge: Gauge) -> Self {
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

impl RouteMetrics {
    /// Returns the metrics of the route with this path template, for the methods that it supports.
    pub(super) fn new(route: &'static str, supports: impl Fn(&Method) -> bool) -> Self {
        let metrics = |method: &'static str| MethodMetrics {
            by_class: CLASSES.map(|class| counter!(REQUESTS, "route" => route, "method" => method, "status" => class)),
            durations: Default::default(),
            route,
            method,
        };
        let name = |method: &Method| match method.as_str() {
            "GET" => "GET",
            "POST" => "POST",
            "PUT" => "PUT",
            "DELETE" => "DELETE",
            _ => "other",
        };
        let own = METHODS.into_iter().filter(supports).map(|m| (Some(m.clone()), metrics(name(&m))));
        let methods = own.chain([(None, metrics("other"))]).collect();
        Self { methods, in_flight: gauge!(IN_FLIGHT) }
    }

    /// Begins the measurement of one request.
    pub(super) fn begin(&self) -> Measurement<'_> {
        let in_progress = InProgress::new(self.in_flight.clone());
        Measurement { route: self, started: Instant::now(), _in_progress: in_progress }
    }
}

/// The measurement of a request in progress. One that is dropped before its end is not counted as completed.
pub(super) struct Measurement<'r> {
    route: &'r RouteMetrics,
    started: Instant,
    _in_progress: InProgress,
}

impl Measurement<'_> {
    /// Records a request with this method and result.
    pub(super) fn end<B>(self, method: &Method, result: &Result<ServiceResponse<B>, Error>) {
        let status = match result {
            Ok(response) => response.status(),
            Err(error) => error.as_response_error().status_code(),
        };
        let of_method = self.route.methods.iter().find(|(own, _)| own.as_ref().is_none_or(|own| own == method));
        if let Some((_, metrics)) = of_method {
            metrics.record(class(status), self.started.elapsed());
        }
    }
}

impl MethodMetrics {
    fn record(&self, class: usize, duration: Duration) {
        self.by_class[class].increment(1);
        let Self { route, method, .. } = *self;
        let new = || histogram!(DURATION, "route" => route, "method" => method, "status" => CLASSES[class]);
        self.durations[class].get_or_init(new).record(duration);
    }
}

fn class(status: StatusCode) -> usize {
    (usize::from(status.as_u16() / 100).max(1) - 1).min(CLASSES.len() - 1)
}

/// Counts increments by outcome.
pub(super) struct IncrementMetrics {
    accepted: Counter,
    duplicates: Counter,
    rejected: [Counter; ItemCode::ALL.len()],
}

impl IncrementMetrics {
    pub(super) fn new() -> Self {
        let outcome = |outcome: &'static str| counter!(INCREMENTS, "outcome" => outcome);
        let mut codes = ItemCode::ALL.iter();
        Self {
            accepted: outcome("accepted"),
            duplicates: outcome("duplicate"),
            rejected: std::array::from_fn(|_| codes.next().map_or_else(Counter::noop, |code| outcome(code.as_str()))),
        }
    }

    /// Adds the difference between two states of a receipt.
    pub(super) fn record(&self, before: &Counts, now: &Counts) {
        add_difference(&self.accepted, before.accepted, now.accepted);
        add_difference(&self.duplicates, before.duplicates, now.duplicates);
        if before.rejected == now.rejected {
            return;
        }
        for (counter, code) in self.rejected.iter().zip(ItemCode::ALL) {
            add_difference(counter, before.rejected.of(*code), now.rejected.of(*code));
        }
    }
}

/// Counts events, and their increments on boards, by outcome.
pub(super) struct EventMetrics {
    accepted: Counter,
    duplicates: Counter,
    unmatched: Counter,
    unknown: Counter,
    rejected: Counter,
    repeated: Counter,
    waiting: Counter,
    increments: IncrementMetrics,
}

impl EventMetrics {
    pub(super) fn new() -> Self {
        let outcome = |outcome: &'static str| counter!(EVENTS, "outcome" => outcome);
        Self {
            accepted: outcome("accepted"),
            duplicates: outcome("duplicate"),
            unmatched: outcome("unmatched"),
            unknown: outcome("unknown"),
            rejected: outcome("rejected"),
            repeated: outcome("repeated"),
            waiting: outcome("waiting"),
            increments: IncrementMetrics::new(),
        }
    }

    /// Adds the difference between two states of a receipt.
    pub(super) fn record(&self, before: &EventCounts, now: &EventCounts) {
        add_difference(&self.accepted, before.accepted, now.accepted);
        add_difference(&self.duplicates, before.duplicates, now.duplicates);
        add_difference(&self.unmatched, before.unmatched, now.unmatched);
        add_difference(&self.unknown, before.unknown, now.unknown);
        add_difference(&self.rejected, before.rejected, now.rejected);
        add_difference(&self.repeated, before.repeated, now.repeated);
        add_difference(&self.waiting, before.waiting, now.waiting);
        self.increments.record(&before.on_boards, &now.on_boards);
    }
}

/// Counts the items of a source.
pub(super) enum SourcedMetrics {
    Events(Data<EventMetrics>),
    Increments(Data<IncrementMetrics>),
}

impl SourcedMetrics {
    /// Adds the difference between two states of a receipt.
    pub(super) fn record(&self, before: &EventCounts, now: &EventCounts) {
        match self {
            Self::Events(events) => events.record(before, now),
            Self::Increments(increments) => increments.record(&before.of_one_board(), &now.of_one_board()),
        }
    }
}

/// Removes the series of unknown boards and sources from the rendered metrics.
///
/// The recorder never drops a series, even when its board is removed. The counters of a board that is defined again
/// continue from their old values.
pub(super) fn without_unknown(
    rendered: &str,
    is_board: impl Fn(&str) -> bool,
    is_source: impl Fn(&str) -> bool,
) -> String {
    let is_kept = |line: &&str| {
        let board = named(line, ["{board=\"", ",board=\""]).is_none_or(&is_board);
        board && named(line, ["{source=\"", ",source=\""]).is_none_or(&is_source)
    };
    rendered.split_inclusive('\n').filter(is_kept).collect()
}

/// Returns the value of a label of a series, if it has one. Names of boards and sources contain no escaped characters.
fn named<'a>(line: &'a str, label: [&str; 2]) -> Option<&'a str> {
    let at = label.iter().find_map(|label| Some(line.find(label)? + label.len()))?;
    line[at..].split('"').next()
}

fn add_difference(counter: &Counter, before: u64, now: u64) {
    if now > before {
        counter.increment(now - before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_unknown_boards_and_sources_are_removed() {
        let rendered = "# HELP slots by board=\"gone\"\n# TYPE slots gauge\nslots{board=\"gone\"} 1\nslots{board=\"here\"} 2\n\
                        lag{kind=\"x\",board=\"gone\"} 1\nlag{kind=\"x\",board=\"here\",le=\"1\"} 2\n\
                        requests{route=\"/v1/boards/{board}\"} 3\nother{on_board=\"gone\",text=\"a,board=\\\"gone\\\"\"} 4\nbare 5\n\
                        items{source=\"gone\",outcome=\"x\"} 1\nitems{source=\"log\",outcome=\"x\"} 2";
        let kept = without_unknown(rendered, |board| board == "here", |source| source == "log");
        let gone = [
            "items{source=\"gone\",outcome=\"x\"} 1\n",
            "slots{board=\"gone\"} 1\n",
            "lag{kind=\"x\",board=\"gone\"} 1\n",
        ];
        assert_eq!(kept, gone.iter().fold(rendered.to_owned(), |text, line| text.replace(line, "")));
    }
}
