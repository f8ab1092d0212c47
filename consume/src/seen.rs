//! What is seen of the feeds: metrics, whether all is well, and a page that says it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::http::header::ContentType;
use actix_web::web::Data;
use actix_web::{App, HttpResponse, HttpServer};
use metrics::{Counter, Gauge, counter, gauge};
use metrics_exporter_prometheus::PrometheusHandle;
use parking_lot::Mutex;
use serde_json::json;

/// How long a feed may wait or fail before it is said that something is wrong.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a feed does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedState {
    Starting,
    Reading,
    /// Another program is ahead, and this one would take over.
    StandingBy,
    /// Events wait for a board.
    Waiting(String),
    /// It is tried again.
    Failing(String),
    /// Somebody has to look.
    Stopped(String),
    /// A fill that has ended.
    Filled,
    /// The log is no more, as that of a topic which was deleted.
    Gone,
}

/// What is seen of a feed.
pub struct FeedSeen {
    pub source: String,
    state: Mutex<(FeedState, Instant)>,
    pub sent: Counter,
    pub accepted: Counter,
    pub repeated: Counter,
    pub passed: Counter,
    pub unreadable: Counter,
    pub gaps: Counter,
    pub failures: Counter,
    behind: Gauge,
    behind_seconds: Gauge,
    up: Gauge,
}

/// All feeds, which may become more.
pub type AllSeen = Arc<Mutex<Vec<Arc<FeedSeen>>>>;

impl FeedState {
    fn name(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Reading => "reading",
            Self::StandingBy => "standing_by",
            Self::Waiting(_) => "waiting",
            Self::Failing(_) => "failing",
            Self::Stopped(_) => "stopped",
            Self::Filled => "filled",
            Self::Gone => "gone",
        }
    }

    fn detail(&self) -> Option<&str> {
        match self {
            Self::Waiting(why) | Self::Failing(why) | Self::Stopped(why) => Some(why),
            _ => None,
        }
    }
}

impl fmt::Display for FeedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.detail().map_or(Ok(()), |detail| write!(f, ": {detail}"))
    }
}

impl FeedSeen {
    pub fn new(source: &str) -> Self {
        let count = |name| counter!(name, "source" => source.to_owned());
        let level = |name| gauge!(name, "source" => source.to_owned());
        Self::with(source, count, level)
    }

    /// Returns what is seen of a source while it has no log. It has no metrics.
    pub fn of_no_log(source: &str) -> Self {
        Self::with(source, |_| Counter::noop(), |_| Gauge::noop())
    }

    fn with(source: &str, count: impl Fn(&'static str) -> Counter, level: impl Fn(&'static str) -> Gauge) -> Self {
        Self {
            source: source.to_owned(),
            state: Mutex::new((FeedState::Starting, Instant::now())),
            sent: count("rolltop_consume_events_sent_total"),
            accepted: count("rolltop_consume_events_accepted_total"),
            repeated: count("rolltop_consume_events_repeated_total"),
            passed: count("rolltop_consume_events_passed_total"),
            unreadable: count("rolltop_consume_messages_unreadable_total"),
            gaps: count("rolltop_consume_gaps_total"),
            failures: count("rolltop_consume_failures_total"),
            behind: level("rolltop_consume_behind"),
            behind_seconds: level("rolltop_consume_behind_seconds"),
            up: level("rolltop_consume_up"),
        }
    }

    /// Counts events that boards have rejected for a reason.
    pub fn rejected(&self, code: &str, number: u64) {
        counter!("rolltop_consume_events_rejected_total", "source" => self.source.clone(), "code" => code.to_owned())
            .increment(number);
    }

    /// Sets how much of the log is left, and how old the oldest of that is.
    pub fn set_behind(&self, items: Option<u64>, seconds: Option<f64>) {
        if let Some(items) = items {
            self.behind.set(items as f64);
        }
        if let Some(seconds) = seconds {
            self.behind_seconds.set(seconds);
        }
    }

