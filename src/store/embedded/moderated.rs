//! What is set for the subjects of a board: see [`Store::moderate`](crate::store::Store::moderate).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::log_operations::{LogOperations, Portion};
use crate::board::{Moderation, ModerationChange, ModerationList, Subject, Visibility};
use crate::store::{Moderated, TextRange};

/// The subjects of a board for which something is set.
#[derive(Debug, Default)]
pub(super) struct ModeratedSubjects {
    subjects: BTreeMap<Arc<str>, Moderation>,
    hidden: BTreeSet<Arc<str>>,
    frozen: BTreeSet<Arc<str>>,
    /// The bytes of the texts.
    texts: usize,
}

/// The approximate bytes of a subject in addition to its text: in an `Arc`, and in the tree.
const SUBJECT_BYTES: usize = 16 + (16 + 2) * 3 / 2;
/// The approximate bytes of a subject in a list.
const LISTED_BYTES: usize = 16 * 3 / 2;

impl ModeratedSubjects {
    /// Returns whether items of a subject are rejected. O(1) if nothing is frozen, otherwise O(log n).
    pub(super) fn is_frozen(&self, subject: &str) -> bool {
        !self.frozen.is_empty() && self.frozen.contains(subject)
    }

    /// Returns whether a subject is hidden, shadowed ones included. O(1) if nothing is hidden, otherwise O(log n).
    pub(super) fn is_hidden(&self, subject: &str) -> bool {
        !self.hidden.is_empty() && self.hidden.contains(subject)
    }

    /// Returns whether a change leaves no more subjects than may be moderated. O(log n).
    pub(super) fn has_room_for(&self, subject: &str, change: ModerationChange) -> bool {
        (self.subjects.len() as u64) < Moderation::MOST
            || !Moderation::default().after(change).is_set()
            || self.subjects.contains_key(subject)
    }

    /// Returns whether a change makes the lists longer. O(log n).
    pub(super) fn grows_with(&self, subject: &str, change: ModerationChange) -> bool {
        let before = self.moderation(subject);
        let after = before.after(change);
        [ModerationList::Hidden, ModerationList::Frozen].iter().any(|list| after.is_in(*list) && !before.is_in(*list))
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
        for list in [ModerationList::Hidden, ModerationList::Frozen] {
            match moderation.is_in(list) {
                true => self.list_mut(list).insert(subject.clone()),
                false => self.list_mut(list).remove(&subject),
            };
        }
        let bytes = subject.len();
        if !moderation.is_set() {
            self.texts -= self.subjects.remove(&subject).map_or(0, |_| bytes);
        } else if self.subjects.insert(subject, moderation).is_none() {
            self.texts += bytes;
        }
    }

    fn list_mut(&mut self, list: ModerationList) -> &mut BTreeSet<Arc<str>> {
        match list {
            ModerationList::Hidden => &mut self.hidden,
            ModerationList::Frozen => &mut self.frozen,
        }
    }

    fn moderation(&self, subject: &str) -> Moderation {
        self.subjects.get(subject).copied().unwrap_or_default()
    }

    /// Returns the hidden subjects.
    pub(super) fn hidden(&self) -> impl Iterator<Item = (&Arc<str>, Visibility)> {
        self.hidden.iter().map(|subject| (subject, self.moderation(subject).visibility))
    }

    /// Returns subjects of a list. O(limit x log n).
    pub(super) fn list(&self, list: ModerationList, range: TextRange<'_>, limit: u32) -> Moderated {
        let subjects = match list {
            ModerationList::Hidden => &self.hidden,
            ModerationList::Frozen => &self.frozen,
        };
        let items = subjects
            .range::<str, _>((range.start(), Bound::Unbounded))
            .take_while(|subject| range.reaches(subject))
            .take(limit as usize)
            .map(|subject| (Subject::from_stored(&**subject), self.moderation(subject)));
        Moderated { total: subjects.len() as u64, items: items.collect() }
    }

    /// Appends the operations that restore a portion: see [`LogOperations::portion`].
    pub(super) fn write_portion(&self, portion: Portion<Arc<str>>, operations: &mut LogOperations) -> Option<Arc<str>> {
        operations.portion(&self.subjects, portion, |operations, subject, moderation| {
            operations.moderated(subject, *moderation)
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let listed = self.hidden.len() + self.frozen.len();
        self.texts + self.subjects.len() * SUBJECT_BYTES + listed * LISTED_BYTES
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
        assert_eq!(moderated.memory_bytes(), 3 + 2 * SUBJECT_BYTES + 3 * LISTED_BYTES);
        assert!(moderated.is_frozen("bb") && !moderated.is_frozen("c"));
        for subject in ["a", "bb"] {
            assert!(moderated.change(subject, ModerationChange::Clear).is_some());
        }
        assert_eq!((total(&moderated, ModerationList::Hidden), total(&moderated, ModerationList::Frozen)), (0, 0));
        assert_eq!(moderated.memory_bytes(), 0);
    }

    #[test]
    fn only_what_makes_a_list_longer_takes_memory() {
        let mut moderated = ModeratedSubjects::default();
        let [hide, shadow] = [Visibility::Hidden, Visibility::Shadowed].map(ModerationChange::Visibility);
        moderated.change("a", hide);
        for (change, grows) in
            [(hide, false), (shadow, false), (ModerationChange::Frozen(true), true), (ModerationChange::Clear, false)]
        {
            assert_eq!(moderated.grows_with("a", change), grows, "{change:?}");
        }
        assert!(moderated.grows_with("b", shadow) && !moderated.grows_with("b", ModerationChange::Clear));
    }

    #[test]
    fn what_is_set_is_changed_and_ended_where_there_is_no_room_for_more() {
        let mut moderated = ModeratedSubjects::default();
        let hide = ModerationChange::Visibility(Visibility::Hidden);
        for number in 0..Moderation::MOST {
            let subject = number.to_string();
            assert!(moderated.has_room_for(&subject, hide));
            moderated.change(&subject, hide);
        }
        assert!(!moderated.has_room_for("new", hide));
        assert!(moderated.has_room_for("new", ModerationChange::Frozen(false)));
        for change in [hide, ModerationChange::Frozen(true), ModerationChange::Clear] {
            assert!(moderated.has_room_for("7", change));
        }
        moderated.change("7", ModerationChange::Clear);
        assert!(moderated.has_room_for("new", hide));
    }
}
