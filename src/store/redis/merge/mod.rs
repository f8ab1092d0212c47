//! Exact reads of a ranking that is divided into partitions.
//!
//! Every subject is in one partition, and every partition has a ranking of its own subjects. The functions here answer
//! questions about the ranking of all partitions together. They ask the partitions in *rounds*: a round is one call to
//! each of the partitions that it asks, all at the same time. This module uses neither connections nor clocks: the
//! trait [`PartitionReads`] defines the questions that a partition answers in one call.
//!
//! A lone partition has the whole ranking, so its reply is the answer: one round of one call. Its lines are read without
//! this module, with [`Wanted::of_one`].
//!
//! | question | function | rounds of several partitions |
//! |---|---|---|
//! | a page at a small offset, or next to a place | [`lines`] | 1, or 2 if some partitions have more than their share of its lines |
//! | a page at a large offset | [`lines`] | 1 for each factor of about 30 between total and lines read last, and 1 |
//! | a page that was read before and has not changed ([`KnownPage`]) | [`lines`] | 1 |
//! | neighbors of a subject | [`lines`] | 1 to find its score, and 1; 1 more if partitions are uneven |
//! | rank and percentile of a subject | [`around`] | the same |
//! | scores of given subjects | [`scores`] | 1 |
//! | scores and ranks of given subjects | [`scores`] | 1 to find the scores, and 1; more if scores change between them |
//! | the numbers of lines that are not worse than given scores | [`ties`] | 1 |
//! | the ranks of given subjects where each line has its own | [`ranks`] | 1 after that of their scores |
//!
//! # What is exact
//! - The contribution of a partition to an answer is of one instant of that partition. For a page at a large offset and
//!   for the lines around a subject, and for ranks of given subjects, all these instants are within the last round. For
//!   a page at a small offset or next to a place, a partition that had enough lines in the first round is not asked
//!   again.
//! - All contributions have the same head. Partitions that answer with an older one are asked again ([`of_one_head`]).
//! - Writes between rounds can make the results of an earlier round wrong. These results only determine what to ask
//!   next: an answer consists of lines and counts that the last round proves to be complete.
//! - After [`ROUNDS`] rounds without an answer the result is [`MergeError::Unsettled`], never an approximation.

mod around;
mod beside;
mod deep;
mod further;
mod known;
mod one_head;
mod ranks;
mod region;
mod samples;
mod scores;
#[cfg(test)]
mod tests;
mod ties;

use std::future::Future;
use std::sync::Arc;

pub(super) use self::around::{Around, around};
pub(super) use self::known::KnownPage;
pub(super) use self::one_head::of_one_head;
pub(super) use self::ranks::ranks;
#[cfg(test)]
use self::samples::sample_positions;
pub(super) use self::scores::scores;
pub(super) use self::ties::ties;
use crate::board::{Frame, Order, Subject, Timestamp, Value, Visibility};
use crate::store::{Direction, Lines, NextTo, PageStart, Place, Ranked};

/// The number of rounds after which a read fails.
pub(super) const ROUNDS: usize = 5;

/// The number of lines beyond an even share that are read of each partition, so that one round is usually enough.
const MARGIN: u64 = 8;

/// The largest number of lines per partition, before a page, that are read and skipped. One call of that size costs
/// less than the rounds that find the page.
const SKIPPED_PER_PART: u64 = 64;

/// The partitions of one board, in one of its tracks. Each method asks some of them one question each, all at the same
/// time. Every partition answers at one instant. The answers are in the order of the questions.
pub(super) trait PartitionReads: Sync {
    /// The error of a call.
    type Error: Send;
    /// The version of a partition: equal versions and heads mean equal rankings.
    type Version: PartialEq + Send + Sync;
    /// The additional data about a subject, besides its score, that its partition returns, of the same instant.
    type Extra: Send;

    /// Returns the number of partitions, at least 1.
    fn count(&self) -> usize;

