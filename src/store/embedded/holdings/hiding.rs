//! Hidden subjects: a record keeps the key of its score as any other, and the ranking does not contain it.

use std::ops::Bound;
use std::sync::Arc;

use super::Holdings;
use crate::board::Visibility;

/// The largest number of hidden subjects of a key that are looked at before its ranking is read.
const MOST_OF_KEY: usize = 200;
/// The approximate bytes of a hidden subject, whose text is that of the board.
const HIDDEN_BYTES: usize = (16 + 1) * 3 / 2;

impl Holdings {
    /// Returns whether a subject is in the ranking if it has a score. O(1) if nothing is hidden, otherwise O(log
    /// hidden).
    pub(in super::super) fn visibility_of(&self, subject: &str) -> Visibility {
        match self.hidden.is_empty() {
            true => Visibility::Visible,
            false => self.hidden.get(subject).copied().unwrap_or_default(),
        }
    }

    /// Returns whether the ranking leaves a subject out.
    pub(in super::super) fn is_hidden(&self, id: u32) -> bool {
        !self.hidden.is_empty() && self.hidden.contains_key(self.subjects.whole_text(id))
    }

    /// Sets whether a subject is in the ranking if it has a score. O(log n).
    pub(in super::super) fn set_visibility(&mut self, subject: &Arc<str>, visibility: Visibility) {
        if !self.traits.ranked {
            return;
        }
        let was_hidden = match visibility.is_hidden() {
            true => self.hidden.insert(subject.clone(), visibility).is_some(),
            false => self.hidden.remove(subject).is_some(),
        };
        let entry = self.entry_of((&**subject).into());
        match entry.filter(|_| was_hidden != visibility.is_hidden()) {
            Some(entry) if was_hidden => self.rank(entry),
            Some(entry) => drop(self.unrank(entry)),
            None => {}
        }
    }

    /// Records that the ranking of a period to which nothing is written has changed, for a walk over it.
    pub(in super::super) fn count_upheaval(&mut self) {
        self.contents_walks.count_upheaval();
    }

    /// Hides subjects in holdings that have no ranking yet.
    pub(in super::super) fn hide_all<'a>(&mut self, subjects: impl Iterator<Item = (&'a Arc<str>, Visibility)>) {
        if self.traits.ranked {
            self.hidden = subjects.map(|(subject, visibility)| (subject.clone(), visibility)).collect();
        }
    }

    /// Returns the ids of hidden subjects of a key that have data, of those that are looked at.
    pub(in super::super) fn hidden_of(&self, key: &str) -> impl Iterator<Item = u32> {
        let beginning = if self.hidden.is_empty() { String::new() } else { format!("{key}\0") };
        let from = self.hidden.range::<str, _>((Bound::Included(beginning.as_str()), Bound::Unbounded));
        let names: Vec<&str> = from
            .map(|(subject, _)| &**subject)
            .take_while(|subject| subject.starts_with(&beginning))
            .take(MOST_OF_KEY)
            .collect();
        names.into_iter().filter_map(|subject| self.subjects.id(subject.into()))
    }

    pub(super) fn bytes_of_hidden(&self) -> usize {
        self.hidden.len() * HIDDEN_BYTES
    }
}
