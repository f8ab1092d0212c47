//! The console at `/`, a web page, and the custom element `<rolltop-board>` for other pages.
//!
//! Their sources are in `web/`; the built files are part of the program. They are not operations of the API, and the
//! OpenAPI document does not list them.

use std::str::FromStr;

use actix_web::web::Bytes;

use crate::access::{Caller, Scope};

/// What the console at `/` offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConsoleMode {
    /// There is no console.
    Off,
    /// The console shows boards, subjects and rules.
    #[default]
    Read,
    /// The console also defines and removes boards, rolls them over and audits them.
    ///
    /// This is about the console only: the API accepts the same requests in every mode, as far as the key of a request
    /// allows them.
    Full,
}

impl ConsoleMode {
    /// Returns the name of the mode in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            ConsoleMode::Off => "off",
            ConsoleMode::Read => "read",
            ConsoleMode::Full => "full",
        }
    }
}

impl FromStr for ConsoleMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(ConsoleMode::Off),
            "read" => Ok(ConsoleMode::Read),
            "full" => Ok(ConsoleMode::Full),
            _ => Err("the console is 'off', 'read' or 'full'".to_owned()),
        }
    }
}

/// A file that is served as it is.
#[derive(Clone)]
pub(super) struct File {
    pub(super) path: &'static str,
    pub(super) media_type: &'static str,
    pub(super) body: Bytes,
    /// Whether pages of every origin may load it.
    pub(super) is_public: bool,
}

/// What the page of the console may load: files of this service only, and nothing inline.
pub(super) const CONTENT_SECURITY_POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; object-src 'none'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Returns the files of the console, if there is one, and of the custom element. The console is told what callers
/// without a key may do.
pub(super) fn files(mode: ConsoleMode, simulated_clock: bool, explorer: bool, anonymous: &Caller) -> Vec<File> {
    let file = |path, media_type, text: &'static str| File { path, media_type, body: text.into(), is_public: false };
    let widget = file("/rolltop-board.js", SCRIPT, include_str!("../../web/built/rolltop-board.js"));
    let mut files = vec![File { is_public: true, ..widget }];
    if mode != ConsoleMode::Off {
        let page = page(mode, simulated_clock, explorer, anonymous);
        let page = File { path: "/", media_type: HTML, body: page.into(), is_public: false };
        files.extend([
            page,
            file("/console.js", SCRIPT, include_str!("../../web/built/console.js")),
            file("/console.css", "text/css; charset=utf-8", include_str!("../../web/built/console.css")),
            file("/icon.svg", "image/svg+xml", include_str!("../../web/built/icon.svg")),
        ]);
    }
    files
}

/// Returns the page with the settings that the console has to know.
fn page(mode: ConsoleMode, simulated_clock: bool, explorer: bool, anonymous: &Caller) -> String {
    let clock = if simulated_clock { "simulated" } else { "system" };
    let explorer = if explorer { "on" } else { "off" };
    let scopes: Vec<&str> = Scope::ALL.into_iter().filter(|scope| anonymous.may(*scope)).map(Scope::as_str).collect();
    let (mode, scopes, boards) = (mode.as_str(), scopes.join(","), anonymous.boards().to_string());
    let settings = format!("console={mode} clock={clock} explorer={explorer} anonymous={scopes} boards={boards}");
    include_str!("../../web/built/index.html").replace("{{settings}}", &settings)
}
