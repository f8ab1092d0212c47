//! What a track holds, computed from the past of each subject; and imports, whose contents become a part of that past.

use rolltop::board::{Aggregate, Change, DayCount, Frame, Kind, Mode, Subject, Timestamp, Window};
use rolltop::store::{Content, ImportBegun, ImportId, MAX_IMPORTS, Merged, Piece, Result, StoreError};

use super::capped::Counters;
use super::distinct::LastSeen;
use super::history::{Counter, Taken, aggregates, fits, whole};
use super::{Held, HeldBoard, frame_at, walk_back};

/// The imports of a board, and whether it has received samples.
#[derive(Default)]
pub struct Imports {
    /// The open import, and for each track the number of its last piece.
    open: Option<(ImportId, Vec<u64>)>,
    ended: Vec<ImportId>,
    pub has_samples: bool,
}

impl Imports {
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

fn no_import() -> StoreError {
    StoreError::NoImport { detail: "the import is not open".to_owned() }
}

impl Held {
    /// Returns everything that subjects have in the slots that are kept.
    pub fn contents(&self, frame: &Frame) -> Vec<(Subject, Content)> {
        let mut contents = Vec::new();
        for (subject, past) in &self.past {
            let of_subject: Vec<Content> = match (self.track.edition().definition().mode, self.track.kind()) {
                (Mode::FromFirst, _) => Counter::at(&self.track, past, frame.as_of)
                    .map(|counter| Content::Counter { start: counter.start, amount: whole(counter.units) })
                    .into_iter()
                    .collect(),
                (_, Kind::Capped { .. }) => Counters::remembered(&self.track, past, frame).contents(),
                (_, Kind::Distinct) => LastSeen::remembered(&self.track, past, frame).contents(),
                _ => aggregates(&self.track, past, self.oldest_kept(frame))
                    .into_iter()
                    .map(|(slot, aggregate)| Content::Cell { slot, aggregate })
                    .collect(),
            };
            contents.extend(of_subject.into_iter().map(|content| (subject.clone(), content)));
        }
        contents
    }

    pub fn oldest_kept(&self, frame: &Frame) -> Timestamp {
        walk_back(self.track.calendar(), frame.window.head, self.track.kept())
    }
}

impl HeldBoard {
    pub fn begin_import(&mut self, import: ImportId) -> Result<ImportBegun> {
        let has_season = self.board.season().is_some();
        if self.board.definition().mode == Mode::FromFirst || self.dual.is_some() || has_season {
            return Err(no_import());
        }
        let through = vec![0; self.tracks.len()];
        // An edition that takes no samples has none, whatever the one before it had.
        let takes_samples = self.board.edition().refuses_samples().is_none();
        let imports = &mut self.imports;
        Ok(match &imports.open {
            _ if imports.ended.iter().any(|ended| ended.is_of_same_board(import)) => ImportBegun::Ended,
            Some((open, through)) if *open == import => ImportBegun::Open { through: through.clone() },
            Some((open, _)) => ImportBegun::OtherOpen(*open),
            None if imports.has_samples && takes_samples => ImportBegun::MayHaveSamples,
            None if imports.ended.len() == MAX_IMPORTS => ImportBegun::TooMany,
            None => {
                imports.open = Some((import, through.clone()));
                ImportBegun::Open { through }
            }
        })
    }

    pub fn end_import(&mut self, import: ImportId) -> bool {
        let was_open = self.imports.open.take_if(|(open, _)| *open == import).is_some();
        if was_open {
            self.imports.ended.push(import);
        }
        was_open
    }

