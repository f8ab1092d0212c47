//! The sheets of a track: see [`Store::sheets`](crate::store::Store::sheets).

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::log_operations::LogOperations;
use super::tables::Tables;
use super::{Awaited, Embedded};
use crate::board::BoardTrack;
use crate::store::{MAX_SHEET_BYTES, Result, SheetId, Sheets, StoreError};

/// The approximate bytes of a sheet beside its text: its place in the tree, and what counts its readers.
const SHEET_BYTES: usize = (24 + 16) * 3 / 2 + 16;
/// The bytes that a change adds to the log beside the text.
const LOG_OVERHEAD: usize = 64;

/// The sheets of a track, by id.
#[derive(Debug, Default)]
pub(super) struct StoredSheets {
    texts: BTreeMap<SheetId, Arc<str>>,
    /// The bytes of all texts.
    bytes: usize,
}

impl StoredSheets {
    pub(super) fn get(&self, id: SheetId) -> Option<&Arc<str>> {
        self.texts.get(&id)
    }

    pub(super) fn set(&mut self, id: SheetId, text: Arc<str>) {
        self.bytes += text.len();
        if let Some(before) = self.texts.insert(id, text) {
            self.bytes -= before.len();
        }
    }

    /// Returns the bytes that the sheets use. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes + self.texts.len() * SHEET_BYTES
    }

    /// Appends the operations that restore the sheets after this one, in a portion of about this many bytes. Returns
    /// the last of them if there may be more.
    pub(super) fn write_portion(
        &self,
        after: Option<SheetId>,
        bytes: usize,
        operations: &mut LogOperations,
    ) -> Option<SheetId> {
        let end = operations.len() + bytes;
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        for (id, text) in self.texts.range((start, Bound::Unbounded)) {
            operations.sheet(*id, text);
            if operations.len() >= end {
                return Some(*id);
            }
        }
        None
    }
}

impl Embedded {
    pub(super) fn read_sheets(&self, track: &BoardTrack, ids: &[SheetId]) -> Result<Sheets> {
        self.read_tables(track, |_, tables, _| {
            let texts = ids.iter().map(|id| tables.sheets.get(*id).cloned()).collect();
            Sheets { frame: tables.frame(), texts }
        })
    }

    pub(super) async fn replace_sheet(
        &self,
        track: &BoardTrack,
        id: SheetId,
        (from, to): (Option<&str>, &str),
    ) -> Result<bool> {
        if to.len() > MAX_SHEET_BYTES {
            let detail = format!("a sheet of {} bytes; it must have at most {MAX_SHEET_BYTES}", to.len());
            return Err(StoreError::Unsupported { detail });
        }
        let permit = self.journal().admit(to.len() + LOG_OVERHEAD)?;
        let (is_from, ticket) = self.change_state(track.board(), |state, operations| {
            let sheets = &mut state.tracks[track.number()].sheets;
            let is_from = sheets.get(id).map(|text| &**text) == from;
            if is_from && from != Some(to) {
                sheets.set(id, to.into());
                let mut own = LogOperations::of(track.id());
                own.sheet(id, to);
                operations.append(&own);
            }
            (is_from, Awaited::Yes)
        })?;
        drop(permit);
        // A change that was made before may still be on its way to the disk.
        let ticket = if from == Some(to) { self.journal().ticket_for_all_appended() } else { ticket };
        self.journal().wait(ticket).await?;
        Ok(is_from)
    }
}

impl Tables {
    /// Takes everything but the sheets out of the tables of a period that has been packed, unless there is nothing. What is
    /// returned must be dropped without the lock.
    pub(super) fn take_packed(&mut self, mut empty: Tables) -> Option<Tables> {
        if self.holdings.subjects.len() == 0 {
            return None;
        }
        std::mem::swap(&mut empty.sheets, &mut self.sheets);
        Some(std::mem::replace(self, empty))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::TrackId;
    use crate::store::embedded::log_operations::{LogOperation, operations};

    #[test]
    fn portions_have_every_sheet_once_and_bytes_follow_changes() {
        let mut sheets = StoredSheets::default();
        for number in 0..10 {
            sheets.set(SheetId::Lines(number), "text".into());
        }
        sheets.set(SheetId::Head, "h".into());
        sheets.set(SheetId::Lines(3), "longer text".into());
        assert_eq!(sheets.memory_bytes(), 9 * 4 + 11 + 1 + 11 * SHEET_BYTES);
        let (mut after, mut found) = (None, Vec::new());
        loop {
            let mut portion = LogOperations::of(TrackId(7));
            after = sheets.write_portion(after, 20, &mut portion);
            found.extend(operations(portion.bytes()).filter_map(|operation| match operation.unwrap() {
                LogOperation::Sheet { id, text } => Some((id, text.to_owned())),
                _ => None,
            }));
            if after.is_none() {
                break;
            }
        }
        let all: Vec<_> = sheets.texts.iter().map(|(id, text)| (*id, text.to_string())).collect();
        assert_eq!(found, all);
    }
}
