//! The rows of all tables, in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::memory::{Memory, MemoryShare};
use super::storage::manifest::RowsByTable;
use crate::store::{Result, Rows, StoreError, TableName};

/// The rows of all tables, including those that only a later version knows.
#[derive(Debug)]
pub(super) struct StoredRows {
    /// Locked for one call, and never across an await. A change is appended to the journal under this lock, so the
    /// order in the log is the order in memory.
    tables: Mutex<BTreeMap<String, Table>>,
    /// The bytes of all tables. Changed only while they are locked.
    memory: MemoryShare,
}

/// The approximate bytes of a row beside its texts: what they are allocated with, and its place in the tree.
const ROW_BYTES: usize = (24 + 24) * 3 / 2 + 32;

#[derive(Debug)]
struct Table {
    /// Drawn when the store is opened and with each change.
    version: u64,
    /// The bytes of all ids and texts.
    bytes: usize,
    rows: BTreeMap<String, String>,
}

/// The result of a change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RowChange<T> {
    /// The row was changed, and this was returned by `append`.
    Changed(T),
    /// Nothing was changed, because the row is not `from`, or because `from` and `to` are equal.
    Unchanged { is_from: bool },
}

impl StoredRows {
    pub(super) fn new(rows: RowsByTable, memory: &Arc<Memory>) -> Self {
        let tables = rows.into_iter().map(|(name, rows)| (name, Table::new(rows))).collect();
        let memory = MemoryShare::new(memory, memory_bytes(&tables));
        Self { tables: Mutex::new(tables), memory }
    }

    /// Returns the rows of a table, or `None` if the table has the version `known`.
    pub(super) fn read(&self, name: TableName, known: Option<u64>) -> Option<Rows> {
        let mut tables = self.tables.lock();
        let table = Table::of(&mut tables, name);
        (known != Some(table.version)).then(|| Rows { version: table.version, rows: table.rows.clone() })
    }

    /// Replaces a row by `to`, if it is `from`, and calls `append` before the change can be seen.
    ///
    /// Returns [`StoreError::TableFull`] if the table cannot have a further or a longer row.
    pub(super) fn change<T>(
        &self,
        name: TableName,
        id: &str,
        (from, to): (Option<&str>, Option<&str>),
        append: impl FnOnce() -> T,
    ) -> Result<RowChange<T>> {
        let mut tables = self.tables.lock();
        let table = Table::of(&mut tables, name);
        let is_from = table.rows.get(id).map(String::as_str) == from;
        if !is_from || from == to {
            return Ok(RowChange::Unchanged { is_from });
        }
        let size = |text: Option<&str>| text.map_or(0, |text| id.len() + text.len());
        let bytes = (table.bytes + size(to)).saturating_sub(size(from));
        let has_too_many = from.is_none() && table.rows.len() >= TableName::MAX_ROWS;
        if has_too_many || bytes > TableName::MAX_BYTES && bytes > table.bytes {
            return Err(StoreError::TableFull { table: name });
        }
        let appended = append();
        match to {
            Some(to) => drop(table.rows.insert(id.to_owned(), to.to_owned())),
            None => drop(table.rows.remove(id)),
        }
        (table.version, table.bytes) = (draw_version(), bytes);
        self.memory.set(memory_bytes(&tables));
        Ok(RowChange::Changed(appended))
    }

    /// Returns the rows of each table that has any.
    pub(super) fn copy(&self) -> RowsByTable {
        let tables = self.tables.lock();
        let filled = tables.iter().filter(|(_, table)| !table.rows.is_empty());
        filled.map(|(name, table)| (name.clone(), table.rows.clone())).collect()
    }

    /// Returns the number of bytes of all tables.
    pub(super) fn bytes(&self) -> u64 {
        self.tables.lock().values().map(|table| table.bytes as u64).sum()
    }
}

impl Table {
    fn new(rows: BTreeMap<String, String>) -> Self {
        let bytes = rows.iter().map(|(id, text)| id.len() + text.len()).sum();
        Self { version: draw_version(), bytes, rows }
    }

    fn of(tables: &mut BTreeMap<String, Table>, name: TableName) -> &mut Table {
        tables.entry(name.as_str().to_owned()).or_insert_with(|| Table::new(BTreeMap::new()))
    }
}

/// Returns the bytes that the tables use. O(number of tables).
fn memory_bytes(tables: &BTreeMap<String, Table>) -> usize {
    tables.values().map(|table| table.bytes + table.rows.len() * ROW_BYTES).sum()
}

/// Draws a version that was never used before. It is random instead of counted up, because versions are not stored: a
/// store that was restored could otherwise reach a number again that stood for different rows.
fn draw_version() -> u64 {
    rand::random_range(1..=u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_later_versions_are_kept() {
        let later: RowsByTable = [("later".to_owned(), [("a".to_owned(), "1".to_owned())].into())].into();
        let rows = StoredRows::new(later.clone(), &Memory::counted_only(1_000));
        assert_eq!(rows.read(TableName::Keys, None).unwrap().rows, BTreeMap::new());
        assert_eq!(rows.copy(), later);
        assert_eq!(rows.bytes(), 2);
    }

    #[test]
    fn a_refused_change_is_not_appended() {
        let rows = StoredRows::new(RowsByTable::new(), &Memory::counted_only(1_000));
        let text = "t".repeat(TableName::MAX_BYTES);
        let append = || panic!("nothing has changed");
        for (from, to) in [(None, Some(&*text)), (Some("1"), Some("2")), (Some("1"), None), (None, None)] {
            let changed = rows.change(TableName::Keys, "a", (from, to), append);
            assert!(matches!(changed, Err(StoreError::TableFull { .. }) | Ok(RowChange::Unchanged { .. })));
        }
        assert_eq!(rows.copy(), RowsByTable::new());
    }

    #[test]
    fn versions_are_not_repeated_by_a_store_that_is_opened_again() {
        let mut versions = std::collections::BTreeSet::new();
        for _ in 0..3 {
            let rows = StoredRows::new(RowsByTable::new(), &Memory::counted_only(1_000));
            for (from, to) in [(None, Some("1")), (Some("1"), None), (None, Some("2"))] {
                assert!(versions.insert(rows.read(TableName::Keys, None).unwrap().version));
                assert_eq!(rows.change(TableName::Keys, "a", (from, to), || ()).unwrap(), RowChange::Changed(()));
            }
        }
    }
}