    /// Changes the state. Says so in the log if it is another one.
    pub fn set(&self, state: FeedState) {
        let mut now = self.state.lock();
        if now.0 == state {
            return;
        }
        let source = &self.source;
        match &state {
            FeedState::Stopped(why) => tracing::error!(source, "stopped: {why}"),
            FeedState::Failing(why) => tracing::warn!(source, "{why}"),
            other => tracing::info!(source, "{other}"),
        }
        self.up.set(f64::from(u8::from(!matches!(state, FeedState::Stopped(_) | FeedState::Failing(_)))));
        // Different words for the same do not begin anew.
        let since = if now.0.name() == state.name() { now.1 } else { Instant::now() };
        *now = (state, since);
    }

    pub fn state(&self) -> FeedState {
        self.state.lock().0.clone()
    }

    fn is_well(&self) -> bool {
        let (state, since) = &*self.state.lock();
        match state {
            FeedState::Stopped(_) => false,
            FeedState::Starting | FeedState::Waiting(_) | FeedState::Failing(_) => since.elapsed() < PATIENCE,
            FeedState::Reading | FeedState::StandingBy | FeedState::Filled | FeedState::Gone => true,
        }
    }
}

/// Says what the metrics are.
pub fn describe() {
    for (name, text) in [
        ("rolltop_consume_events_sent_total", "Events sent to the service."),
        ("rolltop_consume_events_accepted_total", "Events that at least one board counted."),
        ("rolltop_consume_events_repeated_total", "Events that boards had counted before."),
        ("rolltop_consume_events_passed_total", "Events that no board counts: of other types, or left out by filters."),
        ("rolltop_consume_events_rejected_total", "Rejections of events by boards, by code."),
        ("rolltop_consume_messages_unreadable_total", "Messages that make no event."),
        ("rolltop_consume_gaps_total", "Times that messages were missing which had not been counted."),
        ("rolltop_consume_failures_total", "Times that the log or the service could not be reached, or refused."),
    ] {
        metrics::describe_counter!(name, text);
    }
    metrics::describe_gauge!(
        "rolltop_consume_behind",
        "Messages of the log that are not counted yet; of files, bytes."
    );
    metrics::describe_gauge!(
        "rolltop_consume_behind_seconds",
        "How old the oldest event is that is read and not counted; 0 if there are none."
    );
    metrics::describe_gauge!("rolltop_consume_up", "1 while the log is read, 0 while it fails or is stopped.");
}

/// Serves `/metrics` and `/readyz` until the program ends.
pub fn serve(listen: std::net::SocketAddr, handle: Option<PrometheusHandle>, all: AllSeen) -> anyhow::Result<()> {
    let (handle, all) = (Data::new(handle), Data::new(all));
    let server = HttpServer::new(move || {
        App::new()
            .app_data(handle.clone())
            .app_data(all.clone())
            .route("/metrics", actix_web::web::get().to(write_metrics))
            .route("/readyz", actix_web::web::get().to(write_state))
    });
    let server = server.workers(1).disable_signals().bind(listen);
    let server = server.map_err(|error| anyhow::anyhow!("cannot listen on {listen}: {error}"))?.run();
    tokio::spawn(server);
    Ok(())
}

async fn write_metrics(handle: Data<Option<PrometheusHandle>>) -> HttpResponse {
    let text = handle.get_ref().as_ref().map(PrometheusHandle::render).unwrap_or_default();
    HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(text)
}

async fn write_state(all: Data<AllSeen>) -> HttpResponse {
    let all = all.lock();
    let sources: Vec<_> = all
        .iter()
        .map(|seen| {
            let state = seen.state();
            json!({"source": seen.source, "state": state.name(), "detail": state.detail()})
        })
        .collect();
    let is_well = all.iter().all(|seen| seen.is_well());
    let mut response = if is_well { HttpResponse::Ok() } else { HttpResponse::ServiceUnavailable() };
    response.content_type(ContentType::json()).body(json!({"ready": is_well, "sources": sources}).to_string())
}
