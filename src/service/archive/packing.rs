//! The packing of an ended period: its lines are written to sheets, then the register of the subjects, in steps between
//! which everything else continues. Until all of it is written, the ranking itself is read.
//!
//! A sheet is written once, and where the work goes on follows from those that are there. So it goes on after a restart,
//! and several instances that pack the same ranking make the same of it. A ranking that is packed does not change, except
//! for subjects that are removed from it. A removal looks for the line afterwards, and finds it if the register is
//! complete. If it was not, the removal from the ranking itself was before that, so the ranking that is read after the
//! register is complete has the subject no more: then its number of [upheavals](crate::store::Status::upheavals) differs,
//! and the lines of subjects that are gone are looked for once before the packing ends.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::finding::{Finder, TOGETHER, text_of};
use super::sheet::{Head, LINES, Line, LineSheet, MOST_LINES, Registered, sheets_of};
use super::{hidden, removing};
use crate::board::{BoardTrack, Packed, Subject, Value};
use crate::store::{self, NextTo, PageStart, Place, SheetId, Store, StoreError};

/// The number of sheets of the register that are gathered in one walk over the lines: about 30 MB.
pub(super) const GATHERED: u64 = 16_384;
/// The number of times that a step is repeated because subjects were hidden, shown or removed meanwhile. While subjects are
/// removed one after the other, about every second attempt is disturbed.
const ATTEMPTS: usize = 64;

/// The packing of one ranking.
pub(super) struct Packing<'a> {
    store: &'a dyn Store,
    track: &'a BoardTrack,
    /// The number of lines that are kept.
    limit: u64,
    /// What hidden subjects have in the ranking, as far as it was asked for.
    hidden: HashMap<Subject, Option<Value>>,
    /// The number of upheavals of the ranking when it was last read.
    upheavals: Option<u64>,
}

/// Where a walk over the ranking goes on.
#[derive(Debug, Default)]
struct WalkPosition {
    lines: u64,
    /// The place of the last line.
    last: Option<Place>,
    /// The score of the last line, and the number of the first line that has it.
    tie: Option<(Value, u64)>,
    /// Whether there are no more lines.
    is_end: bool,
}

/// Lines of the ranking, and what is known of the rest.
struct Next {
    lines: Vec<Place>,
    /// The number of ranked subjects that are not hidden.
    visible: u64,
    /// The lines that hidden subjects would have, in no order.
    hidden: Vec<Place>,
}

impl<'a> Packing<'a> {
    /// Returns the packing of the ranking of a period to which nothing is written any more.
    pub(super) fn of(store: &'a dyn Store, track: &'a BoardTrack) -> Self {
        let top = track.board().season().map(|season| season.archive_top).unwrap_or_default();
        Self {
            store,
            track,
            limit: top.limit().unwrap_or(u64::MAX).min(MOST_LINES),
            hidden: HashMap::new(),
            upheavals: None,
        }
    }

    /// Writes what is missing of the sheets. Returns the numbers of the ranking, or `None` if another instance writes them.
    ///
    /// Returns [`StoreError::Unsupported`] if there are too many lines.
    pub(super) async fn run(mut self) -> store::Result<Option<Packed>> {
        let begun = self.first_missing(SheetId::Lines).await?;
        // Of a packing that was begun earlier it is not known what was removed since.
        let verified = match begun {
            0 => Some(self.store.status(self.track).await?.upheavals),
            _ => None,
        };
        let head = match self.head().await? {
            Some(head) => head,
            None => match self.write_lines(begun).await? {
                Some(head) => head,
                None => return Ok(None),
            },
        };
        if head.lines > 0 && !self.write_register(head.lines).await? {
            return Ok(None);
        }
        if verified != Some(self.store.status(self.track).await?.upheavals) {
            self.remove_lost(head.lines).await?;
        }
        Ok(Some(Packed { lines: head.lines, total: head.total }))
    }

    async fn head(&self) -> store::Result<Option<Head>> {
        let text = text_of(self.store, self.track, SheetId::Head).await?;
        text.map(|text| Head::read(&text)).transpose()
    }

    async fn has(&self, id: SheetId) -> store::Result<bool> {
        Ok(text_of(self.store, self.track, id).await?.is_some())
    }

    /// Returns the number of the first sheet that is missing: those before it are there. O(log sheets) calls.
    async fn first_missing(&self, id: fn(u64) -> SheetId) -> store::Result<u64> {
        let powers: Vec<u64> = (0..=24).map(|exponent| (1 << exponent) - 1).collect();
        let (mut there, mut missing) = (0, 1 << 25);
        for some in powers.chunks(TOGETHER) {
            let ids: Vec<_> = some.iter().map(|number| id(*number)).collect();
            let texts = self.store.sheets(self.track, &ids).await?.texts;
            for (number, text) in some.iter().zip(texts) {
                match text {
                    Some(_) => there = number + 1,
                    None => missing = missing.min(*number),
                }
            }
            if some.last().is_some_and(|last| *last >= missing) {
                break;
            }
        }
        while there < missing {
            let middle = there.midpoint(missing);
            match self.has(id(middle)).await? {
                true => there = middle + 1,
                false => missing = middle,
            }
        }
        Ok(there)
    }

