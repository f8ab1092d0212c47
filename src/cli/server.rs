//! The running server that a command is a client of.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use rolltop_client::{Builder, Method, Service};
use serde::de::IgnoredAny;

use super::profile::{self, Profile};

/// The environment variable with the key to send. There is no flag: other users of the machine can see flags.
pub const KEY: &str = "ROLLTOP_KEY";
/// The heading of these options in the help of each command.
const SERVER: &str = "The server";
const URL: &str = "ROLLTOP_URL";
/// The server that `rolltop serve` is if it is not told otherwise.
const LOCAL: &str = "http://127.0.0.1:8080";

/// The server to send requests to, with the key in `ROLLTOP_KEY` or of the profile if there is one.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ServerArgs {
    /// The URL of the server. The key to send is taken from the environment variable ROLLTOP_KEY [env: ROLLTOP_URL]
    /// [default: that of the profile named default, or http://127.0.0.1:8080]
    #[arg(long, conflicts_with = "profile", help_heading = SERVER)]
    url: Option<String>,

    /// The profile whose server and key to use, of the file ~/.config/rolltop/profiles.toml [env: ROLLTOP_PROFILE]
    #[arg(long, value_name = "NAME", help_heading = SERVER)]
    profile: Option<String>,

    /// The certificates to trust (PEM) when the URL begins with https [default: the well-known authorities]
    #[arg(long, env = "ROLLTOP_CA", value_name = "PATH", help_heading = SERVER)]
    ca: Option<PathBuf>,

    /// The IP address to connect to, in place of those of the host in the URL. The certificate has to be that of the
    /// host.
    #[arg(long, env = "ROLLTOP_CONNECT_TO", value_name = "IP", help_heading = SERVER)]
    connect_to: Option<IpAddr>,
}

impl ServerArgs {
    /// Returns the arguments for this URL, with the certificates to trust.
    pub fn with_url(url: &str, ca: Option<PathBuf>) -> Self {
        Self { url: Some(url.to_owned()), ca, ..Self::default() }
    }

    /// Returns the settings of the server. Requests are sent once.
    pub fn builder(&self) -> anyhow::Result<Builder> {
        self.builder_with(KEY)
    }

    /// Returns the same, with a key from this environment variable.
    pub fn builder_with(&self, variable: &str) -> anyhow::Result<Builder> {
        let Profile { url, key, ca } = self.profile()?;
        let mut builder = Service::builder(&url).repeat_for(Duration::ZERO);
        if let Some(key) = set(variable).or(key) {
            builder = builder.key(&key);
        }
        if let Some(path) = self.ca.as_ref().filter(|path| !path.as_os_str().is_empty()).or(ca.as_ref()) {
            builder = builder.certificates(&certificates(path)?);
        }
        if let Some(address) = self.connect_to {
            builder = builder.connect_to(address);
        }
        Ok(builder)
    }

    /// Returns the server.
    pub fn service(&self) -> anyhow::Result<Service> {
        Ok(self.builder()?.build()?)
    }

    /// Returns the server, which answers now. Requests that may be sent again are, for 10 seconds: without this, a wrong URL
    /// would be told that late.
    pub async fn reached(&self) -> anyhow::Result<Service> {
        self.service()?.request::<IgnoredAny>(Method::GET, "/healthz").await?;
        Ok(self.builder()?.repeat_for(Duration::from_secs(10)).build()?)
    }

    /// Returns where the server is: of the flags, else of the environment, else of the file. A key of the file goes with
    /// the URL of the file only.
    fn profile(&self) -> anyhow::Result<Profile> {
        match (&self.url, &self.profile) {
            (Some(url), _) => Ok(Profile::of_url(url)),
            (None, Some(name)) => profile::read(name),
            (None, None) => match (set(URL), set("ROLLTOP_PROFILE")) {
                (Some(url), _) => Ok(Profile::of_url(&url)),
                (None, Some(name)) => profile::read(&name),
                (None, None) => Ok(profile::default()?.unwrap_or_else(|| Profile::of_url(LOCAL))),
            },
        }
    }
}

/// Returns the value of an environment variable that is set, and not to nothing.
fn set(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

fn certificates(path: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let pem = std::fs::read(path).with_context(|| format!("--ca: cannot read {shown}"))?;
    // The client says the same, and does not know the file.
    if memchr::memmem::find(&pem, b"BEGIN CERTIFICATE").is_none() {
        bail!("--ca: {shown} contains no certificate in PEM format");
    }
    Ok(pem)
}
