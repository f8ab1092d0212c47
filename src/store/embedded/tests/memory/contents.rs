//! The contents of a board's tables, and checks that they are consistent.

use super::*;
use crate::board::{Kind, Tally, Value};
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::ranking::{Entry, TextSource};
use crate::store::embedded::slot_list::SlotList;
use crate::store::embedded::tables::Tables;

/// The data of a subject that a restart must not lose: its slices, its values (the time, and whether gone), its cap.
pub(super) type Content = (String, Vec<(Timestamp, Tally)>, Vec<(String, i64, bool)>, Option<i64>);

/// Returns the data of a board's tables that a restart must not lose, and checks that the tables are consistent.
pub(super) fn live_contents(tables: &Tables) -> Vec<Content> {
    let (holdings, window) = (&tables.holdings, tables.window);
    let rule = holdings.traits;
    let mut found = Vec::new();
    let (mut ranked, mut listed) = (0, 0);
    let subjects = &holdings.subjects;
    let mut next = 0;
    while let Some(id) = subjects.next_from(next) {
        next = id + 1;
        let (record, text) = (subjects.get(id).unwrap(), subjects.text(id));
        let name = HashedName::from(text);
        assert!(!subjects.is_empty(id) && subjects.id(name) == Some(id));
        if rule.ranked {
            assert_eq!(record.key, holdings.computed_key(id));
            let entry = Entry::new(record.key, text, id);
            assert_eq!(holdings.ranking.contains(entry, subjects), record.key != rule.absent_key());
            ranked += usize::from(record.key != rule.absent_key());
        }
        let held: Vec<_> = subjects.cells_from(id, 0).collect();
        assert!(held.is_sorted_by(|a, b| a.slot < b.slot) && held.len() == record.len());
        for slice in held.iter().filter(|_| rule.ranked) {
            assert_eq!(holdings.lists[&slice.slot].at(slice.place), Some(id));
            listed += 1;
        }
        let floor = if rule.ranked { window.floor.millis() } else { holdings.oldest_kept };
        let slices = match rule.counter_duration {
            None => holdings.tallies(name, floor, i64::MAX),
            Some(_) => {
                let counter = holdings.counter(name, tables.now.millis()).into_iter();
                counter.map(|c| (Timestamp::from_millis(c.start), Tally::Sum(Amount(c.amount)))).collect()
            }
        };
        if rule.counter_duration.is_none() {
            let by_definition = rule.kind.value(slices.iter().map(|(_, tally)| tally), rule.min_samples);
            assert_eq!(holdings.combined_value(name, floor), by_definition);
        }
        assert!(rule.counter_duration.is_some() || slices.iter().all(|(_, tally)| !tally.is_empty()));
        let sightings = holdings.last_seen(name);
        let live = sightings.into_iter().flat_map(|s| s.all()).filter(|(_, s)| s.at >= window.floor.millis());
        let mut values: Vec<_> = live.map(|(value, s)| (value.to_string(), s.at, s.retracted)).collect();
        values.sort();
        let capped = sightings.and_then(|s| s.capped).filter(|at| *at >= window.floor.millis());
        if rule.kind == Kind::Distinct {
            let seen = values.iter().filter(|(_, _, gone)| !gone).count();
            let window = holdings.combined_value(name, window.floor.millis());
            assert_eq!(window, Some(Value::Exact(Amount(seen as i64))), "{text}");
        }
        if !slices.is_empty() || !values.is_empty() || capped.is_some() {
            found.push((text.to_owned(), slices, values, capped));
        }
    }
    assert_eq!(holdings.ranking.len(), ranked);
    assert_eq!(holdings.lists.values().map(SlotList::len).sum::<usize>(), listed);
    assert!(holdings.lists.values().all(|list| list.len() > 0));
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}
