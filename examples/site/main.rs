//! A small site with posts that can be liked, and a live list of the most liked ones.
//!
//! ```sh
//! cargo run --release --example site
//! ```
//!
//! The site talks to Rolltop over HTTP, as any site does in any language: it defines a board at the start and sends an
//! event for each like. The browser follows the ranking with the element `<rolltop-board>`. To have all in one
//! command, the example also runs Rolltop, unless `--rolltop` is the address of one. See README.md in this folder.

mod posts;

use std::collections::HashSet;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::http::header::{CONTENT_SECURITY_POLICY, COOKIE, LOCATION, SET_COOKIE};
use actix_web::web::{Data, Path};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use anyhow::{Context, Result};
use clap::Parser;
use parking_lot::Mutex;
use rand::Rng;
use rolltop::app::Application;
use rolltop::config::{Config, LogFormat, Settings};
use rolltop::telemetry;
use serde_json::json;

use posts::POSTS;

/// The board on which likes count: the posts by their likes of the last 24 hours, and of the last 10 minutes.
const BOARD: &str = "example-posts";

/// A site with posts that can be liked, ranked by Rolltop
#[derive(Parser)]
struct Options {
    /// The address of the site; port 0 takes a free port
    #[arg(long, default_value = "127.0.0.1:8081", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// The address of the Rolltop that the example runs; port 0 takes a free port
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS:PORT")]
    rolltop_listen: SocketAddr,
    /// A Rolltop that runs already, as this program and browsers reach it; its setting `cors_origins` must have the site
    #[arg(long, value_name = "URL")]
    rolltop: Option<String>,
}

/// What the handlers share.
struct Site {
    /// The address of Rolltop, without a slash at the end.
    rolltop: String,
    client: reqwest::Client,
    /// Who likes what. A real site has this in its database.
    likes: Mutex<HashSet<(String, String)>>,
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

    // Rolltop in this process, with its data in a directory that is removed at the end.
    let folder = tempfile::tempdir()?;
    let rolltop = match options.rolltop {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => {
            telemetry::start_logging(LogFormat::Text);
            // Pages of the site may use Rolltop from the browser. All other settings have their defaults.
            let origins = ["127.0.0.1", "localhost"].map(|host| format!("http://{host}:{}", address.port()));
            let config = Config::from_text(
                "the example",
                "",
                Settings {
                    listen: Some(options.rolltop_listen),
                    data_dir: Some(folder.path().join("data")),
                    cors_origins: Some(origins.into()),
                    ..Settings::default()
                },
            )?;
            let application = Application::build(&config).await.with_context(|| {
                "Rolltop did not start; its address is --rolltop-listen here, and --rolltop uses one that runs already"
            })?;
            let url = format!("http://{}", application.address());
            tokio::spawn(application.run_until_stopped(async || drop(tokio::signal::ctrl_c().await)));
            url
        }
    };

    let client = reqwest::Client::builder().timeout(Duration::from_secs(5)).build()?;
    let site = Data::new(Site { rolltop, client, likes: Mutex::default(), autopilot: AtomicBool::new(false) });
    site.define_board().await.with_context(|| format!("the board cannot be defined at {}", site.rolltop))?;
    tokio::spawn(like_at_random(site.clone().into_inner()));

    println!("the site is at http://{address}/\nRolltop is at {}/v1/boards/{BOARD}/rankings", site.rolltop);
    let server = HttpServer::new(move || {
        App::new()
            .app_data(site.clone())
            .route("/", web::get().to(page))
            .route("/like/{post}", web::post().to(like))
            .route("/autopilot", web::post().to(autopilot))
            .route("/site.css", web::get().to(async || file("text/css", include_str!("site.css"))))
            .route("/icon.svg", web::get().to(async || file("image/svg+xml", include_str!("icon.svg"))))
            .route("/site.js", web::get().to(async || file("text/javascript", include_str!("site.js"))))
    });
    server.workers(2).shutdown_timeout(1).listen(listener)?.run().await?;
    Ok(())
}

impl Site {
    /// Defines the board. Nothing happens if it exists with this definition.
    async fn define_board(&self) -> Result<()> {
        let url = format!("{}/v1/boards/{BOARD}", self.rolltop);
        let definition = json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h", "windows": ["10m/1m"]});
        let response = self.client.put(url).json(&definition).send().await?;
        anyhow::ensure!(response.status().is_success(), "{}", response.text().await?);
        Ok(())
    }