    /// Returns consecutive lines of each partition.
    fn near(&self, round: Round<Near>) -> impl Future<Output = Shares<Self, Excerpt<Self::Extra>>> + Send;

    /// Returns counts and samples of the lines between two places of each partition.
    fn between(&self, round: Round<Between>) -> impl Future<Output = Shares<Self, Sampled>> + Send;

    /// Returns scores of subjects of each partition, and counts of its lines.
    fn scores(&self, round: Round<Scores>) -> impl Future<Output = Shares<Self, Scored>> + Send;
}

/// Questions that are asked at the same time.
#[derive(Clone, Debug)]
pub(super) struct Round<Q> {
    /// The newest head in the answers of other partitions. A partition whose clock has not reached it yet first
    /// advances its window to that head. Otherwise a small difference between the clocks of two nodes would make a read
    /// fail.
    pub at_least: Option<Timestamp>,
    /// The questions, each with the index of the partition that is asked.
    pub questions: Vec<(usize, Q)>,
}

/// What one partition contributes to an answer, with the data that every reply has.
#[derive(Clone, Debug)]
pub(super) struct Share<T, V> {
    pub frame: Frame,
    pub version: V,
    pub said: T,
}

impl<T, V> Share<T, V> {
    fn head(&self) -> Timestamp {
        self.frame.window.head
    }

    /// Returns the share with something else in place of its content, and the content.
    fn split<U>(self, with: impl FnOnce(&T) -> U) -> (Share<U, V>, T) {
        let Self { frame, version, said } = self;
        (Share { frame, version, said: with(&said) }, said)
    }
}

/// Lines of a ranking, as a caller requests them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wanted {
    /// At most `limit` lines from a start.
    Page { start: PageStart, limit: u64 },
    /// The line of a subject of partition `own` and up to `radius` lines on each side, or none if it is not ranked.
    Neighbors { subject: Subject, own: usize, radius: u64 },
}

impl Wanted {
    /// Returns the question for these lines to the only partition of a ranking, whose answer is the result.
    pub fn of_one(&self) -> Near {
        let (center, before, after) = match self {
            Self::Page { start: PageStart::Offset(offset), limit } => (Center::Position(*offset), 0, *limit),
            Self::Page { start: PageStart::Place(next_to), limit } => {
                let NextTo { place, direction, .. } = next_to;
                let center = Center::Place { place: place.clone(), after_line: next_to.is_boundary_after_line() };
                match direction {
                    Direction::Forward => (center, 0, *limit),
                    Direction::Backward => (center, *limit, 0),
                }
            }
            Self::Neighbors { subject, radius, .. } => {
                (Center::Subject { subject: subject.clone(), absent: None }, *radius, radius.saturating_add(1))
            }
        };
        Near::around(center, before, after)
    }
}

/// A question for consecutive lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Near {
    pub center: Center,
    /// The number of lines strictly before the center, fewer if there are no more.
    pub before: u64,
    /// The number of lines from the center on, including the one at it, fewer if there are no more.
    pub after: u64,
    /// Whether the slots of the subject at the center are requested too.
    pub with_slots: bool,
    /// Whether to count the lines whose score is not worse than that of the last one returned.
    pub ties: bool,
}

impl Near {
    /// Asks for the first lines.
    pub fn first(count: u64) -> Self {
        Self::around(Center::Position(0), 0, count)
    }

    /// Asks for lines on both sides of a center, and for nothing else.
    pub fn around(center: Center, before: u64, after: u64) -> Self {
        Self { center, before, after, with_slots: false, ties: false }
    }

    /// Returns whether this asks for the first lines.
    pub fn is_first(&self) -> bool {
        self.center == Center::Position(0) && self.before == 0
    }
}

