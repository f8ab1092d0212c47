//! The result of an operation, in a form that can be compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use rolltop::board::{AttributesError, EarlierRanks, Frame, NotCounted, Timestamp, Value};
use rolltop::store::{
    Added, AtScore, Described, Distribution, DualRun, ImportBegun, Keys, Lookup, Merged, Moderated, Outcome, Page,
    Rejection, Removal, Result, SlotContents, Standing, Status, Store, StoreError, Values,
};

use crate::carrying::Contents;

#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    Added(Frame, Vec<Outcome>),
    Outcomes(Vec<Outcome>),
    Values(Values),
    Page(Page),
    Lookup(Lookup),
    Standing(Standing),
    Distribution(Distribution),
    SlotContents(SlotContents),
    Removal(Removal),
    Status(Status),
    Keys(Keys),
    /// The ranks at the newest boundary.
    Earlier(Option<Arc<EarlierRanks>>),
    Moderated(Moderated),
    Described(Described),
    AttributesSet(Vec<Result<(), AttributesError>>),
    Contents(Contents),
    Begun(ImportBegun),
    Merged(Merged),
    ImportOpen,
    NoImport,
    Rows(BTreeMap<String, String>),
    Clock(Timestamp),
    Done,
    BoardChanged,
    /// What is known of two editions: since when, what only the other one counted, and when one was filled.
    DualRun(Timestamp, [BTreeMap<NotCounted, u64>; 2], Option<Timestamp>),
    Compared([Frame; 2], Vec<[Option<Value>; 2]>),
    StaleEpoch,
    BeyondWindow(Timestamp),
}

/// Converts a result. Returns an error for a result that no sequence should cause.
pub fn seen<T: Into<Seen>>(store: &dyn Store, answer: Result<T>) -> Result<Seen, String> {
    match answer {
        Ok(answer) => Ok(answer.into()),
        Err(StoreError::BoardChanged) => Ok(Seen::BoardChanged),
        Err(StoreError::StaleEpoch) => Ok(Seen::StaleEpoch),
        Err(StoreError::BeyondWindow { floor }) => Ok(Seen::BeyondWindow(floor)),
        Err(StoreError::ImportOpen) => Ok(Seen::ImportOpen),
        Err(StoreError::NoImport { .. }) => Ok(Seen::NoImport),
        Err(error) => Err(format!("{}: {error:?}", store.kind())),
    }
}

impl Seen {
    pub fn retiring(&self) -> u64 {
        match self {
            Seen::Compared(frames, _) => frames.iter().map(|frame| frame.retiring).sum(),
            _ => self.frame().map_or(0, |frame| frame.retiring),
        }
    }

    fn frame(&self) -> Option<&Frame> {
        match self {
            Seen::Added(frame, _) => Some(frame),
            Seen::Page(page) => Some(&page.frame),
            Seen::Lookup(lookup) => Some(&lookup.frame),
            Seen::Standing(standing) => Some(&standing.frame),
            Seen::Distribution(distribution) => Some(&distribution.frame),
            Seen::SlotContents(reading) => Some(&reading.frame),
            Seen::Removal(removal) => Some(&removal.frame),
            Seen::Values(values) => Some(&values.frame),
            Seen::Status(status) => Some(&status.frame),
            Seen::Keys(keys) => Some(&keys.frame),
            _ => None,
        }
    }

    /// Returns what must be equal to this result of the oracle. The ranks at a boundary may be unknown where the oracle
    /// knows them: to a store that has not retired a slot, and to one that divides the board or has not been asked in
    /// every slot.
    pub fn comparable(self, expected: &Seen) -> Seen {
        match (self, expected) {
            (Seen::Earlier(Some(found)), Seen::Earlier(Some(exact)))
                if found.lines().is_none() && found.at() == exact.at() =>
            {
                expected.clone()
            }
            (found, _) => found,
        }
    }

