//! The settings, in one list from which the flags, the environment variables and the keys of the file are derived.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use crate::board::{Span, Timestamp};
use crate::http::ConsoleMode;
use crate::store::ClockMode;
use crate::store::embedded::Durability;
use crate::store::redis::Address;

/// The settings given on the command line, in the environment or in the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[command(next_help_heading = "Settings (each also in the environment and the file)")]
pub struct Settings {
    /// The address on which the HTTP API listens; port 0 takes a free port and prints it [default: 127.0.0.1:8080]
    #[arg(long, env = "ROLLTOP_LISTEN", value_name = "ADDRESS:PORT")]
    #[serde(default, deserialize_with = "text")]
    pub listen: Option<SocketAddr>,
    /// `embedded`, or the address of a Redis or Valkey: redis://host:6379, redis+sentinel://host,host/master or
    /// redis+cluster://host,host; rediss for TLS [default: embedded]
    #[arg(long, env = "ROLLTOP_STORE", value_name = "STORE", hide_env_values = true)]
    #[serde(default, deserialize_with = "store")]
    pub store: Option<StoreChoice>,
    /// The embedded store's data directory [default: data]
    #[arg(long, env = "ROLLTOP_DATA_DIR", value_name = "PATH")]
    pub data_dir: Option<PathBuf>,
    /// The failures that an acknowledged increment survives in the embedded store: always, everysec or off [default:
    /// everysec]
    #[arg(long, env = "ROLLTOP_DURABILITY", value_name = "WHEN")]
    #[serde(default, deserialize_with = "text")]
    pub durability: Option<Durability>,
    /// The directory in which POST /v1/backup makes backups of the embedded store [default: none, backups cannot be
    /// made]
    #[arg(long, env = "ROLLTOP_BACKUP_DIR", value_name = "PATH")]
    pub backup_dir: Option<PathBuf>,
    /// Trust the system clock at the start, even if it is far ahead of the last recorded time [default: false]
    #[arg(long, env = "ROLLTOP_TRUST_CLOCK", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub trust_clock: Option<bool>,
    /// The certificates to trust (PEM) when Redis is reached through rediss:// [default: the well-known authorities]
    #[arg(long, env = "ROLLTOP_REDIS_CA", value_name = "PATH")]
    pub redis_ca: Option<PathBuf>,
    /// The prefix of every key in Redis [default: rolltop]
    #[arg(long, env = "ROLLTOP_REDIS_PREFIX", value_name = "TEXT")]
    pub redis_prefix: Option<String>,
    /// Ask a Redis that keeps an append-only file to rewrite it once after each of its starts [default: true]
    #[arg(long, env = "ROLLTOP_REDIS_REWRITE_AOF", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub redis_rewrite_aof: Option<bool>,
    /// The largest number of increments that may wait for Redis; beyond it a write gets status 503 [default: 100000]
    #[arg(long, env = "ROLLTOP_QUEUE", value_name = "N")]
    pub queue: Option<usize>,
    /// `system`, or `simulated=<RFC 3339 time>` for tests and replays [default: system]
    #[arg(long, env = "ROLLTOP_CLOCK", value_name = "CLOCK")]
    #[serde(default, deserialize_with = "text")]
    pub clock: Option<ClockMode>,
    /// The time by which an event may be ahead of the store's clock and still count as now [default: 5s]
    #[arg(long, env = "ROLLTOP_MAX_SKEW", value_name = "DURATION")]
    pub max_skew: Option<Span>,
    /// The largest JSON body, in bytes [default: 8388608]
    #[arg(long, env = "ROLLTOP_MAX_BODY", value_name = "BYTES")]
    pub max_body: Option<usize>,
    /// The memory that all request bodies in progress may take together, in bytes; beyond it a request gets status 503
    /// [default: 268435456, or 8 times max_body if that is more]
    #[arg(long, env = "ROLLTOP_BODY_MEMORY", value_name = "BYTES")]
    pub body_memory: Option<usize>,
    /// The longest NDJSON line, in bytes [default: 65536]
    #[arg(long, env = "ROLLTOP_MAX_LINE", value_name = "BYTES")]
    pub max_line: Option<usize>,
    /// The origins, besides the service's own, whose pages may read from a browser; `*` for any [default: none]
    #[arg(long, env = "ROLLTOP_CORS_ORIGINS", value_name = "ORIGIN", value_delimiter = ',')]
    pub cors_origins: Option<Vec<String>>,
    /// The origins, besides the service's own, whose pages may read and change everything from a browser, as there is
    /// no authentication yet; `*` for any [default: none]
    #[arg(long, env = "ROLLTOP_CORS_WRITE_ORIGINS", value_name = "ORIGIN", value_delimiter = ',')]
    pub cors_write_origins: Option<Vec<String>>,
    /// The host names, besides localhost, for which the service answers if it listens on the loopback interface; name
    /// those under which a proxy on the same machine forwards requests [default: none]
    #[arg(long, env = "ROLLTOP_HOSTS", value_name = "HOST", value_delimiter = ',')]
    pub hosts: Option<Vec<String>>,
    /// What the web page at / offers: `off`, `read`, or `full`, which also changes boards and needs a loopback address
    /// to listen on [default: full on a loopback address, otherwise read]
    #[arg(long, env = "ROLLTOP_CONSOLE", value_name = "MODE")]
    #[serde(default, deserialize_with = "text")]
    pub console: Option<ConsoleMode>,
    /// Whether there is an API explorer at /swagger-ui/, a page that can execute every operation [default: true with
    /// the console `full`, otherwise false]
    #[arg(long, env = "ROLLTOP_EXPLORER", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub explorer: Option<bool>,
    /// The time after which a stream that sends nothing is ended [default: 5m]
    #[arg(long, env = "ROLLTOP_STREAM_IDLE_TIMEOUT", value_name = "DURATION")]
    pub stream_idle_timeout: Option<Span>,
    /// The time for which a client may use a response of a read without asking again, in whole seconds [default: none,
    /// it asks each time and gets 304 if nothing has changed]
    #[arg(long, env = "ROLLTOP_MAX_AGE", value_name = "DURATION")]
    pub max_age: Option<Span>,
    /// The number of threads that serve HTTP; 0 means one per processor [default: 0]
    #[arg(long, env = "ROLLTOP_WORKERS", value_name = "N")]
    pub workers: Option<usize>,
    /// The time to wait at SIGTERM for requests in progress [default: 20s]
    #[arg(long, env = "ROLLTOP_SHUTDOWN_TIMEOUT", value_name = "DURATION")]
    pub shutdown_timeout: Option<Span>,
    /// `text` or `json` [default: text]
    #[arg(long, env = "ROLLTOP_LOG_FORMAT", value_name = "FORMAT")]
    #[serde(default, deserialize_with = "text")]
    pub log_format: Option<LogFormat>,
}

