//! The configuration: the service, and the logs that are its sources.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use rolltop::access::BoardPattern;
use rolltop::board::SourceName;
use rolltop_client::Service;
use serde::Deserialize;

use crate::choices::{Begin, Decision};
use crate::dead_letters::{DeadLetterPlace, DeadLetterTopic};
use crate::events::EventConfig;
use crate::log::{FileConfig, KafkaConfig, LogConfig, NatsConfig, RedisConfig};
use crate::path::MemberPath;
use crate::schemas::{RegistryConfig, Schemas};
use crate::variables::with_variables;

/// The environment variable with the key to send to the service.
const KEY: &str = "ROLLTOP_KEY";
/// That with its URL, and the service that it is without one.
const URL: &str = "ROLLTOP_URL";
const LOCAL: &str = "http://127.0.0.1:8080";

/// What the program reads and where it sends it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(default)]
    pub service: ServiceConfig,
    /// Where `/metrics` and `/readyz` are served; nowhere by default.
    pub listen: Option<SocketAddr>,
    #[serde(rename = "source")]
    pub sources: Vec<SourceConfig>,
}

/// The running service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceConfig {
    /// By default that of the environment variable `ROLLTOP_URL`, or of this machine.
    url: Option<String>,
    /// A file with the key to send, in place of the environment variable `ROLLTOP_KEY`.
    key_file: Option<PathBuf>,
    /// The certificates to trust, in place of the well-known authorities.
    ca: Option<PathBuf>,
}

/// A log, and the source of the service that it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// The name of the source. Each partition of a topic is a source of its own, whose name has its number and a part of the
    /// topic's id after this.
    pub name: String,
    /// The boards of the source, with which it is defined if the service does not know it.
    pub boards: Option<Vec<String>>,
    /// Where to begin if no board has counted anything of the log yet.
    #[serde(default)]
    pub begin: Begin,
    /// What to do about messages that make no event.
    #[serde(default)]
    pub on_unreadable: Decision,
    /// What to do if messages are missing that nothing has been counted of.
    #[serde(default)]
    pub on_gap: Decision,
    /// How long another program that reads the same log must not have counted anything until this one goes on in its place,
    /// in seconds.
    #[serde(default = "ten")]
    pub take_over: u64,
    /// The file or the topic to which messages are written that make no event, or whose events boards have rejected.
    pub dead_letters: Option<DeadLetterPlace>,
    file: Option<FileConfig>,
    redis: Option<RedisConfig>,
    pub kafka: Option<KafkaConfig>,
    nats: Option<NatsConfig>,
    /// The schema registry with which values are written. They are read as JSON.
    registry: Option<RegistryConfig>,
    /// How messages become events. By default a message is an event as the service takes it.
    #[serde(default)]
    pub event: EventConfig,
}

/// Returns a mistake with the number of its line, and without the line itself: it may have a password.
fn mistake(text: &str, error: &toml::de::Error) -> anyhow::Error {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    anyhow::anyhow!("line {}: {}", before.matches('\n').count() + 1, error.message())
}

fn ten() -> u64 {
    10
}

impl Config {
    /// Reads the file at this path.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        Self::parse(&text).with_context(|| shown.to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut config: Self = toml::from_str(text).map_err(|error| mistake(text, &error))?;
        if config.sources.is_empty() {
            bail!("there is no [[source]]: nothing would be read");
        }
        for (at, source) in config.sources.iter().enumerate() {
            let SourceConfig { name, .. } = source;
            // A partition adds to it.
            if name.len() > 100 || SourceName::parse(name).is_err() {
                bail!("'{name}' is not the name of a source: up to 100 of the characters A-Z a-z 0-9 . _ -");
            }
            if config.sources[..at].iter().any(|other| other.name == *name) {
                bail!("there are two sources with the name '{name}'");
            }
            let log = source.log()?;
            if source.registry.is_some() && !(log.has_bytes() && source.event.is_json()) {
                bail!(
                    "source '{name}': 'registry' is for kafka, nats, and redis with 'field', and makes JSON of values: so 'format' \
                     must be json"
                );
            }
            let has_times = !matches!(log, LogConfig::File(_));
            source.event.check(has_times).with_context(|| format!("source '{name}', [source.event]"))?;
            source.check_topics().with_context(|| format!("source '{name}', [source.kafka]"))?;
        }
        config.leave_out_dead_letters();
        Ok(config)
    }

    /// Has no pattern of topics include one of dead letters: they would be read and written without an end.
    fn leave_out_dead_letters(&mut self) {
        let topics = self.sources.iter().filter_map(|source| Some(source.dead_letter_topic()?.to_owned()));
        let topics: Vec<String> = topics.collect();
        self.sources
            .iter_mut()
            .filter_map(|source| source.kafka.as_mut())
            .for_each(|kafka| kafka.excluded.clone_from(&topics));
    }
}