    /// Merges a piece into the track with this number.
    pub fn merge_piece(&mut self, number: usize, now: Timestamp, import: ImportId, piece: &Piece) -> Result<Merged> {
        let kept = self.board.kept_track();
        let (_, through) = self.imports.open.as_mut().filter(|(open, _)| *open == import).ok_or_else(no_import)?;
        if piece.number <= through[number] {
            return Ok(Merged { repeated: piece.contents.len() as u64, ..Merged::default() });
        }
        through[number] = piece.number;
        let held = &mut self.tracks[number];
        let frame = frame_at(&held.track, now);
        let mut merged = Merged::default();
        for (subject, content) in &piece.contents {
            // The slot beside the total in which the newest value of LAST is.
            let beside = match (&kept, content) {
                (Some(kept), Content::Cell { aggregate: Aggregate::Last { at, .. }, .. }) if number == 0 => {
                    Some(kept.calendar().slot_of(*at))
                }
                _ => None,
            };
            held.merge(&frame, subject, content, beside, &mut merged);
        }
        let oldest = held.oldest_kept(&frame);
        let is_slot = |slot: Timestamp| held.track.calendar().slot_of(slot) == slot && slot <= frame.window.head;
        let events: Vec<_> = piece.events.iter().filter(|(slot, _)| *slot >= oldest && is_slot(*slot)).collect();
        for (slot, items) in events {
            *held.events.entry(*slot).or_default() += items;
        }
        Ok(merged)
    }
}

impl Held {
    /// Returns whether a content has the form that the track stores, and a slot up to the head.
    fn is_content_of_this(&self, window: &Window, content: &Content) -> bool {
        match content {
            Content::Cell { slot, aggregate } => {
                let is_of_kind = match aggregate {
                    Aggregate::Sum(_) => self.track.kind().is_sum(),
                    Aggregate::Mean { .. } => self.track.kind() == Kind::Mean,
                    Aggregate::Extreme(_) => matches!(self.track.kind(), Kind::Min | Kind::Max),
                    Aggregate::Last { .. } => self.track.kind() == Kind::Last,
                    Aggregate::Sketch(_) => self.track.kind() == Kind::Sketch,
                };
                is_of_kind && self.track.calendar().slot_of(*slot) == *slot && *slot <= window.head
            }
            Content::Value { value, at, retracted } if let Kind::Capped { .. } = self.track.kind() => {
                let counter = DayCount::read(value.as_str(), *at).filter(|_| !retracted);
                let is_day = |counter: DayCount<'_>| self.track.day_of(counter.day) == Some(counter.day);
                counter.is_some_and(is_day) && *at < window.end
            }
            Content::Value { at, .. } | Content::Dropped { at } => {
                self.track.kind().remembers_values() && *at < window.end
            }
            Content::Counter { .. } => false,
        }
    }

    fn merge(
        &mut self,
        frame: &Frame,
        subject: &Subject,
        content: &Content,
        beside: Option<Timestamp>,
        merged: &mut Merged,
    ) {
        let window = frame.window;
        let (time, oldest) = match content {
            Content::Cell { slot, .. } => (*slot, self.oldest_kept(frame)),
            Content::Value { at, retracted: true, .. } => (*at, LastSeen::oldest_tombstone(&self.track, frame)),
            Content::Value { at, .. } | Content::Dropped { at } => (*at, window.floor),
            Content::Counter { start, .. } => (*start, window.floor),
        };
        if !self.is_content_of_this(&window, content) {
            merged.refused += 1;
            return;
        }
        if time < oldest {
            merged.expired += 1;
            return;
        }
        let change = match content {
            Content::Value { value, .. } => Change::Seen(value.clone()),
            _ => Change::Amount(rolltop::board::Amount(0)),
        };
        let at = match content {
            Content::Cell { aggregate: Aggregate::Last { at, .. }, .. } => *at,
            _ => time,
        };
        let slot = self.track.calendar().slot_of(time);
        let taken = Taken {
            slot,
            at,
            now: frame.as_of,
            floor: window.floor,
            change,
            retract: matches!(content, Content::Value { retracted: true, .. }),
            beside,
            merged: Some(content.clone()),
        };
        let past = self.past.entry(subject.clone()).or_default();
        past.push(taken);
        if fits(&self.track, past, slot) {
            merged.merged += 1;
        } else {
            past.pop();
            merged.refused += 1;
        }
    }
}