impl Settings {
    /// The keys of the file.
    pub const KEYS: [&str; 25] = [
        "listen",
        "store",
        "data_dir",
        "durability",
        "backup_dir",
        "trust_clock",
        "redis_ca",
        "redis_prefix",
        "redis_rewrite_aof",
        "queue",
        "clock",
        "max_skew",
        "max_body",
        "body_memory",
        "max_line",
        "cors_origins",
        "cors_write_origins",
        "hosts",
        "console",
        "explorer",
        "stream_idle_timeout",
        "max_age",
        "workers",
        "shutdown_timeout",
        "log_format",
    ];

    /// Returns these settings, with those of `other` where they are not set.
    pub(super) fn or(self, other: Settings) -> Settings {
        Settings {
            listen: self.listen.or(other.listen),
            store: self.store.or(other.store),
            data_dir: self.data_dir.or(other.data_dir),
            durability: self.durability.or(other.durability),
            backup_dir: self.backup_dir.or(other.backup_dir),
            trust_clock: self.trust_clock.or(other.trust_clock),
            redis_ca: self.redis_ca.or(other.redis_ca),
            redis_prefix: self.redis_prefix.or(other.redis_prefix),
            redis_rewrite_aof: self.redis_rewrite_aof.or(other.redis_rewrite_aof),
            queue: self.queue.or(other.queue),
            clock: self.clock.or(other.clock),
            max_skew: self.max_skew.or(other.max_skew),
            max_body: self.max_body.or(other.max_body),
            body_memory: self.body_memory.or(other.body_memory),
            max_line: self.max_line.or(other.max_line),
            cors_origins: self.cors_origins.or(other.cors_origins),
            cors_write_origins: self.cors_write_origins.or(other.cors_write_origins),
            hosts: self.hosts.or(other.hosts),
            console: self.console.or(other.console),
            explorer: self.explorer.or(other.explorer),
            stream_idle_timeout: self.stream_idle_timeout.or(other.stream_idle_timeout),
            max_age: self.max_age.or(other.max_age),
            workers: self.workers.or(other.workers),
            shutdown_timeout: self.shutdown_timeout.or(other.shutdown_timeout),
            log_format: self.log_format.or(other.log_format),
        }
    }
}

/// Deserializes a value written as text, so that the flag and the file share one parser and one message.
fn text<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|error| serde::de::Error::custom(format!("'{text}': {error}")))
}

/// Deserializes a store. Errors quote nothing of the text, because it may contain a password.
fn store<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<StoreChoice>, D::Error> {
    let Ok(store) = StoreChoice::from_str(&String::deserialize(deserializer)?);
    store.check().map_err(serde::de::Error::custom)?;
    Ok(Some(store))
}

/// The store to use.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreChoice {
    Embedded,
    /// The URL as given. It may contain a password, so it is never shown.
    Redis(String),
}

impl FromStr for StoreChoice {
    type Err = Infallible;

    /// Accepts any text other than `embedded` as an address. An error here would be shown together with the text, which
    /// may contain a password; [`check`](Self::check) reports errors without it.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "embedded" { StoreChoice::Embedded } else { StoreChoice::Redis(text.to_owned()) })
    }
}

impl StoreChoice {
    /// Checks an address. Returns a description of the error that does not quote the address.
    pub fn check(&self) -> Result<(), String> {
        match self {
            StoreChoice::Embedded => Ok(()),
            StoreChoice::Redis(url) => match url.parse::<Address>() {
                Ok(_) => Ok(()),
                Err(error) => Err(format!("a store is 'embedded' or the address of a Redis: {error}")),
            },
        }
    }
}

impl fmt::Debug for StoreChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreChoice::Embedded => f.write_str("embedded"),
            StoreChoice::Redis(_) => f.write_str("redis"),
        }
    }
}

impl FromStr for ClockMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("simulated=") {
            Some(time) => Timestamp::parse(time).map(ClockMode::Simulated).map_err(|error| error.to_string()),
            None if text == "system" => Ok(ClockMode::System),
            None => Err("a clock is 'system', or 'simulated=' with a time such as 2026-01-31T00:00:00Z".to_owned()),
        }
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err("a log format is 'text' or 'json'".to_owned()),
        }
    }
}
