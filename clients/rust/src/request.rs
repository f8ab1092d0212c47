//! Requests whose answers are JSON.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::connection::{Connection, Sent};
use crate::item::Countable;
use crate::pause::pause;
use crate::queue::new_id;
use crate::{Error, Lines, Result};

/// A request to the service, whose answer is a `T`. It is sent when it is awaited.
///
/// The setters are for parameters of the API. A request that does not know one is refused by the service, which says
/// so.
#[derive(Debug)]
#[must_use = "a request is sent when it is awaited"]
pub struct Request<T> {
    /// What to send, or why it cannot be.
    pub(crate) plan: Result<Plan>,
    answer: PhantomData<fn() -> T>,
}

/// What a request sends.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) connection: Arc<Connection>,
    method: Method,
    pub(crate) path: String,
    parameters: Vec<(&'static str, String)>,
    body: Option<Vec<u8>>,
    media_type: &'static str,
    is_repeatable: bool,
    timeout: Duration,
}

impl<T> Request<T> {
    /// Creates a request that is repeated if it is a GET.
    pub(crate) fn new(connection: &Arc<Connection>, method: Method, path: Result<String>) -> Self {
        let plan = path.map(|path| Plan {
            connection: connection.clone(),
            is_repeatable: method == Method::GET,
            method,
            path,
            parameters: Vec::new(),
            body: None,
            media_type: "application/json",
            timeout: connection.timeout,
        });
        Self { plan, answer: PhantomData }
    }

    fn with(mut self, change: impl FnOnce(&mut Plan)) -> Self {
        if let Ok(plan) = &mut self.plan {
            change(plan);
        }
        self
    }

    /// Sets a parameter by its name in the API.
    pub fn parameter(self, name: &'static str, value: impl ToString) -> Self {
        self.with(|plan| plan.set(name, value.to_string()))
    }

    /// Sets a parameter if there is a value for it.
    pub fn optional(self, name: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.parameter(name, value),
            None => self,
        }
    }

    /// Reads this one of several windows, such as `7d`. By default the main one.
    pub fn window(self, length: &str) -> Self {
        self.parameter("window", length)
    }

    /// Chooses the ranking of this key, on a board whose metric has `BY`. Of several fields it is a JSON array.
    pub fn by(self, key: &str) -> Self {
        self.parameter("by", key)
    }

    /// Reads the `next` or the `previous` edition, while a board has two.
    pub fn edition(self, of: &str) -> Self {
        self.parameter("of", of)
    }

    /// Reads the period of this name, such as `2026-11`, on a board with a season. By default the current one. What is
    /// added counts in this period or not at all.
    pub fn period(self, name: &str) -> Self {
        self.parameter("period", name)
    }

    /// Has each line show these attributes: names with commas between them, or `*` for all.
    pub fn attributes(self, names: &str) -> Self {
        self.parameter("attributes", names)
    }

    /// Limits the lines of the answer.
    pub fn limit(self, lines: u32) -> Self {
        self.parameter("limit", lines)
    }

    /// Begins after so many lines.
    pub fn offset(self, lines: u64) -> Self {
        self.parameter("offset", lines)
    }

    /// Begins where the cursor `next` or `prev` of an answer says.
    pub fn cursor(self, cursor: &str) -> Self {
        self.parameter("cursor", cursor)
    }

    /// Sends this as JSON.
    pub fn json(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(text) => self.bytes("application/json", text),
            Err(error) => {
                let detail = format!("what is sent is not JSON: {error}");
                self.plan = self.plan.and(Err(Error::invalid_setting(detail)));
                self
            }
        }
    }

    /// Sends an item with an id, so that it counts once however often it is sent.
    pub(crate) fn item(mut self, item: impl Countable) -> Self {
        match item.into_object().checked() {
            Ok(mut item) => {
                item.give_id(new_id);
                self.bytes("application/json", item.to_string().into_bytes()).repeatable()
            }
            Err(error) => {
                self.plan = self.plan.and(Err(error));
                self
            }
        }
    }

    /// Sends these bytes, which are of this media type.
    pub fn bytes(self, media_type: &'static str, body: Vec<u8>) -> Self {
        self.with(|plan| (plan.body, plan.media_type) = (Some(body), media_type))
    }

    /// Sends the request again after an error that may pass. Only for requests whose repetition does no harm.
    pub fn repeatable(self) -> Self {
        self.with(|plan| plan.is_repeatable = true)
    }

    /// Sets the time in which the answer must arrive, such as for what takes the service long.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|plan| plan.timeout = timeout)
    }

    /// Sends the request, and returns the answer as the text that came.
    ///
    /// # Errors
    ///
    /// See [`Error::code`].
    pub async fn text(self) -> Result<String> {
        let body = self.plan?.send("application/json").await?;
        String::from_utf8(body).map_err(|_| Error::unexpected(200, "an answer that is not UTF-8".to_owned()))
    }
}

