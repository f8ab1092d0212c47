//! The questions to a part, and the answers.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::share::{About, Share};
use crate::board::{Board, Mode, Subject, Timestamp};
use crate::store::redis::kinds;
use crate::store::redis::merge::{Between, Lines, Near, Sampled, Scored, Scores};
use crate::store::redis::part::Part;
use crate::store::redis::servers::ServerFailure;
use crate::store::{Lookup, NextTo, Page, SlotContents, SlotRange, Standing, StoreError, Values, ValuesStart};

/// The smallest weight of a question: about the cost of its command for the server, however little it reads.
const LEAST: u64 = 16;
/// The number of scores that the server looks up in the time in which a script reads one cell.
const SCORES: u64 = 4;
/// The weight of counting the subjects with a better score, in ordinary cells. It takes about 3 us with 100,000 subjects
/// and 9 us with a million.
const RANK: u64 = 4;
/// The whole key of a subject is read if it has up to this many times the requested slots.
const WHOLE: u64 = 3;

/// A question about one part of a board. Equal questions have the same answer at the same instant.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub part: Arc<Part>,
    pub what: Arc<What>,
    /// The head of a different part, to which this one advances first.
    pub at_least: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    Page {
        offset: u64,
        limit: u32,
    },
    /// A page next to a place.
    Beside {
        next_to: NextTo,
        limit: u32,
    },
    Neighbors {
        subject: Subject,
        radius: u32,
    },
    Lookup {
        subjects: Vec<Subject>,
        ranks: bool,
    },
    Standing(Subject),
    Window {
        subject: Subject,
        range: SlotRange,
        as_of: Option<Timestamp>,
    },
    Values {
        subject: Subject,
        start: ValuesStart,
        limit: u32,
    },
    /// For one of several parts: consecutive lines, and, if requested, the slots of the subject at their center.
    Lines {
        near: Near,
        with_slots: bool,
    },
    /// For one of several parts: the lines between two places.
    Between(Between),
    /// For one of several parts: scores of subjects, and counts of better lines.
    Scores(Scores),
}

#[derive(Clone, Debug)]
pub(super) enum Answer {
    Page(Page),
    Lookup(Lookup),
    Standing(Standing),
    /// The slot contents, or the oldest slot that can be requested.
    Window(Result<SlotContents, Timestamp>),
    Values(Values),
    Lines(Share<Lines<About>>),
    Sampled(Share<Sampled>),
    Scored(Share<Scored>),
}

impl Answer {
    /// Returns a page, or the first lines of a part, with a different time within their window.
    pub fn at(mut self, now: Timestamp) -> Self {
        match &mut self {
            Answer::Page(page) => page.frame.as_of = now,
            Answer::Lines(share) => share.frame.as_of = now,
            _ => {}
        }
        self
    }
}

impl Answer {
    pub fn page(self) -> Result<Page, ServerFailure> {
        if let Answer::Page(page) = self { Ok(page) } else { Err(mistaken()) }
    }

    pub fn window(self) -> Result<Result<SlotContents, StoreError>, ServerFailure> {
        match self {
            Answer::Window(contents) => Ok(contents.map_err(|floor| StoreError::BeyondWindow { floor })),
            _ => Err(mistaken()),
        }
    }
}

/// Returns the failure of a question that got the answer to a different one.
pub(super) fn mistaken() -> ServerFailure {
    ServerFailure::Corrupt("the reply does not match the request".to_owned())
}

impl Question {
    pub fn new(part: Arc<Part>, what: What) -> Self {
        Self { part, what: Arc::new(what), at_least: None }
    }

    /// Returns the cost of the answer for the server and its size in memory, in cells read.
    pub fn weight(&self) -> u64 {
        let board = &*self.part.board;
        let cells = match &*self.what {
            What::Page { limit, .. } | What::Beside { limit, .. } | What::Values { limit, .. } => u64::from(*limit),
            What::Neighbors { radius, .. } => 2 * u64::from(*radius),
            What::Lookup { subjects, ranks } => look_ups(subjects.len(), if *ranks { subjects.len() } else { 0 }),
            What::Scores(Scores { subjects, better_than, near }) => {
                look_ups(subjects.len(), better_than.len()) + better_than.len() as u64 * (RANK + near) * near.min(&1)
            }
            What::Standing(_) => cells(board, board.slots()),
            What::Lines { near, with_slots } => {
                let lines = near.before.saturating_add(near.after);
                lines.saturating_add(if *with_slots { cells(board, board.slots()) } else { 0 })
            }
            What::Between(between) => between.all_up_to.saturating_add(LEAST),
            What::Window { range: SlotRange::Slots(slots), .. } => cells(board, *slots),
            What::Window { .. } => cells(board, board.slots()),
        };
        cells.max(LEAST)
    }
}

