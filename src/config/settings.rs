//! The settings.

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer};

use crate::access::{BoardPattern, KeyId, Rate, Scope, Scopes};
use crate::board::{Span, Timestamp};
use crate::http::{ConsoleMode, Network, ProxyHeader};
use crate::store::ClockMode;
use crate::store::embedded::Durability;
use crate::store::redis::Address;

/// A share of a whole, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

impl Share {
    fn new(share: f64) -> Result<Self, &'static str> {
        if (0.0..=1.0).contains(&share) { Ok(Self(share)) } else { Err("expected a number from 0 to 1") }
    }
}

impl FromStr for Share {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text.parse().unwrap_or(f64::NAN))
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Declares the settings. The flag, the environment variable and the key of the file follow from the name: the setting
/// `data_dir` has the flag `--data-dir` and the variable `ROLLTOP_DATA_DIR`. The comment is the help of the flag.
///
/// `= "…"` is the default, written as for the flag, and is added to the help. A setting that has none, or one that
/// depends on other settings, says so at the end of its comment, as in `[default: none]`.
macro_rules! settings {
    (@help $($comment:literal)+) => { concat!($($comment),+).trim_start() };
    (@help $($comment:literal)+, $default:literal) => {
        concat!($($comment,)+ " [default: ", $default, "]").trim_start()
    };
    (@type ($($type:tt)+)) => { Option<$($type)+> };
    (@type ($($type:tt)+) $default:literal) => { $($type)+ };
    (@value $value:expr) => { $value };
    (@value $value:expr, $default:literal) => { $value.unwrap_or_else(|| default($default)) };
    ($(
        $(#[doc = $comment:literal])+
        #[arg($($arg:tt)+)]
        $(#[serde($($serde:tt)+)])?
        $name:ident: ($($type:tt)+) $(= $default:literal)?,
    )+) => {
        /// The settings given on the command line, in the environment or in the file.
        #[derive(Clone, Debug, Default, clap::Args, Deserialize)]
        #[command(next_help_heading = "Settings (each also in the environment and the file)")]
        pub struct Settings {
            $(
                $(#[doc = $comment])+
                #[arg(
                    long,
                    env = {
                        static VARIABLE: LazyLock<String> = LazyLock::new(|| variable(stringify!($name)));
                        VARIABLE.as_str()
                    },
                    help = settings!(@help $($comment)+ $(, $default)?),
                    $($arg)+
                )]
                $(#[serde($($serde)+)])?
                pub $name: Option<$($type)+>,
            )+
        }

        /// The settings with their defaults. One without a default, or whose default depends on others, is optional.
        pub(super) struct Resolved {
            $(pub(super) $name: settings!(@type ($($type)+) $($default)?),)+
        }

        impl Settings {
            /// The keys of the file.
            pub const KEYS: &[&str] = &[$(stringify!($name)),+];

            /// Returns these settings, with those of `other` where they are not set.
            pub(super) fn or(self, other: Settings) -> Settings {
                Settings { $($name: self.$name.or(other.$name)),+ }
            }

            /// Returns these settings, with the defaults where they are not set.
            pub(super) fn resolve(self) -> Resolved {
                Resolved { $($name: settings!(@value self.$name $(, $default)?)),+ }
            }
        }
    };
}

/// Returns the environment variable of a setting.
fn variable(name: &str) -> String {
    format!("ROLLTOP_{}", name.to_ascii_uppercase())
}

/// Parses a default of the declaration. Every start parses all that are not set, so an invalid one is found by any
/// test.
fn default<T: FromStr<Err: fmt::Display>>(text: &str) -> T {
    text.parse().unwrap_or_else(|error| panic!("the default '{text}' is not valid: {error}"))
}

settings! {
    /// The address on which the HTTP API listens; port 0 takes a free port and prints it
    #[arg(value_name = "ADDRESS:PORT")]
    #[serde(default, deserialize_with = "text")]
    listen: (SocketAddr) = "127.0.0.1:8080",
    /// The certificate of the service (PEM), followed by those of its authorities, to serve https; read again when it
    /// changes [default: none, http]
    #[arg(value_name = "PATH")]
    tls_cert: (PathBuf),
    /// The private key of the certificate (PEM) [default: none, http]
    #[arg(value_name = "PATH")]
    tls_key: (PathBuf),
    /// `embedded`, or the address of a Redis or Valkey: redis://host:6379, redis+sentinel://host,host/master or
    /// redis+cluster://host,host; rediss for TLS
    #[arg(value_name = "STORE", hide_env_values = true)]
    #[serde(default, deserialize_with = "store")]
    store: (StoreChoice) = "embedded",
    /// The embedded store's data directory
    #[arg(value_name = "PATH")]
    data_dir: (PathBuf) = "data",
    /// The failures that an acknowledged increment survives in the embedded store: always, everysec or off
    #[arg(value_name = "WHEN")]
    #[serde(default, deserialize_with = "text")]
    durability: (Durability) = "everysec",
    /// The directory in which POST /v1/backup makes backups of the embedded store [default: none, backups cannot be
    /// made]
    #[arg(value_name = "PATH")]
    backup_dir: (PathBuf),
    /// Trust the system clock at the start, even if it is far ahead of the last recorded time
    #[arg(value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    trust_clock: (bool) = "false",
    /// The memory in bytes that the data of the embedded store may take; near it new subjects, boards, values and
    /// attributes are refused; 0 means 80 % of what the process may take, by its control groups and the machine
    #[arg(value_name = "BYTES")]
    memory_limit: (usize) = "0",
    /// The largest number of subjects of a ranked board in the embedded store; 0 for no limit
    #[arg(value_name = "N")]
    max_subjects: (usize) = "0",
    /// The largest number of boards; 0 for no limit
    #[arg(value_name = "N")]
    max_boards: (usize) = "0",
    /// The share of the reads of a board with a successor that the successor answers too, for comparison: from 0 to 1
    #[arg(value_name = "SHARE")]
    mirror_reads: (Share) = "0",
    /// The certificates to trust (PEM) when Redis is reached through rediss:// [default: none, the well-known
    /// authorities]
    #[arg(value_name = "PATH")]
    redis_ca: (PathBuf),
    /// The prefix of every key in Redis
    #[arg(value_name = "TEXT")]
    redis_prefix: (String) = "rolltop",
    /// Ask a Redis that keeps an append-only file to rewrite it once after each of its starts
    #[arg(value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    redis_rewrite_aof: (bool) = "true",
    /// The largest number of increments that may wait for Redis; beyond it a write gets status 503
    #[arg(value_name = "N")]
    queue: (usize) = "100000",
    /// `system`, or `simulated=<RFC 3339 time>` for tests and replays
    #[arg(value_name = "CLOCK")]
    #[serde(default, deserialize_with = "text")]
    clock: (ClockMode) = "system",
    /// The time by which an event may be ahead of the store's clock and still count as now
    #[arg(value_name = "DURATION")]
    max_skew: (Span) = "5s",
    /// The largest JSON body, in bytes
    #[arg(value_name = "BYTES")]
    max_body: (usize) = "8388608",
    /// The memory that all request bodies in progress may take together, in bytes; beyond it a request gets status 503
    /// [default: 268435456, or 8 times max_body if that is more]
    #[arg(value_name = "BYTES")]
    body_memory: (usize),
    /// The longest NDJSON line, in bytes
    #[arg(value_name = "BYTES")]
    max_line: (usize) = "65536",
    /// The origins, besides the service's own, whose pages may read without a key from a browser; `*` for any [default:
    /// none]
    #[arg(value_name = "ORIGIN", value_delimiter = ',')]
    cors_origins: (Vec<String>),
    /// The origins, besides the service's own, whose pages may send requests without a key that change something, if
    /// `anonymous` allows them; `*` for any [default: none]
    #[arg(value_name = "ORIGIN", value_delimiter = ',')]
    cors_write_origins: (Vec<String>),
    /// What callers without a key may do: none, all, or scopes such as view or read,write [default: all on a loopback
    /// address without anonymous_boards, hosts, proxies, TLS and keys, otherwise none]
    #[arg(value_name = "SCOPES")]
    #[serde(default, deserialize_with = "text")]
    anonymous: (AnonymousScopes),
    /// The boards that callers without a key may use, such as hot-posts or shop-* [default: *]
    #[arg(value_name = "PATTERN", value_delimiter = ',')]
    anonymous_boards: (Vec<BoardPattern>),
    /// The ids of keys that are not valid, also if an old backup brings them back [default: none]
    #[arg(value_name = "ID", value_delimiter = ',')]
    revoked_keys: (Vec<KeyId>),
    /// The audience that tokens have to name as `aud`
    #[arg(value_name = "TEXT")]
    token_audience: (String) = "rolltop",
    /// The longest time until a token expires
    #[arg(value_name = "DURATION")]
    token_max_life: (Span) = "24h",
    /// The host names, besides localhost, for which the service answers if it listens on the loopback interface; name
    /// those under which a proxy on the same machine forwards requests [default: none]
    #[arg(value_name = "HOST", value_delimiter = ',')]
    hosts: (Vec<String>),
    /// The addresses and networks of the proxies that say in `proxy_header` where a request comes from, such as
    /// 127.0.0.1 or 10.0.0.0/8 [default: none, each connection is a client]
    #[arg(value_name = "NETWORK", value_delimiter = ',')]
    #[serde(default, deserialize_with = "texts")]
    trusted_proxies: (Vec<Network>),
    /// The header in which trusted proxies list the addresses of clients: x-forwarded-for, forwarded, or another with a
    /// list of addresses
    #[arg(value_name = "HEADER")]
    #[serde(default, deserialize_with = "text")]
    proxy_header: (ProxyHeader) = "x-forwarded-for",
    /// How fast each address (of IPv6, each network of 64 bits) may send requests through this instance, such as 200/s
    /// or 6000/m burst 1000; beyond it a request gets status 429 [default: no limit]
    #[arg(value_name = "RATE")]
    #[serde(default, deserialize_with = "text")]
    address_requests: (Rate),
    /// The same for increments, samples and events; streams of NDJSON are slowed down [default: no limit]
    #[arg(value_name = "RATE")]
    #[serde(default, deserialize_with = "text")]
    address_items: (Rate),
    /// The number of live streams and exports that each address may have open at a time
    #[arg(value_name = "N")]
    address_streams: (u32) = "1000",
    /// What the web page at / offers: `off`, `read`, or `full`, which also changes boards as far as its key, or
    /// `anonymous`, allows it [default: full on a loopback address, otherwise read]
    #[arg(value_name = "MODE")]
    #[serde(default, deserialize_with = "text")]
    console: (ConsoleMode),
    /// Whether there is an API explorer at /swagger-ui/, a page that can execute every operation [default: true with
    /// the console `full`, otherwise false]
    #[arg(value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    explorer: (bool),
    /// The time after which a stream that sends nothing is ended
    #[arg(value_name = "DURATION")]
    stream_idle_timeout: (Span) = "5m",
    /// The time for which a client may use a response of a read without asking again, in whole seconds [default: none,
    /// it asks each time and gets 304 if nothing has changed]
    #[arg(value_name = "DURATION")]
    max_age: (Span),
    /// The number of threads that serve HTTP; 0 means one per processor
    #[arg(value_name = "N")]
    workers: (usize) = "0",
    /// The time to wait at SIGTERM for requests in progress
    #[arg(value_name = "DURATION")]
    shutdown_timeout: (Span) = "20s",
    /// `text` or `json`
    #[arg(value_name = "FORMAT")]
    #[serde(default, deserialize_with = "text")]
    log_format: (LogFormat) = "text",
}

/// Deserializes a value written as text, so that the flag and the file share one parser and one message.
fn text<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|error| serde::de::Error::custom(format!("'{text}': {error}")))
}

/// Deserializes a list of values written as texts.
fn texts<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let parse = |text: &String| text.parse().map_err(|error| serde::de::Error::custom(format!("'{text}': {error}")));
    Vec::<String>::deserialize(deserializer)?.iter().map(parse).collect::<Result<_, _>>().map(Some)
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

/// The scopes of callers without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnonymousScopes(pub Scopes);

impl FromStr for AnonymousScopes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let scopes = match text {
            "none" => Ok(Scopes::NONE),
            "all" => Ok(Scopes::from_iter([Scope::Admin])),
            _ => text.split(',').map(|name| name.trim().parse::<Scope>()).collect(),
        };
        scopes.map(Self).map_err(|error| format!("expected none, all, or scopes separated by commas; {error}"))
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