impl<T> Request<T> {
    /// Sends the request once, for an answer of this media type, and returns its lines as they arrive. The time-out is that
    /// for the beginning of the answer, and for each piece of it.
    ///
    /// # Errors
    ///
    /// See [`Error::code`].
    pub async fn text_lines(self, media_type: &'static str) -> Result<Lines> {
        let plan = self.plan?;
        let path = plan.address();
        let response = plan.connection.open(&plan.sent(&path, media_type), plan.timeout).await?;
        Ok(Lines::new(response, plan.timeout))
    }
}

impl Plan {
    fn sent<'a>(&'a self, path: &'a str, accept: &'static str) -> Sent<'a> {
        Sent {
            method: &self.method,
            path,
            body: self.body.as_deref(),
            media_type: self.media_type,
            accept,
            headers: &[],
        }
    }

    /// Sets a parameter, in place of what it was.
    pub(crate) fn set(&mut self, name: &'static str, value: String) {
        self.parameters.retain(|(set, _)| *set != name);
        self.parameters.push((name, value));
    }

    /// Sets a parameter that is not set.
    pub(crate) fn set_default(&mut self, name: &'static str, value: impl ToString) {
        if !self.parameters.iter().any(|(set, _)| *set == name) {
            self.set(name, value.to_string());
        }
    }

    /// Begins where this cursor says, and no longer at an offset.
    pub(crate) fn go_on(&mut self, cursor: String) {
        self.parameters.retain(|(set, _)| *set != "offset");
        self.set("cursor", cursor);
    }

    /// Returns the path with the parameters as its query.
    pub(crate) fn address(&self) -> String {
        with_parameters(self.path.clone(), &self.parameters)
    }

    /// Sends the request, until it is answered or its time is over. Returns the body of the answer.
    pub(crate) async fn send(&self, accept: &'static str) -> Result<Vec<u8>> {
        let path = self.address();
        let sent = self.sent(&path, accept);
        let (began, mut attempt) = (Instant::now(), 0);
        loop {
            let error = match self.connection.fetch(&sent, self.timeout).await {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            let left = self.connection.repeat_for.saturating_sub(began.elapsed());
            let asked = error.retry_after();
            if !self.is_repeatable || !error.is_transient() || left.is_zero() || asked > Some(left) {
                return Err(error);
            }
            // The last attempt is at the end of the time.
            let pause = pause(attempt, asked).min(left);
            tracing::debug!(%error, path, "a request is sent again");
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }
}

/// Returns the path with the parameters as its query.
fn with_parameters(mut path: String, parameters: &[(&'static str, String)]) -> String {
    for (at, (name, value)) in parameters.iter().enumerate() {
        path.push(if at == 0 { '?' } else { '&' });
        path.push_str(name);
        path.push('=');
        path.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
    }
    path
}

impl<T: DeserializeOwned + 'static> IntoFuture for Request<T> {
    type Output = Result<T>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async {
            let body = self.plan?.send("application/json").await?;
            serde_json::from_slice(&body).map_err(|error| {
                Error::unexpected(200, format!("an answer that this version of the client does not know: {error}"))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reads_are_repeated_until_their_time_is_over() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
        let time = Duration::from_secs(10);
        for _ in 0..5 {
            let service = crate::Service::builder(&format!("http://{free}")).repeat_for(time).build().unwrap();
            let began = Instant::now();
            let error = service.boards().await.unwrap_err();
            assert!(error.is_transient(), "{error}");
            assert!(began.elapsed() >= time, "{:?}: {error}", began.elapsed());
            let began = Instant::now();
            let once = service.request::<()>(Method::POST, "/v1/rollover").await.unwrap_err();
            assert!(began.elapsed() < time, "{once}");
        }
    }
}