/// The position around which lines are requested.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Center {
    /// The position of a line, from 0.
    Position(u64),
    /// A place, whether or not the partition has a line there. With `after_line`, a line there is before the center.
    Place { place: Place, after_line: bool },
    /// The line of a subject of this partition, or, if the subject is not ranked, the place it would have with the
    /// score `absent`. Without that score, no lines are returned then.
    Subject { subject: Subject, absent: Option<Value> },
}

/// Consecutive lines of a partition.
#[derive(Clone, Debug)]
pub(super) struct Excerpt<X> {
    /// The number of all lines of the partition.
    pub total: u64,
    /// The number of lines of the partition before the first one here, or before the center if there is none.
    pub first: u64,
    /// The lines, with their ranks in the partition.
    pub items: Lines,
    /// The number of lines of the partition whose score is not worse than that of the last one here, if requested.
    pub not_worse: Option<u64>,
    /// The data about the subject, if the center was a subject.
    pub subject: Option<Located<X>>,
}

/// The data that a partition returns about a subject.
#[derive(Clone, Debug)]
pub(super) struct Located<X> {
    /// The score, or `None` if the subject has none.
    pub score: Option<Value>,
    /// Whether the subject is in the ranking if it has a score.
    pub visibility: Visibility,
    pub extra: X,
}

/// A question about the lines between two places, from `lo` (inclusive) to `hi` (exclusive).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Between {
    /// The first place, or `None` for the first line.
    pub lo: Option<Place>,
    /// The second place, or `None` for the end of the ranking.
    pub hi: Option<Place>,
    /// The number of lines to sample, evenly spaced as defined by `sample_positions`.
    pub samples: u64,
    /// If there are at most this many lines between the places, all of them are returned instead of samples. At least
    /// `samples`.
    pub all_up_to: u64,
}

/// The lines of a partition between two places.
#[derive(Clone, Debug)]
pub(super) struct Sampled {
    /// The number of all lines of the partition.
    pub total: u64,
    /// The number of lines of the partition before `lo`, or 0 if that is `None`.
    pub before_lo: u64,
    /// The number of lines of the partition with a strictly better score than `lo`, or 0 if that is `None`.
    pub better_than_lo: u64,
    /// The number of lines of the partition before `hi`, or all if that is `None`.
    pub before_hi: u64,
    /// All lines between or samples of them, in their order, each with the number of lines of the partition before it.
    pub lines: Vec<(u64, Place)>,
}

impl Sampled {
    /// Returns whether these are all lines between the two places.
    fn is_complete(&self) -> bool {
        self.before_hi - self.before_lo == self.lines.len() as u64
    }
}

/// A question for the scores of subjects, and for the number of lines with a strictly better score than given ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Scores {
    /// Subjects of the partition.
    pub subjects: Arc<[Subject]>,
    /// Whether to return their ranks in the partition.
    pub ranks: bool,
    /// Whether to count the lines whose scores are not worse than theirs, too.
    pub ties: bool,
    /// The scores, of subjects of any partition, the best first and each once.
    pub better_than: Arc<[Value]>,
    /// Empty, or the subject of each of these scores, which need not be in order then: to count the lines before their
    /// places.
    pub names: Arc<[Subject]>,
    /// The number of lines to return on each side of each of these scores.
    pub near: u64,
}

impl Scores {
    /// Asks for the scores of subjects and, if requested, their ranks.
    pub fn of(subjects: Arc<[Subject]>, ranks: bool) -> Self {
        Self { subjects, ranks, ties: false, better_than: Arc::default(), names: Arc::default(), near: 0 }
    }
}

/// The scores of subjects of a partition, and counts of its lines.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    /// The number of all lines of the partition.
    pub total: u64,
    /// The score of each subject, or `None` if it is not ranked.
    pub scores: Vec<Option<Value>>,
    /// For each subject, the number of lines of the partition with a strictly better score, if requested.
    pub better_than_subjects: Vec<u64>,
    /// For each subject, the number of lines of the partition whose score is not worse, if requested.
    pub not_worse_than_subjects: Vec<u64>,
    /// For each of the given scores, the number of lines of the partition with a strictly better one, or before its place.
    pub better: Vec<u64>,
    /// The lines on both sides of each of the given scores, if any were requested.
    pub near: Vec<Stretch>,
}

