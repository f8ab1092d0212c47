//! The sheets of a track: see [`Store::sheets`](crate::store::Store::sheets).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::log_operations::{LogOperations, Portion};
use crate::store::SheetId;

/// The approximate bytes of a sheet beside its text: its place in the tree, and what counts its readers.
const SHEET_BYTES: usize = (24 + 16) * 3 / 2 + 16;

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

    /// Appends the operations that restore a portion: see [`LogOperations::portion`].
    pub(super) fn write_portion(&self, portion: Portion<SheetId>, operations: &mut LogOperations) -> Option<SheetId> {
        operations.portion(&self.texts, portion, |operations, id, text| operations.sheet(*id, text))
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
            after = sheets.write_portion(Portion { after, bytes: 20 }, &mut portion);
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