impl Question {
    /// Returns the subject of the question, if it is about one.
    pub fn subject(&self) -> Option<&Subject> {
        match &*self.what {
            What::Neighbors { subject, .. }
            | What::Standing(subject)
            | What::Window { subject, .. }
            | What::Values { subject, .. } => Some(subject),
            What::Page { .. } | What::Beside { .. } | What::Lookup { .. } | What::Scores(_) => None,
            What::Lines { .. } | What::Between(_) => None,
        }
    }

    /// Compares questions, so that those about the same slots of a part are next to each other when sorted, and so are
    /// equal questions.
    pub fn order(&self, other: &Self) -> Ordering {
        let range = |question: &Self| match &*question.what {
            What::Window { range: SlotRange::Slots(slots), as_of, .. } => Some((i64::from(*slots), 0, *as_of)),
            What::Window { range: SlotRange::From(time), as_of, .. } => Some((0, time.millis(), *as_of)),
            _ => None,
        };
        let part = |question: &Self| Arc::as_ptr(&question.part);
        let by_slots = part(self).cmp(&part(other)).then_with(|| range(self).cmp(&range(other)));
        by_slots.then_with(|| self.subject().cmp(&other.subject()))
    }
}

/// Returns the weight of this number of scores and ranks.
fn look_ups(scores: usize, ranks: usize) -> u64 {
    scores as u64 / SCORES + ranks as u64 * RANK
}

/// Returns the weight of this number of slots of one subject.
fn cells(board: &Board, slots: u32) -> u64 {
    if board.definition().mode == Mode::FromFirst {
        return 1;
    }
    let slots = u64::from(slots.min(board.slots()));
    let read = if reads_whole_key(board, slots as usize) { slots.max(board.kept().into()) } else { slots };
    read * kinds::of(board.kind()).read_weight()
}

/// Returns whether a subject's whole key is read, if this number of its slots is requested of an unranked board.
pub(super) fn reads_whole_key(board: &Board, slots: usize) -> bool {
    !board.is_ranked() && u64::from(board.kept()) <= WHOLE * slots as u64
}

impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.part, &other.part) && self.what == other.what && self.at_least == other.at_least
    }
}

impl Eq for Question {}

impl Hash for Question {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.part).hash(state);
        self.what.hash(state);
        self.at_least.hash(state);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::board::{BoardName, Definition, Generation};
    use crate::store::redis::keys::StoreKeys;
    use crate::store::redis::store_clock::Start;

    /// Returns a part of a board with this metric.
    pub fn part(metric: &str, slot: &str, ranked: bool) -> Arc<Part> {
        let definition = Definition { ranked, ..Definition::new(metric.parse().unwrap(), slot.parse().unwrap()) };
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        let keys = StoreKeys::new("p").board(board.name(), board.generation());
        let now = Timestamp::parse("2026-01-01T09:30:00Z").unwrap();
        Arc::new(Part::new(Arc::new(board), keys, false, Start::believed(now)))
    }

    pub fn window(part: &Arc<Part>, subject: &str, slots: u32) -> Question {
        let subject = Subject::parse(subject).unwrap();
        Question::new(part.clone(), What::Window { subject, range: SlotRange::Slots(slots), as_of: None })
    }

    #[test]
    fn the_weight_of_a_question_is_what_it_reads() {
        let ranked = part("COUNT(2000m, e, s)", "1m", true);
        assert_eq!(window(&ranked, "a", 2_000).weight(), 2_000);
        assert_eq!(window(&ranked, "a", 5).weight(), LEAST);
        let sketches = part("APPROX_COUNT_DISTINCT(100m, e, s, c)", "1m", true);
        assert_eq!(window(&sketches, "a", 100).weight(), 100 * 16);
        // Of an unranked board everything that it keeps is read, unless that is much more than was requested.
        let unranked = part("COUNT(100m, e, s)", "1m", false);
        assert_eq!((window(&unranked, "a", 50).weight(), window(&unranked, "a", 20).weight()), (101, 20));
    }

    #[test]
    fn questions_about_the_same_part_are_compared_by_content() {
        let (part, other) = (part("COUNT(2h, e, s)", "1h", true), part("COUNT(2h, e, s)", "1h", true));
        assert_eq!(window(&part, "a", 1), window(&part, "a", 1));
        assert_ne!(window(&part, "a", 1), window(&part, "a", 2));
        assert_ne!(window(&part, "a", 1), window(&other, "a", 1));
        assert_eq!(window(&part, "a", 1).order(&window(&part, "a", 1)), Ordering::Equal);
        assert_ne!(window(&part, "a", 1).order(&window(&part, "b", 1)), Ordering::Equal);
    }
}
