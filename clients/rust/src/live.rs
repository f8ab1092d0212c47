//! Rankings that are followed.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::try_unfold;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::answers::{Attributes, Line, Ranking, Tie, Window, if_present};
use crate::connection::Sent;
use crate::pause::pause;
use crate::request::Plan;
use crate::text_lines::Lines;
use crate::{Error, Request, Result};

/// The time in which a stream must begin.
const FIRST: Duration = Duration::from_secs(10);
/// The time after which a stream without a byte is abandoned. The service sends a comment every 15 seconds.
const SILENCE: Duration = Duration::from_secs(40);

impl Request<Ranking> {
    /// Follows the first lines of the ranking: returns them now and after each change, for ever. The limit of the
    /// request may be 10 (the default), 25, 50 or 100.
    ///
    /// It connects again after breaks and restarts of the service. It ends with an error if the service refuses it,
    /// such as when the board is removed.
    pub fn live(self) -> impl Stream<Item = Result<Ranking>> + Send {
        let followed = self.plan.map(|mut plan| {
            let end = plan.path.len() - plan.path.strip_suffix("rankings").map_or(0, |_| "rankings".len());
            plan.path.replace_range(end.., "stream");
            Followed { plan, ranking: None, last_id: String::new(), attempt: 0, lines: None }
        });
        try_unfold(followed, |followed| async {
            let mut followed = followed?;
            Ok(Some((followed.next().await?, Ok(followed))))
        })
    }
}

/// A ranking that is followed.
struct Followed {
    plan: Plan,
    ranking: Option<Ranking>,
    /// What to send when the stream is opened again, so that nothing comes that has not changed.
    last_id: String,
    /// The number of failures since something came.
    attempt: u32,
    lines: Option<Lines>,
}

/// A change of a ranking.
#[derive(Deserialize)]
struct Change {
    window: Window,
    as_of: chrono::DateTime<chrono::Utc>,
    retiring: u64,
    from_as_of: Option<chrono::DateTime<chrono::Utc>>,
    total: Option<u64>,
    rows: Vec<Row>,
    gone: Vec<String>,
}

#[derive(Deserialize)]
struct Row {
    /// From 1.
    position: usize,
    rank: u64,
    /// Never null, because only what is current is followed, and subjects lose their names in final periods.
    subject: String,
    score: Option<crate::Decimal>,
    tie: Option<Tie>,
    tier: Option<String>,
    #[serde(default, deserialize_with = "if_present")]
    from: Option<Option<u64>>,
    attributes: Option<Attributes>,
}

/// An event of a stream: https://html.spec.whatwg.org/#event-stream-interpretation
#[derive(Debug, Default, PartialEq)]
struct Event {
    name: String,
    data: String,
    id: Option<String>,
}

impl Followed {
    /// Waits for what the ranking is next.
    async fn next(&mut self) -> Result<Ranking> {
        loop {
            match self.read().await {
                Ok(Some(ranking)) => return Ok(ranking),
                Ok(None) => {}
                Err(error) if !error.is_transient() || error.code() == "unexpected_answer" => return Err(error),
                Err(error) => {
                    tracing::debug!(%error, "a live ranking is followed again");
                    self.lines = None;
                    tokio::time::sleep(pause(self.attempt, error.retry_after())).await;
                    self.attempt = self.attempt.saturating_add(1);
                }
            }
        }
    }

    /// Reads an event. Returns the ranking if it has changed.
    async fn read(&mut self) -> Result<Option<Ranking>> {
        if self.lines.is_none() {
            self.lines = Some(self.open().await?);
        }
        let Some(lines) = &mut self.lines else { return Ok(None) };
        let event = event(lines).await?.ok_or_else(|| Error::interrupted("the stream ended"))?;
        self.attempt = 0;
        self.take(event)
    }

    async fn open(&mut self) -> Result<Lines> {
        let path = self.plan.address();
        let last_id = [("last-event-id", self.last_id.clone())];
        let sent = Sent {
            method: &Method::GET,
            path: &path,
            body: None,
            media_type: "",
            accept: "text/event-stream",
            headers: if self.last_id.is_empty() { &[] } else { &last_id },
        };
        Ok(Lines::new(self.plan.connection.open(&sent, FIRST).await?, SILENCE))
    }

