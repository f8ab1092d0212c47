//! What became of the increments, or samples, of one request.

use serde::Serialize;
use utoipa::ToSchema;

use crate::board::{Board, Shown, Subject, Value};
use crate::http::codes::ItemCode;
use crate::http::intake::{Flaw, Place, RejectedCounts, SHOWN, code_of, detail_of};
use crate::http::openapi::{score_schema, subject_schema};
use crate::store::{Increment, Outcome};

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

/// The numbers of a receipt.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::http) struct Counts {
    pub(in crate::http) accepted: u64,
    pub(in crate::http) duplicates: u64,
    pub(in crate::http) rejected: RejectedCounts,
}

/// An increment that was not counted.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Rejected {
    /// Its place in the request, from 0 (JSON).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    index: Option<u64>,
    /// Its line in the stream, from 1 (NDJSON).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    line: Option<u64>,
    /// The stable name of the reason.
    #[schema(schema_with = crate::http::openapi::item_code_schema)]
    code: ItemCode,
    /// The reason for a person.
    detail: String,
}

/// A subject's score after the step that counted the increment.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewScore {
    /// The increment's place in the request, from 0.
    pub(super) index: u64,
    #[schema(schema_with = subject_schema)]
    pub(super) subject: Subject,
    /// The new score; null where the metric says nothing of the subject yet.
    #[schema(schema_with = score_schema, required = true)]
    pub(super) score: Option<Shown>,
}

/// Items of a request, sorted into increments for the store and flaws for the receipt.
pub(in crate::http) struct Judged {
    /// What the number of an item says.
    place: fn(u64) -> Place,
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

    /// The number of the increment that the store was given at this place.
    pub(super) fn number(&self, at: usize) -> u64 {
        self.added.get(at).copied().unwrap_or_default()
    }

    /// Whether another definition of the board could have made a difference to a flaw.
    pub(super) fn depends_on_board(&self) -> bool {
        self.flawed.iter().any(|(_, flaw)| flaw.of_board)
    }
}

impl Receipt {
    /// Takes in what became of some items, in the order in which they were sent. Calls `scored` with the place of
    /// each that was counted, now or before, among those the store was given.
    pub(super) fn settle(
        &mut self,
        judged: Judged,
        outcomes: Vec<Outcome>,
        board: &Board,
        mut scored: impl FnMut(usize, Option<Value>),
    ) {
        let Judged { place, added, flawed, .. } = judged;
        let mut flawed = flawed.into_iter().peekable();
        for (at, (number, outcome)) in added.into_iter().zip(outcomes).enumerate() {
            while let Some((number, flaw)) = flawed.next_if(|(flawed, _)| *flawed < number) {
                self.reject(place(number), flaw.code, || flaw.detail);
            }
            match outcome {
                Outcome::Counted { score } => {
                    self.accepted += 1;
                    scored(at, score);
                }
                Outcome::Duplicate { score } => {
                    self.duplicates += 1;
                    scored(at, score);
                }
                Outcome::Rejected(rejection) => {
                    self.reject(place(number), code_of(rejection), || detail_of(rejection, board));
                }
            }
        }
        for (number, flaw) in flawed {
            self.reject(place(number), flaw.code, || flaw.detail);
        }
    }

    /// Notes an item that was not counted. The detail is made only if it will be shown.
    fn reject(&mut self, place: Place, code: ItemCode, detail: impl FnOnce() -> String) {
        self.rejected_counts.add(code);
        if self.rejected.len() < SHOWN {
            let (index, line) = place.index_and_line();
            self.rejected.push(Rejected { index, line, code, detail: detail() });
        }
    }

    /// Its numbers.
    pub(super) fn counts(&self) -> Counts {
        Counts { accepted: self.accepted, duplicates: self.duplicates, rejected: self.rejected_counts }
    }
}
