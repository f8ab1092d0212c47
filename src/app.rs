//! The application: builds a running service from a configuration, and makes everything acknowledged durable at the
//! end.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Server;
use actix_web::{App, HttpServer, web};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpSocket;

use crate::config::{Config, KeyFile, StoreChoice};
use crate::descriptors;
use crate::http::{self, Connections, HttpOptions, HttpState, LiveViews};
use crate::service::{Keys, NamedRules, Scheduler, Service, ServiceError};
use crate::store::embedded::{Embedded, EmbeddedOptions};
use crate::store::redis::{RedisOptions, RedisStore};
use crate::store::{ClockMode, Limits, Store, StoreError};
use crate::telemetry;
use crate::tls::{Tls, TlsError};

/// The interval at which finished histograms are folded, so that `/metrics` stays small and fast.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// The time that a client may take to send a request's head. The limit keeps slow clients from holding connections
/// forever.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The time that a JSON body may take to arrive: as long as the largest body takes at some 3 Mbit/s.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The time that a connection may be idle between two requests. It is longer than the idle timeout of most load
/// balancers, so that they close idle connections first. Otherwise a request could arrive on a connection that is just
/// being closed.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// The probes of connections that are idle during a request: after a minute, every 15 seconds, given up after four.
const KEEP_ALIVE_PROBES: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15)).with_retries(4);
/// The time that a client may take to close a connection after the server has closed it.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The time that a client may take to read what was sent. Then its connection is closed, which ends its export or
/// stream.
#[cfg(target_os = "linux")]
const READ_TIMEOUT: Duration = Duration::from_secs(120);
/// The interval at which the configuration file is read for changed keys.
const LOOK_AT_KEYS: Duration = Duration::from_millis(500);
/// The time that a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of connections that the system accepts before the server does.
const BACKLOG: u32 = 1_024;

/// A service that listens but does not respond yet. [`run_until_stopped`](Self::run_until_stopped) runs it.
pub struct Application {
    address: SocketAddr,
    server: Server,
    service: Arc<Service>,
    live: Arc<LiveViews>,
    scheduler: Scheduler,
    key_file: Option<KeyFile>,
    /// Whether callers without a key may do everything, because there was none at the start.
    is_open: bool,
    tls: Option<Tls>,
}

/// The reason why the application did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {address}: {source}; choose another address with --listen")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("{}", with_settings(.0))]
    Store(#[from] StoreError),
    #[error("a board in {file} cannot be defined in the store: {source}{}", replacing(.source))]
    Board { file: String, source: ServiceError },
    #[error("the keys cannot be read: {source}")]
    Keys { source: ServiceError },
    #[error(
        "there are no keys in {file} or the store, so nobody could use the service on {address}: without keys it is for a \
         loopback address only, without hosts, trusted_proxies, anonymous_boards and a certificate. Run `rolltop keys hash`, \
         which makes the first key, add what it prints to a file, and name the file with --config; or set 'anonymous' \
         (--anonymous) to what everybody who reaches the address may do: none, view, all"
    )]
    NoKeys { address: SocketAddr, file: String },
    #[error("the scheduler did not start: {0}")]
    Scheduler(#[from] tokio_cron_scheduler::JobSchedulerError),
}

/// Returns how a board that is stored with another definition can be replaced.
fn replacing(error: &ServiceError) -> &'static str {
    match error {
        ServiceError::Conflict { .. } => {
            "; to replace it, start with its earlier definition and send DELETE /v1/boards/{board}"
        }
        _ => "",
    }
}

/// Returns the message of a store that could not be opened, with the settings that change the outcome.
fn with_settings(error: &StoreError) -> String {
    match error {
        StoreError::ClockModeMismatch { .. } => {
            format!("{error}; use another store (--data-dir, --redis-prefix), or the same --clock")
        }
        StoreError::DataDirectory { .. } => format!(
            "{error}; stop the other process or use the version that wrote it, or choose another directory with \
             --data-dir"
        ),
        _ => error.to_string(),
    }
}