    /// Returns whether the scores in the result must be equal on every store. They need not be in three cases. While a
    /// slot is retiring, each store retires at its own pace. The same applies if this removal removed the last of a
    /// retiring slot. And if an item was refused, the other items of a refused sum may be tried in a different step.
    pub fn has_equal_scores(&self) -> bool {
        let refused = |outcome: &Outcome| *outcome == Outcome::Rejected(Rejection::OutOfRange);
        self.retiring() == 0
            && match self {
                Seen::Added(_, outcomes) => !outcomes.iter().any(refused),
                Seen::Removal(removal) => removal.retiring_slots == 0,
                _ => true,
            }
    }

    /// Removes everything that may still contain a part of an expired slot. The rest is always the same on every store.
    pub fn without_scores(mut self) -> Seen {
        match &mut self {
            Seen::Added(frame, outcomes) => {
                frame.retiring = 0;
                for outcome in outcomes {
                    if let Outcome::Counted { score } | Outcome::Duplicate { score } = outcome {
                        *score = None;
                    }
                }
            }
            Seen::Page(page) => {
                (page.frame.retiring, page.total, page.first) = (0, 0, 0);
                (page.items, page.not_worse) = (Vec::new().into(), None);
            }
            Seen::Lookup(lookup) => {
                (lookup.frame.retiring, lookup.total) = (0, 0);
                lookup.scores.fill(None);
                lookup.ranks.fill(None);
                lookup.not_worse.fill(None);
            }
            Seen::Standing(standing) => {
                (standing.frame.retiring, standing.total, standing.better) = (0, 0, 0);
                (standing.score, standing.rank, standing.not_worse) = (None, None, None);
            }
            Seen::Distribution(distribution) => {
                (distribution.frame.retiring, distribution.total) = (0, 0);
                distribution.percentiles.fill(None);
                distribution.scores.fill(AtScore::default());
            }
            Seen::SlotContents(reading) => reading.frame.retiring = 0,
            Seen::Values(values) => values.frame.retiring = 0,
            Seen::Removal(removal) => {
                (removal.frame.retiring, removal.score, removal.retiring_slots) = (0, None, 0);
            }
            Seen::Status(status) => {
                (status.frame.retiring, status.total, status.keys) = (0, None, None);
                status.retiring.clear();
            }
            Seen::Compared(frames, values) => {
                frames.iter_mut().for_each(|frame| frame.retiring = 0);
                values.fill([None, None]);
            }
            _ => {}
        }
        self
    }
}

impl From<Added> for Seen {
    fn from(added: Added) -> Seen {
        Seen::Added(added.frame, added.outcomes)
    }
}

impl From<DualRun> for Seen {
    fn from(run: DualRun) -> Seen {
        let of_edition = |reasons: Vec<_>| reasons.into_iter().filter(|(_, items)| *items > 0).collect();
        Seen::DualRun(run.since, run.not_counted.map(of_edition), run.filled)
    }
}

impl From<()> for Seen {
    fn from((): ()) -> Seen {
        Seen::Done
    }
}

impl From<Timestamp> for Seen {
    fn from(time: Timestamp) -> Seen {
        Seen::Clock(time)
    }
}

macro_rules! seen_as {
    ($($name:ident: $answer:ty),*) => {
        $(impl From<$answer> for Seen {
            fn from(answer: $answer) -> Seen {
                Seen::$name(answer)
            }
        })*
    };
}
seen_as!(Begun: ImportBegun, Earlier: Option<Arc<EarlierRanks>>, Distribution: Distribution, Keys: Keys, Merged: Merged, Moderated: Moderated, Described: Described, AttributesSet: Vec<Result<(), AttributesError>>, Page: Page, Lookup: Lookup, SlotContents: SlotContents, Values: Values, Removal: Removal);

impl From<Status> for Seen {
    fn from(status: Status) -> Seen {
        // Each store counts upheavals of its own.
        Seen::Status(Status { upheavals: 0, ..status })
    }
}

impl From<Standing> for Seen {
    fn from(mut standing: Standing) -> Seen {
        // The number of better subjects is not defined for a subject without a score.
        if standing.score.is_none() {
            standing.better = 0;
        }
        Seen::Standing(standing)
    }
}
