//! Configuration: flags take precedence over the environment, the environment over the file, and the file over
//! defaults. It is validated as a whole before anything starts.
//!
//! The default file, `config/rolltop.toml`, is part of the binary: without a file the same boards are defined.

mod file;
mod key_file;
mod key_sets;
mod key_table;
mod settings;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use file::{ConfigError, Problem};
pub use key_file::KeyFile;
use settings::AnonymousScopes;
pub use settings::{LogFormat, Settings, StoreChoice};

use crate::access::{BoardPatterns, Grant, KeyId, Rate, Scope, TokenRules};
use crate::board::{BoardName, Definition, Span};
use crate::http::{ConsoleMode, Network, ProxyHeader};
use crate::service::{ConfiguredKeys, PinnedRule, RuleName};
use crate::store::ClockMode;
use crate::store::embedded::Durability;

/// The default file with its comments, as in the repository.
pub const DEFAULT_FILE: &str = include_str!("../../config/rolltop.toml");

/// The path where a file is looked for if none is named.
const USUAL_PLACE: &str = "config/rolltop.toml";

/// The smallest number of times that `body_memory` has `max_body`: one client may take half of it, and a compressed
/// body takes up to three times its size while it arrives.
const BODIES_IN_MEMORY: usize = 8;

/// The files of the certificate of the service and of its key, in PEM format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// The complete configuration of the service.
#[derive(Clone, Debug)]
pub struct Config {
    pub listen: SocketAddr,
    /// The certificate and its key. If `None`, HTTP is served without TLS.
    pub tls: Option<TlsFiles>,
    pub store: StoreChoice,
    pub data_dir: PathBuf,
    pub durability: Durability,
    /// The directory of backups of the embedded store. If `None`, backups cannot be made.
    pub backup_dir: Option<PathBuf>,
    /// Whether to believe the system clock at the start, however far it is ahead of the last recorded time.
    pub trust_clock: bool,
    /// The memory that the data of the embedded store may take, in bytes. If `None`, four fifths of what the process
    /// may take.
    pub memory_limit: Option<usize>,
    /// The largest number of subjects of a ranked board in the embedded store. `None` if nothing limits it.
    pub max_subjects: Option<usize>,
    /// The largest number of boards. `None` if nothing limits it.
    pub max_boards: Option<usize>,
    /// The share of the reads of boards with a successor that the successor answers too, from 0 to 1.
    pub mirror_reads: f64,
    /// The certificates to trust when Redis is reached over TLS. If `None`, the well-known authorities.
    pub redis_ca: Option<PathBuf>,
    pub redis_prefix: String,
    pub redis_rewrite_aof: bool,
    /// The largest number of increments that may wait for Redis.
    pub queue: usize,
    pub clock: ClockMode,
    /// The allowed skew of events, in milliseconds.
    pub max_skew: i64,
    /// The largest JSON body, in bytes.
    pub max_body: usize,
    /// The memory that all request bodies in progress may take together, in bytes.
    pub body_memory: usize,
    /// The longest NDJSON line, in bytes.
    pub max_line: usize,
    /// The origins whose pages may read.
    pub cors_origins: Vec<String>,
    /// The origins whose pages may read and change everything.
    pub cors_write_origins: Vec<String>,
    pub hosts: Vec<String>,
    /// The proxies whose word for the address of a client is taken.
    pub trusted_proxies: Vec<Network>,
    /// The header in which they list it.
    pub proxy_header: ProxyHeader,
    /// How fast each address may send requests. `None` does not limit it.
    pub address_requests: Option<Rate>,
    /// The same for increments, samples and events.
    pub address_items: Option<Rate>,
    /// The number of streams and exports that each address may have open.
    pub address_streams: u32,
    /// What callers without a key may do.
    pub anonymous: Grant,
    /// Whether the configuration names what callers without a key may do.
    pub is_anonymous_explicit: bool,
    /// Whether requests that a proxy has forwarded are refused, because callers without a key may do everything by
    /// default.
    pub is_for_this_machine_only: bool,
    /// The keys of the file, and those that are revoked.
    pub keys: ConfiguredKeys,
    /// The files with the key sets (JWKS) of signing keys.
    pub key_sets: Vec<(KeyId, PathBuf)>,
    /// What the claims of tokens are checked against.
    pub token_rules: TokenRules,
    /// What the web page at `/` offers.
    pub console: ConsoleMode,
    /// Whether there is an API explorer at `/swagger-ui/`.
    pub explorer: bool,
    pub stream_idle_timeout: Duration,
    /// The time for which clients may use a response without asking again.
    pub max_age: Duration,
    /// The same for single boards.
    pub max_ages: Vec<(BoardName, Duration)>,
    /// The number of threads that serve HTTP.
    pub workers: usize,
    pub shutdown_timeout: Duration,
    pub log_format: LogFormat,
    /// The boards declared in the file.
    pub boards: Vec<(BoardName, Definition)>,
    /// The named rules of the file.
    pub rules: Vec<(RuleName, PinnedRule)>,
    /// The file whose keys are read again when it changes. `None` for the built-in configuration.
    pub key_file: Option<KeyFile>,
    /// The origin of the configuration, for messages.
    pub source: String,
}

