//! State shared by all handlers: the service and the HTTP options.

use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;

use crate::service::Service;

/// Options of the HTTP layer.
#[derive(Clone)]
pub struct HttpOptions {
    /// Maximum size of a JSON body in bytes.
    pub max_body: usize,
    /// Maximum time for a JSON body to arrive. NDJSON streams have no time limit.
    pub body_timeout: Duration,
    /// Maximum length of one line of an NDJSON stream in bytes.
    pub max_line: usize,
    /// Origins whose pages may call the API: `*` allows any origin, an empty list disables CORS. See
    /// [`cors`](super::cors()).
    pub cors_origins: Vec<String>,
    /// Whether the store runs on a simulated clock, so that `/v1/clock` exists.
    pub simulated_clock: bool,
    /// Source of the text that `/metrics` returns. Without it the path returns 404.
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

/// State passed to every handler.
pub struct HttpState {
    /// The service that requests call.
    pub service: Arc<Service>,
    /// The options that apply to requests.
    pub options: HttpOptions,
}
