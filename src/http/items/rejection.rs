//! Rejected items: their position in the request, and codes and details of the reasons.

use serde::Serialize;
use serde_json::{Value, json};

use crate::board::{AmountError, Board, Mode, WindowLength};
use crate::http::codes::{Code, ItemCode};
use crate::http::counts::RejectedCounts;
use crate::http::problem::Problem;
use crate::service::{Rejection, StoreError};

/// Maximum number of rejections that a response lists; all are counted.
pub(in crate::http) const MAX_SHOWN: usize = 1_000;

/// Position of an item in its request.
#[derive(Clone, Copy, Debug)]
pub(in crate::http) enum Position {
    /// Index in a JSON body, from 0.
    Index(u64),
    /// Line of a stream, from 1.
    Line(u64),
}

impl Position {
    /// Returns the fields `index` and `line` of a response, one of which is set.
    pub(in crate::http) fn index_and_line(self) -> (Option<u64>, Option<u64>) {
        match self {
            Position::Index(index) => (Some(index), None),
            Position::Line(line) => (None, Some(line)),
        }
    }
}

/// Returns the problem of a request that counted nothing, with the rejections as its receipt would have them. If memory
/// is one of the reasons, the same request may succeed later.
pub(in crate::http) fn rejection_problem(rejected: &[impl Serialize], counts: &RejectedCounts) -> Problem {
    let rejected = json!(rejected);
    let is_memory_full = counts.of(ItemCode::MemoryFull) > 0;
    let of_memory = |one: &&Value| one["code"] == ItemCode::MemoryFull.as_str();
    let first = rejected.as_array().and_then(|all| all.iter().find(of_memory)).unwrap_or(&rejected[0]).clone();
    let text = |member: &str| first[member].as_str().unwrap_or_default();
    let place = match &first["index"] {
        Value::Null => String::new(),
        index => format!("item {index}: "),
    };
    let detail = format!("nothing was counted: {place}{} ({})", text("detail"), text("code"));
    let problem = if is_memory_full {
        Problem::new(Code::MemoryFull, detail).retry_after_if(StoreError::MemoryFull.retry_after())
    } else {
        Problem::new(Code::Rejected, detail)
    };
    problem.with("index", first["index"].clone()).with("rejected", rejected).with("rejected_counts", json!(counts))
}

/// Returns the code of a rejection by the store.
pub(in crate::http) fn code_of_rejection(rejection: Rejection) -> ItemCode {
    match rejection {
        Rejection::TooLate => ItemCode::TooLate,
        Rejection::TooEarly => ItemCode::TooEarly,
        Rejection::OutOfRange => ItemCode::AmountOutOfRange,
        Rejection::MemoryFull => ItemCode::MemoryFull,
        Rejection::TooManySubjects => ItemCode::TooManySubjects,
        Rejection::TooManyKeys => ItemCode::TooManyKeys,
        Rejection::SubjectFrozen => ItemCode::SubjectFrozen,
        Rejection::ImportOpen => ItemCode::ImportOpen,
        Rejection::WrongPeriod => ItemCode::WrongPeriod,
    }
}

/// Returns the code of an amount that a board does not accept.
pub(in crate::http) fn code_of_amount(error: &AmountError) -> ItemCode {
    match error {
        AmountError::NotANumber { .. } => ItemCode::InvalidAmount,
        AmountError::Precision { .. } => ItemCode::AmountPrecision,
        AmountError::Range { .. } => ItemCode::AmountOutOfRange,
    }
}

