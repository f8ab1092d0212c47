//! HTTP: parse, call the service, answer. Nothing here knows a store.
//!
//! [`configure`] registers every operation of the table in `routes`; each resource has a file of its own.
//! Everything a client can get wrong ends in a [`Problem`]; every code that one can carry is in [`Code`].

mod address;
mod answer;
mod backup;
mod boards;
mod body;
mod clock;
mod codes;
mod cors;
mod definition;
mod evaluate;
mod events;
mod increments;
mod intake;
mod large;
mod meters;
mod openapi;
mod operations;
mod parameters;
mod problem;
mod query;
mod rankings;
mod rollover;
mod routes;
mod rules;
mod samples;
mod subjects;
mod values;
mod welcome;
mod windows;

use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;

pub use codes::{Code, ItemCode};
pub use cors::cors;
pub use meters::{DURATION, EVENTS, IN_FLIGHT, INCREMENTS, REQUESTS};
pub use openapi::openapi;
pub use problem::Problem;
pub use routes::{configure, registered};

use crate::service::Service;

/// What can be set about the HTTP layer.
#[derive(Clone)]
pub struct HttpOptions {
    /// The most bytes of a JSON body.
    pub max_body: usize,
    /// How long a JSON body may take to arrive. Streams of NDJSON may take as long as they like.
    pub body_timeout: Duration,
    /// The most bytes of one line of an NDJSON stream.
    pub max_line: usize,
    /// Origins whose pages may call the API; `*` for any, none to switch CORS off. See [`cors`].
    pub cors_origins: Vec<String>,
    /// The store runs on a simulated clock, so `/v1/clock` exists.
    pub simulated_clock: bool,
    /// What `/metrics` renders; without it the path answers 404.
    pub metrics: Option<PrometheusHandle>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            max_body: 8 << 20,
            body_timeout: Duration::from_secs(30),
            max_line: 64 << 10,
            cors_origins: Vec::new(),
            simulated_clock: false,
            metrics: None,
        }
    }
}

/// What every handler has: the service, and the options.
pub struct HttpState {
    /// What requests are about.
    pub service: Arc<Service>,
    /// How they are taken.
    pub options: HttpOptions,
}