impl Config {
    /// Reads the file (the named one, otherwise `config/rolltop.toml` if it exists, otherwise the built-in default) and
    /// applies the flags and environment variables in `given` on top.
    pub fn load(file: Option<&Path>, given: Settings) -> Result<Self, ConfigError> {
        let usual_place = Some(Path::new(USUAL_PLACE)).filter(|path| path.is_file());
        let Some(path) = file.or(usual_place) else {
            return Self::from_text("the built-in configuration", DEFAULT_FILE, given);
        };
        let text = file::read(path)?;
        let config = Self::from_text(&path.display().to_string(), &text, given.clone())?;
        let (key_file, keys) = KeyFile::new(path.to_owned(), given, text, &config)?;
        Ok(Self { keys, key_file: Some(key_file), ..config })
    }

    /// Does the same for the text of a file. `source` names the file in messages.
    pub fn from_text(source: &str, text: &str, given: Settings) -> Result<Self, ConfigError> {
        let file::Parsed { settings, boards, rules, max_ages, keys, verifiers, key_sets } = file::parse(source, text)?;
        given.store.as_ref().map_or(Ok(()), StoreChoice::check).map_err(ConfigError::Store)?;
        let s = given.or(settings).resolve();
        let is_loopback = s.listen.ip().to_canonical().is_loopback();
        let console = s.console.unwrap_or(if is_loopback { ConsoleMode::Full } else { ConsoleMode::Read });
        let tls = match [s.tls_cert, s.tls_key].map(|path| path.filter(|path| !path.as_os_str().is_empty())) {
            [Some(cert), Some(key)] => Some(TlsFiles { cert, key }),
            [None, None] => None,
            [Some(_), None] => return Err(ConfigError::Tls { given: "tls_cert", missing: "tls_key" }),
            [None, Some(_)] => return Err(ConfigError::Tls { given: "tls_key", missing: "tls_cert" }),
        };
        let is_for_this_machine_only = is_loopback
            && s.anonymous.is_none()
            && s.hosts.as_ref().is_none_or(Vec::is_empty)
            && s.trusted_proxies.as_ref().is_none_or(Vec::is_empty)
            && tls.is_none()
            && keys.is_empty()
            && s.anonymous_boards.is_none();
        let anonymous = match s.anonymous {
            Some(AnonymousScopes(scopes)) => {
                let boards = s.anonymous_boards.map(BoardPatterns::from_iter).unwrap_or_else(BoardPatterns::all);
                Grant { scopes, boards }
            }
            None if is_for_this_machine_only => Grant::all(),
            None => Grant::none(),
        };
        if anonymous.scopes.allows(Scope::Admin) && !anonymous.boards.is_all() {
            return Err(ConfigError::AnonymousBoards);
        }
        let max_body = s.max_body;
        let least = max_body.saturating_mul(BODIES_IN_MEMORY);
        let body_memory = s.body_memory.unwrap_or_else(|| least.max(256 << 20));
        if body_memory < least {
            return Err(ConfigError::BodyMemory { body_memory, least, max_body });
        }
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Config {
            listen: s.listen,
            tls,
            store: s.store,
            data_dir: s.data_dir,
            durability: s.durability,
            backup_dir: s.backup_dir.filter(|path| !path.as_os_str().is_empty()),
            trust_clock: s.trust_clock,
            memory_limit: unless_zero(s.memory_limit),
            max_subjects: unless_zero(s.max_subjects),
            max_boards: unless_zero(s.max_boards),
            mirror_reads: s.mirror_reads.0,
            redis_ca: s.redis_ca.filter(|path| !path.as_os_str().is_empty()),
            redis_rewrite_aof: s.redis_rewrite_aof,
            redis_prefix: s.redis_prefix,
            queue: s.queue,
            clock: s.clock,
            max_skew: s.max_skew.approximate_millis(),
            max_body,
            body_memory,
            max_line: s.max_line,
            cors_origins: s.cors_origins.unwrap_or_default(),
            cors_write_origins: s.cors_write_origins.unwrap_or_default(),
            hosts: s.hosts.unwrap_or_default(),
            trusted_proxies: s.trusted_proxies.unwrap_or_default(),
            proxy_header: s.proxy_header,
            address_requests: s.address_requests,
            address_items: s.address_items,
            address_streams: s.address_streams,
            anonymous,
            is_anonymous_explicit: s.anonymous.is_some(),
            is_for_this_machine_only,
            keys: ConfiguredKeys { keys, revoked: s.revoked_keys.into_iter().flatten().collect(), verifiers },
            key_sets,
            token_rules: TokenRules { audience: s.token_audience, max_life: s.token_max_life.approximate_millis() },
            console,
            explorer: s.explorer.unwrap_or(console == ConsoleMode::Full),
            max_age: s.max_age.map_or(Duration::ZERO, duration),
            max_ages: max_ages.into_iter().map(|(board, age)| (board, duration(age))).collect(),
            stream_idle_timeout: duration(s.stream_idle_timeout),
            workers: unless_zero(s.workers).unwrap_or_else(processors),
            shutdown_timeout: duration(s.shutdown_timeout),
            log_format: s.log_format,
            boards,
            rules,
            key_file: None,
            source: source.to_owned(),
        })
    }
}

