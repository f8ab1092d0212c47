//! State shared by all handlers: the service and the HTTP options.

use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::RequestHead;
use metrics_exporter_prometheus::PrometheusHandle;

use super::access::Access;
use super::body_memory::BodyMemory;
use super::client::Client;
use super::console::ConsoleMode;
use super::limits::{ClientLimits, Limits};
use super::proxies::{Network, Proxies, ProxyHeader};
use super::sent_items::SentItems;
use crate::access::Rate;
use crate::board::BoardName;
use crate::service::Service;

/// Options of the HTTP layer.
#[derive(Clone)]
pub struct HttpOptions {
    /// Maximum size of a JSON body in bytes.
    pub max_body: usize,
    /// Maximum number of bytes of memory that all bodies in progress take: what has arrived of them, the decoders, and
    /// what they are parsed into. A client may have at most as much as it leaves to others.
    pub body_memory: usize,
    /// Maximum time for a JSON body to arrive.
    pub body_timeout: Duration,
    /// Maximum time between two pieces of an NDJSON stream. The stream as a whole has no time limit.
    pub stream_idle_timeout: Duration,
    /// Maximum length of one line of an NDJSON stream in bytes.
    pub max_line: usize,
    /// Origins, besides the service's own, whose pages may read: `*` allows any origin.
    pub cors_origins: Vec<String>,
    /// Origins, besides the service's own, whose pages may read and change everything.
    pub cors_write_origins: Vec<String>,
    /// The host names that requests may be addressed to, besides those of the loopback interface. `None` accepts any.
    /// A service that only listens on the loopback interface should set it: otherwise any web page could reach it under
    /// a host name that its owner lets resolve to 127.0.0.1.
    pub hosts: Option<Vec<String>>,
    /// Whether requests that a proxy has forwarded are refused: callers without a key may do everything, because only
    /// this machine is expected to reach the service.
    pub for_this_machine_only: bool,
    /// The proxies whose word for the address of a client is taken.
    pub trusted_proxies: Vec<Network>,
    /// The header in which they list it.
    pub proxy_header: ProxyHeader,
    /// How fast each client, that is an address, may send requests through this instance. `None` does not limit it.
    pub address_requests: Option<Rate>,
    /// The same for increments, samples and events.
    pub address_items: Option<Rate>,
    /// The number of streams and exports that a client may have open at a time.
    pub address_streams: u32,
    /// The time for which a client may use the response to a GET request under `/v1` without asking again, in whole
    /// seconds. With zero it asks each time and gets 304 if nothing has changed.
    pub max_age: Duration,
    /// The same for single boards.
    pub max_ages: Vec<(BoardName, Duration)>,
    /// What the console at `/` offers.
    pub console: ConsoleMode,
    /// Whether there is an API explorer at `/swagger-ui/`, which can execute every operation.
    pub explorer: bool,
    /// Whether the store runs on a simulated clock, so that `/v1/clock` exists.
    pub simulated_clock: bool,
    /// Source of the text that `/metrics` returns. Without it the path returns 404.
    pub metrics: Option<PrometheusHandle>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            max_body: 8 << 20,
            body_memory: 256 << 20,
            body_timeout: Duration::from_secs(30),
            stream_idle_timeout: Duration::from_secs(300),
            max_line: 64 << 10,
            cors_origins: Vec::new(),
            cors_write_origins: Vec::new(),
            hosts: None,
            for_this_machine_only: false,
            trusted_proxies: Vec::new(),
            proxy_header: ProxyHeader::default(),
            address_requests: None,
            address_items: None,
            address_streams: 1_000,
            max_age: Duration::ZERO,
            max_ages: Vec::new(),
            console: ConsoleMode::default(),
            explorer: false,
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
    pub(super) access: Access,
    pub(super) proxies: Proxies,
    /// The rates and streams of clients and keys.
    pub(super) limits: Arc<Limits>,
    /// The memory of the bodies in progress.
    pub(super) bodies: Arc<BodyMemory>,
    /// What was sent of each source's log.
    pub(super) sent_items: SentItems,
}

impl HttpState {
    pub fn new(service: Arc<Service>, options: HttpOptions) -> Self {
        let access = Access::new(&options.cors_origins, &options.cors_write_origins, options.hosts.as_deref());
        let access = access.for_this_machine_only(options.for_this_machine_only);
        let proxies = Proxies::new(options.trusted_proxies.clone(), options.proxy_header.clone());
        let bodies = BodyMemory::new(options.body_memory);
        let limits = Limits::new(ClientLimits {
            requests: options.address_requests,
            items: options.address_items,
            streams: options.address_streams,
        });
        Self { service, options, access, proxies, limits, bodies, sent_items: SentItems::default() }
    }

    /// Returns the client that a request comes from.
    pub(super) fn client(&self, head: &RequestHead) -> Client {
        Client::at(self.proxies.client(head))
    }
}
