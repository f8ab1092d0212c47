//! APPROX_COUNT_DISTINCT: a sketch for each slot and, on a ranked board, the merge of all of a subject's sketches.

use super::StoredKind;
use crate::board::{Aggregate, Amount, Change, Mark, Sketch, Value};
use crate::store::embedded::aggregate_state::{AggregateState, Garbage, rename};
use crate::store::embedded::hashed_name::HashedName;
use crate::store::embedded::holdings::{CellAt, CellWrite, Holdings, OutOfRange, WriteTo};
use crate::store::embedded::log_operations::LogOperations;
use crate::store::embedded::memory::Demand;
use crate::store::embedded::record::Cell;
use crate::store::embedded::slab::Column;
use crate::store::embedded::subject_sketches::{self, Sketches, merged};
use crate::store::embedded::subjects::Subjects;
use crate::store::sizing::{Content, allocated};

/// APPROX_COUNT_DISTINCT.
#[derive(Debug)]
pub(super) struct Approximate;

/// The sketches of all subjects.
#[derive(Debug)]
struct SubjectSketches {
    column: Column<Box<Sketches>>,
    ranked: bool,
    /// The bytes that the sketches of all subjects use, with the allocator's overhead.
    owned: usize,
}

impl StoredKind for Approximate {
    fn new_state(&self, ranked: bool) -> Box<dyn AggregateState> {
        Box::new(SubjectSketches { column: Column::default(), ranked, owned: 0 })
    }

    fn apply(&self, write: CellWrite<'_>, change: &Change) -> Result<(), OutOfRange> {
        let Change::Seen(value) = change else { return Err(OutOfRange) };
        let (CellWrite { holdings, to, operations }, mark) = (write, Mark::of(value.as_str()));
        let marked = holdings.raise_sketch(to, |sketches, at, ranked| {
            let raised = sketches.mark(at, mark);
            (raised, raised && ranked && sketches.mark_merged(mark))
        });
        if marked? {
            operations.marked(to.slot, mark, to.name.text);
        }
        Ok(())
    }

    fn demand(&self, holdings: &Holdings, id: u32, to: &WriteTo<'_>, change: &Change) -> Demand {
        let Change::Seen(value) = change else { return Demand::Nothing };
        let Ok(at) = holdings.subjects.find_cell(id, holdings.number(to.slot)) else { return Demand::More };
        let mark = Mark::of(value.as_str());
        let fits = sketches(&holdings.subjects, id).is_some_and(|sketches| sketches.has_register(at, mark));
        if fits { Demand::Nothing } else { Demand::More }
    }

    fn merge(&self, write: CellWrite<'_>, aggregate: &Aggregate) -> Result<(), OutOfRange> {
        let Aggregate::Sketch(sketch) = aggregate else { return Err(OutOfRange) };
        let CellWrite { holdings, to, operations } = write;
        let unite = |sketches: &mut Sketches, at, ranked| {
            let raised = sketches.unite(at, sketch, ranked);
            (raised, raised && ranked)
        };
        if !sketch.is_empty() && holdings.raise_sketch(to, unite)? {
            holdings.write_sketch(to, operations);
        }
        Ok(())
    }

    fn aggregate(&self, holdings: &Holdings, id: u32, _cell: Cell, at: usize) -> Aggregate {
        let sketch = sketches(&holdings.subjects, id).and_then(|sketches| sketches.by_cell().get(at));
        Aggregate::Sketch(sketch.cloned().unwrap_or_default())
    }

    fn value(&self, holdings: &Holdings, id: u32, first: usize) -> Option<Value> {
        let sketches = sketches(&holdings.subjects, id).and_then(|sketches| sketches.by_cell().get(first..));
        Some(Value::Exact(Amount(merged(sketches.unwrap_or_default()).estimate())))
    }

    fn sort_key_without(&self, holdings: &mut Holdings, id: u32, _sort_key: i64, _amount: i64) -> i64 {
        holdings.merged_sort_key(id)
    }

    fn restored_sort_key(&self, holdings: &Holdings, id: u32) -> i64 {
        // The merge was just computed.
        sketches(&holdings.subjects, id)
            .map_or(holdings.traits.absent_sort_key(), |sketches| sketches.merged().estimate())
    }

    fn write_cell(&self, holdings: &Holdings, id: u32, at: usize, cell: CellAt<'_>, operations: &mut LogOperations) {
        if let Some(sketch) = sketches(&holdings.subjects, id).and_then(|sketches| sketches.by_cell().get(at)) {
            operations.sketch(cell.start, sketch.as_bytes(), cell.subject);
        }
    }

    fn retire_work(&self, cells: u64) -> u64 {
        // The remaining sketches are merged: up to 64 of them, and one for each 32 of the rest.
        cells.min(64) / 4 + cells / 64
    }

    fn audit_work(&self, cells: usize) -> usize {
        cells
    }

    fn bytes(&self, content: Content, ranked: bool) -> usize {
        let sketches = subject_sketches::estimated_bytes(content.slots, content.values, ranked);
        size_of::<Option<Box<Sketches>>>() + allocated(size_of::<Sketches>()) + sketches
    }
}