impl Application {
    /// Binds the address, opens the store, defines the configured boards and starts the scheduler.
    pub async fn build(config: &Config) -> Result<Self, StartError> {
        let tls = config.tls.as_ref().map(Tls::open).transpose()?;
        let listen = |source| StartError::Listen { address: config.listen, source };
        let listener = bind(config.listen).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let metrics = telemetry::collect_metrics();

        let rules = NamedRules::new(config.rules.iter().cloned());
        let keys =
            Keys::new(config.anonymous.clone(), config.keys.clone()).with_token_rules(config.token_rules.clone());
        let service = Service::with_keys(open_store(config).await?, rules, keys);
        service.read_keys().await.map_err(|error| match error {
            ServiceError::Store(error) => StartError::Store(error),
            source => StartError::Keys { source },
        })?;
        // A store that does not answer now is asked again each second.
        if let Err(error) = service.read_tiers().await {
            tracing::warn!(%error, "the tiers of boards are not known yet");
        }
        if service.keys().is_empty() && !config.is_anonymous_explicit && !config.is_for_this_machine_only {
            return Err(StartError::NoKeys { address, file: config.source.clone() });
        }
        if let Some(most) = config.max_boards {
            service.limit_boards(most);
        }
        service.mirror_reads(config.mirror_reads);
        service.define_configured(&config.boards).await.map_err(|source| match source {
            ServiceError::Store(error) => StartError::Store(error),
            source => StartError::Board { file: config.source.clone(), source },
        })?;
        let scheduler = Scheduler::start(service.clone()).await?;

        let state = web::Data::new(HttpState::new(
            service.clone(),
            HttpOptions {
                max_body: config.max_body,
                body_memory: config.body_memory,
                body_timeout: BODY_TIMEOUT,
                max_line: config.max_line,
                stream_idle_timeout: config.stream_idle_timeout,
                max_age: config.max_age,
                max_ages: config.max_ages.clone(),
                cors_origins: config.cors_origins.clone(),
                cors_write_origins: config.cors_write_origins.clone(),
                hosts: (address.ip().to_canonical().is_loopback() || !config.hosts.is_empty())
                    .then(|| config.hosts.clone()),
                for_this_machine_only: config.is_for_this_machine_only,
                trusted_proxies: config.trusted_proxies.clone(),
                proxy_header: config.proxy_header.clone(),
                address_requests: config.address_requests,
                address_items: config.address_items,
                address_streams: config.address_streams,
                console: config.console,
                explorer: config.explorer,
                simulated_clock: matches!(config.clock, ClockMode::Simulated(_)),
                metrics,
            },
        ));
        let live = LiveViews::new(service.clone());
        let views = live.clone();
        let most = descriptors::most_connections();
        let connections = (most / config.workers.max(1)).max(1);
        let on_connect = http::on_connect(Connections::new(most, config.trusted_proxies.clone()));
        let server = HttpServer::new(move || {
            let configure = http::configure(state.clone(), views.clone());
            App::new().wrap_fn(http::outermost).configure(configure)
        })
        .on_connect(on_connect)
        .workers(config.workers)
        .max_connections(connections)
        // Clients that do not complete their handshake take no more from others than any other idle connection.
        .max_connection_rate(connections)
        .tls_handshake_timeout(HANDSHAKE_TIMEOUT)
        .client_request_timeout(HEAD_TIMEOUT)
        .client_disconnect_timeout(DISCONNECT_TIMEOUT)
        .keep_alive(KEEP_ALIVE)
        .shutdown_timeout(config.shutdown_timeout.as_secs())
        .disable_signals();
        let server = match &tls {
            Some(tls) => server.listen_rustls_0_23(listener, tls.server_config()?),
            None => server.listen(listener),
        };
        let server = server.map_err(listen)?.run();
        let (key_file, is_open) = (config.key_file.clone(), config.is_for_this_machine_only);
        Ok(Self { address, server, service, live, scheduler, key_file, is_open, tls })
    }

