//! What is set for the subjects of a board: see [`Store::moderate`](crate::store::Store::moderate).

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::log_operations::LogOperations;
use crate::board::{Moderation, ModerationChange, ModerationList, Subject, Visibility};
use crate::store::{Moderated, TextRange};

/// The subjects of a board for which something is set.
#[derive(Debug, Default)]
pub(super) struct ModeratedSubjects {
    subjects: BTreeMap<Arc<str>, Moderation>,
    hidden: u64,
    frozen: u64,
    /// The bytes of the texts.
    texts: usize,
}

/// The approximate bytes of a subject in addition to its text: in an `Arc`, and in the tree.
const SUBJECT_BYTES: usize = 16 + (16 + 2) * 3 / 2;

impl ModeratedSubjects {
    /// Returns whether items of a subject are rejected. O(1) if nothing is frozen, otherwise O(log n).
    pub(super) fn is_frozen(&self, subject: &str) -> bool {
        self.frozen > 0 && self.subjects.get(subject).is_some_and(|moderation| moderation.is_frozen)
    }

    /// Returns the number of subjects for which something is set.
    pub(super) fn len(&self) -> usize {
        self.subjects.len()
    }

    /// Changes what is set for a subject. Returns its text and what is set now, if that is something else. O(log n).
    pub(super) fn change(&mut self, subject: &str, change: ModerationChange) -> Option<(Arc<str>, Moderation)> {
        let known = self.subjects.get_key_value(subject);
        let before = known.map(|(_, moderation)| *moderation).unwrap_or_default();
        let after = before.after(change);
        if after == before {
            return None;
        }
        let text = known.map_or_else(|| subject.into(), |(text, _)| text.clone());
        self.set(text.clone(), after);
        Some((text, after))
    }

    /// Restores what is set for a subject.
    pub(super) fn restore(&mut self, subject: &str, moderation: Moderation) {
        self.set(subject.into(), moderation);
    }

    fn set(&mut self, subject: Arc<str>, moderation: Moderation) {
        let bytes = subject.len();
        let before = match moderation.is_set() {
            true => self.subjects.insert(subject, moderation),
            false => self.subjects.remove(&subject),
        };
        match before {
            None if moderation.is_set() => self.texts += bytes,
            Some(_) if !moderation.is_set() => self.texts -= bytes,
            _ => {}
        }
        let count = |moderation: Moderation, list| u64::from(moderation.is_in(list));
        let before = before.unwrap_or_default();
        for (number, list) in [(&mut self.hidden, ModerationList::Hidden), (&mut self.frozen, ModerationList::Frozen)] {
            *number = *number + count(moderation, list) - count(before, list);
        }
    }

    /// Returns the hidden subjects.
    pub(super) fn hidden(&self) -> impl Iterator<Item = (&Arc<str>, Visibility)> {
        let all = self.subjects.iter().take(if self.hidden > 0 { usize::MAX } else { 0 });
        all.map(|(subject, moderation)| (subject, moderation.visibility))
            .filter(|(_, visibility)| visibility.is_hidden())
    }

    /// Returns subjects of a list. O(log n + the subjects that were looked at).
    pub(super) fn list(&self, list: ModerationList, range: TextRange<'_>, limit: u32) -> Moderated {
        let from = self.subjects.range::<str, _>((range.start(), Bound::Unbounded));
        let items = from
            .take_while(|(subject, _)| range.reaches(subject))
            .filter(|(_, moderation)| moderation.is_in(list))
            .take(limit as usize)
            .map(|(subject, moderation)| (Subject::from_stored(&**subject), *moderation));
        let total = if list == ModerationList::Hidden { self.hidden } else { self.frozen };
        Moderated { total, items: items.collect() }
    }

    /// Appends the operations that restore the subjects after this one, in a portion of about this many bytes. Returns
    /// the last subject if there may be more.
    pub(super) fn write_portion(
        &self,
        after: Option<&str>,
        bytes: usize,
        operations: &mut LogOperations,
    ) -> Option<Arc<str>> {
        let end = operations.len() + bytes;
        let range = TextRange { prefix: "", after };
        for (subject, moderation) in self.subjects.range::<str, _>((range.start(), Bound::Unbounded)) {
            operations.moderated(subject, *moderation);
            if operations.len() >= end {
                return Some(subject.clone());
            }
        }
        None
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.texts + self.subjects.len() * SUBJECT_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_bytes_follow_every_change() {
        let mut moderated = ModeratedSubjects::default();
        let hide = ModerationChange::Visibility(Visibility::Hidden);
        assert!(moderated.change("a", hide).is_some() && moderated.change("a", hide).is_none());
        assert!(moderated.change("a", ModerationChange::Visibility(Visibility::Shadowed)).is_some());
        assert!(moderated.change("a", ModerationChange::Frozen(true)).is_some());
        assert!(moderated.change("bb", ModerationChange::Frozen(true)).is_some());
        assert!(moderated.change("c", ModerationChange::Clear).is_none());
        let total = |moderated: &ModeratedSubjects, list| moderated.list(list, TextRange::default(), 9).total;
        assert_eq!((total(&moderated, ModerationList::Hidden), total(&moderated, ModerationList::Frozen)), (1, 2));
        assert_eq!(moderated.memory_bytes(), 3 + 2 * SUBJECT_BYTES);
        assert!(moderated.is_frozen("bb") && !moderated.is_frozen("c"));
        for subject in ["a", "bb"] {
            assert!(moderated.change(subject, ModerationChange::Clear).is_some());
        }
        assert_eq!((total(&moderated, ModerationList::Hidden), total(&moderated, ModerationList::Frozen)), (0, 0));
        assert_eq!(moderated.memory_bytes(), 0);
    }
}
