//! The lines of hidden subjects in a packed ranking, which are left out when it is read.
//!
//! Sheets know nothing of moderation. Each read asks for the hidden subjects of the board, which are few or none on most
//! boards, and each instance remembers where their lines are: lines never move.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::finding::Finder;
use super::sheet::Head;
use crate::board::{Board, BoardTrack, ModerationList, Subject, TrackId, Visibility};
use crate::store::{self, Store, TextRange};

/// The number of hidden subjects that are read in one store call.
const TOGETHER: u32 = 1_000;
/// The largest number of subjects, of all periods together, of which it is remembered where their lines are.
const MOST_KNOWN: usize = 500_000;

/// The lines of a packed ranking that are not shown.
#[derive(Debug, Default)]
pub(super) struct HiddenLines {
    /// In ascending order.
    pub lines: Vec<u64>,
    pub subjects: HashMap<Subject, Visibility>,
}

impl HiddenLines {
    /// Returns the number of shown lines before this one.
    pub(super) fn shown_before(&self, line: u64) -> u64 {
        line - self.lines.partition_point(|hidden| *hidden < line) as u64
    }

    pub(super) fn is_hidden(&self, line: u64) -> bool {
        self.lines.binary_search(&line).is_ok()
    }

    /// Returns the number of the line that has this many shown ones before it and is shown, if there are enough lines.
    pub(super) fn line_of(&self, shown: u64) -> u64 {
        // Each hidden line before it moves it by one.
        let (mut low, mut high) = (0, self.lines.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.lines[middle] - middle as u64 <= shown {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        shown.saturating_add(low as u64)
    }
}

/// Where the lines of hidden subjects are, by period.
#[derive(Debug, Default)]
pub(super) struct KnownLines {
    by_period: Mutex<HashMap<TrackId, Arc<KnownOfPeriod>>>,
}

/// Where the lines of some subjects are, until a subject is removed: one that was removed has no line, also if it is hidden
/// again later.
#[derive(Debug)]
struct KnownOfPeriod {
    removals: u64,
    lines: HashMap<Subject, Option<u64>>,
}

/// Returns all hidden subjects of a board, in the order of their bytes. One store call for each thousand.
pub(super) async fn subjects(store: &dyn Store, board: &Arc<Board>) -> store::Result<Vec<(Subject, Visibility)>> {
    let mut all: Vec<(Subject, Visibility)> = Vec::new();
    loop {
        let range = TextRange { prefix: "", after: all.last().map(|(subject, _)| subject.as_str()) };
        let page = store.moderated(board, ModerationList::Hidden, range, TOGETHER).await?;
        let is_last = page.items.len() < TOGETHER as usize;
        all.extend(page.items.into_iter().map(|(subject, moderation)| (subject, moderation.visibility)));
        if is_last {
            return Ok(all);
        }
    }
}

impl KnownLines {
    /// Returns which lines of a packed ranking are left out: those of these subjects, which are hidden now, and those
    /// that stay so. Store calls only for subjects whose lines this instance does not know.
    pub(super) async fn lines_of(
        &self,
        store: &dyn Store,
        track: &BoardTrack,
        Head { lines, removals, left_out, .. }: Head,
        subjects: Vec<(Subject, Visibility)>,
    ) -> store::Result<HiddenLines> {
        if subjects.is_empty() && left_out.is_empty() {
            return Ok(HiddenLines::default());
        }
        let subjects: HashMap<Subject, Visibility> = subjects.into_iter().collect();
        let known = self.by_period.lock().get(&track.id()).filter(|known| known.removals == removals).cloned();
        let (mut of_known, mut unknown) = (HashMap::with_capacity(subjects.len()), Vec::new());
        for subject in subjects.keys() {
            match known.as_ref().and_then(|known| known.lines.get(subject)) {
                Some(line) => drop(of_known.insert(subject.clone(), *line)),
                None => unknown.push(subject),
            }
        }
        if !unknown.is_empty() {
            let found = Finder { store, track, lines }.find(&unknown).await?;
            of_known.extend(
                unknown.into_iter().zip(found).map(|(subject, found)| (subject.clone(), found.map(|f| f.line))),
            );
        }
        let mut lines: Vec<u64> = of_known.values().copied().flatten().collect();
        lines.extend(left_out);
        lines.sort_unstable();
        lines.dedup();
        let mut by_period = self.by_period.lock();
        by_period.remove(&track.id());
        if by_period.values().map(|known| known.lines.len()).sum::<usize>() + of_known.len() > MOST_KNOWN {
            by_period.clear();
        }
        by_period.insert(track.id(), Arc::new(KnownOfPeriod { removals, lines: of_known }));
        Ok(HiddenLines { lines, subjects })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_lines_move_the_shown_ones() {
        let hidden = HiddenLines { lines: vec![0, 3, 4, 9], ..HiddenLines::default() };
        let shown: Vec<u64> = (0..12).filter(|line| !hidden.is_hidden(*line)).collect();
        assert_eq!(shown, [1, 2, 5, 6, 7, 8, 10, 11]);
        for (before, line) in shown.iter().enumerate() {
            assert_eq!((hidden.line_of(before as u64), hidden.shown_before(*line)), (*line, before as u64));
        }
        assert_eq!(hidden.shown_before(12), 8);
        assert_eq!(HiddenLines::default().line_of(u64::MAX), u64::MAX);
    }
}
