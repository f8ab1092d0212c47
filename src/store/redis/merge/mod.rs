//! Exact reads of a ranking that is spread over several parts.
//!
//! Every subject is in one part, and every part has a ranking of its own subjects. The functions here answer questions
//! about the ranking of all of them together. They ask the parts in *rounds*: a round is one call to each part it asks,
//! all at the same time. They need no connection and no clock: what a part can answer in one call is the trait
//! [`Parts`].
//!
//! | question | function | rounds |
//! |---|---|---|
//! | a page at a small offset | [`page`] | 1, or 2 if some parts have more than their share of its lines |
//! | a page at a large offset | [`page`] | 1 for each factor of about 30 between the total and what is read at last, and 1 |
//! | a page that was read before and has not changed ([`Known`]) | [`page`] | 1 |
//! | rank, percentile and neighbors of a subject | [`around`] | 1 to find its score, and 1; 1 more if parts are uneven |
//!
//! # What is exact
//! - What a part contributes to an answer is of one instant of that part. Of a page at a large offset and of what is
//!   around a subject, all these instants are within the last round. Of a page at a small offset a part that had enough
//!   lines in the first round is not asked again.
//! - All contributions are of one head. Parts that answer with an older one are asked again ([`of_one_head`]).
//! - Writes between rounds can make what was learned in an earlier round wrong. It only says where to look next: an
//!   answer is made of lines and counts of which the last round proves that they are complete.
//! - After [`ROUNDS`] rounds without an answer the result is [`MergeError::Unsettled`], never an approximation.

mod around;
mod deep;
mod further;
mod known;
mod one_head;
mod place;
mod region;
mod samples;
#[cfg(test)]
mod tests;
mod top;

use std::future::Future;

pub(super) use self::around::{Around, around};
pub(super) use self::known::Known;
pub(super) use self::one_head::of_one_head;
pub(super) use self::place::Place;
#[cfg(test)]
use self::samples::sample_positions;
use crate::board::{Frame, Order, Subject, Timestamp, Value};
use crate::store::Ranked;

/// After how many rounds a read gives up.
pub(super) const ROUNDS: usize = 5;

/// How many lines more than an even share are read of each part, so that mostly one round is enough.
const MARGIN: u64 = 8;

/// Up to this many lines a part, the lines before a page are read and skipped: one call of that size costs less than
/// the rounds that find the page.
const SKIPPED_PER_PART: u64 = 64;

/// What the parts of one board can be asked. Each method is one call to one part, answered at one instant.
///
/// `at_least` is the newest head that another part has answered with. A part whose clock has not reached it yet
/// advances its window to it first, so that clocks of two nodes that differ a little do not keep a read from ending.
pub(super) trait Parts: Sync {
    /// Why a call failed.
    type Error: Send;
    /// Says whether a part has changed: equal versions, equal rankings.
    type Version: PartialEq + Send + Sync;
    /// What the part that has a subject tells of it beside its score, at the same instant.
    type Extra: Send;

    /// How many parts there are; 1 at least.
    fn count(&self) -> usize;

    /// Consecutive lines of a part.
    fn lines(
        &self,
        part: usize,
        at_least: Option<Timestamp>,
        question: &Near,
    ) -> impl Future<Output = Said<Self, Lines<Self::Extra>>> + Send;

    /// Counts and samples of the lines between two places of a part.
    fn between(
        &self,
        part: usize,
        at_least: Option<Timestamp>,
        question: &Between,
    ) -> impl Future<Output = Said<Self, Sampled>> + Send;
}

/// What a part answered, with what every answer carries.
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

/// Asks for consecutive lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Near {
    pub center: Center,
    /// How many lines strictly before the center; fewer if there are no more. At least 1, or 0 at the start.
    pub before: u64,
    /// How many lines from the center on, the one at it included; fewer if there are no more. At least 1.
    pub after: u64,
}

/// Where lines are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Center {
    /// At the first line.
    Start,
    /// At a place, whether or not the part has a line there.
    Place(Place),
    /// At the line of a subject of this part; if it is not ranked, at the place it would have with the score `absent`.
    Subject { subject: Subject, absent: Value },
}

/// Consecutive lines of a part.
#[derive(Clone, Debug)]
pub(super) struct Lines<X> {
    /// How many lines the part has in all.
    pub total: u64,
    /// How many lines of the part come before the first one here.
    pub first: u64,
    /// How many lines of the part have a strictly better score than the first one here; 0 if there is none.
    pub better: u64,
    /// In the order of the ranking. Empty only if the part is.
    pub lines: Vec<Place>,
    /// If the center was a subject.
    pub subject: Option<Located<X>>,
}

/// What a part says of a subject.
#[derive(Clone, Debug)]
pub(super) struct Located<X> {
    /// `None` if it is not ranked.
    pub score: Option<Value>,
    pub extra: X,
}

/// Asks for what is between two places: from `lo` (included) to `hi` (not).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Between {
    /// `None`: from the first line on.
    pub lo: Option<Place>,
    /// `None`: to the last line.
    pub hi: Option<Place>,
    /// How many lines are sampled, evenly spaced as `sample_positions` says.
    pub samples: u64,
    /// If there are no more lines between than this, all of them are answered instead of samples. At least `samples`.
    pub all_up_to: u64,
}

/// What a part has between two places.
#[derive(Clone, Debug)]
pub(super) struct Sampled {
    /// How many lines the part has in all.
    pub total: u64,
    /// How many lines of the part come before `lo`; 0 if that is `None`.
    pub before_lo: u64,
    /// How many lines of the part have a strictly better score than `lo`; 0 if that is `None`.
    pub better_than_lo: u64,
    /// How many lines of the part come before `hi`; all if that is `None`.
    pub before_hi: u64,
    /// All lines between or samples of them, in their order, each with the number of lines of the part before it.
    pub lines: Vec<(u64, Place)>,
}

impl Sampled {
    /// Whether these are all lines between.
    fn is_complete(&self) -> bool {
        self.before_hi - self.before_lo == self.lines.len() as u64
    }
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MergeError<E> {
    /// A part could not be asked.
    #[error("a part of the board could not be read")]
    Part(E),
    /// The ranking changed faster than it could be read. Another attempt may succeed.
    #[error("the ranking changed in every one of {ROUNDS} rounds of reading its parts")]
    Unsettled,
    /// A part's answer cannot be true.
    #[error("a part of the board answered {0}")]
    Impossible(&'static str),
}

/// An answer about all parts together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Merged<T, V> {
    /// The window that all parts have. Its instant is that of the latest part, and as many slots are retiring as in the
    /// part that has most of them.
    pub frame: Frame,
    /// The version of each part that its contribution is of. While all are the same the answer is.
    pub versions: Vec<V>,
    /// How many lines all parts have.
    pub total: u64,
    pub found: T,
}

/// What a call to a part comes to.
pub(super) type Said<P, T> = Result<Answer<T, <P as Parts>::Version>, <P as Parts>::Error>;

/// Consecutive lines, as a part answered them.
pub(super) type LinesOf<P> = Answer<Lines<<P as Parts>::Extra>, <P as Parts>::Version>;

/// What a read of all parts comes to.
pub(super) type Read<P, T> = Result<Merged<T, <P as Parts>::Version>, MergeError<<P as Parts>::Error>>;

/// The page of the ranking that starts at `offset`, of at most `limit` lines. `None` if it is the one that is `known`.
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

/// Takes answers of one head apart: the frame of all, their versions, and what they said. `None` of no answers.
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