    /// Sends a like. It has an id, so it counts once, however often it is sent: by a person who clicks twice, or here,
    /// because the answer to the first attempt was lost.
    async fn send_like(&self, person: &str, post: &str) -> Result<()> {
        let event =
            json!({"type": "like", "fields": {"post_id": post, "person": person}, "id": format!("{person}/{post}")});
        let mut attempts = 1;
        loop {
            let request = self.client.post(format!("{}/v1/events", self.rolltop)).json(&event);
            match request.send().await.and_then(reqwest::Response::error_for_status) {
                Ok(_) => return Ok(()),
                Err(_) if attempts < 3 => attempts += 1,
                Err(error) => return Err(error.into()),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// `GET /`: the posts, each with a button that is a form, so it works without JavaScript too.
async fn page(request: HttpRequest, site: Data<Site>) -> HttpResponse {
    let person = person_of(&request).unwrap_or_else(random_person);
    let posts = POSTS.iter().map(|(id, title, text)| {
        let is_liked = site.likes.lock().contains(&(person.clone(), (*id).to_owned()));
        let (label, disabled) = if is_liked { ("Liked", " disabled") } else { ("Like", "") };
        format!(
            "<article id=\"{id}\"><h2>{title}</h2><p>{text}</p><form method=\"post\" action=\"/like/{id}\">\
             <button aria-label=\"{label}: {title}\"{disabled}>{label}</button></form></article>"
        )
    });
    let autopilot = if site.autopilot.load(Ordering::Relaxed) { "Stop the others" } else { "Let others like too" };
    let html = include_str!("page.html")
        .replace("{posts}", &posts.collect::<String>())
        .replace("{autopilot}", autopilot)
        .replace("{rolltop}", &site.rolltop)
        .replace("{board}", BOARD);
    // The page may use scripts of itself and of Rolltop, and connect to both. Nothing in it is inline.
    let policy = format!("default-src 'self'; script-src 'self' {0}; connect-src 'self' {0}", site.rolltop);
    // A random id is enough to count each person once. Scripts cannot read it, and forms of other sites do not send it.
    let cookie = format!("person={person}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax");
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CONTENT_SECURITY_POLICY, policy))
        .insert_header((SET_COOKIE, cookie))
        .body(html)
}

/// `POST /like/{post}`: counts a like of the person whose cookie it is, and returns to the post.
async fn like(request: HttpRequest, post: Path<String>, site: Data<Site>) -> HttpResponse {
    let post = post.into_inner();
    // What comes from outside is checked before it becomes a subject or an id.
    let (Some(person), true) = (person_of(&request), POSTS.iter().any(|(id, ..)| *id == post)) else {
        return HttpResponse::BadRequest().body("a like needs the cookie of this site and one of its posts");
    };
    if let Err(error) = site.send_like(&person, &post).await {
        eprintln!("a like was not counted: {error}");
        return HttpResponse::BadGateway().body("the like could not be counted; please try again");
    }
    let to = format!("/#{post}");
    site.likes.lock().insert((person, post));
    HttpResponse::SeeOther().insert_header((LOCATION, to)).finish()
}

/// `POST /autopilot`: starts or stops the likes of made-up persons.
async fn autopilot(site: Data<Site>) -> HttpResponse {
    site.autopilot.fetch_xor(true, Ordering::Relaxed);
    HttpResponse::SeeOther().insert_header((LOCATION, "/")).finish()
}

/// Sends likes of made-up persons while the autopilot is on. A few posts are in fashion at a time, so the list moves.
async fn like_at_random(site: Arc<Site>) {
    let mut fashion = [0, 1, 2];
    loop {
        let pause = rand::rng().random_range(100..500);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if !site.autopilot.load(Ordering::Relaxed) {
            continue;
        }
        let post = rand::rng().random_range(0..POSTS.len());
        if rand::rng().random_ratio(1, 20) {
            fashion[post % 3] = post;
        }
        let liked = if rand::rng().random_ratio(1, 3) { post } else { fashion[post % 3] };
        if let Err(error) = site.send_like(&random_person(), POSTS[liked].0).await {
            eprintln!("the likes of others stop: {error}");
            site.autopilot.store(false, Ordering::Relaxed);
        }
    }
}

/// Returns the id in the cookie of a request, if it is one that this site has made.
fn person_of(request: &HttpRequest) -> Option<String> {
    let cookies = request.headers().get(COOKIE)?.to_str().ok()?;
    let person = cookies.split("; ").find_map(|cookie| cookie.strip_prefix("person="))?;
    (person.len() == 16 && person.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| person.to_owned())
}

/// Returns a new id of a person.
fn random_person() -> String {
    format!("{:016x}", rand::rng().random::<u64>())
}

fn file(media_type: &str, text: &'static str) -> HttpResponse {
    HttpResponse::Ok().content_type(format!("{media_type}; charset=utf-8")).body(text)
}