/// The scores of consecutive lines of a partition.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    /// The number of lines of the partition before the first one here.
    pub first: u64,
    /// The number of lines of the partition with a strictly better score than the first one here.
    pub better: u64,
    pub scores: Vec<Value>,
}

/// The reason why there is no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MergeError<E> {
    /// A partition could not be asked.
    #[error("a partition of the board could not be read")]
    Partition(E),
    /// The ranking changed faster than it could be read. A further attempt may succeed.
    #[error("the ranking changed in every one of {ROUNDS} rounds of reading its partitions")]
    Unsettled,
    /// The answer of a partition contradicts itself.
    #[error("a partition of the board answered {0}")]
    Impossible(&'static str),
}

/// An answer about all partitions together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Merged<T, V> {
    /// The window that all partitions have. Its time is that of the latest partition, and its number of retiring slots
    /// is the largest of all partitions.
    pub frame: Frame,
    /// The version of each partition from which its contribution was read. The answer is current as long as none of
    /// them changes.
    pub versions: Vec<V>,
    /// The number of lines of all partitions.
    pub total: u64,
    pub found: T,
}

/// The result of a round.
pub(super) type Shares<P, T> = Result<Vec<Share<T, <P as PartitionReads>::Version>>, <P as PartitionReads>::Error>;

/// The result of a read of all partitions.
pub(super) type MergedRead<P, T> =
    Result<Merged<T, <P as PartitionReads>::Version>, MergeError<<P as PartitionReads>::Error>>;

/// Lines of the ranking of all partitions. [`ties`] asks for the number of those that are not worse than the last one.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The number of lines before the first of them.
    pub first: u64,
    pub items: Lines,
}

impl Found {
    fn new(first: u64, items: Vec<Ranked>) -> Self {
        Self { first, items: items.into() }
    }
}

/// Returns lines of the ranking of several partitions, or `None` if they are those of the `known` page.
pub(super) async fn lines<P: PartitionReads>(
    partitions: &P,
    order: Order,
    wanted: &Wanted,
    known: Option<KnownPage<'_, P::Version>>,
) -> MergedRead<P, Option<Found>> {
    let count = partitions.count() as u64;
    match wanted {
        Wanted::Page { start: PageStart::Offset(offset), limit } if *offset > SKIPPED_PER_PART * count => {
            if let Some(known) = known
                && let Some(unchanged) = known::unchanged(partitions, &known).await?
            {
                return Ok(unchanged);
            }
            let Merged { frame, versions, total, found } = deep::page(partitions, order, *offset, *limit).await?;
            Ok(Merged { frame, versions, total, found: Some(Found::new((*offset).min(total), found)) })
        }
        Wanted::Page { start, limit } => beside::page(partitions, order, start, *limit, known).await,
        Wanted::Neighbors { subject, own, radius } => {
            let Merged { frame, versions, total, found } =
                around(partitions, order, *own, subject, Value::ZERO, *radius, false).await?;
            Ok(Merged { frame, versions, total, found: Some(Found::new(found.first, found.lines)) })
        }
    }
}

/// Splits shares with the same head into the frame of all, their versions, and their content. Returns `None` if there
/// are no shares.
pub(super) fn take_apart<T, V>(shares: Vec<Share<T, V>>) -> Option<(Frame, Vec<V>, Vec<T>)> {
    let mut frame = shares.first()?.frame;
    let (mut versions, mut said) = (Vec::with_capacity(shares.len()), Vec::with_capacity(shares.len()));
    for share in shares {
        frame.as_of = frame.as_of.max(share.frame.as_of);
        frame.retiring = frame.retiring.max(share.frame.retiring);
        versions.push(share.version);
        said.push(share.said);
    }
    Some((frame, versions, said))
}
