//! The receipt of a request with increments or samples: the outcome of each item.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::board::{Board, RankingKey, Shown, Subject, Value};
use crate::http::codes::ItemCode;
use crate::http::counts::{Counts, RejectedCounts};
use crate::http::items::{
    ItemError, ItemIds, MAX_SHOWN, Position, code_of_rejection, detail_of_rejection, rejection_problem,
};
use crate::http::problem::Problem;
use crate::http::{response, schemas};
use crate::service::{Increment, Outcome};

/// The outcomes of the items of a request.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(in crate::http) struct Receipt {
    /// Number of items counted by this request.
    pub(super) accepted: u64,
    /// Number of items not counted, because their `id` was counted before.
    pub(super) duplicates: u64,
    /// The first 1,000 rejected items, each with its reason.
    #[schema(max_items = 1000)]
    rejected: Vec<Rejected>,
    /// Number of rejections by code; absent if there are none.
    #[serde(skip_serializing_if = "RejectedCounts::is_empty")]
    #[schema(schema_with = schemas::rejected_counts, required = false)]
    rejected_counts: RejectedCounts,
    /// With `return=score`: the new score for each accepted or duplicate item.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    scores: Option<Vec<NewScore>>,
}

/// A rejected item.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Rejected {
    /// Index of the item in the request, from 0 (JSON).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    index: Option<u64>,
    /// Line of the item in the stream, from 1 (NDJSON).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    line: Option<u64>,
    /// Stable name of the reason.
    #[schema(schema_with = schemas::item_code)]
    code: ItemCode,
    /// The reason, for people.
    detail: String,
}

impl Rejected {
    pub(in crate::http) fn new(position: Position, code: ItemCode, detail: String) -> Self {
        let (index, line) = position.index_and_line();
        Self { index, line, code, detail }
    }
}

/// The score of a subject after the item was counted.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewScore {
    /// Index of the item in the request, from 0.
    index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::by, required = false)]
    by: Option<RankingKey>,
    #[schema(schema_with = schemas::subject)]
    subject: Subject,
    /// The new score; null if the metric has no value for the subject yet.
    #[schema(schema_with = schemas::score, required = true)]
    score: Option<Shown>,
}

/// The items of a request, divided into increments for the store and errors for the receipt.
pub(in crate::http) struct ParsedItems {
    /// Converts the number of an item to its position.
    position: fn(u64) -> Position,
    increments: Vec<Increment>,
    /// The number of each increment.
    numbers: Vec<u64>,
    /// The subject of each increment, if scores are returned.
    subjects: Vec<Subject>,
    /// Invalid items with their numbers.
    errors: Vec<(u64, ItemError)>,
}

impl ParsedItems {
    pub(super) fn new(position: fn(u64) -> Position) -> Self {
        Self { position, increments: Vec::new(), numbers: Vec::new(), subjects: Vec::new(), errors: Vec::new() }
    }

    /// Returns the number of items, valid or not.
    pub(super) fn len(&self) -> usize {
        self.increments.len() + self.errors.len()
    }

    /// Reserves capacity for the given number of increments.
    pub(super) fn reserve(&mut self, increments: usize) {
        self.increments.reserve(increments);
        self.numbers.reserve(increments);
    }

    /// Adds an item. Numbers must be ascending.
    pub(super) fn push(&mut self, number: u64, item: Result<Increment, ItemError>) {
        match item {
            Ok(increment) => {
                self.increments.push(increment);
                self.numbers.push(number);
            }
            Err(error) => self.errors.push((number, error)),
        }
    }

    /// Gives the increments without an id one of `ids`, if there are any.
    pub(super) fn add_ids(&mut self, ids: Option<&ItemIds>) {
        let Some(ids) = ids else { return };
        for (increment, number) in self.increments.iter_mut().zip(&self.numbers) {
            if increment.id.is_none() {
                increment.id = ids.id_of(*number);
            }
        }
    }

    /// Takes the increments for the store, and keeps their subjects if scores are returned.
    pub(super) fn take_increments(&mut self, return_scores: bool) -> Vec<Increment> {
        if return_scores {
            self.subjects = self.increments.iter().map(|increment| increment.subject.clone()).collect();
        }
        std::mem::take(&mut self.increments)
    }

    /// Returns whether any item is invalid.
    pub(super) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Returns whether an invalid item could be valid under another definition of the board.
    pub(super) fn depends_on_board(&self) -> bool {
        self.errors.iter().any(|(_, error)| error.depends_on_board)
    }
}

impl Receipt {
    /// Creates an empty receipt, with or without scores.
    pub(super) fn new(with_scores: bool) -> Self {
        Self { scores: with_scores.then(Vec::new), ..Self::default() }
    }

    /// Returns the problem of a request that is refused because of its invalid items. None of its items was counted.
    pub(super) fn refusing(items: ParsedItems) -> Problem {
        let mut receipt = Self::default();
        for (number, error) in items.errors {
            receipt.reject((items.position)(number), error.code, || error.detail);
        }
        rejection_problem(&receipt.rejected, &receipt.rejected_counts)
    }

    /// Adds the outcomes of items for a board, in the order of the request. `judging` is the board with the editions that it
    /// had when it judged them.
    pub(super) fn record(&mut self, items: ParsedItems, outcomes: Vec<Outcome>, board: &Arc<Board>, judging: &Board) {
        let ParsedItems { position, numbers, subjects, errors, .. } = items;
        let mut errors = errors.into_iter().peekable();
        let mut subjects = subjects.into_iter();
        for (number, outcome) in numbers.into_iter().zip(outcomes) {
            while let Some((number, error)) = errors.next_if(|(invalid, _)| *invalid < number) {
                self.reject(position(number), error.code, || error.detail);
            }
            let subject = subjects.next();
            match outcome {
                Outcome::Counted { score } => {
                    self.accepted += 1;
                    self.add_score(number, subject, score, board);
                }
                Outcome::Duplicate { score } => {
                    self.duplicates += 1;
                    self.add_score(number, subject, score, board);
                }
                Outcome::Rejected(rejection) => {
                    let detail = || detail_of_rejection(rejection, judging);
                    self.reject(position(number), code_of_rejection(rejection), detail);
                }
            }
        }
        for (number, error) in errors {
            self.reject(position(number), error.code, || error.detail);
        }
    }

    fn add_score(&mut self, index: u64, subject: Option<Subject>, score: Option<Value>, board: &Arc<Board>) {
        if let (Some(scores), Some(subject)) = (&mut self.scores, subject) {
            let (by, subject) = subject.split();
            scores.push(NewScore { index, by, subject, score: response::score(board.decimals(), score) });
        }
    }

    /// Adds a rejection. The detail is computed only if it is shown.
    fn reject(&mut self, position: Position, code: ItemCode, detail: impl FnOnce() -> String) {
        self.rejected_counts.add(code);
        if self.rejected.len() < MAX_SHOWN {
            self.rejected.push(Rejected::new(position, code, detail()));
        }
    }

    /// Returns the numbers of items by outcome.
    pub(super) fn counts(&self) -> Counts {
        Counts { accepted: self.accepted, duplicates: self.duplicates, rejected: self.rejected_counts.clone() }
    }
}
