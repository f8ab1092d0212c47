//! What became of the increments of one request.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::item::Flaw;
use crate::board::{Board, Score, Shown, Subject, Value};
use crate::http::codes::ItemCode;
use crate::http::openapi::{score_schema, subject_schema};
use crate::store::{Increment, Outcome, Rejection};

/// How many rejections are shown; all are counted.
pub(super) const SHOWN: usize = 1_000;

/// What became of the increments of one request.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(in crate::http) struct Receipt {
    /// Counted by this request.
    pub(super) accepted: u64,
    /// Not counted again, because their `id` had been counted before.
    pub(super) duplicates: u64,
    /// The first 1,000 that were not counted, each with its reason.
    #[schema(max_items = 1000)]
    pub(super) rejected: Vec<Rejected>,
    /// How many were not counted, by code; absent if there are none.
    #[serde(skip_serializing_if = "RejectedCounts::is_empty")]
    #[schema(schema_with = crate::http::openapi::rejected_counts_schema, required = false)]
    pub(super) rejected_counts: RejectedCounts,
    /// With `return=score`: the new score of each increment counted or counted before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) scores: Option<Vec<NewScore>>,
}

/// How many were rejected, by code.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RejectedCounts([u64; ItemCode::ALL.len()]);

/// The numbers of a receipt.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::http) struct Counts {
    pub(in crate::http) accepted: u64,
    pub(in crate::http) duplicates: u64,
    rejected: RejectedCounts,
}

/// An increment that was not counted.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Rejected {
    /// Its place in the request, from 0 (JSON).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) index: Option<u64>,
    /// Its line in the stream, from 1 (NDJSON).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) line: Option<u64>,
    /// The stable name of the reason.
    #[schema(schema_with = crate::http::openapi::item_code_schema)]
    pub(super) code: ItemCode,
    /// The reason for a person.
    pub(super) detail: String,
}

/// A subject's score after the step that counted the increment.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewScore {
    /// The increment's place in the request, from 0.
    pub(super) index: u64,
    #[schema(schema_with = subject_schema)]
    pub(super) subject: Subject,
    #[schema(schema_with = score_schema)]
    pub(super) score: Option<Shown>,
}

/// Where an item stood in its request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Index(u64),
    Line(u64),
}

/// Items of a request, sorted into increments for the store and flaws for the receipt.
pub(super) struct Judged {
    /// What the number of an item says.
    pub(super) place: fn(u64) -> Place,
    pub(super) increments: Vec<Increment>,
    /// The number of each increment.
    added: Vec<u64>,
    /// Items that are no increments of the board, by number.
    flawed: Vec<(u64, Flaw)>,
}

impl Judged {
    pub(super) fn new(place: fn(u64) -> Place) -> Self {
        Self { place, increments: Vec::new(), added: Vec::new(), flawed: Vec::new() }
    }

    /// Makes room for so many increments.
    pub(super) fn reserve(&mut self, increments: usize) {
        self.increments.reserve(increments);
        self.added.reserve(increments);
    }

    /// Takes an item in. Numbers only grow.
    pub(super) fn take(&mut self, number: u64, item: Result<Increment, Flaw>) {
        match item {
            Ok(increment) => {
                self.increments.push(increment);
                self.added.push(number);
            }
            Err(flaw) => self.flawed.push((number, flaw)),
        }
    }

    /// How many items it has.
    pub(super) fn len(&self) -> usize {
        self.added.len() + self.flawed.len()
    }

    /// The number of the increment that the store was given at this place.
    pub(super) fn number(&self, at: usize) -> u64 {
        self.added.get(at).copied().unwrap_or_default()
    }

    /// Whether another definition of the board could have made a difference to a flaw.
    pub(super) fn depends_on_board(&self) -> bool {
        let of_amount = |code| matches!(code, ItemCode::AmountPrecision | ItemCode::AmountOutOfRange);
        self.flawed.iter().any(|(_, flaw)| of_amount(flaw.code))
    }
}

impl Receipt {
    /// Takes in what became of some items, in the order in which they were sent. Calls `scored` with the place of
    /// each that has a new score, among those the store was given.
    pub(super) fn settle(
        &mut self,
        judged: Judged,
        outcomes: Vec<Outcome>,
        board: &Board,
        mut scored: impl FnMut(usize, Value),
    ) {
        let Judged { place, added, flawed, .. } = judged;
        let mut flawed = flawed.into_iter().peekable();
        for (at, (number, outcome)) in added.into_iter().zip(outcomes).enumerate() {
            while let Some((number, flaw)) = flawed.next_if(|(flawed, _)| *flawed < number) {
                self.reject(place(number), flaw.code, || flaw.detail);
            }
            let score = match outcome {
                Outcome::Counted { score } => {
                    self.accepted += 1;
                    score
                }
                Outcome::Duplicate { score } => {
                    self.duplicates += 1;
                    score
                }
                Outcome::Rejected(rejection) => {
                    self.reject(place(number), code_of(rejection), || detail_of(rejection, board));
                    None
                }
            };
            if let Some(score) = score {
                scored(at, score);
            }
        }
        for (number, flaw) in flawed {
            self.reject(place(number), flaw.code, || flaw.detail);
        }
    }

    /// Notes an item that was not counted. The detail is made only if it will be shown.
    fn reject(&mut self, place: Place, code: ItemCode, detail: impl FnOnce() -> String) {
        self.rejected_counts.0[code as usize] += 1;
        if self.rejected.len() < SHOWN {
            let (index, line) = match place {
                Place::Index(index) => (Some(index), None),
                Place::Line(line) => (None, Some(line)),
            };
            self.rejected.push(Rejected { index, line, code, detail: detail() });
        }
    }

    /// Its numbers.
    pub(super) fn counts(&self) -> Counts {
        Counts { accepted: self.accepted, duplicates: self.duplicates, rejected: self.rejected_counts }
    }
}

impl RejectedCounts {
    fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }
}

impl Serialize for RejectedCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (code, count) in ItemCode::ALL.iter().zip(self.0).filter(|(_, count)| *count > 0) {
            map.serialize_entry(code, &count)?;
        }
        map.end()
    }
}

impl Counts {
    /// How many were rejected for this reason.
    pub(in crate::http) fn rejected(&self, code: ItemCode) -> u64 {
        self.rejected.0[code as usize]
    }
}

fn code_of(rejection: Rejection) -> ItemCode {
    match rejection {
        Rejection::TooLate => ItemCode::TooLate,
        Rejection::TooEarly => ItemCode::TooEarly,
        Rejection::OutOfRange => ItemCode::AmountOutOfRange,
    }
}

fn detail_of(rejection: Rejection, board: &Board) -> String {
    match rejection {
        Rejection::TooLate => "its slot has left the window".to_owned(),
        Rejection::TooEarly => "it is further in the future than clocks may differ".to_owned(),
        Rejection::OutOfRange => {
            let bound = Score { units: board.slot_bound().0, decimals: board.decimals() };
            format!("one subject holds at most {bound} in one slot of this board, and at least -{bound}")
        }
    }
}
