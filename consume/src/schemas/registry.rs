//! A schema registry: asking for schemas over HTTP, as Confluent's answers it and others do.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use reqwest::header::ACCEPT;
use reqwest::{Certificate, Client, StatusCode, Url};
use serde::Deserialize;

use super::MAX_TEXT;
use crate::variables::with_variables;

const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(10);
/// The longest answer: a text is longer in JSON, and has things beside it.
const MAX_ANSWER: usize = 4 * MAX_TEXT;
/// What a registry says with 404 if it does not know a subject, a version or a schema. Any other 404 comes from a wrong URL.
const UNKNOWN: std::ops::RangeInclusive<u32> = 40401..=40403;

/// Where the registry is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistryConfig {
    url: String,
    user: Option<String>,
    password: Option<String>,
    /// The certificates to trust, in place of the well-known authorities.
    ca: Option<PathBuf>,
}

pub struct SchemaRegistry {
    http: Client,
    url: Url,
    user: Option<String>,
    password: Option<String>,
}

/// A schema as it was registered.
#[derive(Debug, Deserialize)]
pub struct SchemaText {
    #[serde(rename = "schemaType", default = "avro")]
    pub kind: String,
    #[serde(rename = "schema")]
    pub text: String,
    #[serde(default)]
    pub references: Vec<Reference>,
}

/// Another schema that a schema refers to.
#[derive(Debug, Deserialize)]
pub struct Reference {
    /// What the schema calls it: the name of a type, or the path of a file that is imported.
    pub name: String,
    pub subject: String,
    pub version: u32,
}

/// Why there is no schema.
#[derive(Debug)]
pub enum Unavailable {
    /// The registry has answered, and values of the schema cannot be read.
    Unusable(String),
    /// It may go well later.
    Later(anyhow::Error),
}

#[derive(Deserialize)]
struct RegistryProblem {
    error_code: u32,
}

fn avro() -> String {
    "AVRO".to_owned()
}

impl Unavailable {
    pub fn too_long() -> Self {
        Self::Unusable(format!("its schema has more than {MAX_TEXT} bytes"))
    }
}

impl From<reqwest::Error> for Unavailable {
    fn from(error: reqwest::Error) -> Self {
        Self::Later(error.without_url().into())
    }
}

impl SchemaRegistry {
    pub fn new(config: &RegistryConfig) -> anyhow::Result<Self> {
        let RegistryConfig { url, user, password, ca } = config;
        let variable = |text: &Option<String>| text.as_deref().map(with_variables).transpose();
        let (user, password) = (variable(user)?, variable(password)?);
        // What is wrong with it is not said with the URL, which may have a secret.
        let url: Url = with_variables(url)?.parse().context("registry: the url is not a URL")?;
        if !matches!(url.scheme(), "http" | "https") || url.query().is_some() || url.fragment().is_some() {
            bail!("registry: the url is not that of a registry, such as https://registry:8081");
        }
        if !url.username().is_empty() || url.password().is_some() || (user.is_none() && password.is_some()) {
            bail!("registry: 'user' and 'password' go beside the url, both or only a user");
        }
        let mut http = Client::builder()
            .connect_timeout(CONNECT)
            .timeout(ANSWER)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("rolltop-consume/", env!("CARGO_PKG_VERSION")));
        if let Some(path) = ca {
            let shown = path.display();
            let pem = std::fs::read(path).with_context(|| format!("registry: cannot read {shown}"))?;
            let certificates = Certificate::from_pem_bundle(&pem).unwrap_or_default();
            if certificates.is_empty() {
                bail!("registry: there is no certificate in PEM format in {shown}");
            }
            http = http.tls_built_in_root_certs(false);
            http = certificates.into_iter().fold(http, reqwest::ClientBuilder::add_root_certificate);
        }
        Ok(Self { http: http.build().context("registry")?, url, user, password })
    }

    /// Returns the schema with this id.
    pub async fn schema(&self, id: u32) -> Result<SchemaText, Unavailable> {
        self.get(&["schemas", "ids", &id.to_string()]).await
    }

    /// Returns a version of a subject.
    pub async fn version(&self, subject: &str, version: u32) -> Result<SchemaText, Unavailable> {
        self.get(&["subjects", subject, "versions", &version.to_string()]).await
    }

    async fn get(&self, path: &[&str]) -> Result<SchemaText, Unavailable> {
        let mut url = self.url.clone();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(path);
        }
        let mut request = self.http.get(url).header(ACCEPT, "application/vnd.schemaregistry.v1+json, application/json");
        if let Some(user) = &self.user {
            request = request.basic_auth(user, self.password.as_ref());
        }
        let mut response = request.send().await?;
        let (status, mut body) = (response.status(), Vec::new());
        while let Some(part) = response.chunk().await? {
            if body.len() + part.len() > MAX_ANSWER {
                return Err(if status.is_success() { Unavailable::too_long() } else { refused(status) });
            }
            body.extend_from_slice(&part);
        }
        match status {
            StatusCode::OK => {
                let schema: SchemaText = serde_json::from_slice(&body).map_err(|error| {
                    Unavailable::Later(
                        anyhow!(error).context("its answer has no schema; is that the url of a registry?"),
                    )
                })?;
                if schema.text.len() > MAX_TEXT { Err(Unavailable::too_long()) } else { Ok(schema) }
            }
            StatusCode::NOT_FOUND
                if serde_json::from_slice(&body)
                    .is_ok_and(|said: RegistryProblem| UNKNOWN.contains(&said.error_code)) =>
            {
                Err(Unavailable::Unusable(format!("the schema registry has no {}", path.join("/"))))
            }
            status => Err(refused(status)),
        }
    }
}

fn refused(status: StatusCode) -> Unavailable {
    Unavailable::Later(anyhow!("it answers {status}"))
}
