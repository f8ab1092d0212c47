//! The running service.

use std::fmt;
use std::sync::Arc;

use reqwest::Method;
use serde_json::Value;

use crate::answers::{Added, Answers, Boards, Evaluations, Rollover};
use crate::connection::{Builder, Connection};
use crate::{Board, Event, Request, Result, SenderBuilder};

/// A running service. It is cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Service {
    connection: Arc<Connection>,
}

impl Service {
    /// Returns the service at this URL, which may have a path before `/v1`. It connects with the first request.
    ///
    /// # Errors
    ///
    /// `invalid_setting`, if this is not such a URL.
    pub fn new(url: &str) -> Result<Self> {
        Self::builder(url).build()
    }

    /// Returns the settings of a service at this URL.
    pub fn builder(url: &str) -> Builder {
        Builder::new(url)
    }

    pub(crate) fn over(connection: Arc<Connection>) -> Self {
        Self { connection }
    }

    /// Returns the URL of the service, without a slash at its end.
    pub fn url(&self) -> &str {
        self.connection.url()
    }

    /// Returns a board, which need not exist.
    pub fn board(&self, name: &str) -> Board {
        Board::new(self.connection.clone(), name)
    }

    /// Returns the settings of a sender, which sends events in the background.
    pub fn sender(&self) -> SenderBuilder<Event> {
        SenderBuilder::new(&self.connection, Ok("/v1/events".to_owned()))
    }

    /// Sends an event by itself. Boards that do not count it are in `rejected`, and if there is none of its type, that is in
    /// `unknown_types`.
    pub fn add_now(&self, event: Event) -> Request<Added> {
        self.request(Method::POST, "/v1/events").item(event)
    }

    /// Reads all boards.
    pub fn boards(&self) -> Request<Boards> {
        self.request(Method::GET, "/v1/boards")
    }

    /// Answers up to 1,000 questions about subjects and metrics, as the API describes them.
    pub fn query(&self, queries: &[Value]) -> Request<Answers> {
        self.request(Method::POST, "/v1/query").json(&serde_json::json!({"queries": queries})).repeatable()
    }

    /// Evaluates a rule for an event with these fields, such as `COUNT(30m, login, device_id) > 3`.
    pub fn evaluate(&self, rule: &str, fields: &Value) -> Request<Evaluations> {
        self.request(Method::POST, "/v1/evaluate")
            .json(&serde_json::json!({"rule": rule, "fields": fields}))
            .repeatable()
    }

    /// Rolls all boards over now.
    pub fn rollover(&self) -> Request<Vec<Rollover>> {
        self.request(Method::POST, "/v1/rollover").repeatable()
    }

    /// Returns any other request of the API. `path` begins with `/v1`, and is a URL's already.
    pub fn request<T>(&self, method: Method, path: &str) -> Request<T> {
        Request::new(&self.connection, method, Ok(path.to_owned()))
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Service").field(&self.url()).finish()
    }
}
