//! The running server that a command is a client of.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Certificate, ClientBuilder, Response, StatusCode, Url};
use serde_json::Value;

/// The environment variable with the key to send. There is no flag: other users of the machine can see flags.
pub const KEY: &str = "ROLLTOP_KEY";

/// The server to send requests to, with the key in `ROLLTOP_KEY` if there is one.
#[derive(Clone, Debug, clap::Args)]
pub struct ServerArgs {
    /// The URL of the server. The key to send is taken from the environment variable ROLLTOP_KEY.
    #[arg(long, default_value = "http://127.0.0.1:8080", env = "ROLLTOP_URL")]
    pub url: String,

    /// The certificates to trust (PEM) when the URL begins with https [default: the well-known authorities]
    #[arg(long, env = "ROLLTOP_CA", value_name = "PATH")]
    ca: Option<PathBuf>,

    /// The IP address to connect to, in place of those of the host in the URL. The certificate has to be that of the
    /// host.
    #[arg(long, env = "ROLLTOP_CONNECT_TO", value_name = "IP")]
    connect_to: Option<IpAddr>,
}

impl ServerArgs {
    /// Returns the URL of this path, which begins with a slash.
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url.trim_end_matches('/'))
    }

    /// Returns a server with this URL whose other settings are the usual ones.
    pub fn with_url(url: &str, ca: Option<PathBuf>) -> Self {
        Self { url: url.to_owned(), ca, connect_to: None }
    }

    /// Returns a client of the server, to which the caller adds its timeouts.
    pub fn client(&self) -> anyhow::Result<ClientBuilder> {
        self.client_with(KEY)
    }

    /// Returns a client that takes its key from this environment variable.
    pub fn client_with(&self, variable: &str) -> anyhow::Result<ClientBuilder> {
        // An error means that a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = reqwest::Client::builder();
        if let Some(key) = std::env::var(variable).ok().filter(|key| !key.is_empty()) {
            let Ok(mut bearer) = HeaderValue::try_from(format!("Bearer {}", key.trim())) else {
                bail!("{variable} is not a key: it has characters that no key has");
            };
            bearer.set_sensitive(true);
            client = client.default_headers(HeaderMap::from_iter([(AUTHORIZATION, bearer)]));
        }
        if let Some(path) = self.ca.as_ref().filter(|path| !path.as_os_str().is_empty()) {
            let shown = path.display();
            let pem = std::fs::read(path).with_context(|| format!("--ca: cannot read {shown}"))?;
            let certificates = Certificate::from_pem_bundle(&pem).unwrap_or_default();
            if certificates.is_empty() {
                bail!("--ca: {shown} contains no certificate in PEM format");
            }
            client = certificates
                .into_iter()
                .fold(client.tls_built_in_root_certs(false), ClientBuilder::add_root_certificate);
        }
        if let Some(address) = self.connect_to {
            let url = Url::parse(&self.url).with_context(|| format!("'{}' is not a URL", self.url))?;
            let host = url.host_str().ok_or_else(|| anyhow!("'{url}' has no host"))?;
            // The port is that of the URL.
            client = client.resolve(host, SocketAddr::new(address, 0));
        }
        Ok(client)
    }
}

/// Returns the error of a request together with its causes, such as a certificate that is not trusted.
pub fn no_response(url: &str, error: reqwest::Error) -> anyhow::Error {
    let error = format!("{:#}", anyhow::Error::new(error));
    // By openssl, a self-signed certificate is one of an authority unless it is told otherwise.
    let advice = match error.contains("CaUsedAsEndEntity") {
        true => "; the certificate is one of an authority: make it with basicConstraints=critical,CA:FALSE",
        false => "",
    };
    anyhow!("{url} does not respond: {error}{advice}")
}

/// Returns the body of a response, or the error that it has.
pub async fn body_of(url: &str, response: Response) -> anyhow::Result<Value> {
    let status = response.status();
    let body: Value = response.json().await.unwrap_or_default();
    match (status.is_success(), body["detail"].as_str()) {
        (true, _) => Ok(body),
        (false, Some(detail)) => Err(refused(body["code"].as_str().unwrap_or_default(), detail)),
        (false, None) => Err(no_answer(url, status)),
    }
}

/// Returns the error of a response that is not one of rolltop.
pub fn no_answer(url: &str, status: StatusCode) -> anyhow::Error {
    anyhow!("{url} returned {status}, and the body is not a response of rolltop")
}

/// Returns the error of a refused request, with what a caller without a key has to do.
fn refused(code: &str, detail: &str) -> anyhow::Error {
    match code {
        "key_required" if std::env::var_os(KEY).is_none() => {
            anyhow!("{detail}; commands take the key from the environment variable {KEY}")
        }
        _ => anyhow!("{detail}"),
    }
}
