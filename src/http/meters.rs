//! What is measured about requests: how many, how long, how many at once; and what became of increments.
//!
//! Handles are looked up once per worker, never per request. Labels have few values: the route's template, the
//! method, the class of the status.

use std::time::Instant;

use actix_web::Error;
use actix_web::dev::ServiceResponse;
use actix_web::http::{Method, StatusCode};
use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use super::codes::ItemCode;
use super::events::EventCounts;
use super::increments::Counts;

/// Requests answered, by `route`, `method` and `status` (`2xx`, …).
pub const REQUESTS: &str = "rolltop_http_requests_total";
/// Seconds from the request's head to the answer's, by `route` and `method`.
pub const DURATION: &str = "rolltop_http_request_duration_seconds";
/// Requests being answered now.
pub const IN_FLIGHT: &str = "rolltop_http_requests_in_flight";
/// Increments by `outcome`: `accepted`, `duplicate`, or the code of the rejection. What an event does to each board is
/// one, and so is a sample.
pub const INCREMENTS: &str = "rolltop_increments_total";
/// Events by `outcome`: `accepted` (by one board at least), `duplicate`, `unmatched`, `unknown`, or `rejected` by all.
pub const EVENTS: &str = "rolltop_events_total";

/// Tells the recorder what each of them is.
pub(super) fn describe() {
    describe_counter!(REQUESTS, "Requests answered, by route, method and class of status");
    describe_histogram!(DURATION, metrics::Unit::Seconds, "Time from a request's head to its answer's head");
    describe_gauge!(IN_FLIGHT, "Requests being answered now");
    describe_counter!(INCREMENTS, "Increments by outcome: accepted, duplicate, or the code of the rejection");
    describe_counter!(EVENTS, "Events by outcome: accepted, duplicate, unmatched, unknown, rejected");
}

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The methods with series of their own; all others share one.
const METHODS: [Method; 4] = [Method::GET, Method::POST, Method::PUT, Method::DELETE];

/// The meters of one route.
pub(super) struct RouteMeters {
    /// One for each of [`METHODS`] that the route has; the last for any other.
    methods: Vec<(Option<Method>, MethodMeters)>,
    in_flight: Gauge,
}

struct MethodMeters {
    by_class: [Counter; CLASSES.len()],
    duration: Histogram,
}

/// Counts a request as under way until dropped, also when the client leaves before the answer.
struct UnderWay(Gauge);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

impl RouteMeters {
    /// The meters of the route with this template, for the methods it has.
    pub(super) fn new(route: &'static str, has: impl Fn(&Method) -> bool) -> Self {
        let meters = |method: &'static str| MethodMeters {
            by_class: CLASSES.map(|class| counter!(REQUESTS, "route" => route, "method" => method, "status" => class)),
            duration: histogram!(DURATION, "route" => route, "method" => method),
        };
        let name = |method: &Method| match method.as_str() {
            "GET" => "GET",
            "POST" => "POST",
            "PUT" => "PUT",
            "DELETE" => "DELETE",
            _ => "other",
        };
        let own = METHODS.into_iter().filter(has).map(|m| (Some(m.clone()), meters(name(&m))));
        let methods = own.chain([(None, meters("other"))]).collect();
        Self { methods, in_flight: gauge!(IN_FLIGHT) }
    }

    /// Measures one request.
    pub(super) async fn measure<B>(
        &self,
        method: Method,
        answer: impl Future<Output = Result<ServiceResponse<B>, Error>>,
    ) -> Result<ServiceResponse<B>, Error> {
        let started = Instant::now();
        self.in_flight.increment(1.0);
        let _under_way = UnderWay(self.in_flight.clone());
        let result = answer.await;
        let status = match &result {
            Ok(response) => response.status(),
            Err(error) => error.as_response_error().status_code(),
        };
        let of_method = self.methods.iter().find(|(own, _)| own.as_ref().is_none_or(|own| *own == method));
        if let Some((_, meters)) = of_method {
            meters.by_class[class(status)].increment(1);
            meters.duration.record(started.elapsed());
        }
        result
    }
}

