//! Exact reads of a ranking that is divided into several parts.
//!
//! Every subject is in one part, and every part has a ranking of its own subjects. The functions here answer questions
//! about the ranking of all parts together. They ask the parts in *rounds*: a round is one call to each of the parts
//! that it asks, all at the same time. This module uses neither connections nor clocks: the trait [`Parts`] defines the
//! questions that a part answers in one call.
//!
//! | question | function | rounds |
//! |---|---|---|
//! | a page at a small offset | [`page`] | 1, or 2 if some parts have more than their share of its lines |
//! | a page at a large offset | [`page`] | 1 for each factor of about 30 between total and lines read last, and 1 |
//! | a page that was read before and has not changed ([`Known`]) | [`page`] | 1 |
//! | a page next to a place, wherever it is | [`beside`] | 1, or 2 if some parts have more than their share of its lines |
//! | rank, percentile, neighbors of a subject | [`around`] | 1 to find its score, and 1; 1 more if parts are uneven |
//!
//! # What is exact
//! - The contribution of a part to an answer is of one instant of that part. For a page at a large offset and for the
//!   lines around a subject, all these instants are within the last round. For a page at a small offset or next to a
//!   place, a part that had enough lines in the first round is not asked again.
//! - All contributions have the same head. Parts that answer with an older one are asked again ([`of_one_head`]).
//! - Writes between rounds can make the results of an earlier round wrong. These results only determine what to ask
//!   next: an answer consists of lines and counts that the last round proves to be complete.
//! - After [`ROUNDS`] rounds without an answer the result is [`MergeError::Unsettled`], never an approximation.

mod around;
mod beside;
mod deep;
mod further;
mod known;
mod one_head;
mod region;
mod samples;
#[cfg(test)]
mod tests;
mod top;

use std::future::Future;

pub(super) use self::around::{Around, around};
pub(super) use self::beside::beside;
pub(super) use self::known::Known;
pub(super) use self::one_head::of_one_head;
#[cfg(test)]
use self::samples::sample_positions;
use crate::board::{Frame, Order, Subject, Timestamp, Value};
use crate::store::{Place, Ranked};

/// The number of rounds after which a read fails.
pub(super) const ROUNDS: usize = 5;

/// The number of lines beyond an even share that are read of each part, so that one round is usually enough.
const MARGIN: u64 = 8;

/// The largest number of lines per part, before a page, that are read and skipped. One call of that size costs less
/// than the rounds that find the page.
const SKIPPED_PER_PART: u64 = 64;

/// The questions to the parts of one board. Each method is one call to one part, answered at one instant.
///
/// `at_least` is the newest head in the answers of the other parts. A part whose clock has not reached it yet first
/// advances its window to that head. Otherwise a small difference between the clocks of two nodes would make a read
/// fail.
pub(super) trait Parts: Sync {
    /// The error of a call.
    type Error: Send;
    /// The version of a part: equal versions and heads mean equal rankings.
    type Version: PartialEq + Send + Sync;
    /// The additional data about a subject, besides its score, that its part returns, of the same instant.
    type Extra: Send;

    /// Returns the number of parts, at least 1.
    fn count(&self) -> usize;

    /// Returns consecutive lines of a part.
    fn lines(
        &self,
        part: usize,
        at_least: Option<Timestamp>,
        question: &Near,
    ) -> impl Future<Output = Said<Self, Lines<Self::Extra>>> + Send;

    /// Returns counts and samples of the lines between two places of a part.
    fn between(
        &self,
        part: usize,
        at_least: Option<Timestamp>,
        question: &Between,
    ) -> impl Future<Output = Said<Self, Sampled>> + Send;
}

/// The answer of a part, with the data that every answer has.
#[derive(Clone, Debug)]
pub(super) struct Answer<T, V> {
    pub frame: Frame,
    pub version: V,
    pub said: T,
}

impl<T, V> Answer<T, V> {
    fn head(&self) -> Timestamp {
        self.frame.window.head
    }
}

/// A question for consecutive lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Near {
    pub center: Center,
    /// The number of lines strictly before the center, fewer if there are no more. At least 1, or 0 at the start.
    pub before: u64,
    /// The number of lines from the center on, including the one at it, fewer if there are no more. At least 1.
    pub after: u64,
}

impl Near {
    /// Asks for the first lines.
    pub fn first(count: u64) -> Self {
        Self { center: Center::Start, before: 0, after: count }
    }
}

/// The position around which lines are requested.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Center {
    /// The first line.
    Start,
    /// A place, whether or not the part has a line there.
    Place(Place),
    /// The line of a subject of this part, or, if the subject is not ranked, the place it would have with the score
    /// `absent`.
    Subject { subject: Subject, absent: Value },
}

