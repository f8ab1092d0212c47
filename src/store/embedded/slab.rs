//! The slab: hands out small ids for subjects, and has each one's record.

use std::collections::HashMap;
use std::sync::Arc;

use super::extra::Extra;
use super::ranking::Texts;
use super::record::Record;
use super::rule::Rule;

/// Records by id; ids of subjects that hold nothing are used again.
#[derive(Debug)]
pub(super) struct Slab {
    rule: Rule,
    records: Vec<Option<Record>>,
    /// By the same ids; stays empty where the metric keeps nothing beside slices.
    extras: Vec<Option<Extra>>,
    free: Vec<u32>,
    ids: HashMap<Arc<str>, u32, rapidhash::fast::RandomState>,
}

impl Texts for Slab {
    fn text(&self, id: u32) -> &str {
        self.get(id).map_or("", |record| &record.text)
    }
}

impl Slab {
    pub(super) fn new(rule: Rule) -> Self {
        Self { rule, records: Vec::new(), extras: Vec::new(), free: Vec::new(), ids: HashMap::default() }
    }

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
        let record = Record { text: text.clone(), slices: Vec::new(), key: self.rule.absent(), queued: false };
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
        if let Some(extra) = Extra::of(self.rule.kind) {
            if self.extras.len() <= id as usize {
                self.extras.resize_with(id as usize + 1, || None);
            }
            self.extras[id as usize] = Some(extra);
        }
        self.ids.insert(text, id);
        Some(id)
    }

    pub(super) fn get(&self, id: u32) -> Option<&Record> {
        self.records.get(id as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Record> {
        self.records.get_mut(id as usize)?.as_mut()
    }

    /// What the subject has beside its slices, where the metric keeps such.
    pub(super) fn extra(&self, id: u32) -> Option<&Extra> {
        self.extras.get(id as usize)?.as_ref()
    }

    pub(super) fn extra_mut(&mut self, id: u32) -> Option<&mut Extra> {
        self.extras.get_mut(id as usize)?.as_mut()
    }

    /// Record and extra of a subject.
    pub(super) fn both_mut(&mut self, id: u32) -> Option<(&mut Record, Option<&mut Extra>)> {
        let record = self.records.get_mut(id as usize)?.as_mut()?;
        Some((record, self.extras.get_mut(id as usize).and_then(Option::as_mut)))
    }

    /// Whether nothing is held of the subject: no slice, nor anything beside.
    pub(super) fn is_empty(&self, id: u32) -> bool {
        self.get(id).is_none_or(|record| record.slices.is_empty()) && self.extra(id).is_none_or(Extra::is_empty)
    }

    /// Forgets a subject; its id will be another's.
    pub(super) fn release(&mut self, id: u32) {
        if let Some(record) = self.records.get_mut(id as usize).and_then(Option::take) {
            self.ids.remove(&record.text);
            self.free.push(id);
        }
        if let Some(extra) = self.extras.get_mut(id as usize) {
            *extra = None;
        }
    }

    /// One past the highest id in use.
    pub(super) fn end(&self) -> u32 {
        // Ids are handed out as u32, so their number fits.
        self.records.len() as u32
    }
}
