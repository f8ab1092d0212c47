//! The receipt of a request with increments or samples: the outcome of each item.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::board::{Board, RankingKey, Shown, Subject, Tie, Value};
use crate::http::codes::ItemCode;
use crate::http::counts::{Counts, RejectedCounts};
use crate::http::events::{EventRejected, EventsReceipt, SourceReceipt};
use crate::http::items::{
    ItemError, MAX_SHOWN, ParsedItems, Position, code_of_rejection, detail_of_rejection, rejection_problem,
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
    /// The first 1,000 items that were counted, and whose attributes were not set; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 1000, required = false)]
    attributes_rejected: Vec<Rejected>,
    /// Number of such items by code; absent if there are none.
    #[serde(skip_serializing_if = "RejectedCounts::is_empty")]
    #[schema(schema_with = schemas::rejected_counts, required = false)]
    attributes_rejected_counts: RejectedCounts,
    /// With `source`: how far the source is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = SourceReceipt, required = false, nullable = false)]
    source: Option<Box<SourceReceipt>>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schemas::tie, required = false)]
    tie: Option<Tie>,
}

/// Increments or samples.
pub(in crate::http) type ParsedIncrements = ParsedItems<Increment>;

impl From<EventsReceipt> for Receipt {
    /// Returns the receipt of increments of one board that are a part of the log of a source.
    fn from(receipt: EventsReceipt) -> Self {
        let EventsReceipt { accepted, duplicates, rejected, rejected_counts, source, .. } = receipt;
        let rejected = rejected.into_iter();
        let rejected =
            rejected.map(|EventRejected { index, line, code, detail, .. }| Rejected { index, line, code, detail });
        Self { accepted, duplicates, rejected: rejected.collect(), rejected_counts, source, ..Self::default() }
    }
}

impl Receipt {
    /// Creates an empty receipt, with or without scores.
    pub(super) fn new(with_scores: bool) -> Self {
        Self { scores: with_scores.then(Vec::new), ..Self::default() }
    }

    /// Returns the problem of a request that is refused because of its invalid items. None of its items was counted.
    pub(super) fn refusing(mut items: ParsedIncrements) -> Problem {
        let mut receipt = Self::default();
        receipt.reject_invalid(&mut items, u64::MAX);
        rejection_problem(&receipt.rejected, &receipt.rejected_counts)
    }

    /// Adds the outcomes of items for a board, in the order of the request. `subjects` are those of the valid items if scores
    /// are returned, else empty. `judging` is the board with the editions that it had when it judged them.
    pub(super) fn record(
        &mut self,
        mut items: ParsedIncrements,
        subjects: Vec<Subject>,
        outcomes: Vec<Outcome>,
        board: &Arc<Board>,
        judging: &Board,
    ) {
        let mut subjects = subjects.into_iter();
        for ((number, ()), outcome) in std::mem::take(&mut items.details).into_iter().zip(outcomes) {
            self.reject_invalid(&mut items, number);
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
                    self.reject((items.position)(number), code_of_rejection(rejection), detail);
                }
            }
        }
        self.reject_invalid(&mut items, u64::MAX);
    }

    /// Adds items that were counted, and whose attributes were not set.
    pub(super) fn reject_attributes(&mut self, refused: Vec<(Position, ItemError)>) {
        refused.iter().for_each(|(_, error)| self.attributes_rejected_counts.add(error.code));
        let left = MAX_SHOWN.saturating_sub(self.attributes_rejected.len());
        let refused = refused.into_iter().take(left);
        self.attributes_rejected.extend(refused.map(|(at, error)| Rejected::new(at, error.code, error.detail)));
    }

    /// Adds the invalid items before this number.
    fn reject_invalid(&mut self, items: &mut ParsedIncrements, number: u64) {
        while let Some((position, error)) = items.next_error(number) {
            self.reject(position, error.code, || error.detail);
        }
    }

    fn add_score(&mut self, index: u64, subject: Option<Subject>, score: Option<Value>, board: &Arc<Board>) {
        if let (Some(scores), Some(subject)) = (&mut self.scores, subject) {
            let (by, subject) = subject.split();
            let (tie, score) = (response::tie(board.scale(), score), response::score(board.scale(), score));
            scores.push(NewScore { index, by, subject, score, tie });
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
