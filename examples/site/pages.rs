//! What the site serves: the page, its files, and tokens.

use std::sync::atomic::Ordering;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, LOCATION, SET_COOKIE};
use actix_web::web::{self, Data, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use rand::Rng;

use crate::Site;
use crate::posts::POSTS;

pub fn routes(config: &mut ServiceConfig) {
    config
        .route("/", web::get().to(page))
        .route("/token/{post}", web::post().to(token))
        .route("/autopilot", web::post().to(autopilot))
        .route("/site.css", web::get().to(async || file("text/css", include_str!("site.css"))))
        .route("/icon.svg", web::get().to(async || file("image/svg+xml", include_str!("icon.svg"))))
        .route("/site.js", web::get().to(async || file("text/javascript", include_str!("site.js"))));
}

/// `GET /`: the posts. The script enables the buttons.
async fn page(request: HttpRequest, site: Data<Site>) -> HttpResponse {
    let person = person_of(&request).unwrap_or_else(random_person);
    let posts = POSTS.iter().map(|(id, title, text)| {
        format!("<article id=\"{id}\"><h2>{title}</h2><p>{text}</p><button disabled>Like</button></article>")
    });
    let autopilot = if site.autopilot.load(Ordering::Relaxed) { "Stop the others" } else { "Let others like too" };
    let html = include_str!("page.html")
        .replace("{posts}", &posts.collect::<String>())
        .replace("{autopilot}", autopilot)
        .replace("{rolltop}", &site.rolltop);
    // The page may use scripts of itself and of Rolltop, and connect to both. Nothing in it is inline.
    let policy = format!("default-src 'self'; script-src 'self' {0}; connect-src 'self' {0}", site.rolltop);
    // A random id is enough to count each person once. Scripts cannot read it, and pages of other sites do not send it.
    let cookie = format!("person={person}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax");
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CONTENT_SECURITY_POLICY, policy))
        .insert_header((SET_COOKIE, cookie))
        .body(html)
}

/// `POST /token/{post}`: a token with which the person whose cookie it is can like the post. The site decides here who
/// may like what; a real one asks its database. Pages of other origins cannot read the response.
async fn token(request: HttpRequest, post: Path<String>, site: Data<Site>) -> HttpResponse {
    // What comes from outside is checked before it is signed.
    let (Some(person), true) = (person_of(&request), POSTS.iter().any(|(id, ..)| *id == *post)) else {
        return HttpResponse::BadRequest().body("a like needs the cookie of this site and one of its posts");
    };
    match site.signer.like(&person, &post) {
        Ok(token) => HttpResponse::Ok().insert_header((CACHE_CONTROL, "no-store")).body(token),
        Err(error) => {
            eprintln!("a token was not signed: {error}");
            HttpResponse::InternalServerError().finish()
        }
    }
}

/// `POST /autopilot`: starts or stops the likes of made-up persons.
async fn autopilot(site: Data<Site>) -> HttpResponse {
    site.autopilot.fetch_xor(true, Ordering::Relaxed);
    HttpResponse::SeeOther().insert_header((LOCATION, "/")).finish()
}

/// Returns the id in the cookie of a request, if it has the form of one.
fn person_of(request: &HttpRequest) -> Option<String> {
    let cookies = request.headers().get(COOKIE)?.to_str().ok()?;
    let person = cookies.split("; ").find_map(|cookie| cookie.strip_prefix("person="))?;
    (person.len() == 32 && person.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| person.to_owned())
}

/// Returns a new id of a person, which nobody can guess.
pub fn random_person() -> String {
    format!("{:032x}", rand::rng().random::<u128>())
}

fn file(media_type: &str, text: &'static str) -> HttpResponse {
    HttpResponse::Ok().content_type(format!("{media_type}; charset=utf-8")).body(text)
}
