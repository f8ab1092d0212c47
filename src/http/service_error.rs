//! Problems for errors of the service, with the hints that name HTTP paths, flags and configuration.

use std::time::Duration;

use serde_json::json;

use super::codes::Code;
use super::problem::Problem;
use crate::board::CloseError;
use crate::board::{Board, Definition, FieldFault};
use crate::service::{ServiceError, StoreError};

/// The time after which events of a source that waits are sent again.
const SOURCE_PAUSE: Duration = Duration::from_secs(1);

impl From<ServiceError> for Problem {
    fn from(error: ServiceError) -> Self {
        let detail = error.to_string();
        match error {
            ServiceError::UnknownBoard(name) => {
                let detail = format!("{detail}; define it with PUT /v1/boards/{name}");
                Problem::new(Code::UnknownBoard, detail).with("board", name.as_str())
            }
            ServiceError::Conflict { existing, keys } => Problem::new(Code::BoardConflict, detail)
                .with("board", existing.name().as_str())
                .with("keys", keys)
                .with("existing", json!(existing.definition())),
            ServiceError::TooManyBoards { limit } => {
                let detail = format!("{detail}; remove one with DELETE /v1/boards/{{board}}, or raise --max-boards");
                Problem::new(Code::TooManyBoards, detail).with("limit", limit)
            }
            ServiceError::Definition(error) => Problem::field(error.field(), detail),
            ServiceError::Successor(error) => Problem::field(error.field(), detail),
            ServiceError::UnknownEdition { board, role } => {
                Problem::new(Code::UnknownEdition, detail).with("board", board.as_str()).with("of", role.name())
            }
            ServiceError::SeasonUnsupported { board, .. } => {
                Problem::new(Code::Unsupported, detail).with("board", board.as_str())
            }
            ServiceError::NotClosed { board, reason } => {
                let problem = Problem::new(Code::PeriodConflict, detail).with("board", board.as_str());
                match reason {
                    CloseError::InGrace(until) => problem.with("until", until.to_string()),
                    CloseError::NoSeason | CloseError::ByCalendar | CloseError::JustBegun => problem,
                }
            }
            ServiceError::NoSeason(board) => Problem::new(Code::UnknownPeriod, detail).with("board", board.as_str()),
            ServiceError::UnknownPeriod { board, period, known } => {
                let known: Vec<String> = known.iter().map(ToString::to_string).collect();
                let problem = Problem::new(Code::UnknownPeriod, detail).with("board", board.as_str());
                problem.with("period", period.as_str()).with("periods", known)
            }
            ServiceError::EditionsRefused { board, .. } => {
                Problem::new(Code::EditionsConflict, detail).with("board", board.as_str())
            }
            ServiceError::NotFull { board, full_at } => {
                let full_at = full_at.map(|full_at| full_at.to_string());
                Problem::new(Code::SuccessorNotFull, detail).with("board", board.as_str()).with("full_at", full_at)
            }
            ServiceError::Tiers(error) => error.into(),
            ServiceError::TooManyTiers => Problem::new(Code::Unsupported, detail),
            ServiceError::NotRanked(name) => Problem::new(Code::NotRanked, detail).with("board", name.as_str()),
            ServiceError::NoKeeper { keeper, .. } => {
                Problem::new(Code::NoAttributesBoard, detail).with("board", keeper.as_str())
            }
            ServiceError::MissingKey { board } => about_key(Code::MissingKey, detail, &board),
            ServiceError::KeyForm { board, .. } => about_key(Code::InvalidField, detail, &board),
            ServiceError::UnexpectedKey { board } => about_key(Code::UnexpectedKey, detail, &board),
            ServiceError::UnknownWindow { edition, .. } => {
                let lengths: Vec<String> = edition.windows().iter().map(|window| window.length().to_string()).collect();
                Problem::field("window", detail).with("windows", lengths)
            }
            ServiceError::CursorOfOtherWindow { .. } => Problem::field("window", detail),
            ServiceError::StaleCursor(name) => Problem::new(Code::StaleCursor, detail).with("board", name.as_str()),
            ServiceError::ImportRefused { open, .. } => {
                let problem = Problem::new(Code::ImportRefused, detail);
                match open {
                    Some(open) => problem.with("import", open.to_string()),
                    None => problem,
                }
            }
            ServiceError::InvalidContents { line, .. } => {
                let problem = Problem::new(Code::InvalidContents, detail);
                match line {
                    Some(line) => problem.with("line", line),
                    None => problem,
                }
            }
            ServiceError::NoValues(name) => Problem::new(Code::NoValues, detail).with("board", name.as_str()),
            ServiceError::AsOfUnsupported { board, .. } => {
                Problem::new(Code::AsOfUnsupported, detail).with("board", board.as_str())
            }
            ServiceError::EdgeUnsupported { board, .. } => {
                Problem::new(Code::EdgeUnsupported, detail).with("board", board.as_str())
            }
            ServiceError::TooLong { window, .. } => {
                Problem::new(Code::BeyondWindow, detail).with("field", "last").with("maximum", window.to_string())
            }
            ServiceError::NotKept { floor, .. } => {
                Problem::new(Code::BeyondWindow, detail).with("field", "as_of").with("floor", floor.to_string())
            }
            ServiceError::TokenOutlivesIds { board, .. } => {
                let detail =
                    format!("{detail}; sign tokens that expire earlier, or define the board with a longer 'dedupe'");
                Problem::new(Code::TokenOutlivesIds, detail).with("board", board.as_str())
            }
            ServiceError::InvalidQuery { field, .. } => Problem::field(field, detail),
            ServiceError::NoBoard { metric, suggestion } => {
                let detail = format!("{detail}; {}", suggested(suggestion.as_ref()));
                let problem = Problem::new(Code::NoBoard, detail).with("metric", metric.to_string());
                match suggestion {
                    Some((name, definition)) => problem.with("board", name).with("definition", json!(definition)),
                    None => problem,
                }
            }
            ServiceError::NotServed { metric, .. } => {
                let detail = format!(
                    "'board': {detail}; leave it out, or name a board of the same metric whose window is as long"
                );
                Problem::field("board", detail).with("metric", metric.to_string())
            }
            ServiceError::UnknownRule(name) => {
                let detail = format!("{detail}; GET /v1/rules lists the configured rules");
                Problem::new(Code::UnknownRule, detail).with("rule", name)
            }
            ServiceError::Field(fault) => {
                let code = match fault {
                    FieldFault::Missing { .. } => Code::MissingField,
                    FieldFault::Invalid { .. } | FieldFault::Amount { .. } => Code::InvalidField,
                };
                Problem::new(code, detail).with("field", format!("fields.{}", fault.field()))
            }
            ServiceError::Denied(denied) => denied.into(),
            ServiceError::UnknownKey(id) => Problem::new(Code::UnknownKey, detail).with("key", id.to_string()),
            ServiceError::ConfiguredKey(id) | ServiceError::KeyChanged(id) => {
                Problem::new(Code::KeyConflict, detail).with("key", id.to_string())
            }
            ServiceError::Key(error) => Problem::field(error.field(), detail),
            ServiceError::UnknownSource(name) => {
                let detail = format!("{detail}; define it with PUT /v1/sources/{name}");
                Problem::new(Code::UnknownSource, detail).with("source", name.as_str())
            }
            ServiceError::SourceBehind { source_name, reached, .. } => {
                let problem = Problem::new(Code::SourceBehind, detail).with("source", source_name.as_str());
                problem.with("reached", reached.to_string())
            }
            ServiceError::SourceWaits { source_name, reached } => {
                let problem = Problem::new(Code::SourceWaits, detail).with("source", source_name.as_str());
                problem.with("reached", reached.to_string()).retry_after(SOURCE_PAUSE)
            }
            ServiceError::FillRefused { board, .. } => {
                Problem::new(Code::Unsupported, detail).with("board", board.as_str())
            }
            ServiceError::SourceWithoutBoards(name) | ServiceError::TooManyBoardsOfSource(name) => {
                Problem::new(Code::Unsupported, detail).with("source", name.as_str())
            }
            ServiceError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let (detail, retry_after) = (detail_of(&error), error.retry_after());
        let problem = match error {
            StoreError::EditionsBusy { .. } => Problem::new(Code::EditionsConflict, detail),
            StoreError::BoardChanged | StoreError::StaleEpoch => Problem::new(Code::BoardChanged, detail),
            StoreError::BeyondWindow { floor } => {
                Problem::new(Code::BeyondWindow, detail).with("floor", floor.to_string())
            }
            StoreError::ClockBackward { now } => Problem::new(Code::ClockBackward, detail).with("now", now.to_string()),
            StoreError::ClockNotSimulated => Problem::new(Code::NotFound, detail),
            StoreError::Overloaded { .. } => Problem::new(Code::Overloaded, detail),
            StoreError::Unreachable { .. } => Problem::new(Code::StoreUnreachable, detail),
            StoreError::TimedOut { .. } => Problem::new(Code::StoreTimeout, detail),
            StoreError::ReadOnly { .. } => Problem::new(Code::StoreReadOnly, detail),
            StoreError::MemoryFull => Problem::new(Code::MemoryFull, detail),
            StoreError::ClockDoubted { .. } => Problem::new(Code::ClockDoubted, detail),
            StoreError::Unsupported { .. } | StoreError::NoBackupDirectory | StoreError::TableFull { .. } => {
                Problem::new(Code::Unsupported, detail)
            }
            StoreError::WalkLost => Problem::new(Code::StaleCursor, detail),
            StoreError::Frozen { .. } => Problem::new(Code::BoardFrozen, detail),
            StoreError::TooManyModerated => Problem::new(Code::TooManyModerated, detail),
            StoreError::ImportOpen => Problem::new(Code::ImportOpen, detail),
            StoreError::NoImport { .. } => Problem::new(Code::ImportRefused, detail),
            StoreError::BackupFailed { .. } => Problem::new(Code::BackupFailed, detail),
            StoreError::Unreadable { name, .. } | StoreError::DamagedPeriod { name, .. } => {
                Problem::new(Code::BoardUnreadable, detail).with("board", name)
            }
            StoreError::Emptied { .. } => Problem::new(Code::NotReady, detail),
            StoreError::ClockModeMismatch { .. }
            | StoreError::Corrupt { .. }
            | StoreError::DataDirectory { .. }
            | StoreError::InvalidRow { .. }
            | StoreError::Setup { .. }
            | StoreError::SourceBehind { .. }
            | StoreError::Backend { .. } => Problem::new(Code::Internal, detail),
        };
        problem.retry_after_if(retry_after)
    }
}

/// Returns a problem about the key of a ranking of a board.
fn about_key(code: Code, detail: String, board: &Board) -> Problem {
    let metric = board.definition().metric.to_string();
    Problem::new(code, detail).with("field", "by").with("board", board.name().as_str()).with("metric", metric)
}

/// Returns the message of a store error, with the flag that changes the outcome if there is one.
pub(super) fn detail_of(error: &StoreError) -> String {
    match error {
        StoreError::ClockDoubted { .. } => format!("{error}, or after a restart with --trust-clock"),
        StoreError::ClockNotSimulated => {
            format!("{error}; start a new store with --clock simulated=<time> to set the clock")
        }
        StoreError::MemoryFull => format!("{error} (--memory-limit)"),
        StoreError::NoBackupDirectory => format!("{error}; set backup_dir (--backup-dir)"),
        _ => error.to_string(),
    }
}

/// Returns how to define the missing board in the configuration file.
fn suggested(suggestion: Option<&(String, Box<Definition>)>) -> String {
    match suggestion {
        Some((name, definition)) => {
            let slot = definition.slot.map_or_else(String::new, |slot| format!(", slot = \"{slot}\""));
            let decimals = match definition.decimals.digits() {
                0 => String::new(),
                digits => format!(", decimals = {digits}"),
            };
            let ranked = if definition.ranked { "" } else { ", ranked = false" };
            let metric = toml::Value::from(definition.metric.to_string());
            format!("this board would: [boards.\"{name}\"] metric = {metric}{slot}{decimals}{ranked}")
        }
        None => "no board can: no common slot length divides its window into at most 2,000 slots".to_owned(),
    }
}