impl AggregateState for SubjectSketches {
    fn subject_added(&mut self, id: u32) {
        let sketches = Box::<Sketches>::default();
        self.owned += sketches.memory_bytes();
        self.column.set(id, sketches);
    }

    fn cell_inserted(&mut self, id: u32, at: usize, _len: usize) {
        let ranked = self.ranked;
        self.change(id, |sketches| sketches.insert(at, ranked));
    }

    fn cell_removed(&mut self, id: u32, at: usize, _len: usize, _amount: i64) {
        self.change(id, |sketches| sketches.remove(at));
    }

    fn recompute_totals(&mut self, id: u32, _len: usize, _sum: i64) {
        self.change(id, Sketches::recompute_merges);
    }

    fn remove_subject(&mut self, id: u32, _len: usize) -> Option<Garbage> {
        let sketches = self.column.take(id)?;
        self.owned -= sketches.memory_bytes();
        if sketches.is_large() { Some(sketches) } else { None }
    }

    fn free_chunk(&mut self, id: u32) {
        self.column.free_chunk(id);
    }

    fn change_id(&mut self, from: u32, to: u32) {
        rename(&mut self.column, from, to);
    }

    fn memory_bytes(&self) -> usize {
        self.column.memory_bytes() + self.owned
    }

    #[cfg(test)]
    fn owned_bytes(&self) -> (usize, usize) {
        (self.owned, self.column.iter().map(|sketches| sketches.memory_bytes()).sum())
    }
}

impl SubjectSketches {
    /// Changes the sketches of a subject, and counts the memory that they take.
    fn change<T>(&mut self, id: u32, change: impl FnOnce(&mut Sketches) -> T) -> Option<T> {
        let sketches = self.column.get_mut(id)?;
        let before = sketches.memory_bytes();
        let changed = change(sketches);
        self.owned += sketches.memory_bytes();
        self.owned -= before;
        Some(changed)
    }
}

fn sketches(subjects: &Subjects, id: u32) -> Option<&Sketches> {
    subjects.state::<SubjectSketches>()?.column.get(id).map(|sketches| &**sketches)
}

/// Changes the sketches of a subject: see [`SubjectSketches::change`].
fn change_sketches<T>(subjects: &mut Subjects, id: u32, change: impl FnOnce(&mut Sketches) -> T) -> Option<T> {
    subjects.state_mut::<SubjectSketches>()?.change(id, change)
}

impl Holdings {
    /// Raises registers of a slot's sketch. `raise` gets its index and whether the track is ranked, and returns whether
    /// it raised a register of the slot, and of the merge of all. Returns the former. O(log n), and O(registers) where
    /// the score may change.
    fn raise_sketch(
        &mut self,
        to: &WriteTo<'_>,
        raise: impl FnOnce(&mut Sketches, usize, bool) -> (bool, bool),
    ) -> Result<bool, OutOfRange> {
        let slot = self.number(to.slot);
        let id = self.id_or_add(self.subjects.id(to.name), to.name)?;
        self.set_cell(id, slot, 0);
        let (Ok(at), ranked) = (self.subjects.find_cell(id, slot), self.traits.ranked) else { return Ok(false) };
        let raised = change_sketches(&mut self.subjects, id, |sketches| {
            let (raised, merged_raised) = raise(sketches, at, ranked);
            (raised, merged_raised.then(|| sketches.merged().estimate()))
        });
        let (raised, sort_key) = raised.unwrap_or_default();
        if let Some(sort_key) = sort_key {
            self.set_sort_key(id, sort_key);
        }
        Ok(raised)
    }

    /// Appends the sketch of a slot.
    fn write_sketch(&self, to: &WriteTo<'_>, operations: &mut LogOperations) {
        let Some(id) = self.subjects.id(to.name) else { return };
        let sketch = self.subjects.find_cell(id, self.number(to.slot)).ok();
        let sketch = sketch.and_then(|at| sketches(&self.subjects, id)?.by_cell().get(at));
        if let Some(sketch) = sketch {
            operations.sketch(to.slot, sketch.as_bytes(), to.name.text);
        }
    }

    /// Merges all cells' sketches again. Returns the sort key. O(cells / 32 + 32) merges of O(registers).
    fn merged_sort_key(&mut self, id: u32) -> i64 {
        let merged = change_sketches(&mut self.subjects, id, |sketches| {
            sketches.recompute_merged();
            sketches.merged().estimate()
        });
        merged.unwrap_or(self.traits.absent_sort_key())
    }

    /// Restores the sketch of a cell.
    pub(in crate::store::embedded) fn restore_sketch(&mut self, name: HashedName, slot: i64, sketch: Sketch) {
        if let Some((id, _, at)) = self.restore_cell(name, slot, 0) {
            change_sketches(&mut self.subjects, id, |sketches| sketches.set(at, sketch));
        }
    }

    /// Raises a register of a cell's sketch while a store is opened.
    pub(in crate::store::embedded) fn restore_mark(&mut self, name: HashedName, slot: i64, mark: Mark) {
        if let Some((id, _, at)) = self.restore_cell(name, slot, 0) {
            change_sketches(&mut self.subjects, id, |sketches| sketches.mark(at, mark));
        }
    }
}
