//! Writes to boards of several parts: divides a batch by part and combines the results of the shares.

use std::sync::Arc;

use super::part::Part;
use super::parts::Parts;
use super::writes::PartBatch;
use crate::board::Frame;
use crate::store::{Added, Batch, Outcome, Result, StoreError};

/// The division of the items of one batch.
#[derive(Debug)]
pub(super) struct Division {
    items: usize,
    /// The indexes of the items of each share, or `None` for a batch that went to one part undivided.
    shares: Option<Vec<Vec<usize>>>,
}

/// Divides a batch by part. The items keep their order within each part. All items of one subject go to the same part.
pub(super) fn divide(parts: &Parts, batch: Batch) -> (Division, Vec<PartBatch>) {
    let items = batch.increments.len();
    let whole =
        |part: &Arc<Part>, batch| (Division { items, shares: None }, vec![PartBatch { part: part.clone(), batch }]);
    match (parts.only(), &*batch.increments) {
        (Some(part), _) => return whole(part, batch),
        // A batch without items only asks for the frame, which any part can return.
        (None, []) => return whole(parts.first(), batch),
        (None, [one]) => return whole(&parts.of(&one.subject).clone(), batch),
        _ => {}
    }
    let mut of_parts: Vec<(Vec<usize>, Batch)> = Vec::new();
    let empty = || (Vec::new(), Batch { increments: Vec::new(), return_scores: batch.return_scores });
    of_parts.resize_with(parts.count(), empty);
    for (index, increment) in batch.increments.into_iter().enumerate() {
        let (indexes, share) = &mut of_parts[parts.number_of(&increment.subject)];
        indexes.push(index);
        share.increments.push(increment);
    }
    let (mut shares, mut part_batches) = (Vec::new(), Vec::new());
    for (part, (indexes, batch)) in parts.all().iter().zip(of_parts) {
        if !indexes.is_empty() {
            shares.push(indexes);
            part_batches.push(PartBatch { part: part.clone(), batch });
        }
    }
    (Division { items, shares: Some(shares) }, part_batches)
}

impl Division {
    /// Returns the number of part batches.
    pub fn part_batches(&self) -> usize {
        self.shares.as_ref().map_or(1, Vec::len)
    }

    /// Returns whether a part reports that the board no longer exists, while a different part has counted something, or
    /// may have.
    pub fn is_disputed(&self, answers: &[Result<Added>]) -> bool {
        let is_gone = |answer: &Result<Added>| matches!(answer, Err(StoreError::BoardChanged));
        answers.iter().any(is_gone) && !answers.iter().all(is_gone)
    }

    /// Returns the result of the batch: every item's outcome in the order given, and the latest frame. If a share
    /// failed, the outcome is unknown as soon as anything of the batch was counted, or may have been. Most errors say
    /// that nothing was counted, which would then be wrong. `is_gone` is true if the board itself no longer exists, and
    /// with it everything that its parts have counted.
    pub fn join(self, answers: Vec<Result<Added>>, is_gone: bool, at: &str) -> Result<Added> {
        if is_gone {
            return Err(StoreError::BoardChanged);
        }
        let mut answers = answers;
        let Some(shares) = self.shares else {
            return answers.pop().unwrap_or(Err(StoreError::BoardChanged));
        };
        let (mut outcomes, mut frame) = (vec![None; self.items], None);
        let (mut counted, mut worst): (bool, Option<StoreError>) = (false, None);
        for (indexes, answer) in shares.iter().zip(answers) {
            match answer {
                Ok(added) => {
                    frame = Some(match frame {
                        Some(before) => latest(before, added.frame),
                        None => added.frame,
                    });
                    counted |= added.outcomes.iter().any(|outcome| matches!(outcome, Outcome::Counted { .. }));
                    for (index, outcome) in indexes.iter().zip(added.outcomes) {
                        outcomes[*index] = Some(outcome);
                    }
                }
                Err(error) => {
                    worst = Some(match worst {
                        Some(before) if gravity(&before) >= gravity(&error) => before,
                        _ => error,
                    });
                }
            }
        }
        match worst {
            Some(StoreError::Corrupt { detail }) => return Err(StoreError::Corrupt { detail }),
            Some(_) if counted => return Err(StoreError::TimedOut { at: at.to_owned() }),
            Some(error) => return Err(error),
            None => {}
        }
        let left_out = || StoreError::Corrupt { detail: "a part of a batch left out an item".to_owned() };
        let frame = frame.ok_or_else(left_out)?;
        let outcomes = outcomes.into_iter().collect::<Option<Vec<Outcome>>>().ok_or_else(left_out)?;
        Ok(Added { frame, outcomes })
    }
}

