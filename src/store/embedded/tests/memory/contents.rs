//! The contents of a board's data, and checks that it is consistent.

use super::*;
use crate::board::{Aggregate, DayCount, Kind, Value, counted};
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::slot_list::SlotList;
use crate::store::embedded::track_data::TrackData;

/// The data of a subject that a restart must not lose: its cells, its values (the time, and whether retracted), its
/// cap.
pub(super) type Content = (String, Vec<(Timestamp, Aggregate)>, Vec<(String, i64, bool)>, Option<i64>);

/// Returns what a restart must not lose of a board's data, and checks that the data is consistent.
pub(super) fn live_contents(data: &TrackData) -> Vec<Content> {
    let (holdings, window) = (&data.holdings, data.window);
    let traits = holdings.traits;
    let mut found = Vec::new();
    let (mut ranked, mut listed) = (0, 0);
    let subjects = &holdings.subjects;
    let mut next = 0;
    while let Some(id) = subjects.next_from(next) {
        next = id + 1;
        let (record, text) = (subjects.get(id).unwrap(), subjects.whole_text(id));
        let name = HashedName::from(text);
        assert!(!subjects.is_empty(id) && subjects.id(name) == Some(id));
        if traits.ranked {
            assert_eq!(record.sort_key, holdings.computed_sort_key(id));
            let entry = subjects.entry(id, record.sort_key);
            assert_eq!(holdings.ranking.contains(entry, subjects), record.sort_key != traits.absent_sort_key());
            ranked += usize::from(record.sort_key != traits.absent_sort_key());
        }
        let held: Vec<_> = subjects.cells_from(id, 0).collect();
        assert!(held.is_sorted_by(|a, b| a.slot < b.slot) && held.len() == record.len());
        for cell in held.iter().filter(|_| traits.ranked) {
            assert_eq!(holdings.lists.get(cell.slot).unwrap().at(cell.place), Some(id));
            listed += 1;
        }
        let floor = if traits.ranked { window.floor.millis() } else { holdings.oldest_kept };
        let cells = match traits.counter_duration {
            None => holdings.aggregates(name, floor, i64::MAX),
            Some(_) => {
                let counter = holdings.counter(name, data.now.millis()).into_iter();
                counter.map(|c| (Timestamp::from_millis(c.start), Aggregate::Sum(Amount(c.amount)))).collect()
            }
        };
        if traits.counter_duration.is_none() {
            let by_definition = traits.kind.value(cells.iter().map(|(_, aggregate)| aggregate), traits.averaging);
            assert_eq!(holdings.combined_value(name, floor), by_definition);
        }
        let most = if let Kind::Capped { most } = traits.kind { Some(most) } else { None };
        let keeps_empty = traits.counter_duration.is_some() || most.is_some();
        assert!(keeps_empty || cells.iter().all(|(_, aggregate)| !aggregate.is_empty()));
        let last_seen = holdings.last_seen(name);
        let floors = data.floors();
        let floor_of = |retracted: bool| if retracted { floors.retracted } else { floors.seen };
        let live = last_seen.into_iter().flat_map(|s| s.all()).filter(|(_, s)| s.at >= floor_of(s.retracted));
        let mut values: Vec<_> = live.map(|(value, s)| (value.to_string(), s.at, s.retracted)).collect();
        let counters: Vec<DayCount> = holdings.day_counts_from(name, (window.floor.millis(), "")).collect();
        values
            .extend(counters.iter().map(|counter| (counter.text().as_str().to_owned(), counter.at().millis(), false)));
        values.sort();
        let capped = holdings.dropped(name);
        let capped = capped.filter(|at| *at >= window.floor.millis());
        if let Some(most) = most {
            let sum = counters.iter().map(|counter| counted(counter.count, most)).sum();
            assert_eq!(holdings.combined_value(name, window.floor.millis()), Some(Value::Exact(Amount(sum))), "{text}");
            assert_eq!(cells.is_empty(), counters.is_empty(), "{text}");
        }
        if traits.kind == Kind::Distinct {
            let seen = values.iter().filter(|(_, _, retracted)| !retracted).count();
            let window = holdings.combined_value(name, window.floor.millis());
            assert_eq!(window, Some(Value::Exact(Amount(seen as i64))), "{text}");
        }
        if !cells.is_empty() || !values.is_empty() || capped.is_some() {
            found.push((text.to_owned(), cells, values, capped));
        }
    }
    let (kept, counted) = subjects.owned_bytes();
    assert_eq!(kept, counted);
    assert_eq!(holdings.lists.memory_bytes(), holdings.lists.values().map(SlotList::memory_bytes).sum::<usize>());
    assert_eq!(holdings.ranking.len(), ranked);
    assert_eq!(holdings.lists.values().map(SlotList::len).sum::<usize>(), listed);
    assert!(holdings.lists.values().all(|list| list.len() > 0));
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}
