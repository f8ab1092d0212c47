//! What `rolltop serve` says on a terminal: where the console is, how to count one, and how to stop.

use super::format::printable;
use crate::access::Scope;
use crate::board::{Definition, Key, Kind};
use crate::config::Config;
use crate::http::ConsoleMode;

/// The address that commands use by default.
const USUAL: &str = "http://127.0.0.1:8080";

/// The board of the examples in the documents.
const DOCUMENTED: &str = "hot-posts";

/// Returns three lines for the service at `base`, of a user who started it as `program`.
pub(super) fn first_steps(config: &Config, base: &str, program: &str, has_colors: bool) -> String {
    let program = if is_plain(program) { program } else { "rolltop" };
    let url = if base == USUAL { String::new() } else { format!(" --url {base}") };
    let look = match config.console {
        ConsoleMode::Off => format!("{program} boards{url}"),
        ConsoleMode::Read | ConsoleMode::Full => format!("{base}/"),
    };
    let anonymous = &config.anonymous;
    let boards = || config.boards.iter().filter(|(_, board)| counts_ones(board));
    let count = match boards().find(|(name, _)| name.as_str() == DOCUMENTED).or_else(|| boards().next()) {
        Some((name, board)) => {
            let is_open = anonymous.scopes.allows(Scope::Write) && anonymous.boards.includes(name);
            let key = if is_open { "" } else { "ROLLTOP_KEY=rt_… " };
            format!("{key}{program} post {name} {}{url}", subject(board))
        }
        None => format!("{program} define likes 'COUNT(24h, like, post_id)' --slot 1h{url}"),
    };
    let (bold, plain) = if has_colors { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let line = |name: &str, what: &str| format!("  {bold}{name:<10}{plain}  {}\n", printable(what));
    [line("Look", &look), line("Count one", &count), line("Stop", "Ctrl+C")].concat()
}

/// Returns whether a text needs no quotes in a shell.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_plain)
}

/// Returns whether a board ranks subjects of which nothing but the name is needed to count one.
fn counts_ones(board: &Definition) -> bool {
    board.ranked && board.metric.by.is_none() && board.tie_break.is_none() && matches!(board.kind(), Kind::Sum)
}

/// Returns a name for a subject of the board.
fn subject(board: &Definition) -> String {
    match &board.metric.subject {
        Key::Field(field) => format!("{}-1", field.trim_end_matches("_id")),
        Key::Prefix { .. } | Key::Tuple(_) => "first".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{DEFAULT_FILE, Settings};

    fn said(text: &str, base: &str, program: &str) -> String {
        let config = Config::from_text("test.toml", text, Settings::default()).unwrap();
        first_steps(&config, base, program, false)
    }

    #[test]
    fn the_lines_name_what_works() {
        assert_eq!(
            said(DEFAULT_FILE, "http://127.0.0.1:8080", "target/release/rolltop"),
            "  Look        http://127.0.0.1:8080/\n  \
               Count one   target/release/rolltop post hot-posts post-1\n  \
               Stop        Ctrl+C\n"
        );
        let on_other_port = said(DEFAULT_FILE, "http://127.0.0.1:9090", "my programs/rolltop");
        assert!(
            on_other_port.contains(" rolltop post hot-posts post-1 --url http://127.0.0.1:9090\n"),
            "{on_other_port}"
        );
        let config = Config::from_text("test.toml", DEFAULT_FILE, Settings::default()).unwrap();
        assert!(first_steps(&config, USUAL, "rolltop", true).starts_with("  \x1b[1mLook      \x1b[0m  http"));
    }

    #[test]
    fn a_board_that_counts_ones_is_chosen_and_a_key_named_where_it_is_needed() {
        let board = |name: &str, definition: &str| format!("[boards.{name}]\nmetric = {definition}\n");
        let boards = [
            board("by", "\"COUNT(all, e, s BY k)\""),
            board("mean", "\"AVG(all, e, v, s)\""),
            board("unranked", "\"COUNT(1h, e, s)\"\nslot = \"1m\"\nranked = false"),
            board("capped", "\"COUNT(1d, e, s)\"\nslot = \"1d\"\ncap = {per = \"u\", most = 1, every = \"1d\"}"),
        ]
        .concat();
        let none = said(&boards, USUAL, "rolltop");
        assert!(none.contains("  rolltop define likes 'COUNT(24h, like, post_id)' --slot 1h\n"), "{none}");
        let keyed =
            format!("anonymous = \"view\"\nconsole = \"off\"\n{boards}{}", board("z", "\"COUNT(all, e, (a, b))\""));
        let keyed = said(&keyed, USUAL, "rolltop");
        assert!(keyed.contains("Count one   ROLLTOP_KEY=rt_… rolltop post z first\n"), "{keyed}");
        assert!(keyed.contains("Look        rolltop boards\n"), "{keyed}");
    }
}