    /// Writes the sheets of lines from this one on, and then the head. Returns it, or `None` if another instance writes
    /// them.
    async fn write_lines(&mut self, from: u64) -> store::Result<Option<Head>> {
        let mut at = self.position_after(from).await?;
        while !at.is_end && at.lines < self.limit {
            let started = Instant::now();
            let room = (self.limit - at.lines).min(LINES);
            let next = self.next_lines(&at, room).await?;
            at.is_end = (next.lines.len() as u64) < room;
            if next.lines.is_empty() {
                break;
            }
            let tied_from = at.tie.filter(|(score, _)| *score == next.lines[0].score);
            let tied_from = tied_from.map_or(at.lines, |(_, from)| from);
            let capped = self.capped(&next.lines).await?;
            let own = next.lines.iter().zip(capped).map(|(place, is_capped)| Line {
                score: place.score,
                subject: Some(place.subject.as_str()),
                is_capped,
            });
            let sheet = LineSheet { tied_from, lines: own.collect() };
            let number = at.lines / LINES;
            if !self.store.change_sheet(self.track, SheetId::Lines(number), None, &sheet.print()).await? {
                return Ok(None);
            }
            let last = sheet.lines.len() - 1;
            at.tie = Some((sheet.lines[last].score, sheet.tie_of(at.lines, last)));
            at.lines += sheet.lines.len() as u64;
            at.last = next.lines.into_iter().last();
            store::rest(started).await;
        }
        let mut total = at.lines;
        if !at.is_end {
            // Of the hidden subjects, those whose lines are kept count.
            let rest = self.next_lines(&at, 0).await?;
            let is_kept =
                |place: &Place| at.last.as_ref().is_some_and(|last| self.compare(place, last) != Ordering::Greater);
            total = total.max(rest.visible + rest.hidden.iter().filter(|place| is_kept(place)).count() as u64);
        }
        if total > at.lines && at.lines >= MOST_LINES {
            let detail = format!("a ranking of more than {MOST_LINES} lines is not packed");
            return Err(StoreError::Unsupported { detail });
        }
        let head = Head { lines: at.lines, total, removals: 0, left_out: Vec::new() };
        self.store.change_sheet(self.track, SheetId::Head, None, &head.print()).await?;
        self.head().await
    }

    /// Returns where the walk goes on after the sheets before this one. No line of them is without a name: subjects are
    /// removed from them only once there is a head.
    async fn position_after(&self, sheets: u64) -> store::Result<WalkPosition> {
        let Some(number) = sheets.checked_sub(1) else { return Ok(WalkPosition::default()) };
        let finder = Finder { store: self.store, track: self.track, lines: sheets * LINES };
        let text = finder.lines_text(number).await?;
        let sheet = LineSheet::read(self.track, &text)?;
        let (first, last) = (number * LINES, sheet.lines.len().checked_sub(1));
        let lines = first + sheet.lines.len() as u64;
        let place = |line: &Line<'_>| Some(Place { score: line.score, subject: Subject::from_stored(line.subject?) });
        Ok(WalkPosition {
            lines,
            last: last.and_then(|last| place(&sheet.lines[last])),
            tie: last.map(|last| (sheet.lines[last].score, sheet.tie_of(first, last))),
            is_end: lines < (sheets * LINES).min(self.limit),
        })
    }

    fn compare(&self, a: &Place, b: &Place) -> Ordering {
        a.compare(b, self.track.order())
    }

