//! Where the topics are, and how it is proved to the brokers who this is.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use krafka::auth::{AuthConfig, TlsConfig};
use krafka::{Kafka, KrafkaError};
use serde::Deserialize;

use super::super::LogError;
use super::topics::{MAX_TOPIC, TopicPattern, is_topic};
use crate::variables::with_variables;

/// How long is waited for a connection, and for an answer.
const CONNECT: Duration = Duration::from_secs(10);
const REQUEST: Duration = Duration::from_secs(30);
/// The largest number of names and patterns.
const MAX_PATTERNS: usize = 64;
/// How long the name of a source with `topics` may be, so that half of a name is left for the topic.
const MAX_NAME: usize = 50;

/// Where the topics are.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KafkaConfig {
    /// The brokers to begin with, `host:port`, with commas between them.
    pub(super) brokers: String,
    pub(super) topic: Option<String>,
    /// The topics, in place of one.
    #[serde(default)]
    pub(super) topics: Vec<TopicPattern>,
    /// The partitions to read; by default all.
    pub(super) partitions: Option<Vec<i32>>,
    /// The consumer group to which it is said how far partitions are counted; none by default.
    pub group: Option<String>,
    /// How to prove who this is. By default it is not proved.
    sasl: Option<Sasl>,
    tls: Option<Tls>,
    /// Topics of dead letters, which no pattern includes.
    #[serde(skip)]
    pub excluded: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sasl {
    #[serde(default)]
    mechanism: Mechanism,
    #[serde(default)]
    user: String,
    /// The password, or the token of `oauthbearer`.
    password: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
enum Mechanism {
    #[default]
    #[serde(rename = "plain")]
    Plain,
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
    #[serde(rename = "scram-sha-512")]
    ScramSha512,
    #[serde(rename = "oauthbearer")]
    OauthBearer,
}

/// TLS; an empty table trusts the well-known authorities.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tls {
    ca: Option<PathBuf>,
    /// What proves who this is: a certificate and its key, as PEM.
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// Returns an error with its text alone, which says already what has caused it.
pub fn plain(error: KrafkaError) -> anyhow::Error {
    anyhow::Error::msg(error.to_string())
}

impl KafkaConfig {
    /// Returns whether the configuration of the source with this name, and with such a topic of dead letters, can be used.
    pub fn check(&self, name: &str, dead_letters: Option<&str>) -> anyhow::Result<()> {
        if let Some(topic) = self.topic.as_deref().into_iter().chain(dead_letters).find(|topic| !is_topic(topic)) {
            bail!("'{topic}' is not the name of a topic: up to {MAX_TOPIC} of the characters A-Z a-z 0-9 . _ -");
        }
        if let Some(topic) = dead_letters.filter(|topic| self.names(topic)) {
            bail!(
                "'{topic}' cannot be a topic of the source and of its dead letters: they would be read again and again"
            );
        }
        match (&self.topic, self.topics.as_slice()) {
            (Some(_), []) => {}
            (None, [_, ..]) => {
                if self.topics.len() > MAX_PATTERNS {
                    bail!("'topics' are at most {MAX_PATTERNS}");
                }
                if name.len() > MAX_NAME {
                    bail!(
                        "the name of a source with 'topics' has at most {MAX_NAME} characters: those of topics follow"
                    );
                }
                if self.partitions.is_some() {
                    bail!("'partitions' goes with 'topic', and not with 'topics'");
                }
            }
            _ => bail!("it must have 'topic' or 'topics'"),
        }
        if self.tls.as_ref().is_some_and(|tls| tls.certificate.is_some() != tls.key.is_some()) {
            bail!("'tls.certificate' and 'tls.key' go together");
        }
        if self.group.as_ref().is_some_and(String::is_empty) {
            bail!("'group' is empty: it is the name of a consumer group");
        }
        Ok(())
    }

    /// Returns whether a topic is named, without a pattern.
    pub(super) fn names(&self, topic: &str) -> bool {
        self.topic.as_deref() == Some(topic) || self.topics.iter().any(|pattern| pattern.name() == Some(topic))
    }

    /// Returns whether the topics may become fewer: by patterns and lists they come and go.
    pub fn may_shrink(&self) -> bool {
        self.topic.is_none()
    }

    pub(super) async fn connect(&self) -> Result<Kafka, LogError> {
        self.connect_within(REQUEST).await
    }

    /// Connects, with a bound for each answer.
    pub(super) async fn connect_within(&self, answer: Duration) -> Result<Kafka, LogError> {
        let security = self.security().map_err(|error| LogError::Stop(error.context("[source.kafka]")))?;
        let client = Kafka::builder(self.brokers.clone()).client_id("rolltop-consume").security(security);
        let client = client.connect_timeout(CONNECT).request_timeout(answer).connect().await;
        client.map_err(|error| {
            // What a broker says that wants TLS is taken for the length of an answer.
            let wants_tls = self.tls.is_none() && error.to_string().contains("InvalidLength");
            let hint = if wants_tls { ", perhaps because they want TLS and 'tls' is missing" } else { "" };
            LogError::Later(plain(error).context(format!("cannot connect to {}{hint}", self.brokers)))
        })
    }

    fn security(&self) -> anyhow::Result<AuthConfig> {
        let security = match &self.sasl {
            None => AuthConfig::plaintext(),
            Some(Sasl { mechanism, user, password }) => {
                let user = with_variables(user).context("'sasl.user'")?;
                let password = with_variables(password).context("'sasl.password'")?;
                match mechanism {
                    Mechanism::Plain => AuthConfig::sasl_plain(user, password),
                    Mechanism::ScramSha256 => AuthConfig::sasl_scram_sha256(user, password),
                    Mechanism::ScramSha512 => AuthConfig::sasl_scram_sha512(user, password),
                    Mechanism::OauthBearer => AuthConfig::sasl_oauthbearer(password),
                }
            }
        };
        let Some(Tls { ca, certificate, key }) = &self.tls else { return Ok(security) };
        let text = |path: &PathBuf| path.display().to_string();
        let mut tls = TlsConfig::new();
        if let Some(ca) = ca {
            tls = tls.with_ca_cert(text(ca));
        }
        if let Some((certificate, key)) = certificate.as_ref().zip(key.as_ref()) {
            tls = tls.with_client_cert(text(certificate), text(key));
        }
        Ok(security.with_tls(tls))
    }
}
