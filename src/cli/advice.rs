//! What to type next after an error.

use rolltop_client::Error;

use super::server::KEY;

/// Returns the text of an error. That of an error of the server has what the command was doing, and what may help.
pub(super) fn with_advice(error: &anyhow::Error) -> String {
    let Some(of_server) = error.downcast_ref::<Error>() else { return error.to_string() };
    let mut parts = Vec::new();
    for cause in error.chain() {
        if cause.is::<Error>() {
            break;
        }
        parts.push(cause.to_string());
    }
    parts.push(of_server.detail().to_owned());
    match advice(of_server) {
        Some(advice) => format!("{}; {advice}", parts.join(": ")),
        None => parts.join(": "),
    }
}

fn advice(error: &Error) -> Option<String> {
    let board = error.problem().get("board").and_then(|board| board.as_str()).unwrap_or("BOARD");
    let text = match error.code() {
        // By openssl, a self-signed certificate is one of an authority unless it is told otherwise.
        "unreachable" if error.detail().contains("CaUsedAsEndEntity") => {
            "the certificate is one of an authority: make it with basicConstraints=critical,CA:FALSE"
        }
        "unreachable" => "is `rolltop serve` running there? --url or --profile name another server",
        "key_required" if std::env::var_os(KEY).is_none() => {
            "commands take the key from the environment variable ROLLTOP_KEY, or from a --profile"
        }
        "unknown_board" => "`rolltop boards` lists those that there are",
        "missing_key" => return Some(format!("--by names it, and `rolltop boards {board} --keys` lists them")),
        "unknown_window" => return Some(format!("`rolltop boards {board}` has its windows")),
        "board_conflict" | "board_exists" => {
            return Some(format!(
                "`rolltop next define {board} …` counts another definition beside it, to take over later"
            ));
        }
        "unknown_edition" => return Some(format!("`rolltop next define {board} …` makes one")),
        "unexpected_answer" => "is this a server of rolltop?",
        _ => return None,
    };
    Some(text.to_owned())
}