    /// Returns the next lines, at most this many, with those of hidden subjects.
    async fn next_lines(&mut self, at: &WalkPosition, room: u64) -> store::Result<Next> {
        let start = at.last.clone().map_or(PageStart::Offset(0), |last| PageStart::Place(NextTo::after(last)));
        let mut before = match self.upheavals {
            Some(upheavals) => upheavals,
            None => self.store.status(self.track).await?.upheavals,
        };
        for _ in 0..ATTEMPTS {
            // Both are of one ranking if no subject was hidden, shown or removed meanwhile.
            let subjects = hidden::subjects(self.store, self.track.board()).await?;
            let page = self.store.page_from(self.track, &start, u32::try_from(room).unwrap_or(u32::MAX)).await?;
            let after = self.store.status(self.track).await?.upheavals;
            self.upheavals = Some(after);
            if std::mem::replace(&mut before, after) != after {
                continue;
            }
            let mut hidden = Vec::new();
            for (subject, _) in &subjects {
                let score = match self.hidden.get(subject) {
                    Some(score) => *score,
                    None => self.score_of(subject).await?,
                };
                hidden.extend(score.map(|score| Place { score, subject: subject.clone() }));
            }
            let is_next =
                |place: &&Place| at.last.as_ref().is_none_or(|last| self.compare(place, last) == Ordering::Greater);
            let mut lines: Vec<Place> = page.items.iter().map(Place::of).collect();
            lines.extend(hidden.iter().filter(is_next).cloned());
            lines.sort_unstable_by(|a, b| self.compare(a, b));
            lines.truncate(usize::try_from(room).unwrap_or(usize::MAX));
            return Ok(Next { lines, visible: page.total, hidden });
        }
        Err(StoreError::Overloaded { retry_after: Duration::from_secs(1) })
    }

    /// Returns for each line whether values of the subject were dropped, on a board that remembers a limited number: one store
    /// call for each line there.
    async fn capped(&self, lines: &[Place]) -> store::Result<Vec<bool>> {
        if self.track.max_values().is_none() {
            return Ok(vec![false; lines.len()]);
        }
        let is_capped = |place: &Place| {
            let subject = place.subject.clone();
            async move { Ok(self.store.standing(self.track, &subject).await?.capped) }
        };
        let calls: Vec<_> = lines.iter().map(is_capped).collect();
        stream::iter(calls).buffered(TOGETHER).try_collect().await
    }

    /// Returns the score that a hidden subject has in the ranking.
    async fn score_of(&mut self, subject: &Subject) -> store::Result<Option<Value>> {
        let standing = self.store.standing(self.track, subject).await?;
        let score = standing.score.filter(|_| self.track.kind().ranks(standing.score));
        self.hidden.insert(subject.clone(), score);
        Ok(score)
    }

    /// Writes the register. Returns whether it is complete; otherwise another instance writes it.
    async fn write_register(&self, lines: u64) -> store::Result<bool> {
        let sheets = sheets_of(lines);
        let mut next = self.first_missing(SheetId::Register).await?;
        while next < sheets {
            if self.has(SheetId::Register(next)).await? {
                // Another instance writes the register, so that it need not be gathered here.
                return Ok(false);
            }
            let until = sheets.min(next + GATHERED);
            let mut texts = vec![String::new(); usize::try_from(until - next).unwrap_or(0)];
            self.each_sheet(lines, |number, sheet| {
                for subject in sheet.lines.iter().filter_map(|line| line.subject) {
                    let registered = Registered::of(subject, sheets);
                    if (next..until).contains(&registered.sheet) {
                        registered.append(&mut texts[(registered.sheet - next) as usize], number);
                    }
                }
            })
            .await?;
            for (number, text) in (next..until).zip(texts) {
                let started = Instant::now();
                if !self.store.change_sheet(self.track, SheetId::Register(number), None, &text).await? {
                    return Ok(false);
                }
                store::rest(started).await;
            }
            next = until;
        }
        Ok(true)
    }

    /// Reads the sheets of lines one after the other.
    async fn each_sheet(&self, lines: u64, mut each: impl FnMut(u64, &LineSheet<'_>)) -> store::Result<()> {
        let numbers: Vec<u64> = (0..sheets_of(lines)).collect();
        let finder = Finder { store: self.store, track: self.track, lines };
        for some in numbers.chunks(TOGETHER) {
            let started = Instant::now();
            let ids: Vec<_> = some.iter().map(|number| SheetId::Lines(*number)).collect();
            for (text, number) in finder.texts(&ids).await?.iter().zip(some) {
                each(*number, &LineSheet::read(self.track, text)?);
            }
            store::rest(started).await;
        }
        Ok(())
    }

    /// Takes the subjects that the ranking does not have any more out of the sheets.
    async fn remove_lost(&mut self, lines: u64) -> store::Result<()> {
        let finder = Finder { store: self.store, track: self.track, lines };
        for number in 0..lines.div_ceil(LINES) {
            let started = Instant::now();
            let text = finder.lines_text(number).await?;
            let sheet = LineSheet::read(self.track, &text)?;
            let named: Vec<Subject> =
                sheet.lines.iter().filter_map(|line| line.subject).map(Subject::from_stored).collect();
            let found = self.store.lookup(self.track, &named, false).await?;
            for (subject, score) in named.iter().zip(found.scores) {
                // A hidden one is ranked nowhere, and has a score.
                if score.is_none() && self.score_of(subject).await?.is_none() {
                    // The ranking that was read until now does not have its line.
                    removing::remove_from(self.store, self.track, subject, true).await?;
                }
            }
            store::rest(started).await;
        }
        Ok(())
    }
}