impl SourceConfig {
    /// Returns which kind of log it is, and where.
    pub fn log(&self) -> anyhow::Result<LogConfig> {
        let file = self.file.clone().map(LogConfig::File);
        let redis = self.redis.clone().map(LogConfig::Redis);
        let kafka = self.kafka.clone().map(LogConfig::Kafka);
        let nats = self.nats.clone().map(LogConfig::Nats);
        let mut there = [file, redis, kafka, nats].into_iter().flatten();
        match (there.next(), there.next()) {
            (Some(log), None) => Ok(log),
            _ => bail!("source '{}' must have one of file, redis, kafka and nats", self.name),
        }
    }

    /// Returns the schemas with which values are written, if they are.
    pub fn schemas(&self) -> anyhow::Result<Option<Arc<Schemas>>> {
        let schemas = self.registry.as_ref().map(Schemas::new).transpose();
        Ok(schemas.with_context(|| format!("source '{}'", self.name))?.map(Arc::new))
    }

    /// Returns the topic to which dead letters are written, if it is one.
    pub fn dead_letter_topic(&self) -> Option<&str> {
        match &self.dead_letters {
            Some(DeadLetterPlace::Topic(DeadLetterTopic { topic })) => Some(topic),
            _ => None,
        }
    }

    fn check_topics(&self) -> anyhow::Result<()> {
        match (&self.kafka, self.dead_letter_topic()) {
            (None, Some(_)) => bail!("it is missing, and 'dead_letters' names a topic: other logs have a file of them"),
            (Some(kafka), topic) => kafka.check(&self.name, topic),
            (None, None) => Ok(()),
        }
    }

    /// Returns whether the source would have this board, if it is defined as here.
    pub fn is_for(&self, board: &str) -> bool {
        let is = |text: &String| text.parse().is_ok_and(|pattern: BoardPattern| pattern.includes(board));
        self.boards.as_ref().is_none_or(|boards| boards.iter().any(is))
    }

    /// Returns where a line says the time of its writer.
    pub fn clock(&self) -> Option<MemberPath> {
        self.file.as_ref()?.clock.clone()
    }
}

