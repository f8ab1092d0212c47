//! Where the service is, and how requests get there.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Certificate, Method, Response, Url};
use tokio::time::timeout;

use crate::{Error, Result, Service};

/// The time to wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// The longest answer that is read at once, in bytes.
const MAX_ANSWER: usize = 64 << 20;

/// The settings of a [`Service`].
#[derive(Debug)]
pub struct Builder {
    url: String,
    key: Option<String>,
    certificates: Vec<u8>,
    connect_to: Option<IpAddr>,
    timeout: Duration,
    repeat_for: Duration,
}

/// A connection to the service, and how long is waited for it.
#[derive(Debug)]
pub(crate) struct Connection {
    http: reqwest::Client,
    base: String,
    pub(crate) timeout: Duration,
    pub(crate) repeat_for: Duration,
}

/// What is sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent<'a> {
    pub(crate) method: &'a Method,
    /// With the query.
    pub(crate) path: &'a str,
    pub(crate) body: Option<&'a [u8]>,
    pub(crate) media_type: &'static str,
    /// The media type of the answer.
    pub(crate) accept: &'static str,
    pub(crate) headers: &'a [(&'static str, String)],
}

impl Builder {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            key: None,
            certificates: Vec::new(),
            connect_to: None,
            timeout: Duration::from_secs(10),
            repeat_for: Duration::from_secs(10),
        }
    }

    /// Sends this key (`rt_…`) or signed token with each request. It is sent to the service only, never to where it
    /// redirects.
    pub fn key(mut self, key: &str) -> Self {
        self.key = Some(key.trim().to_owned());
        self
    }

    /// Trusts these certificates (PEM) in place of the well-known authorities.
    pub fn certificates(mut self, pem: &[u8]) -> Self {
        self.certificates = pem.to_vec();
        self
    }

    /// Connects to this address in place of those of the host in the URL. The certificate has to be that of the host.
    pub fn connect_to(mut self, address: IpAddr) -> Self {
        self.connect_to = Some(address);
        self
    }

    /// Sets the time in which an answer must arrive. By default 10 seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the time for which reads, and what else may be repeated without harm, are sent again after an error that
    /// may pass. By default 10 seconds; zero for a single attempt.
    pub fn repeat_for(mut self, time: Duration) -> Self {
        self.repeat_for = time;
        self
    }

    /// Returns the service. It connects with the first request.
    ///
    /// # Errors
    ///
    /// `invalid_setting`, if the URL, the key or the certificates are not what they should be.
    pub fn build(self) -> Result<Service> {
        let wrong = |what: &str| Error::invalid_setting(format!("'{}' {what}", self.url));
        let url = Url::parse(&self.url)
            .map_err(|error| wrong(&format!("is not a URL, such as http://127.0.0.1:8080: {error}")))?;
        let is_whole = matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none();
        let host = url.host_str().filter(|_| is_whole);
        let host = host.ok_or_else(|| wrong("is not the URL of a service, such as http://127.0.0.1:8080"))?;
        if !url.username().is_empty() || url.password().is_some() {
            // The URL has a secret, which does not belong into a message.
            return Err(Error::invalid_setting("the URL must not have a user or password; give a key".to_owned()));
        }
        let mut http = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("rolltop-client/", env!("CARGO_PKG_VERSION")));
        if let Some(key) = self.key.filter(|key| !key.is_empty()) {
            let bearer = HeaderValue::try_from(format!("Bearer {key}"));
            let mut bearer =
                bearer.map_err(|_| Error::invalid_setting("the key has characters that no key has".to_owned()))?;
            bearer.set_sensitive(true);
            http = http.default_headers(HeaderMap::from_iter([(AUTHORIZATION, bearer)]));
        }
        if !self.certificates.is_empty() {
            let certificates = Certificate::from_pem_bundle(&self.certificates).unwrap_or_default();
            if certificates.is_empty() {
                return Err(Error::invalid_setting("there is no certificate in PEM format".to_owned()));
            }
            http = http.tls_built_in_root_certs(false);
            http = certificates.into_iter().fold(http, reqwest::ClientBuilder::add_root_certificate);
        }
        if let Some(address) = self.connect_to {
            // The port is that of the URL.
            http = http.resolve(host, SocketAddr::new(address, 0));
        }
        Ok(Service::over(Arc::new(Connection {
            http: http.build()?,
            base: url.as_str().trim_end_matches('/').to_owned(),
            timeout: self.timeout,
            repeat_for: self.repeat_for,
        })))
    }
}

impl Connection {
    /// Returns the URL of the service, without a slash at its end.
    pub(crate) fn url(&self) -> &str {
        &self.base
    }

    /// Sends a request once. Returns the answer, whose body is not read yet, if it is a success of the kind that was
    /// asked for.
    pub(crate) async fn open(&self, sent: &Sent<'_>, limit: Duration) -> Result<Response> {
        let url = format!("{}{}", self.base, sent.path);
        let mut request = self.http.request(sent.method.clone(), url).header(ACCEPT, sent.accept);
        if let Some(body) = sent.body {
            request = request.header(CONTENT_TYPE, sent.media_type).body(body.to_vec());
        }
        for (name, value) in sent.headers {
            request = request.header(*name, value);
        }
        let response = timeout(limit, request.send()).await.map_err(|_| Error::timed_out(limit))??;
        let status = response.status();
        if !status.is_success() {
            let headers = response.headers().clone();
            let body = timeout(limit, read(response)).await.map_err(|_| Error::timed_out(limit))??;
            return Err(Error::of_answer(status.as_u16(), &headers, &body));
        }
        let media_type =
            response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("no type");
        if media_type.split(';').next() != Some(sent.accept) {
            let detail = format!("an answer of {media_type}, and not of {}", sent.accept);
            return Err(Error::unexpected(status.as_u16(), detail));
        }
        Ok(response)
    }

    /// Sends a request once, and returns the body of the answer.
    pub(crate) async fn fetch(&self, sent: &Sent<'_>, limit: Duration) -> Result<Vec<u8>> {
        let whole = async { read(self.open(sent, limit).await?).await };
        timeout(limit, whole).await.map_err(|_| Error::timed_out(limit))?
    }
}

async fn read(mut response: Response) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > MAX_ANSWER {
            let detail = format!("an answer of more than {MAX_ANSWER} bytes");
            return Err(Error::unexpected(response.status().as_u16(), detail));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
