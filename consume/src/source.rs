//! A source of the service: asking how far it is counted, and sending what follows.

use std::collections::BTreeMap;
use std::time::Duration;

use rolltop_client::{Error, Method, Service};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::log::After;

/// How long is waited for the answer to a portion.
const ANSWER: Duration = Duration::from_secs(60);

/// A source, or the fill of one of its boards.
#[derive(Clone, Debug)]
pub struct ServiceSource {
    service: Service,
    pub name: String,
    pub fill: Option<String>,
}

/// How far a source is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Reached {
    Start,
    At(u128),
}

/// What became of a portion.
#[derive(Debug, Deserialize)]
pub struct Receipt {
    pub accepted: u64,
    pub duplicates: u64,
    pub unmatched: u64,
    /// Number of events whose type no board counts.
    pub unknown: u64,
    pub rejected: Vec<RejectedEvent>,
    #[serde(default)]
    pub rejected_counts: BTreeMap<String, u64>,
    pub source: SourceProgress,
}

/// How far the source is.
#[derive(Debug, Deserialize)]
pub struct SourceProgress {
    /// `None` if no board counts it yet.
    pub reached: Option<Reached>,
    #[serde(default)]
    pub filled: bool,
    pub repeated: u64,
    pub waiting: u64,
    #[serde(default)]
    pub waiting_for: BTreeMap<String, u64>,
    pub left_out: Vec<String>,
}

/// An event that a board has rejected.
#[derive(Debug, Deserialize)]
pub struct RejectedEvent {
    /// The line of the event in the portion, from 1.
    pub line: Option<usize>,
    pub board: Option<String>,
    pub code: String,
    pub detail: String,
}

impl TryFrom<String> for Reached {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "start" => Ok(Self::Start),
            number => number.parse().map(Self::At).map_err(|_| format!("'{number}' is not a position")),
        }
    }
}

impl ServiceSource {
    pub fn new(service: Service, name: String, fill: Option<String>) -> Self {
        Self { service, name, fill }
    }

    /// Returns the source that all of its boards count.
    pub fn of_all_boards(&self) -> Self {
        Self { fill: None, ..self.clone() }
    }

    /// Asks how far the source is counted.
    pub async fn ask(&self) -> Result<Option<Reached>, Error> {
        let nothing = br#"{"events":[]}"#.to_vec();
        Ok(self.post(None, "application/json", nothing).await?.source.reached)
    }

    /// Sends lines that follow a position. Without any it is asked whether the source is there.
    pub async fn send(&self, after: After, lines: String) -> Result<Receipt, Error> {
        self.post(after, "application/x-ndjson", lines.into_bytes()).await
    }

    async fn post(&self, after: After, media_type: &'static str, body: Vec<u8>) -> Result<Receipt, Error> {
        let after = after.map_or_else(|| "start".to_owned(), |after| after.to_string());
        self.service
            .request::<Receipt>(Method::POST, "/v1/events")
            .parameter("source", &self.name)
            .parameter("after", after)
            .optional("fill", self.fill.as_ref())
            .bytes(media_type, body)
            .timeout(ANSWER)
            .await
    }

    /// Defines the source with these boards.
    pub async fn define(&self, boards: &[String]) -> Result<(), Error> {
        let path = format!("/v1/sources/{}", self.name);
        let defined = self.service.request::<Box<RawValue>>(Method::PUT, &path).json(&json!({"boards": boards}));
        defined.await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reached_is_read() {
        let reached = |text: &str| Reached::try_from(text.to_owned()).ok();
        assert_eq!(reached("start"), Some(Reached::Start));
        assert_eq!(reached("340282366920938463463374607431768211454"), Some(Reached::At(u128::MAX - 1)));
        assert_eq!(reached("-1"), None);
    }
}
