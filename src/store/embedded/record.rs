//! A subject's record, holding all its slices, and the slab that hands out small ids for subjects.

use std::collections::HashMap;
use std::sync::Arc;

use super::ranking::Texts;

/// What one subject has in one slot. Never zero: a slice whose amount becomes zero is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    /// The slot's start, in milliseconds.
    pub slot: i64,
    pub amount: i64,
    /// Where the slot's list of subjects has this one, so that leaving the list costs no search.
    pub place: u32,
}

/// All that a board holds of one subject.
#[derive(Debug)]
pub(super) struct Record {
    /// Shared with the slab's index.
    pub text: Arc<str>,
    /// By slot, oldest first. The score's parts, retiring ones included.
    pub slices: Vec<Slice>,
    /// The sum of the slices: what the ranking says.
    pub score: i64,
    /// Waits in the queue of records to fold into the database; an empty one keeps its id until then.
    pub queued: bool,
}

impl Record {
    /// Where the slice of `slot` is, or would be.
    pub(super) fn find(&self, slot: i64) -> Result<usize, usize> {
        // Nearly every write is about the newest slot.
        match self.slices.last() {
            Some(last) if last.slot == slot => Ok(self.slices.len() - 1),
            Some(last) if last.slot > slot => self.slices.binary_search_by_key(&slot, |slice| slice.slot),
            _ => Err(self.slices.len()),
        }
    }

    /// What it holds in `slot`.
    pub(super) fn amount(&self, slot: i64) -> i64 {
        self.find(slot).map_or(0, |at| self.slices[at].amount)
    }

    /// What the slices add up to.
    pub(super) fn sum(&self) -> i64 {
        self.slices.iter().map(|slice| slice.amount).sum()
    }
}

/// Records by id; ids of subjects that hold nothing are used again.
#[derive(Debug, Default)]
pub(super) struct Slab {
    records: Vec<Option<Record>>,
    free: Vec<u32>,
    ids: HashMap<Arc<str>, u32, rapidhash::fast::RandomState>,
}

impl Texts for Slab {
    fn text(&self, id: u32) -> &str {
        self.get(id).map_or("", |record| &record.text)
    }
}

impl Slab {
    /// The id of a subject that has a record.
    pub(super) fn id(&self, text: &str) -> Option<u32> {
        self.ids.get(text).copied()
    }

    /// The id of a subject, with an empty record if it had none. `None` when four billion subjects are there.
    pub(super) fn intern(&mut self, text: &str) -> Option<u32> {
        if let Some(id) = self.ids.get(text) {
            return Some(*id);
        }
        let text: Arc<str> = text.into();
        let record = Record { text: text.clone(), slices: Vec::new(), score: 0, queued: false };
        let id = match self.free.pop() {
            Some(id) => {
                self.records[id as usize] = Some(record);
                id
            }
            None => {
                let id = u32::try_from(self.records.len()).ok()?;
                self.records.push(Some(record));
                id
            }
        };
        self.ids.insert(text, id);
        Some(id)
    }

    pub(super) fn get(&self, id: u32) -> Option<&Record> {
        self.records.get(id as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Record> {
        self.records.get_mut(id as usize)?.as_mut()
    }

    /// Forgets a subject; its id will be another's.
    pub(super) fn release(&mut self, id: u32) {
        if let Some(record) = self.records.get_mut(id as usize).and_then(Option::take) {
            self.ids.remove(&record.text);
            self.free.push(id);
        }
    }

    /// One past the highest id in use.
    pub(super) fn end(&self) -> u32 {
        // Ids are handed out as u32, so their number fits.
        self.records.len() as u32
    }
}
