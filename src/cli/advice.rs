//! What to type next after an error.

use rolltop_client::Error;

use super::server::KEY;

/// Returns the text of an error with its causes. That of an error of the server has what may help.
pub(super) fn with_advice(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        if let Some(error) = cause.downcast_ref::<Error>() {
            return join(text, &of_server(error));
        }
        text = join(text, &cause.to_string());
    }
    text
}

/// Returns whether a request was not sent, because URL, key or certificates are not what they should be.
pub(super) fn is_of_usage(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Error>().is_some_and(|error| error.code() == "invalid_setting")
}

/// Returns the text of an error of the server with what may help.
pub(super) fn of_server(error: &Error) -> String {
    match advice(error) {
        Some(advice) => format!("{}; {advice}", error.detail()),
        None => error.detail().to_owned(),
    }
}

/// Adds a cause to a text, unless that says it already, as those of many errors do.
fn join(text: String, cause: &str) -> String {
    match text.as_str() {
        "" => cause.to_owned(),
        _ if text.contains(cause) => text,
        _ => format!("{text}: {cause}"),
    }
}

fn advice(error: &Error) -> Option<String> {
    let board = error.problem().get("board").and_then(|board| board.as_str()).unwrap_or("BOARD");
    let text = match error.code() {
        // By openssl, a self-signed certificate is one of an authority unless it is told otherwise.
        "unreachable" if error.detail().contains("CaUsedAsEndEntity") => {
            "the certificate is one of an authority: make it with basicConstraints=critical,CA:FALSE"
        }
        "unreachable" if error.detail().contains("certificate") => return None,
        "unreachable" => "is `rolltop serve` running there? --url or --profile name another server",
        "key_required" if std::env::var_os(KEY).is_none() => {
            "commands take the key from the environment variable ROLLTOP_KEY, or from a --profile"
        }
        "unknown_board" => "`rolltop boards` lists those that there are, and `rolltop define` makes one",
        "missing_key" => return Some(format!("--by names it, and `rolltop boards {board} --keys` lists them")),
        "unknown_window" => return Some(format!("`rolltop boards {board}` has its windows")),
        "board_conflict" | "board_exists" => {
            return Some(format!(
                "`rolltop next define {board} …` counts another definition beside it, to take over later"
            ));
        }
        "invalid_field" if error.detail() == "the field 'slot' is missing" => {
            "--slot says in what steps the window moves, such as --slot 1h"
        }
        "successor_not_full" => "here that is --early",
        "editions_conflict" => {
            return Some(format!(
                "here that is `rolltop next cancel {board}`, or `rolltop next forget {board}` for a previous one"
            ));
        }
        "unknown_edition" if error.problem().get("of").is_some_and(|of| of == "next") => {
            return Some(format!("`rolltop next define {board} …` makes one"));
        }
        "unexpected_answer" => "is this a server of rolltop?",
        _ => return None,
    };
    Some(text.to_owned())
}