    /// Returns the ranking after an event, or `None` if it is the same.
    fn take(&mut self, event: Event) -> Result<Option<Ranking>> {
        let unknown = |error| Error::unexpected(200, format!("an event that this client does not know: {error}"));
        if let Some(id) = event.id {
            self.last_id = id;
        }
        match event.name.as_str() {
            "page" => self.ranking = Some(serde_json::from_str(&event.data).map_err(unknown)?),
            "change" => {
                let change: Change = serde_json::from_str(&event.data).map_err(unknown)?;
                let Some(ranking) = &mut self.ranking else { return Ok(None) };
                change.apply(ranking);
            }
            "problem" => {
                let problem: Map<String, Value> = serde_json::from_str(&event.data).map_err(unknown)?;
                let error = Error::of_problem(problem);
                // After a problem of the store the stream goes on.
                return if error.is_transient() { Ok(None) } else { Err(error) };
            }
            _ => return Ok(None),
        }
        Ok(self.ranking.clone())
    }
}

impl Change {
    /// Changes the ranking. Subjects that are neither changed nor gone keep their order.
    fn apply(self, ranking: &mut Ranking) {
        let moved: HashSet<&str> =
            self.gone.iter().map(String::as_str).chain(self.rows.iter().map(|row| row.subject.as_str())).collect();
        ranking.items.retain(|line| line.subject.as_deref().is_none_or(|subject| !moved.contains(subject)));
        // Rows are in the order of their positions, so each is inserted at its final place.
        for Row { position, rank, subject, score, tie, tier, from, attributes } in self.rows {
            let at = position.saturating_sub(1).min(ranking.items.len());
            ranking.items.insert(at, Line { rank, subject: Some(subject), score, tie, tier, from, attributes });
        }
        (ranking.window, ranking.as_of) = (self.window, self.as_of);
        (ranking.retiring, ranking.total, ranking.from_as_of) = (self.retiring, self.total, self.from_as_of);
    }
}

/// Reads lines up to the end of an event that has data. Returns `None` at the end of the stream.
async fn event(lines: &mut Lines) -> Result<Option<Event>> {
    let mut event = Event::default();
    let mut has_data = false;
    while let Some(line) = lines.next().await? {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" if line.is_empty() && has_data => return Ok(Some(event)),
            "" if line.is_empty() => event = Event::default(),
            "event" => event.name = value.to_owned(),
            "id" => event.id = Some(value.to_owned()),
            "data" => {
                if has_data {
                    event.data.push('\n');
                }
                event.data.push_str(value);
                has_data = true;
            }
            // A comment, or a field that is not used.
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(items: &str) -> Ranking {
        serde_json::from_str(&format!(
            r#"{{"board":"b","window":{{"from":null,"to":null,"slots":0}},"as_of":"2026-01-01T00:00:00Z","retiring":0,
                "total":3,"metric":"COUNT(all, like, p)","items":{items},"next":null,"prev":null}}"#
        ))
        .unwrap()
    }

    #[test]
    fn changes_put_lines_at_their_places() {
        let mut before = ranking(
            r#"[{"rank":1,"subject":"a","score":9,"tier":"gold"},{"rank":2,"subject":"b","score":5,"tier":"gold"},
                {"rank":3,"subject":"e","score":3,"tier":"gold"},{"rank":4,"subject":"c","score":1}]"#,
        );
        let change: Change = serde_json::from_str(
            r#"{"window":{"from":null,"to":null,"slots":0},"as_of":"2026-01-01T00:00:01Z","retiring":2,"total":4,"from_as_of":"2026-01-01T00:00:00Z",
                "rows":[{"position":1,"rank":1,"subject":"c","score":10,"tier":"gold"},{"position":3,"rank":3,"subject":"d","score":7,"from":null},
                    {"position":4,"rank":4,"subject":"e","score":3,"from":2}],
                "gone":["b"]}"#,
        )
        .unwrap();
        change.apply(&mut before);
        let lines: Vec<_> =
            before.items.iter().map(|line| (line.subject.as_deref().unwrap(), line.tier.as_deref())).collect();
        assert_eq!(lines, [("c", Some("gold")), ("a", Some("gold")), ("d", None), ("e", None)]);
        assert_eq!((before.retiring, before.total), (2, Some(4)));
        let from: Vec<_> = before.items.iter().map(|line| line.from).collect();
        assert_eq!((from, before.from_as_of.is_some()), (vec![None, None, Some(None), Some(Some(2))], true));
    }
}
