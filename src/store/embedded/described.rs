//! The attributes of the subjects of a board: see [`Store::set_attributes`](crate::store::Store::set_attributes).

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::log_operations::{LogOperations, Portion};
use crate::board::{Attributes, AttributesChange, AttributesError, Subject};
use crate::store::sizing::allocated;
use crate::store::{Described, TextRange};

/// The subjects of a board that have attributes.
#[derive(Debug, Default)]
pub(super) struct DescribedSubjects {
    subjects: BTreeMap<Arc<str>, Attributes>,
    /// The bytes of the names and of the stored attributes, as allocated.
    texts: usize,
}

/// The approximate bytes of a subject in addition to its texts: in the tree, whose leaves are little more than half full
/// after subjects were added in their order, as they are at a start.
const SUBJECT_BYTES: usize = (16 + 16) * 2;

/// Returns the bytes of a text in an `Arc`.
fn shared(text: &str) -> usize {
    allocated(16 + text.len())
}

impl DescribedSubjects {
    /// Returns the attributes of a subject. O(log n).
    pub(super) fn get(&self, subject: &str) -> Attributes {
        self.subjects.get(subject).cloned().unwrap_or_default()
    }

    /// Returns the attributes of a subject after a change, if it changes them. O(log n).
    pub(super) fn after(
        &self,
        subject: &str,
        change: &AttributesChange,
    ) -> Result<Option<Attributes>, AttributesError> {
        let before = self.get(subject);
        let after = before.after(change)?;
        Ok((after != before).then_some(after))
    }

    /// Returns whether these attributes of a subject take more memory than those that it has. O(log n).
    pub(super) fn grows_with(&self, subject: &str, attributes: &Attributes) -> bool {
        attributes.stored().len() > self.subjects.get(subject).map_or(0, |own| own.stored().len())
    }

    /// Gives a subject these attributes. O(log n).
    pub(super) fn set(&mut self, subject: &str, attributes: Attributes) {
        if let Some(before) = self.subjects.get_mut(subject) {
            self.texts = self.texts - shared(before.stored()) + shared(attributes.stored());
            if attributes.is_empty() {
                self.texts -= shared(subject) + shared("");
                self.subjects.remove(subject);
            } else {
                *before = attributes;
            }
        } else if !attributes.is_empty() {
            self.texts += shared(subject) + shared(attributes.stored());
            self.subjects.insert(subject.into(), attributes);
        }
    }

    /// Returns subjects of a range with their attributes. O(log n + limit).
    pub(super) fn list(&self, range: TextRange<'_>, limit: u32) -> Described {
        let items = self
            .subjects
            .range::<str, _>((range.start(), Bound::Unbounded))
            .take_while(|(subject, _)| range.reaches(subject))
            .take(limit as usize)
            .map(|(subject, attributes)| (Subject::from_stored(&**subject), attributes.clone()));
        Described { total: self.subjects.len() as u64, items: items.collect() }
    }

    /// Appends the operations that restore a portion: see [`LogOperations::portion`].
    pub(super) fn write_portion(&self, portion: Portion<Arc<str>>, operations: &mut LogOperations) -> Option<Arc<str>> {
        operations.portion(&self.subjects, portion, |operations, subject, attributes| {
            operations.attributes(subject, attributes)
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.texts + self.subjects.len() * SUBJECT_BYTES
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn merging(json: &str) -> AttributesChange {
        AttributesChange::merging(&RawValue::from_string(json.to_owned()).unwrap()).unwrap()
    }

    #[test]
    fn bytes_follow_every_change_and_what_changes_nothing_is_no_change() {
        let mut described = DescribedSubjects::default();
        let mut change = |subject: &str, change: &AttributesChange| {
            let after = described.after(subject, change).unwrap();
            let grows = after.as_ref().map(|after| described.grows_with(subject, after));
            after.into_iter().for_each(|after| described.set(subject, after));
            (grows, described.memory_bytes(), described.list(TextRange::default(), 9).total)
        };
        // A text of up to 16 bytes takes 32 in its `Arc`.
        assert_eq!(change("aa", &merging(r#"{"n":1}"#)), (Some(true), 64 + SUBJECT_BYTES, 1));
        assert_eq!(change("aa", &merging(r#"{"n":1,"x":null}"#)), (None, 64 + SUBJECT_BYTES, 1));
        assert_eq!(change("aa", &merging(r#"{"n":"1234567890123"}"#)), (Some(true), 80 + SUBJECT_BYTES, 1));
        assert_eq!(change("b", &merging(r#"{"n":null}"#)), (None, 80 + SUBJECT_BYTES, 1));
        assert_eq!(change("b", &merging(r#"{"m":1}"#)), (Some(true), 144 + 2 * SUBJECT_BYTES, 2));
        assert_eq!(change("aa", &merging(r#"{"n":3}"#)), (Some(false), 128 + 2 * SUBJECT_BYTES, 2));
        assert_eq!(change("aa", &AttributesChange::clear()), (Some(false), 64 + SUBJECT_BYTES, 1));
        assert_eq!(change("b", &merging(r#"{"m":null}"#)), (Some(false), 0, 0));
    }
}