    /// Returns the address on which it listens, with the actual port if the configuration says 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the scheme of its URLs.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Returns the service behind the API.
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Serves requests until the future of `stop` resolves. Then it accepts no more requests, completes those in
    /// progress, and makes the store durable. It calls `stop` again while it waits for requests: when that future
    /// resolves too, the remaining requests are cut off.
    pub async fn run_until_stopped(self, mut stop: impl AsyncFnMut()) -> Result<(), RunError> {
        let Self { server, service, live, scheduler, key_file, is_open, tls, .. } = self;
        let handle = server.handle();
        let rereading = key_file.map(|file| tokio::spawn(reread_keys(file, service.clone(), is_open)));
        let upkeep = telemetry::collect_metrics().map(|metrics| {
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(METRICS_UPKEEP).await;
                    metrics.run_upkeep();
                }
            })
        });
        let reload = tls.map(|tls| tokio::spawn(tls.follow()));
        let mut server = tokio::spawn(server);
        let ended = tokio::select! {
            ended = &mut server => ended,
            () = stop() => {
                tracing::info!("stopping: no new connections, waiting for requests in progress; signal again to cut them off");
                // Streams have no end of their own.
                live.close();
                let _stopping = handle.stop(true);
                tokio::select! {
                    ended = &mut server => ended,
                    () = stop() => {
                        tracing::warn!("stopping at once: requests in progress are cut off");
                        Ok(Ok(()))
                    }
                }
            }
        };
        scheduler.stop().await;
        upkeep.into_iter().chain(reload).chain(rereading).for_each(|task| task.abort());
        service.close().await?;
        ended.map_err(|error| std::io::Error::other(error.to_string()))??;
        tracing::info!("stopped");
        Ok(())
    }
}

/// Takes over the keys of the configuration file whenever it changes, without end.
async fn reread_keys(mut file: KeyFile, service: Arc<Service>, is_open: bool) {
    loop {
        tokio::time::sleep(LOOK_AT_KEYS).await;
        if let Some(keys) = file.look().await {
            tracing::info!(keys = keys.keys.len(), "the keys of the configuration file have been read again");
            if is_open && !keys.keys.is_empty() {
                tracing::warn!(
                    "callers without a key may still do everything: what they may do is fixed at the start; restart the service"
                );
            }
            service.keys().configure(keys);
        }
    }
}

/// The reason why a running application ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("the HTTP server failed: {0}")]
    Server(#[from] std::io::Error),
    #[error("the store did not close cleanly: {0}")]
    Close(#[from] ServiceError),
}

/// Creates a listener with our own backlog: that of the standard library is too short when many clients connect at
/// once.
fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Without this, a restart could fail until the system has dropped the connections of the previous process.
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit this. It ends those whose client is gone without closing them.
    SockRef::from(&socket).set_tcp_keepalive(&KEEP_ALIVE_PROBES)?;
    // This ends those whose client is there but does not read.
    #[cfg(target_os = "linux")]
    SockRef::from(&socket).set_tcp_user_timeout(Some(READ_TIMEOUT))?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

async fn open_store(config: &Config) -> Result<Arc<dyn Store>, StoreError> {
    let limits = Limits { max_skew: config.max_skew };
    Ok(match &config.store {
        StoreChoice::Embedded => {
            let options = EmbeddedOptions {
                path: config.data_dir.clone(),
                clock: config.clock,
                durability: config.durability,
                limits,
                backup_dir: config.backup_dir.clone(),
                trust_clock: config.trust_clock,
                memory_limit: config.memory_limit,
                max_subjects: config.max_subjects,
            };
            Embedded::open(options).await?
        }
        StoreChoice::Redis(url) => {
            let options = RedisOptions {
                ca: config.redis_ca.clone(),
                prefix: config.redis_prefix.clone(),
                limits,
                queue: config.queue,
                trust_clock: config.trust_clock,
                rewrite_aof: config.redis_rewrite_aof,
                ..RedisOptions::new(url.clone(), config.clock)
            };
            RedisStore::connect(options).await?
        }
    })
}