/// Returns a limit; 0 means that there is none.
fn unless_zero(limit: usize) -> Option<usize> {
    Some(limit).filter(|limit| *limit > 0)
}

fn duration(span: Span) -> Duration {
    Duration::from_millis(span.approximate_millis().unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config, ConfigError> {
        Config::from_text("test.toml", text, Settings::default())
    }

    /// Returns the text with every commented-out line enabled that sets a key or begins a table.
    fn switched_on(text: &str) -> String {
        let is_key = |key: &str| key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let sets = |line: &str| line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| is_key(key));
        let line = |line: &str| format!("{}\n", line.strip_prefix("# ").filter(|line| sets(line)).unwrap_or(line));
        text.split_inclusive('\n').map(|text| line(text.trim_end_matches('\n'))).collect()
    }

    #[test]
    fn the_built_in_file_is_valid_and_shows_the_defaults() {
        let config = load(DEFAULT_FILE).unwrap();
        assert_eq!((config.boards.len(), config.rules.len()), (5, 0));
        // Every commented-out setting, enabled, must be the default that it documents.
        let (settings, boards) = DEFAULT_FILE.split_once("# --- Boards").unwrap();
        let settings = switched_on(settings);
        assert!(settings.contains("\nmax_skew = \"5s\"\n"));
        let same = load(&format!("{settings}# --- Boards{boards}")).unwrap();
        assert_eq!(format!("{same:?}"), format!("{config:?}"));
        // Every commented-out board and rule must be valid.
        let examples = load(&switched_on(&format!("# {boards}"))).unwrap();
        assert_eq!((examples.boards.len(), examples.rules.len()), (19, 1));
    }

    #[test]
    fn the_built_in_file_explains_every_key_of_a_board_and_has_an_example_of_it() {
        let (_, boards) = DEFAULT_FILE.split_once("# --- Boards").unwrap();
        let (boards, _) = boards.split_once("# --- Rules").unwrap();
        for key in Definition::KEYS {
            assert!(boards.contains(&format!("\n#   {key} ")), "config/rolltop.toml does not explain '{key}'");
            let is_example = |line: &str| line.trim_start_matches("# ").starts_with(&format!("{key} = "));
            assert!(boards.lines().any(is_example), "config/rolltop.toml has no example of '{key}'");
        }
    }

    #[test]
    fn flags_override_the_file() {
        let given = Settings { listen: Some("0.0.0.0:1".parse().unwrap()), ..Settings::default() };
        let config = Config::from_text("f", "listen = \"127.0.0.1:2\"\nqueue = 7", given).unwrap();
        assert_eq!((config.listen.port(), config.queue), (1, 7));
    }

    #[test]
    fn the_age_of_responses_may_differ_by_board() {
        let config = load("max_age = \"2s\"\n[max_ages]\nhot-posts = \"1m\"\n").unwrap();
        let board = BoardName::parse("hot-posts").unwrap();
        assert_eq!((config.max_age.as_secs(), config.max_ages), (2, vec![(board, Duration::from_secs(60))]));
        assert_eq!(load("").unwrap().max_age, Duration::ZERO);
    }

    #[test]
    fn store_addresses_are_validated_and_never_quoted() {
        for text in ["redis+cluster://a,b:7", "rediss+sentinel://u:p@a/m", "rediss://:p@h:1/2"] {
            assert_eq!(
                load(&format!("store = \"{text}\"\nredis_ca = \"ca.pem\"")).unwrap().store,
                StoreChoice::Redis(text.to_owned())
            );
        }
        let given = Settings { store: Some("redis://u:hunter2@h:port".parse().unwrap()), ..Settings::default() };
        let error = Config::from_text("f", "", given).unwrap_err().to_string();
        assert!(error.contains("--store") && error.contains("the port is not a number"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn the_console_reads_only_by_default_on_other_addresses() {
        let mode = |text: &str| load(text).map(|config| config.console);
        assert_eq!(mode("").unwrap(), ConsoleMode::Full);
        assert_eq!(mode("listen = \"0.0.0.0:8080\"").unwrap(), ConsoleMode::Read);
        assert_eq!(mode("listen = \"[::1]:8080\"").unwrap(), ConsoleMode::Full);
        assert_eq!(mode("console = \"off\"").unwrap(), ConsoleMode::Off);
        assert_eq!(mode("listen = \"192.0.2.1:80\"\nconsole = \"full\"").unwrap(), ConsoleMode::Full);
    }

    #[test]
    fn the_memory_of_bodies_has_room_for_the_largest() {
        let memory = |text: &str| load(text).map(|config| config.body_memory);
        assert_eq!(memory("").unwrap(), 256 << 20);
        assert_eq!(memory("max_body = 1_000_000_000").unwrap(), 8_000_000_000);
        assert_eq!(memory("max_body = 1_000\nbody_memory = 8_000").unwrap(), 8_000);
        let error = memory("max_body = 1_000\nbody_memory = 7_999").unwrap_err().to_string();
        assert!(error.contains("'7999'") && error.contains("at least 8000"), "{error}");
    }

    #[test]
    fn the_explorer_is_there_by_default_where_the_console_may_change_boards() {
        for (text, explorer) in [
            ("", true),
            ("console = \"read\"", false),
            ("console = \"off\"", false),
            ("listen = \"0.0.0.0:8080\"", false),
            ("explorer = false", false),
            ("listen = \"0.0.0.0:8080\"\nconsole = \"off\"\nexplorer = true", true),
        ] {
            assert_eq!(load(text).unwrap().explorer, explorer, "{text}");
        }
    }

    #[test]
    fn backups_and_trust_clock_are_off_by_default() {
        let config = load("").unwrap();
        assert_eq!((config.backup_dir, config.trust_clock), (None, false));
        let config = load("backup_dir = \"/var/backups\"\ntrust_clock = true\n").unwrap();
        assert_eq!((config.backup_dir, config.trust_clock), (Some("/var/backups".into()), true));
        // A flag overrides the file.
        let given = Settings { backup_dir: Some("".into()), trust_clock: Some(false), ..Settings::default() };
        let config = Config::from_text("f", "backup_dir = \"b\"\ntrust_clock = true\n", given).unwrap();
        assert_eq!((config.backup_dir, config.trust_clock), (None, false));
    }

    #[test]
    fn errors_name_line_and_key() {
        for (text, line, says) in [
            ("listen = \"127.0.0.1:2\"\nlisten2 = 3\n", 2, "listen2"),
            ("listen = 8080\n", 1, "listen"),
            ("\nlisten = \"nowhere\"\n", 2, "nowhere"),
            ("store = \"mysql://u:hunter2@x\"\n", 1, "store: a store is 'embedded' or the address of a Redis"),
            ("durability = \"maybe\"\n", 1, "maybe"),
            ("clock = \"simulated=yesterday\"\n", 1, "yesterday"),
            ("log_format = \"xml\"\n", 1, "xml"),
            ("console = \"some\"\n", 1, "the console is 'off', 'read' or 'full'"),
            ("trusted_proxies = [\"10.0.0.1/8\"]\n", 1, "'10.0.0.1/8': expected an address or a network"),
            ("backup_dir = 3\n", 1, "backup_dir"),
            ("\ntrust_clock = \"yes\"\n", 2, "trust_clock"),
            (
                "[boards.b]\nmetric = \"COUNT(x, a, b)\"\nslot = \"1h\"\n",
                2,
                "expected a duration or all, found 'x' at column 7",
            ),
            ("[boards.b]\nmetric = \"COUNT(1h, a, b)\"\n\nslot = \"7m\"\n", 4, "slot"),
            ("[boards.b]\nmetric = \"COUNT(90m, a, b)\"\nslot = \"1h\"\n", 2, "metric"),
            ("[boards.b]\nmetric = \"COUNT(1h, a, b)\"\nslot = \"1h\"\ntimezone = \"Mars\"\n", 4, "Mars"),
            ("[boards.b]\nmetric = \"COUNT(1h, a, b)\"\nslot = \"1h\"\ndecimals = 12\n", 4, "12"),
            ("[boards.b]\nmetric = \"COUNT(1h, a, b)\"\nslot = \"1h\"\nshards = 65\n", 4, "1 to 64"),
            (
                "[boards.b]\nmetric = \"COUNT(1h, a, b)\"\nslot = \"1m\"\nwindows = [\"7d/6h\", \"1d\"]\n",
                4,
                "'1d' has no slot; expected a window and a slot, such as 7d/6h, or all",
            ),
            (
                "[boards.b]\nmetric = \"COUNT(1h, a, b)\"\n\nslot = \"1m\"\nwindows = [\"60m/1m\"]\n",
                5,
                "must not have two windows of one length",
            ),
            ("[boards.Upper]\nmetric = \"COUNT(1h, a, b)\"\nslot = \"1h\"\n", 1, "Upper"),
            ("[boards.b]\nslot = \"1h\"\n", 1, "metric"),
            ("boards = [\n", 1, "unclosed array"),
            (
                "[rules.r]\n\nwhen = \"COUNT(likes, a, b) > 3\"\n",
                3,
                "expected a duration or all, found 'likes' at column 7",
            ),
            ("[rules.r]\nwhen = \"amount >\"\n", 2, "found the end at column 9"),
            ("[rules.r]\nif = \"amount > 3\"\n", 2, "unknown field `if`"),
            ("[rules.r]\n", 1, "when"),
            ("[rules.r]\nwhen = \"amount > 3\"\nboards = [\"A\"]\n", 3, "boards: "),
            ("[max_ages]\n\nUpper = \"5s\"\n", 3, "max_ages.Upper"),
            ("[max_ages]\nb = \"soon\"\n", 2, "b: "),
            ("max_age = 5\n", 1, "max_age"),
            ("[rules]\nr = \"amount > 3\"\n", 2, "expected a table [rules.<name>] with 'when' and 'boards'"),
            ("[boards]\nb = 5\n", 2, "expected a definition with 'metric'"),
            ("\n[rules.Upper]\nwhen = \"amount > 3\"\n", 2, "rules.Upper: a rule's name"),
            ("[boards.b]\nmetric = \"COUNT(1h, a, b)\"\nslot = \"1h\"\nkeep = \"2h\"\n", 4, "ranked = false"),
            ("[boards.b]\nmetric = \"COUNT(1h, a, b)\"\nslot = \"1h\"\nmin_samples = 5\n", 4, "AVG"),
            (
                "[boards.b]\nmetric = \"COUNT(1h, a, b)\"\nslot = \"1m\"\nranked = false\nkeep = \"30m\"\n",
                5,
                "shorter than the window",
            ),
        ] {
            let error = load(text).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
            let ConfigError::Wrong { problems, .. } = &error else { panic!("{text}: {error}") };
            assert_eq!(problems[0].line, line, "{text}: {error}");
            assert!(error.to_string().contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn boards_may_have_several_windows() {
        let text = "[boards.b]\nmetric = \"COUNT(24h, a, b)\"\nslot = \"1h\"\nwindows = [\"1h/1m\", \"all\"]\n";
        let windows = &load(text).unwrap().boards[0].1.windows;
        assert_eq!(windows.iter().map(ToString::to_string).collect::<Vec<_>>(), ["1h/1m", "all"]);
    }

    #[test]
    fn rules_are_parsed_with_their_names() {
        let text = "[rules.many-logins]\nwhen = \"count(30m,login,device_id)>3\"\nboards = [\"logins\"]\n";
        let config = load(text).unwrap();
        let rules: Vec<_> =
            config.rules.iter().map(|(name, rule)| format!("{name}: {} {:?}", rule.rule, rule.boards)).collect();
        assert_eq!(rules, ["many-logins: COUNT(30m, login, device_id) > 3 [BoardName(\"logins\")]"]);
        assert_eq!(load("").unwrap().rules, []);
    }

    #[test]
    fn everybody_may_do_everything_only_where_no_other_machine_is_expected() {
        for (text, is_open) in [
            ("", true),
            ("trusted_proxies = []", true),
            ("trusted_proxies = [\"127.0.0.1\"]", false),
            ("tls_cert = \"a.pem\"\ntls_key = \"a.key\"", false),
            ("hosts = [\"a.example\"]", false),
            ("listen = \"0.0.0.0:8080\"", false),
        ] {
            let config = load(text).unwrap();
            assert_eq!(
                (config.is_for_this_machine_only, config.anonymous == Grant::all()),
                (is_open, is_open),
                "{text}"
            );
        }
        let explicit = load("trusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]\nanonymous = \"all\"").unwrap();
        assert!(explicit.anonymous == Grant::all() && explicit.trusted_proxies.len() == 2);
    }

    #[test]
    fn tls_needs_both_files() {
        let files = TlsFiles { cert: "a.pem".into(), key: "a.key".into() };
        assert_eq!(load("tls_cert = \"a.pem\"\ntls_key = \"a.key\"\n").unwrap().tls, Some(files));
        assert_eq!(load("tls_cert = \"\"\ntls_key = \"\"\n").unwrap().tls, None);
        for (text, says) in [
            ("tls_cert = \"a.pem\"\n", "tls_key: not set, but tls_cert is"),
            ("tls_cert = \"\"\ntls_key = \"a.key\"\n", "tls_cert: not set, but tls_key is"),
        ] {
            let error = load(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn all_invalid_boards_are_reported_together() {
        let text = "[boards.a]\nmetric = \"COUNT(1h, a, b)\"\nslot = \"7m\"\n[boards.b]\nmetric = \"COUNT(90m, a, b)\"\nslot = \"1h\"\n";
        let ConfigError::Wrong { problems, .. } = load(text).unwrap_err() else { panic!() };
        assert_eq!(problems.iter().map(|p| p.line).collect::<Vec<_>>(), [3, 5]);
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Config::load(Some(Path::new("no/such.toml")), Settings::default()).unwrap_err();
        assert!(error.to_string().contains("no/such.toml"));
    }
}