/// Consecutive lines of a part.
#[derive(Clone, Debug)]
pub(super) struct Lines<X> {
    /// The number of all lines of the part.
    pub total: u64,
    /// The number of lines of the part before the first one here.
    pub first: u64,
    /// The number of lines of the part with a strictly better score than the first one here, or 0 if there is none.
    pub better: u64,
    /// The lines in the order of the ranking. Empty only if the part is.
    pub lines: Vec<Place>,
    /// The data about the subject, if the center was a subject.
    pub subject: Option<Located<X>>,
}

/// The data that a part returns about a subject.
#[derive(Clone, Debug)]
pub(super) struct Located<X> {
    /// The score, or `None` if the subject is not ranked.
    pub score: Option<Value>,
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
    /// The largest number of lines between the places of which all are returned instead of samples. At least `samples`.
    pub all_up_to: u64,
}

/// The lines of a part between two places.
#[derive(Clone, Debug)]
pub(super) struct Sampled {
    /// The number of all lines of the part.
    pub total: u64,
    /// The number of lines of the part before `lo`, or 0 if that is `None`.
    pub before_lo: u64,
    /// The number of lines of the part with a strictly better score than `lo`, or 0 if that is `None`.
    pub better_than_lo: u64,
    /// The number of lines of the part before `hi`, or all if that is `None`.
    pub before_hi: u64,
    /// All lines between or samples of them, in their order, each with the number of lines of the part before it.
    pub lines: Vec<(u64, Place)>,
}

impl Sampled {
    /// Returns whether these are all lines between the two places.
    fn is_complete(&self) -> bool {
        self.before_hi - self.before_lo == self.lines.len() as u64
    }
}

/// The reason why there is no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MergeError<E> {
    /// A part could not be asked.
    #[error("a part of the board could not be read")]
    Part(E),
    /// The ranking changed faster than it could be read. A further attempt may succeed.
    #[error("the ranking changed in every one of {ROUNDS} rounds of reading its parts")]
    Unsettled,
    /// The answer of a part contradicts itself.
    #[error("a part of the board answered {0}")]
    Impossible(&'static str),
}

/// An answer about all parts together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Merged<T, V> {
    /// The window that all parts have. Its time is that of the latest part, and its number of retiring slots is the
    /// largest of all parts.
    pub frame: Frame,
    /// The version of each part from which its contribution was read. The answer is current as long as none of them
    /// changes.
    pub versions: Vec<V>,
    /// The number of lines of all parts.
    pub total: u64,
    pub found: T,
}

/// The result of a call to a part.
pub(super) type Said<P, T> = Result<Answer<T, <P as Parts>::Version>, <P as Parts>::Error>;

/// Consecutive lines, as a part returned them.
pub(super) type LinesOf<P> = Answer<Lines<<P as Parts>::Extra>, <P as Parts>::Version>;

/// The result of a read of all parts.
pub(super) type Read<P, T> = Result<Merged<T, <P as Parts>::Version>, MergeError<<P as Parts>::Error>>;

/// Returns the page of the ranking that starts at `offset`, of at most `limit` lines, or `None` if it is the `known`
/// page.
pub(super) async fn page<P: Parts>(
    parts: &P,
    order: Order,
    offset: u64,
    limit: u64,
    known: Option<Known<'_, P::Version>>,
) -> Read<P, Option<Vec<Ranked>>> {
    if offset <= SKIPPED_PER_PART * parts.count() as u64 {
        return top::page(parts, order, offset, limit, known).await;
    }
    if let Some(known) = known
        && let Some(unchanged) = known::unchanged(parts, &known).await?
    {
        return Ok(unchanged);
    }
    let Merged { frame, versions, total, found } = deep::page(parts, order, offset, limit).await?;
    Ok(Merged { frame, versions, total, found: Some(found) })
}

/// Splits answers with the same head into the frame of all, their versions, and their content. Returns `None` if there
/// are no answers.
pub(super) fn take_apart<T, V>(answers: Vec<Answer<T, V>>) -> Option<(Frame, Vec<V>, Vec<T>)> {
    let mut frame = answers.first()?.frame;
    let (mut versions, mut said) = (Vec::with_capacity(answers.len()), Vec::with_capacity(answers.len()));
    for answer in answers {
        frame.as_of = frame.as_of.max(answer.frame.as_of);
        frame.retiring = frame.retiring.max(answer.frame.retiring);
        versions.push(answer.version);
        said.push(answer.said);
    }
    Some((frame, versions, said))
}
