//! Tests of the files of the console and of the custom element: how they are served, and that they are up to date.
//!
//! What they do in a browser is tested in `tests/browser/`.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use rolltop::http::ConsoleMode;
use sha2::{Digest, Sha256};

use crate::site::Site;

/// The files of the console.
const CONSOLE: [&str; 4] = ["/", "/console.js", "/console.css", "/icon.svg"];
const WIDGET: &str = "/rolltop-board.js";

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("web")
}

async fn with_console(mode: ConsoleMode) -> Site {
    Site::with(|options| options.console = mode).await
}

#[actix_web::test]
async fn the_console_may_load_files_of_this_service_only() {
    let site = with_console(ConsoleMode::Full).await;
    for path in CONSOLE {
        let file = site.client.get(path).await;
        assert_eq!(file.status, 200, "{path}");
        assert!(file.header("content-security-policy").starts_with("default-src 'self';"), "{path}: {file:?}");
        assert_eq!(file.header("x-content-type-options"), "nosniff", "{path}");
    }
    let page = site.client.get("/").await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let settings = "console=full clock=simulated explorer=on anonymous=view,read,write,manage,admin,metrics boards=*";
    assert!(page.text.contains(&format!("content=\"{settings}\"")), "{}", page.text);
    // Relative, so that it also works below a path of a proxy; and nothing inline, which the policy forbids.
    for reference in ["src=\"console.js\"", "href=\"console.css\"", "href=\"icon.svg\""] {
        assert!(page.text.contains(reference), "{reference} in {}", page.text);
    }
    for absent in ["{{", "<style", "style=", "onclick", "=\"/"] {
        assert!(!page.text.contains(absent), "{absent} in {}", page.text);
    }
    for path in ["/", "/console.css"] {
        let text = site.client.get(path).await.text;
        assert!(!text.contains("http:") && !text.contains("https:"), "{path} refers to another place");
    }
}

#[actix_web::test]
async fn a_browser_that_has_a_file_does_not_get_it_again() {
    let site = with_console(ConsoleMode::Read).await;
    for path in CONSOLE.into_iter().chain([WIDGET]) {
        let file = site.client.get(path).await;
        let again = site.client.send_with(Method::GET, path, &[("if-none-match", file.header("etag"))], "").await;
        assert_eq!((again.status, again.bytes.len()), (304, 0), "{path}");
        let head = site.client.send(Method::HEAD, path, None, "").await;
        assert_eq!((head.status, head.header("content-type")), (200, file.header("content-type")), "{path}");
        let post = site.client.send(Method::POST, path, None, "").await;
        assert_eq!(post.refusal(), (405, "method_not_allowed"), "{path}");
    }
    let coded = site.client.send_with(Method::GET, "/console.js", &[("accept-encoding", "gzip")], "").await;
    assert_eq!(coded.header("content-encoding"), "gzip");
}

#[actix_web::test]
async fn without_a_console_the_custom_element_is_still_served() {
    let site = with_console(ConsoleMode::Off).await;
    for path in CONSOLE {
        assert_eq!(site.client.get(path).await.refusal(), (404, "not_found"), "{path}");
    }
    let widget = site.client.get(WIDGET).await;
    assert_eq!((widget.status, widget.header("content-type")), (200, "text/javascript; charset=utf-8"));
    let site = with_console(ConsoleMode::Read).await;
    assert!(site.client.get("/").await.text.contains("content=\"console=read "));
}

/// Scripts that are modules are loaded as other requests between origins are. What they then read needs `cors_origins`.
#[actix_web::test]
async fn pages_of_every_origin_may_load_the_custom_element() {
    for origins in [vec![], vec!["https://app.example".to_owned()], vec!["*".to_owned()]] {
        let site = Site::with(|options| options.cors_origins = origins.clone()).await;
        for (origin, path) in [
            ("https://app.example", WIDGET),
            ("https://other.example", WIDGET),
            ("https://other.example", "/console.js"),
        ] {
            let answer = site.client.send_with(Method::GET, path, &[("origin", origin)], "").await;
            let allowed = answer.headers.get_all("access-control-allow-origin").iter().collect::<Vec<_>>();
            let is_allowed = allowed.len() == 1 && (allowed[0] == "*" || allowed[0] == origin);
            let expected = path == WIDGET || origins == ["*"];
            assert_eq!(is_allowed, expected, "{path} for {origin}, allowed {origins:?}: {allowed:?}");
        }
    }
}

/// They are what users download.
#[test]
fn the_built_files_are_small() {
    let size = |names: &[&str]| -> usize {
        let gzipped = |name: &&str| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&fs::read(web().join("built").join(name)).expect("a built file")).expect("memory");
            encoder.finish().expect("memory").len()
        };
        names.iter().map(gzipped).sum()
    };
    let console = size(&["index.html", "console.js", "console.css", "icon.svg"]);
    assert!(console < 60_000, "the console has {console} bytes, gzipped");
    let widget = size(&["rolltop-board.js"]);
    assert!(widget < 10_000, "the custom element has {widget} bytes, gzipped");
}

/// `web/build.mjs` computes the same hash.
#[test]
fn the_built_files_are_those_of_the_sources() {
    let mut paths: Vec<String> = ["build.mjs", "package.json", "package-lock.json"].map(str::to_owned).into();
    for folder in ["console", "widget", "../clients/typescript/src"] {
        find_files(&web(), folder, &mut paths);
    }
    // It has only types, which are no part of a bundle.
    paths.retain(|path| path != "../clients/typescript/src/schema.ts");
    paths.sort();
    let mut hash = Sha256::new();
    for path in &paths {
        let text = fs::read(web().join(path)).expect("a source");
        hash.update(format!("{path} {}\n", text.len()));
        hash.update(text);
    }
    let hash = hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let built = fs::read_to_string(web().join("built/sources.sha256")).expect("the hash of the sources");
    assert_eq!(built.trim(), hash, "web/built is older than the sources: run \"npm ci && npm run build\" in web/");
}

/// Adds the paths of all files in a folder, relative to `root`.
fn find_files(root: &Path, folder: &str, paths: &mut Vec<String>) {
    for entry in fs::read_dir(root.join(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let path = format!("{folder}/{}", entry.file_name().to_str().expect("a name"));
        match entry.file_type().expect("a type").is_dir() {
            true => find_files(root, &path, paths),
            false => paths.push(path),
        }
    }
}
