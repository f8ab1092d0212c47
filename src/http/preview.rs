//! The dry run of a definition: what it would do, and what a subject would cost.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::definition::{self, DefinitionShown};
use crate::board::{Definition, Span, Track};
use crate::service::{self, BytesPerSubject};

/// What a definition would do. Nothing was changed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DefinitionPreview {
    #[serde(flatten)]
    pub(super) definition: DefinitionShown,
    /// Always true.
    dry_run: bool,
    /// Whether a board with this name exists. If it does and `conflict` is null, it has this definition.
    exists: bool,
    /// The reason why the definition would be refused with 409; null if it would not.
    #[schema(required = true)]
    conflict: Option<DefinitionConflict>,
    /// With data in every window of the board, and in the slots that it keeps over all time.
    bytes_per_subject: SubjectBytes,
    /// Estimated memory of a line of an ended period, of which each of the `archive` of a season has one for each subject, or
    /// `archive_top`. Absent where ended periods are not packed: without a season or a ranking, and with `BY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    bytes_per_archived_line: Option<u64>,
    /// Slots and memory of each window, the main one first. Absent for a board with one window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    each_window: Vec<WindowPreview>,
}

/// One window of a board that would have several.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WindowPreview {
    /// Length of the window.
    #[schema(example = "7d")]
    length: String,
    /// Length of a slot; null over all time, where there are no slots.
    #[schema(value_type = Option<String>, required = true, example = "6h")]
    slot: Option<Span>,
    /// Number of slots in the window; 0 over all time.
    slots_in_window: u32,
    bytes_per_subject: SubjectBytes,
}

impl WindowPreview {
    fn of(window: &Track, bytes: BytesPerSubject) -> Self {
        Self {
            length: window.length().to_string(),
            slot: window.slot(),
            slots_in_window: if window.is_all_time() { 0 } else { window.slots() },
            bytes_per_subject: bytes.into(),
        }
    }
}

/// A board that exists with a different definition.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DefinitionConflict {
    /// Keys of the definition that differ.
    keys: Vec<&'static str>,
    /// Definition of the existing board.
    existing: Definition,
}

/// Estimated memory of a subject in the store in use, in bytes, for names and values of 12 bytes. Ids, and data that
/// has expired and is not deleted yet, are not included.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BytesPerSubject)]
pub(super) struct SubjectBytes {
    /// With data in one slot. For COUNT_DISTINCT and APPROX_COUNT_DISTINCT with one value.
    one_slot: u64,
    /// With data in every slot kept. For COUNT_DISTINCT and APPROX_COUNT_DISTINCT with one value in each slot.
    all_slots: u64,
    /// Memory that each further value adds, for COUNT_DISTINCT and APPROX_COUNT_DISTINCT; otherwise null.
    #[schema(required = true)]
    each_value: Option<u64>,
    /// Maximum, whatever data the subject has; null if nothing limits it, as for COUNT_DISTINCT without `max_values`.
    #[schema(required = true)]
    at_most: Option<u64>,
}

impl From<BytesPerSubject> for SubjectBytes {
    fn from(bytes: BytesPerSubject) -> Self {
        let BytesPerSubject { one_slot, all_slots, each_value, at_most } = bytes;
        Self { one_slot, all_slots, each_value, at_most }
    }
}

impl DefinitionPreview {
    pub(super) fn of(preview: &service::DefinitionPreview) -> Self {
        let service::DefinitionPreview {
            board,
            existing,
            differences,
            bytes_per_subject,
            bytes_per_archived_line,
            bytes_per_track,
            id_cost,
        } = preview;
        let each_window = match board.edition().windows() {
            [_] => Vec::new(),
            several => {
                several.iter().zip(bytes_per_track).map(|(window, bytes)| WindowPreview::of(window, *bytes)).collect()
            }
        };
        let conflict = existing
            .as_ref()
            .filter(|_| !differences.is_empty())
            .map(|existing| DefinitionConflict { keys: differences.clone(), existing: existing.definition().clone() });
        Self {
            definition: DefinitionShown::of(&board.current(), *id_cost),
            dry_run: true,
            exists: existing.is_some(),
            conflict,
            bytes_per_subject: (*bytes_per_subject).into(),
            bytes_per_archived_line: *bytes_per_archived_line,
            each_window,
        }
    }
}

/// An example of a dry run.
pub(super) fn example() -> Value {
    let mut example = definition::example();
    example["dry_run"] = json!(true);
    example["exists"] = json!(false);
    example["conflict"] = Value::Null;
    example["bytes_per_subject"] = json!({"one_slot": 106, "all_slots": 630, "each_value": null, "at_most": 630});
    example
}