/// Returns the detail of a rejection by the store.
pub(in crate::http) fn detail_of_rejection(rejection: Rejection, board: &Board) -> String {
    match rejection {
        Rejection::TooLate => match (board.definition().mode, board.edition().kept_slots()) {
            // Only a sample can be too late here: other items that are older than the kept slots count in the total.
            (Mode::Sliding, Some(kept_slots)) => {
                format!("the slot is older than those that this board keeps, {}", kept_slots.length())
            }
            (Mode::Sliding, None) if board.season().is_some() => {
                format!("the time is in no period that takes items; these are {}", open_periods(board))
            }
            (Mode::Sliding, None) if board.tracks().len() > 1 => {
                format!("the slot has left every window of this board, even the longest ({})", longest(board))
            }
            (Mode::Sliding, None) => "the slot has left the window".to_owned(),
            (Mode::FromFirst, _) => "a window that begins at this time has already ended".to_owned(),
        },
        Rejection::TooEarly => "the time is too far ahead of the store's clock".to_owned(),
        Rejection::MemoryFull => "the store has no memory for it; memory_limit says how much there is".to_owned(),
        Rejection::TooManySubjects => "the subject is new, and the board has as many as max_subjects allows".to_owned(),
        Rejection::TooManyKeys => {
            let most = board.definition().most_keys().unwrap_or_default();
            let of_window = if board.edition().windows().len() > 1 { " in one of its windows" } else { "" };
            format!("the key has no ranking, and the board has as many keys{of_window} as its max_keys allows, {most}")
        }
        Rejection::SubjectFrozen => "the subject is frozen: nothing counts for it until that is ended".to_owned(),
        Rejection::ImportOpen => {
            "contents are being imported into the board, which takes no samples until that has ended".to_owned()
        }
        Rejection::WrongPeriod => {
            format!(
                "the time is not in the period that the request names; those that take items are {}",
                open_periods(board)
            )
        }
        Rejection::OutOfRange => {
            // The window with the smallest bound is the first to refuse an amount.
            let main = board.edition().main();
            let bounds = board.written_tracks().iter().map(|track| (track.slot_bound(), track.is_all_time()));
            let (units, is_all_time) = bounds.min().unwrap_or((main.slot_bound(), main.is_all_time()));
            let score = |bound| board.scale().shown(board.scale().largest_within(bound));
            let bound = score(units);
            let keys = board.written_tracks().iter().filter_map(|track| Some(track.key_bound()?.most)).min();
            let keys = keys.map_or_else(String::new, |most| format!(", and its second key between -{most} and {most}"));
            if board.edition().kept_slots().is_some() {
                let total = score(main.slot_bound());
                return format!(
                    "the amount of a subject on this board must be between -{bound} and {bound} in one kept slot, and \
                    between -{total} and {total} in all{keys}"
                );
            }
            let place = match (is_all_time, board.written_tracks()) {
                (true, _) => "on",
                (false, [_]) => "in one slot of",
                (false, _) => "in one slot of any window of",
            };
            format!("the amount of a subject {place} this board must be between -{bound} and {bound}{keys}")
        }
    }
}

/// Returns the names of the periods that take items, as far as this instance knows.
fn open_periods(board: &Board) -> String {
    let names: Vec<_> = board.editions().iter().filter_map(|edition| edition.period_name()).collect();
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// Returns the length of the longest window of the board.
fn longest(board: &Board) -> WindowLength {
    let lengths = board.edition().windows().iter().map(|window| window.length());
    lengths.fold(board.edition().main().length(), |longest, length| {
        if length.approximate_millis() > longest.approximate_millis() { length } else { longest }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Definition, Generation};

    #[test]
    fn details_are_about_every_window() {
        let board = |text: &str| {
            let definition: Definition = serde_json::from_str(text).unwrap();
            Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap()
        };
        let one = board(r#"{"metric":"COUNT(1h, like, post)","slot":"1m"}"#);
        let several = board(r#"{"metric":"COUNT(1h, like, post)","slot":"1m","windows":["7d/6h","24h/15m"]}"#);
        let all_time = board(r#"{"metric":"COUNT(all, like, post)"}"#);
        let details =
            |board| [Rejection::TooLate, Rejection::OutOfRange].map(|rejection| detail_of_rejection(rejection, board));
        let in_slot = |place: &str, bound: i64| {
            format!("the amount of a subject {place} this board must be between -{bound} and {bound}")
        };
        let max = (1_i64 << 53) - 1;
        assert_eq!(details(&one), ["the slot has left the window".to_owned(), in_slot("in one slot of", max / 120)]);
        assert_eq!(
            details(&several),
            [
                "the slot has left every window of this board, even the longest (7d)".to_owned(),
                in_slot("in one slot of any window of", max / 192)
            ]
        );
        assert_eq!(details(&all_time)[1], in_slot("on", max));
        let kept = board(r#"{"metric":"COUNT(all, like, post)","slot":"1h","keep":"2d"}"#);
        let [late, amount] = details(&kept);
        assert_eq!(late, "the slot is older than those that this board keeps, 2d");
        let bounds = [max / 96, max].map(|bound| format!("between -{bound} and {bound} in "));
        assert!(bounds.iter().all(|bound| amount.contains(bound)), "{amount}");
    }
}
