//! Finding lines of a packed ranking: by subject, and by score.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::sheet::{LINES, LineSheet, Registered, sheets_of};
use crate::board::{BoardTrack, Subject, Value};
use crate::store::{self, Place, SheetId, Store, StoreError, compare_scores};

/// The number of sheets that are read in one store call.
pub(super) const TOGETHER: usize = 16;
/// The number of sheets among which a search by score decides in one store call.
const FAN: u64 = 15;

/// Finds lines of one ranking, which has this many.
pub(super) struct Finder<'a> {
    pub store: &'a dyn Store,
    pub track: &'a BoardTrack,
    pub lines: u64,
}

/// The line of a subject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FoundLine {
    /// The number of the line, from 0.
    pub line: u64,
    /// The number of the first line with the same score.
    pub tied_from: u64,
    pub score: Value,
    /// Whether values were dropped because the board remembers a limited number.
    pub is_capped: bool,
}

/// Returns the error that a sheet is not there that must be.
pub(super) fn missing(id: SheetId) -> StoreError {
    StoreError::Corrupt { detail: format!("the sheet {id} of an ended period is missing") }
}

/// Reads a sheet, if it is there.
pub(super) async fn text_of(store: &dyn Store, track: &BoardTrack, id: SheetId) -> store::Result<Option<Arc<str>>> {
    Ok(store.sheets(track, &[id]).await?.texts.pop().flatten())
}

impl Finder<'_> {
    /// Reads a sheet of lines, which must exist.
    pub(super) async fn lines_text(&self, number: u64) -> store::Result<Arc<str>> {
        let id = SheetId::Lines(number);
        text_of(self.store, self.track, id).await?.ok_or_else(|| missing(id))
    }

    /// Reads sheets that must exist, in one store call.
    pub(super) async fn texts(&self, ids: &[SheetId]) -> store::Result<Vec<Arc<str>>> {
        let texts = self.store.sheets(self.track, ids).await?.texts;
        ids.iter().zip(texts).map(|(id, text)| text.ok_or_else(|| missing(*id))).collect()
    }

    /// Returns the line of each subject, in the order of the request. Two store calls for each 16 subjects, and hardly more.
    pub(super) async fn find(&self, subjects: &[&Subject]) -> store::Result<Vec<Option<FoundLine>>> {
        let sheets = sheets_of(self.lines);
        let mut found = vec![None; subjects.len()];
        if self.lines == 0 {
            return Ok(found);
        }
        let registered: Vec<_> = subjects.iter().map(|subject| Registered::of(subject.as_str(), sheets)).collect();
        let mut by_register: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (at, registered) in registered.iter().enumerate() {
            by_register.entry(registered.sheet).or_default().push(at);
        }
        // By sheet of lines, the subjects that it may have.
        let mut by_sheet: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let register: Vec<_> = by_register.into_iter().collect();
        for some in register.chunks(TOGETHER) {
            let ids: Vec<_> = some.iter().map(|(sheet, _)| SheetId::Register(*sheet)).collect();
            for (text, (_, places)) in self.texts(&ids).await?.iter().zip(some) {
                for at in places {
                    for sheet in registered[*at].candidates(text) {
                        by_sheet.entry(sheet).or_default().push(*at);
                    }
                }
            }
        }
        let by_sheet: Vec<_> = by_sheet.into_iter().collect();
        for some in by_sheet.chunks(TOGETHER) {
            let ids: Vec<_> = some.iter().map(|(sheet, _)| SheetId::Lines(*sheet)).collect();
            for (text, (number, places)) in self.texts(&ids).await?.iter().zip(some) {
                let sheet = LineSheet::read(self.track, text)?;
                let first = number * LINES;
                for at in places {
                    if let Some(own) = sheet.position(subjects[*at]) {
                        let (line, tied_from) = (first + own as u64, sheet.tie_of(first, own));
                        let own = sheet.lines[own];
                        found[*at] = Some(FoundLine { line, tied_from, score: own.score, is_capped: own.is_capped });
                    }
                }
            }
        }
        Ok(found)
    }

    /// Returns the number of lines that come before a place. O(log lines) sheets.
    pub(super) async fn before_place(&self, place: &Place) -> store::Result<u64> {
        let order = self.track.order();
        let tied_from = self.count(|score| compare_scores(*score, place.score, order) == Ordering::Less).await?;
        let tied_until = self.count(|score| compare_scores(*score, place.score, order) != Ordering::Greater).await?;
        // Of the lines that tie with the place, those that come before it. One whose subject was removed belongs to the one
        // before it.
        let (mut low, mut high) = (tied_from, tied_until);
        // Of several sheets in a row where no subject is left, the search goes on to the left of all of them first.
        let mut nameless: Option<(u64, u64)> = None;
        while low < high {
            let number = match nameless {
                Some((from, _)) if from > low => (from - 1) / LINES,
                Some((_, until)) => {
                    (low, nameless) = (until, None);
                    continue;
                }
                None => low.midpoint(high) / LINES,
            };
            let text = self.lines_text(number).await?;
            let sheet = LineSheet::read(self.track, &text)?;
            let first = number * LINES;
            let (from, until) = (low.max(first), high.min(first + sheet.lines.len() as u64));
            let mut named = (from..until).filter_map(|line| {
                let subject = sheet.lines.get((line - first) as usize)?.subject?;
                let own = Place { score: place.score, subject: Subject::from_stored(subject) };
                Some((line, own.compare(place, order) == Ordering::Less))
            });
            let last_before = named.clone().rfind(|(_, is_before)| *is_before);
            match (last_before, named.find(|(_, is_before)| !is_before)) {
                (Some(_), Some((line, _))) => return Ok(line),
                (Some(_), None) => (low, nameless) = (nameless.map_or(until, |(_, until)| until), None),
                (None, Some(_)) => (high, nameless) = (from, None),
                (None, None) => nameless = Some((from, nameless.map_or(until, |(_, until)| until))),
            }
        }
        Ok(low)
    }

    /// Returns the number of lines from the first one on whose scores fulfill a condition, which no line after one that does
    /// not fulfills. O(log lines) sheets.
    pub(super) async fn count(&self, is_before: impl Fn(&Value) -> bool) -> store::Result<u64> {
        if self.lines == 0 {
            return Ok(0);
        }
        // The first line of `low` fulfills the condition, or `low` is 0. That of `high` does not, if there is such a sheet.
        let (mut low, mut high) = (0, sheets_of(self.lines));
        while high - low > 1 {
            let parts = (high - low).min(FAN + 1);
            let pivots: Vec<u64> = (1..parts).map(|part| low + (high - low) * part / parts).collect();
            let ids: Vec<_> = pivots.iter().map(|pivot| SheetId::Lines(*pivot)).collect();
            for (text, pivot) in self.texts(&ids).await?.iter().zip(pivots) {
                let sheet = LineSheet::read(self.track, text)?;
                match sheet.lines.first().is_some_and(|line| is_before(&line.score)) {
                    true => low = pivot,
                    false => {
                        high = pivot;
                        break;
                    }
                }
            }
        }
        let text = self.lines_text(low).await?;
        let sheet = LineSheet::read(self.track, &text)?;
        Ok(low * LINES + sheet.lines.iter().take_while(|line| is_before(&line.score)).count() as u64)
    }
}
