//! A small client that asserts nothing: what an answer should be is the test's business.

use reqwest::header::HeaderMap;
use reqwest::{Body, Method};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    pub port: u16,
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
    pub text: String,
    /// Null where the body is not JSON.
    pub body: Value,
}

impl Answer {
    /// The stable code of a problem; of a well-formed problem, that is.
    pub fn code(&self) -> &str {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        assert_eq!(self.body["status"], self.status, "{self:?}");
        for member in ["type", "title", "detail"] {
            assert!(!self.body[member].as_str().unwrap_or_default().is_empty(), "{member} of {self:?}");
        }
        self.body["code"].as_str().expect("a code")
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Status and code of a refusal.
    pub fn refusal(&self) -> (u16, &str) {
        (self.status, self.code())
    }
}

impl Client {
    pub fn new(port: u16) -> Self {
        // Plain HTTP here, but the client sets TLS up in any case, and panics without a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { http: reqwest::Client::builder().no_proxy().build().expect("a client"), port }
    }

    pub async fn send(&self, method: Method, path: &str, kind: Option<&str>, body: impl Into<Body>) -> Answer {
        self.try_send(method, path, kind, body).await.expect("an answer")
    }

    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        kind: Option<&str>,
        body: impl Into<Body>,
    ) -> reqwest::Result<Answer> {
        let kind = kind.map(|kind| ("content-type", kind));
        self.try_send_with(method, path, kind.as_slice(), body).await
    }

    /// Sends a request with these headers.
    pub async fn send_with(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        self.try_send_with(method, path, headers, body).await.expect("an answer")
    }

    async fn try_send_with(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> reqwest::Result<Answer> {
        let mut request = self.http.request(method, format!("http://127.0.0.1:{}{path}", self.port)).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        // A stream of events has no end.
        let is_endless = headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let bytes = if is_endless { Vec::new() } else { response.bytes().await?.to_vec() };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or_default();
        Ok(Answer { status, headers, bytes, text, body })
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None, "").await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, None, "").await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, Some("application/json"), body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, Some("application/json"), body.to_string()).await
    }

    pub async fn ndjson(&self, board: &str, body: impl Into<Body>) -> Answer {
        let path = format!("/v1/boards/{board}/increments");
        self.send(Method::POST, &path, Some("application/x-ndjson"), body).await
    }

    pub async fn define(&self, board: &str, metric: &str, slot: &str) -> Answer {
        self.put(&format!("/v1/boards/{board}"), json!({"metric": metric, "slot": slot})).await
    }

    pub async fn add(&self, board: &str, body: Value) -> Answer {
        self.post(&format!("/v1/boards/{board}/increments"), body).await
    }

    /// Adds one to each subject, or as often as it is listed.
    pub async fn count(&self, board: &str, subjects: &[&str]) {
        let increments: Vec<_> = subjects.iter().map(|subject| json!({"subject": subject})).collect();
        let answer = self.add(board, json!({"increments": increments})).await;
        assert_eq!(answer.body["accepted"], subjects.len(), "{answer:?}");
    }

    /// Returns the lines of a page.
    pub async fn items(&self, path: &str) -> Vec<Value> {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body["items"].as_array().unwrap().clone()
    }

    /// Returns all lines of a ranking, read in pages of this many.
    pub async fn items_in_pages(&self, path: &str, limit: usize) -> Vec<Value> {
        let mut items = Vec::new();
        let mut next = Some(format!("{path}?limit={limit}"));
        while let Some(of_page) = next {
            let page = self.get(&of_page).await.body;
            items.extend(page["items"].as_array().unwrap().clone());
            next = page["next"].as_str().map(|cursor| format!("{path}?limit={limit}&cursor={cursor}"));
        }
        items
    }

    pub async fn score(&self, board: &str, subject: &str) -> Value {
        self.get(&format!("/v1/boards/{board}/subjects/{subject}")).await.body["score"].clone()
    }

    pub async fn set_clock(&self, now: &str) {
        let answer = self.put("/v1/clock", json!({"now": now})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Sends these bytes on a connection of their own, as no library would, and reads until the server closes it.
    pub async fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.expect("a connection");
        stream.write_all(request).await.expect("sent");
        let mut answer = Vec::new();
        // A reset after the answer is as good as an end.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// `GET` of a path exactly as it is written here.
    pub async fn raw_get(&self, path: &str) -> (u16, Value) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        let answer = self.raw(request.as_bytes()).await;
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        (status, serde_json::from_str(body).unwrap_or_default())
    }
}