fn class(status: StatusCode) -> usize {
    (usize::from(status.as_u16() / 100).max(1) - 1).min(CLASSES.len() - 1)
}

/// Counts increments by what became of them.
pub(super) struct Tally {
    accepted: Counter,
    duplicates: Counter,
    rejected: [Counter; ItemCode::ALL.len()],
}

impl Tally {
    pub(super) fn new() -> Self {
        let outcome = |outcome: &'static str| counter!(INCREMENTS, "outcome" => outcome);
        let mut codes = ItemCode::ALL.iter();
        Self {
            accepted: outcome("accepted"),
            duplicates: outcome("duplicate"),
            rejected: std::array::from_fn(|_| codes.next().map_or_else(Counter::noop, |code| outcome(code.as_str()))),
        }
    }

    /// Adds what a receipt's numbers have grown by.
    pub(super) fn record(&self, before: Counts, now: Counts) {
        grown(&self.accepted, before.accepted, now.accepted);
        grown(&self.duplicates, before.duplicates, now.duplicates);
        for (counter, code) in self.rejected.iter().zip(ItemCode::ALL) {
            grown(counter, before.rejected.of(*code), now.rejected.of(*code));
        }
    }
}

/// Counts events by what became of them, and what they did to boards.
pub(super) struct EventTally {
    accepted: Counter,
    duplicates: Counter,
    unmatched: Counter,
    unknown: Counter,
    rejected: Counter,
    increments: Tally,
}

impl EventTally {
    pub(super) fn new() -> Self {
        let outcome = |outcome: &'static str| counter!(EVENTS, "outcome" => outcome);
        Self {
            accepted: outcome("accepted"),
            duplicates: outcome("duplicate"),
            unmatched: outcome("unmatched"),
            unknown: outcome("unknown"),
            rejected: outcome("rejected"),
            increments: Tally::new(),
        }
    }

    /// Adds what a receipt's numbers have grown by.
    pub(super) fn record(&self, before: EventCounts, now: EventCounts) {
        grown(&self.accepted, before.accepted, now.accepted);
        grown(&self.duplicates, before.duplicates, now.duplicates);
        grown(&self.unmatched, before.unmatched, now.unmatched);
        grown(&self.unknown, before.unknown, now.unknown);
        grown(&self.rejected, before.refused, now.refused);
        self.increments.record(before.on_boards, now.on_boards);
    }
}

/// What the recorder has rendered, without the series of boards that are not known: it keeps a series for ever, also
/// when its board has been removed. A board that is defined again finds its counters where they were.
pub(super) fn of_known_boards(rendered: &str, is_known: impl Fn(&str) -> bool) -> String {
    let stays = |line: &&str| board_of(line).is_none_or(&is_known);
    rendered.split_inclusive('\n').filter(stays).collect()
}

/// The value of the label `board` of a series, if it has one. A board's name needs no escapes.
fn board_of(line: &str) -> Option<&str> {
    let at = ["{board=\"", ",board=\""].iter().find_map(|label| Some(line.find(label)? + label.len()))?;
    line[at..].split('"').next()
}

fn grown(counter: &Counter, before: u64, now: u64) {
    if now > before {
        counter.increment(now - before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_unknown_boards_are_left_out() {
        let rendered = "# HELP slots by board=\"gone\"\n# TYPE slots gauge\nslots{board=\"gone\"} 1\nslots{board=\"here\"} 2\n\
                        lag{kind=\"x\",board=\"gone\"} 1\nlag{kind=\"x\",board=\"here\",le=\"1\"} 2\n\
                        requests{route=\"/v1/boards/{board}\"} 3\nother{on_board=\"gone\",text=\"a,board=\\\"gone\\\"\"} 4\nbare 5";
        let left = of_known_boards(rendered, |board| board == "here");
        let gone = ["slots{board=\"gone\"} 1\n", "lag{kind=\"x\",board=\"gone\"} 1\n"];
        assert_eq!(left, gone.iter().fold(rendered.to_owned(), |text, line| text.replace(line, "")));
    }
}
