//! The audit: compares the ranking with the slots, in both directions.
//!
//! First every record is looked up in the ranking, then every entry of the ranking in the records. The second pass is
//! needed because no record shows an entry whose subject does not exist or has another score.

use super::holdings::Holdings;
use super::ranking::{Entry, TextSource as _};
use super::track_data::TrackData;
use crate::board::Subject;
use crate::store::{AuditCursor, AuditStep, Difference};

/// The work of one step, in subjects with a few cells each: well below a millisecond. A sketch counts as one subject.
const WORK_PER_STEP: usize = 400;

/// The position at which an audit continues.
enum AuditPosition {
    /// The records with ids below this one.
    RecordsBefore(u32),
    /// The entries after this group, score and name.
    Entry(u32, i64, String),
    /// The first entry.
    FirstEntry,
}

impl AuditPosition {
    /// Parses a cursor. An unknown cursor starts from the beginning, which is correct and only takes longer.
    fn parse(cursor: &AuditCursor) -> Self {
        let text = cursor.0.as_str();
        if text == "entries" {
            return AuditPosition::FirstEntry;
        }
        if let Some(entry) = text.strip_prefix("entry ").and_then(Self::entry) {
            return entry;
        }
        AuditPosition::RecordsBefore(
            text.strip_prefix("records before ").and_then(|id| id.parse().ok()).unwrap_or(u32::MAX),
        )
    }

    fn entry(text: &str) -> Option<Self> {
        let (group, rest) = text.split_once(' ')?;
        let (score, name) = rest.split_once(' ')?;
        Some(AuditPosition::Entry(group.parse().ok()?, score.parse().ok()?, name.to_owned()))
    }
}

/// Compares a bounded part of a track. The caller holds the board's lock.
pub(super) fn step(data: &mut TrackData, cursor: &AuditCursor, repair: bool) -> AuditStep {
    let frame = data.frame();
    let holdings = &mut data.holdings;
    let mut step = AuditStep { frame, checked: 0, differences: Vec::new(), repaired: 0, missing_slots: 0, next: None };
    if !holdings.traits.ranked {
        // Without a ranking there is nothing to compare cells with.
        return step;
    }
    step.next = match AuditPosition::parse(cursor) {
        AuditPosition::RecordsBefore(end) => Some(check_records(holdings, end, repair, &mut step)),
        AuditPosition::FirstEntry => check_entries(holdings, 0, repair, &mut step),
        AuditPosition::Entry(group, score, name) => {
            // There is no id: the position only has to sort directly after the entry with this score and subject.
            let place = holdings.ranking.position_after(group, score, &name, &holdings.subjects);
            check_entries(holdings, place, repair, &mut step)
        }
    }
    .map(AuditCursor);
    step
}

/// Compares records, from the highest id down. Between two steps a compaction may move records to lower ids: in this
/// order it moves none to where the audit has been already.
fn check_records(holdings: &mut Holdings, end: u32, repair: bool, step: &mut AuditStep) -> String {
    let traits = holdings.traits;
    let (mut end, mut work) = (end, 0);
    while let Some(id) = holdings.subjects.last_before(end) {
        if work >= WORK_PER_STEP {
            return format!("records before {end}");
        }
        end = id;
        let Some(record) = holdings.subjects.get(id) else { continue };
        let (sort_key, len, absent) = (record.sort_key, record.len(), traits.absent_sort_key());
        work += 1 + holdings.kind.audit_work(len);
        if len == 0 && sort_key == absent {
            continue;
        }
        step.checked += 1;
        let computed = holdings.computed_sort_key(id);
        let entry = holdings.subjects.entry(id, sort_key);
        let is_hidden = holdings.is_hidden(id);
        let ranked = holdings.ranking.contains(entry, &holdings.subjects);
        if sort_key == computed && ranked == (sort_key != absent && !is_hidden) {
            continue;
        }
        step.differences.push(Difference {
            subject: Subject::from_stored(holdings.subjects.whole_text(id)),
            score: traits.score_of_sort_key(if ranked || is_hidden { sort_key } else { absent }),
            slots: traits.score_of_sort_key(computed),
        });
        if repair {
            holdings.unrank(entry);
            if computed != absent && !is_hidden {
                holdings.rank(entry.with_score(computed));
            }
            if let Some(record) = holdings.subjects.get_mut(id) {
                record.sort_key = computed;
            }
            holdings.subjects.recompute_totals(id);
            step.repaired += 1;
        }
    }
    "entries".to_owned()
}

fn check_entries(holdings: &mut Holdings, place: usize, repair: bool, step: &mut AuditStep) -> Option<String> {
    let traits = holdings.traits;
    let found: Vec<Entry> = holdings.ranking.ascending(place).take(WORK_PER_STEP).collect();
    for entry in &found {
        let record = holdings.subjects.get(entry.id).filter(|_| !holdings.is_hidden(entry.id));
        if record.is_some_and(|record| holdings.subjects.entry(entry.id, record.sort_key) == *entry) {
            continue;
        }
        step.checked += 1;
        step.differences.push(Difference {
            subject: Subject::from_stored(if record.is_some() {
                holdings.subjects.whole_text(entry.id)
            } else {
                "(unknown)"
            }),
            score: traits.score_of_sort_key(entry.score()),
            slots: traits.score_of_sort_key(holdings.computed_sort_key(entry.id)),
        });
        if repair {
            step.repaired += u64::from(holdings.unrank(*entry));
        }
    }
    let last = found.last().filter(|_| found.len() == WORK_PER_STEP)?;
    let (group, score) = (last.group(), last.score());
    Some(format!("entry {group} {score} {}", holdings.subjects.text(last.id)))
}
