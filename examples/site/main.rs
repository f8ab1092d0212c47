//! A small site with posts that each visitor can like once, and a live list of the most liked ones.
//!
//! ```sh
//! cargo run --release --example site
//! ```
//!
//! The site does what any site does in any language: it signs a token for each like of a visitor (tokens.rs), with
//! which the page posts the like straight to Rolltop (site.js), and the page follows the ranking with the element
//! `<rolltop-board>` (page.html). To have all in one command, the example also runs Rolltop, unless `--rolltop` is the
//! address of one. See README.md in this folder.

mod others;
mod pages;
mod posts;
mod run_rolltop;
mod tokens;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use actix_web::web::Data;
use actix_web::{App, HttpServer};
use anyhow::{Context, Result, ensure};
use clap::Parser;
use rand::Rng;
use reqwest::header::ORIGIN;

use tokens::Signer;

/// A site with posts that each visitor can like once, ranked by Rolltop
#[derive(Parser)]
struct Options {
    /// The address of the site; port 0 takes a free port
    #[arg(long, default_value = "127.0.0.1:8081", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// The address of the Rolltop that the example runs; port 0 takes a free port
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS:PORT")]
    rolltop_listen: SocketAddr,
    /// A Rolltop that runs already, with the configuration rolltop.toml of this example, as this program and browsers
    /// reach it
    #[arg(long, value_name = "URL", requires = "secret_file")]
    rolltop: Option<String>,
    /// A file with the secret of the signing key [default: a random secret, for the Rolltop that the example runs]
    #[arg(long, value_name = "PATH")]
    secret_file: Option<PathBuf>,
}

/// What the handlers share.
struct Site {
    /// The address of Rolltop, without a slash at the end.
    rolltop: String,
    signer: Signer,
    client: reqwest::Client,
    /// Whether made-up persons like posts too.
    autopilot: AtomicBool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    // The client of HTTP needs a provider of cryptography.
    let _ = rustls::crypto::ring::default_provider().install_default();

    let listener = TcpListener::bind(options.listen).with_context(|| {
        format!("the site cannot listen on {}; choose another address with --listen", options.listen)
    })?;
    let address = listener.local_addr()?;
    let secret = match options.secret_file {
        Some(path) => std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?,
        None => format!("{:032x}{:032x}", rand::rng().random::<u128>(), rand::rng().random::<u128>()),
    };
    let secret = secret.trim();

    // The data of a Rolltop in this process, in a directory that is removed at the end.
    let folder = tempfile::tempdir()?;
    let rolltop = match options.rolltop {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => {
            let data = folder.path().join("data");
            run_rolltop::start(options.rolltop_listen, &data, address.port(), secret).await?
        }
    };

    let client = reqwest::Client::builder().timeout(Duration::from_secs(5)).build()?;
    let site = Data::new(Site { rolltop, signer: Signer::new(secret), client, autopilot: AtomicBool::new(false) });
    let origin = format!("http://{address}");
    site.check(&origin).await.with_context(|| format!("Rolltop at {} takes no likes of this site", site.rolltop))?;
    tokio::spawn(others::like_at_random(site.clone().into_inner()));

    println!("the site is at {origin}/\nRolltop is at {}/v1/boards/example-posts/rankings", site.rolltop);
    let server = HttpServer::new(move || App::new().app_data(site.clone()).configure(pages::routes));
    server.workers(2).shutdown_timeout(1).listen(listener)?.run().await?;
    Ok(())
}

impl Site {
    /// Checks that Rolltop accepts the tokens of the site, from its pages. It asks what a token allows; nothing counts.
    async fn check(&self, origin: &str) -> Result<()> {
        let token = self.signer.like("nobody", "nothing")?;
        let request = self.client.get(format!("{}/v1/keys/self", self.rolltop)).bearer_auth(token);
        let response = request.header(ORIGIN, origin).send().await?;
        ensure!(response.status().is_success(), "{}", response.text().await?);
        Ok(())
    }
}