impl ServiceConfig {
    /// Returns the service. Nothing is sent yet.
    pub fn connect(&self) -> anyhow::Result<Service> {
        let set = |variable| std::env::var(variable).ok().filter(|text: &String| !text.trim().is_empty());
        let url = match &self.url {
            Some(url) => with_variables(url)?,
            None => set(URL).unwrap_or_else(|| LOCAL.to_owned()),
        };
        // What to do after an error is decided where it is known what was read.
        let mut builder = Service::builder(&url).repeat_for(Duration::ZERO);
        let read =
            |path: &Path| std::fs::read(path).with_context(|| format!("[service] cannot read {}", path.display()));
        let key = match &self.key_file {
            Some(path) => Some(String::from_utf8(read(path)?).context("[service] key_file is not text")?),
            None => set(KEY),
        };
        if let Some(key) = key {
            builder = builder.key(&key);
        }
        if let Some(path) = &self.ca {
            builder = builder.certificates(&read(path)?);
        }
        builder.build().context("[service]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[[source]]\nname = \"a\"\nfile.path = \"a.log\"\n";

    #[test]
    fn what_is_missing_has_defaults() {
        let config = Config::parse(FILE).unwrap();
        assert_eq!((config.service.url, config.listen), (None, None));
        let source = &config.sources[0];
        assert_eq!((source.begin, source.on_gap, source.boards.as_ref()), (Begin::Earliest, Decision::Pass, None));
    }

    fn kafka(topics: &str) -> String {
        format!(
            "[[source]]\nname = \"k\"\nkafka.brokers = \"b\"\n{}{topics}",
            if topics.is_empty() { "" } else { "kafka." }
        )
    }

    #[test]
    fn patterns_leave_out_the_dead_letters_of_all_sources() {
        let text = format!("{}\ndead_letters.topic = \"likes.dead\"\n", kafka("topics = [\"likes*\"]"));
        let other = kafka("topics = [\"*\"]").replace("\"k\"", "\"other\"");
        let config = Config::parse(&(text + &other)).unwrap();
        for source in config.sources {
            assert_eq!(source.kafka.unwrap().excluded, ["likes.dead"]);
        }
    }

    #[test]
    fn a_mistake_is_named_without_secrets() {
        let text = kafka("topic = \"t\"\nkafka.sasl = { mechanism = \"none\", password = \"hunter2\" }");
        let error = format!("{:#}", Config::parse(&text).unwrap_err());
        assert!(error.starts_with("line 5: unknown variant `none`") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, needle) in [
            ("", "missing field `source`"),
            ("source = []", "no [[source]]"),
            ("[[source]]\nname = \"a/b\"\nfile.path = \"x\"", "'a/b' is not the name"),
            ("[[source]]\nname = \"a\"", "one of"),
            (&format!("{FILE}{FILE}"), "two sources"),
            (&format!("{FILE}topic = \"x\""), "topic"),
            (&format!("{FILE}redis.url = \"redis://x\"\nredis.stream = \"s\""), "one of"),
            (&format!("{FILE}begin = \"oldest\""), "'oldest' is not where a log can begin"),
            (&format!("{FILE}event.format = \"xml\""), "xml"),
            (
                &format!("{FILE}event = {{ type = \"x\", at = \"t\" }}\nregistry.url = \"http://x\""),
                "'registry' is for",
            ),
            (&format!("{FILE}event.type = \"like\""), "'at' is missing"),
            (&format!("{FILE}event = {{ format = \"csv\", at = \"t\", type = \"x\" }}"), "columns"),
            (&format!("{FILE}dead_letters = 7"), "a path, or { topic"),
            (&format!("{FILE}dead_letters = {{ topic = \"a.dead\" }}"), "other logs have a file"),
            (&kafka(""), "'topic' or 'topics'"),
            (&kafka("topics = []"), "'topic' or 'topics'"),
            (&kafka("topic = \"t\"\nkafka.topics = [\"u\"]"), "'topic' or 'topics'"),
            (&kafka("topic = \"t*\""), "'t*' is not the name of a topic"),
            (&kafka("topics = [\"a*b\"]"), "'a*b' is not a pattern of topics"),
            (&kafka("topics = [\"a\"]\nkafka.partitions = [0]"), "'partitions' goes with 'topic'"),
            (&kafka("topics = [\"a\"]").replace("\"k\"", &format!("\"{}\"", "k".repeat(51))), "at most 50"),
            (&kafka(&format!("topics = [{}]", "\"a\",".repeat(65))), "at most 64"),
            (&kafka("topic = \"t\"\nkafka.group = \"\""), "'group' is empty"),
            (&kafka("topic = \"t\"\nkafka.tls.key = \"k.pem\""), "go together"),
            (
                &kafka("topic = \"t\"\ndead_letters.topic = \"t\""),
                "'t' cannot be a topic of the source and of its dead",
            ),
            (&kafka("topics = [\"a\", \"t\"]\ndead_letters.topic = \"t\""), "'t' cannot be a topic of the source"),
            (&kafka("topic = \"t\"\ndead_letters.topic = \"\""), "'' is not the name of a topic"),
        ] {
            let error = format!("{:#}", Config::parse(text).unwrap_err());
            assert!(error.contains(needle), "{text}: {error}");
        }
    }
}
