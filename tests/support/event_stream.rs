//! A client of a stream of live rankings.

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::header::HeaderMap;
use serde_json::Value as Json;

use crate::waiting::PATIENCE;

/// An event as a client receives it.
#[derive(Debug)]
pub struct Event {
    pub name: String,
    pub id: Option<String>,
    pub data: Json,
}

/// A client of a stream.
pub struct Follower {
    pub headers: HeaderMap,
    pieces: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    text: String,
}

impl Follower {
    /// Opens the stream at a URL.
    pub async fn open(url: &str, headers: &[(&str, &str)]) -> Self {
        let mut request = reqwest::Client::new().get(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Self::reading(request.send().await.unwrap())
    }

    /// Reads the stream of a response.
    pub fn reading(response: reqwest::Response) -> Self {
        assert_eq!(response.status(), 200, "{}", response.url());
        let headers = response.headers().clone();
        Self { headers, pieces: response.bytes_stream().boxed(), text: String::new() }
    }

    /// Returns the next event, or `None` at the end of the stream. Skips comments.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                    line.map(str::to_owned)
                };
                if let Some(name) = field("event") {
                    let data = serde_json::from_str(&field("data").unwrap()).unwrap();
                    return Some(Event { name, id: field("id"), data });
                }
                continue;
            }
            let piece = tokio::time::timeout(PATIENCE, self.pieces.next()).await;
            let piece = piece.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for an event; last: {:?}", self.text));
            self.text.push_str(std::str::from_utf8(&piece?.unwrap()).unwrap());
        }
    }

    /// Returns the next event, which must have this name.
    pub async fn expect(&mut self, name: &str) -> Event {
        let event = self.next().await.expect("an event");
        assert_eq!(event.name, name, "{event:?}");
        event
    }
}

/// The lines of a view, to which changes are applied as their description says.
#[derive(Debug, Default)]
pub struct View {
    pub items: Vec<Json>,
    pub window: Json,
    pub total: Json,
    /// The entity tag of the page.
    pub id: String,
}

impl View {
    pub fn apply(&mut self, event: Event) {
        let Event { name, id, mut data } = event;
        match name.as_str() {
            "page" => self.items = data["items"].as_array().unwrap().clone(),
            "change" => {
                let rows = data["rows"].as_array().unwrap().clone();
                let moved: Vec<&Json> =
                    rows.iter().map(|row| &row["subject"]).chain(data["gone"].as_array().unwrap()).collect();
                self.items.retain(|line| !moved.contains(&&line["subject"]));
                for row in &rows {
                    let position = usize::try_from(row["position"].as_u64().unwrap()).unwrap();
                    let mut line = row.clone();
                    line.as_object_mut().unwrap().remove("position");
                    self.items.insert(position - 1, line);
                }
            }
            other => panic!("an event {other}: {data}"),
        }
        (self.window, self.total, self.id) = (data["window"].take(), data["total"].take(), id.unwrap());
    }
}