/// Returns the later of two frames, with the larger number of retiring slots.
fn latest(a: Frame, b: Frame) -> Frame {
    let later = if (a.window.head, a.as_of) <= (b.window.head, b.as_of) { b } else { a };
    Frame { retiring: a.retiring.max(b.retiring), ..later }
}

/// Ranks the errors of several shares; the caller gets the one with the largest number. An error after which the
/// outcome is unknown comes before those that say that nothing was done. Of these, the one that best says what to do
/// comes first.
fn gravity(error: &StoreError) -> u8 {
    match error {
        StoreError::Corrupt { .. } => 6,
        StoreError::TimedOut { .. } => 5,
        StoreError::BoardChanged => 4,
        StoreError::ReadOnly { .. } => 3,
        StoreError::Unreachable { .. } => 1,
        StoreError::Overloaded { .. } => 0,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Timestamp, Window};
    use crate::store::Rejection;

    const COUNTED: Outcome = Outcome::Counted { score: None };
    const REFUSED: Outcome = Outcome::Rejected(Rejection::TooLate);

    fn added(second: i64, outcomes: &[Outcome]) -> Result<Added> {
        let at = Timestamp::from_millis(second * 1_000);
        let frame = Frame { window: Window { floor: at, head: at, end: at }, as_of: at, retiring: 0 };
        Ok(Added { frame, outcomes: outcomes.to_vec() })
    }

    fn join(answers: Vec<Result<Added>>) -> Result<Added> {
        let division = Division { items: 3, shares: Some(vec![vec![0, 2], vec![1]]) };
        assert_eq!(division.part_batches(), 2);
        division.join(answers, false, "host:1")
    }

    fn unreachable() -> Result<Added> {
        Err(StoreError::Unreachable { at: String::new(), source: "gone".into() })
    }

    #[test]
    fn joined_outcomes_keep_their_order_and_the_latest_frame() {
        let joined = join(vec![added(9, &[COUNTED, REFUSED]), added(8, &[COUNTED])]).unwrap();
        assert_eq!(joined.outcomes, [COUNTED, COUNTED, REFUSED]);
        assert_eq!(joined.frame.as_of, Timestamp::from_millis(9_000));
    }

    #[test]
    fn joined_errors_are_definite_only_if_no_part_may_have_counted() {
        let is_unknown = |joined| matches!(joined, Err(StoreError::TimedOut { .. }));
        let lost = || Err(StoreError::TimedOut { at: String::new() });
        assert!(is_unknown(join(vec![added(1, &[COUNTED, REFUSED]), unreachable()])));
        assert!(is_unknown(join(vec![added(1, &[COUNTED, REFUSED]), Err(StoreError::BoardChanged)])));
        assert!(is_unknown(join(vec![lost(), Err(StoreError::BoardChanged)])));
        assert!(is_unknown(join(vec![unreachable(), lost()])));
        assert!(matches!(join(vec![unreachable(), unreachable()]), Err(StoreError::Unreachable { .. })));
        assert!(matches!(
            join(vec![added(1, &[REFUSED, REFUSED]), unreachable()]),
            Err(StoreError::Unreachable { .. })
        ));
        assert!(matches!(join(vec![unreachable(), Err(StoreError::BoardChanged)]), Err(StoreError::BoardChanged)));
    }
}
