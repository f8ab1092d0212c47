//! Tests of the tables of rows.

use std::collections::{BTreeMap, HashSet};

use rolltop::store::{Rows, Store, StoreError, TableName};

use crate::given::plus;
use crate::site::Site;

const KEYS: TableName = TableName::Keys;
const USES: TableName = TableName::KeyUses;

async fn read(store: &dyn Store, table: TableName) -> Rows {
    store.rows(table, None).await.unwrap().expect("a table that is read without a version")
}

async fn change(store: &dyn Store, id: &str, from: Option<&str>, to: Option<&str>) -> bool {
    store.change_row(KEYS, id, from, to).await.unwrap()
}

/// Asserts that a table has these rows, through both instances.
async fn has(site: &Site, table: TableName, rows: &[(&str, &str)]) {
    let expected: BTreeMap<_, _> = rows.iter().map(|(id, text)| (id.to_string(), text.to_string())).collect();
    for store in [&site.store, &site.other] {
        assert_eq!(read(&**store, table).await.rows, expected);
    }
}

pub async fn a_row_is_replaced_only_if_it_is_as_expected(site: Site) {
    let (one, two) = (&*site.store, &*site.other);
    has(&site, KEYS, &[]).await;
    assert!(!change(one, "a", Some("1"), Some("2")).await);
    assert!(!change(one, "a", Some("1"), None).await);
    assert!(change(one, "a", None, Some("1")).await);
    has(&site, KEYS, &[("a", "1")]).await;
    assert!(!change(two, "a", None, Some("2")).await);
    assert!(!change(two, "a", Some(""), Some("2")).await);
    assert!(!change(two, "a", Some("2"), None).await);
    has(&site, KEYS, &[("a", "1")]).await;
    assert!(change(two, "a", Some("1"), Some("2")).await);
    assert!(change(one, "b", None, Some("1")).await);
    has(&site, KEYS, &[("a", "2"), ("b", "1")]).await;
    assert!(change(one, "a", Some("2"), None).await);
    assert!(!change(two, "a", Some("2"), Some("3")).await);
    has(&site, KEYS, &[("b", "1")]).await;
    assert!(change(two, "a", None, Some("2")).await);
    assert!(change(two, "b", Some("1"), None).await);
    assert!(change(two, "a", Some("2"), None).await);
    has(&site, KEYS, &[]).await;
}

pub async fn of_concurrent_changes_of_a_row_exactly_one_succeeds(site: Site) {
    let mut before: Option<String> = None;
    for round in 0..20 {
        let tasks: Vec<_> = (0..8)
            .map(|nth| {
                let store = if nth % 2 == 0 { site.store.clone() } else { site.other.clone() };
                let (from, to) = (before.clone(), format!("{round}-{nth}"));
                tokio::spawn(async move { store.change_row(KEYS, "a", from.as_deref(), Some(&to)).await.unwrap() })
            })
            .collect();
        let mut winners = Vec::new();
        for (nth, task) in tasks.into_iter().enumerate() {
            if task.await.unwrap() {
                winners.push(format!("{round}-{nth}"));
            }
        }
        assert_eq!(winners.len(), 1, "{winners:?}");
        has(&site, KEYS, &[("a", &winners[0])]).await;
        before = winners.pop();
    }
}

pub async fn concurrent_changes_of_different_rows_are_all_kept(site: Site) {
    let tasks: Vec<_> = (0..8)
        .map(|nth| {
            let store = if nth % 2 == 0 { site.store.clone() } else { site.other.clone() };
            tokio::spawn(async move {
                let id = format!("row-{nth}");
                let mut before: Option<String> = None;
                for round in 0..20 {
                    let to = (round % 5 != 4).then(|| round.to_string());
                    assert!(store.change_row(KEYS, &id, before.as_deref(), to.as_deref()).await.unwrap());
                    before = to;
                }
                assert!(store.change_row(KEYS, &id, None, Some("end")).await.unwrap());
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let ids: Vec<_> = (0..8).map(|nth| format!("row-{nth}")).collect();
    has(&site, KEYS, &ids.iter().map(|id| (id.as_str(), "end")).collect::<Vec<_>>()).await;
}

pub async fn a_table_is_returned_only_if_its_version_is_not_known(site: Site) {
    for (from, to) in [(None, Some("1")), (Some("1"), Some("2")), (Some("2"), None)] {
        let before = read(&*site.other, KEYS).await;
        assert_eq!(site.store.rows(KEYS, Some(before.version)).await.unwrap(), None);
        assert_eq!(site.other.rows(KEYS, Some(before.version)).await.unwrap(), None);
        assert!(change(&*site.store, "a", from, to).await);
        let after = site.other.rows(KEYS, Some(before.version)).await.unwrap().expect("the table has changed");
        assert_eq!(after.rows, to.into_iter().map(|text| ("a".to_owned(), text.to_owned())).collect());
        assert_eq!(site.store.rows(KEYS, Some(after.version.wrapping_add(1))).await.unwrap(), Some(after));
    }
}

pub async fn every_change_of_a_table_has_a_version_of_its_own(site: Site) {
    let (one, two) = (&*site.store, &*site.other);
    let mut versions = HashSet::from([read(one, KEYS).await.version]);
    for round in 0..10 {
        let store = if round % 2 == 0 { one } else { two };
        // The same contents in each round.
        for (from, to) in [(None, Some("1")), (Some("1"), Some("2")), (Some("2"), Some("1")), (Some("1"), None)] {
            assert!(change(store, "a", from, to).await);
            let version = read(two, KEYS).await.version;
            assert!(version != 0 && versions.insert(version), "{version} was the version of an earlier content");
            assert_eq!(read(one, KEYS).await.version, version);
        }
    }
    // What changes nothing leaves the version as it is.
    assert!(change(one, "a", None, Some("1")).await);
    let version = read(one, KEYS).await.version;
    assert!(change(two, "a", Some("1"), Some("1")).await);
    assert!(change(two, "b", None, None).await);
    assert!(!change(two, "a", Some("2"), Some("2")).await);
    assert!(!change(two, "a", None, Some("2")).await);
    assert!(two.change_row(KEYS, "", None, Some("2")).await.is_err());
    assert!(two.change_row(USES, "a", None, Some("2")).await.unwrap());
    assert_eq!(one.rows(KEYS, Some(version)).await.unwrap(), None);
    has(&site, KEYS, &[("a", "1")]).await;
}

pub async fn tables_and_boards_do_not_affect_each_other(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let boards_version = site.store.boards_version().await.unwrap();
    assert!(site.store.change_row(KEYS, "a", None, Some("of keys")).await.unwrap());
    has(&site, USES, &[]).await;
    assert!(site.store.change_row(USES, "a", None, Some("of uses")).await.unwrap());
    site.count(&board, vec![plus("a", 1), plus("b", 2)]).await;
    assert_eq!(site.ranking(&board).await, [(1, "b".to_owned(), 2), (2, "a".to_owned(), 1)]);
    assert_eq!(site.store.boards_version().await.unwrap(), boards_version);
    assert!(site.store.undefine(&board).await.unwrap());
    assert!(site.store.boards().await.unwrap().boards.is_empty());
    has(&site, KEYS, &[("a", "of keys")]).await;
    assert!(site.store.change_row(KEYS, "a", Some("of keys"), None).await.unwrap());
    has(&site, KEYS, &[]).await;
    has(&site, USES, &[("a", "of uses")]).await;
}

pub async fn a_repeated_change_changes_nothing(site: Site) {
    for (from, to) in [(None, Some("1")), (Some("1"), Some("2")), (Some("2"), None)] {
        assert!(change(&*site.store, "a", from, to).await);
        let after = read(&*site.store, KEYS).await;
        for store in [&site.store, &site.other] {
            assert!(!change(&**store, "a", from, to).await);
            assert_eq!(read(&**store, KEYS).await, after);
        }
    }
}

pub async fn ids_and_texts_are_returned_unchanged(site: Site) {
    let longest_id = "i".repeat(TableName::MAX_ID_BYTES);
    let longest_text = "ü".repeat(TableName::MAX_TEXT_BYTES / 2);
    let rows = [
        ("a", ""),
        ("=", "="),
        ("==", "=="),
        (" ", " "),
        ("\0", "\0"),
        ("{a}:\"b\"\\", "{\"a\": \"\\u0000\"}"),
        ("version", "0,0"),
        ("0", "nil"),
        ("日本 🎉", "🎉\r\n$-1\r\n"),
        (&longest_id, &longest_text),
    ];
    for (id, text) in rows {
        assert!(change(&*site.store, id, None, Some(text)).await, "{id:?}");
        assert!(!change(&*site.other, id, None, Some(text)).await, "{id:?}");
    }
    has(&site, KEYS, &rows).await;
    for (id, text) in rows {
        assert!(change(&*site.other, id, Some(text), Some(id)).await, "{id:?}");
    }
    has(&site, KEYS, &rows.map(|(id, _)| (id, id))).await;
    for (id, _) in rows {
        assert!(change(&*site.other, id, Some(id), None).await, "{id:?}");
    }
    has(&site, KEYS, &[]).await;
}

pub async fn ids_and_texts_beyond_the_limits_are_refused(site: Site) {
    assert!(change(&*site.store, "a", None, Some("1")).await);
    let version = read(&*site.store, KEYS).await.version;
    let id = "i".repeat(TableName::MAX_ID_BYTES + 1);
    let text = "t".repeat(TableName::MAX_TEXT_BYTES + 1);
    for (id, from, to, bytes) in [
        ("", None, Some("1"), "0"),
        ("", None, None, "0"),
        (&id, None, Some("1"), "129"),
        ("a", Some("1"), Some(&*text), "16385"),
        ("a", Some(&*text), Some("1"), "16385"),
    ] {
        match site.store.change_row(KEYS, id, from, to).await {
            Err(error @ StoreError::InvalidRow { .. }) => {
                assert!(!error.is_transient());
                let said = error.to_string();
                assert!(said.contains("'keys'") && said.contains(&format!("has {bytes} bytes")), "{said}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(site.other.rows(KEYS, Some(version)).await.unwrap(), None);
}

/// Adds rows with these numbers, a few hundred at a time.
async fn fill(site: &Site, numbers: std::ops::Range<usize>, text: &str) {
    let numbers: Vec<_> = numbers.collect();
    for some in numbers.chunks(250) {
        let tasks: Vec<_> = some
            .iter()
            .map(|number| {
                let store = if number % 2 == 0 { site.store.clone() } else { site.other.clone() };
                let (id, text) = (number.to_string(), text.to_owned());
                tokio::spawn(async move { store.change_row(KEYS, &id, None, Some(&text)).await })
            })
            .collect();
        for task in tasks {
            assert!(task.await.unwrap().unwrap());
        }
    }
}

/// Asserts that changes are refused because the table is full.
async fn is_full(site: &Site, changes: &[(&str, Option<&str>, Option<&str>)]) {
    for (id, from, to) in changes {
        match site.other.change_row(KEYS, id, *from, *to).await {
            Err(error @ StoreError::TableFull { table: KEYS }) => {
                assert!(!error.is_transient());
                let said = error.to_string();
                assert!(said.contains("'keys' is full") && said.contains("10000 rows"), "{said}");
            }
            other => panic!("{other:?}"),
        }
    }
}

pub async fn a_table_has_at_most_10000_rows(site: Site) {
    assert_eq!(TableName::MAX_ROWS, 10_000);
    fill(&site, 0..TableName::MAX_ROWS - 1, "t").await;
    // Of several further rows that come at the same time, there is room for one.
    let tasks: Vec<_> = (0..8)
        .map(|nth| {
            let store = if nth % 2 == 0 { site.store.clone() } else { site.other.clone() };
            tokio::spawn(async move { store.change_row(KEYS, &format!("last-{nth}"), None, Some("")).await })
        })
        .collect();
    let mut added = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(true) => added += 1,
            Err(StoreError::TableFull { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(added, 1);
    let rows = read(&*site.store, KEYS).await;
    assert_eq!(rows.rows.len(), TableName::MAX_ROWS);
    is_full(&site, &[("further", None, Some(""))]).await;
    assert_eq!(site.store.rows(KEYS, Some(rows.version)).await.unwrap(), None);
    // The comparison comes first, and rows that exist can be changed.
    assert!(!change(&*site.other, "further", Some("1"), Some("2")).await);
    assert!(change(&*site.other, "further", None, None).await);
    assert!(change(&*site.other, "7", Some("t"), Some("longer")).await);
    assert!(site.other.change_row(USES, "further", None, Some("")).await.unwrap());
    assert!(change(&*site.other, "7", Some("longer"), None).await);
    assert!(change(&*site.store, "further", None, Some("")).await);
    is_full(&site, &[("7", None, Some(""))]).await;
}

pub async fn a_table_has_a_limited_number_of_bytes(site: Site) {
    const COUNT: usize = 1_040;
    // Each row takes the same part of the table, of which its id takes four bytes.
    let text = "t".repeat(TableName::MAX_BYTES / COUNT - 4);
    fill(&site, 1_000..1_000 + COUNT, &text).await;
    let left = TableName::MAX_BYTES % COUNT;
    let fitting = "f".repeat(left - 1);
    is_full(&site, &[("a", None, Some(&"f".repeat(left)))]).await;
    assert!(change(&*site.other, "a", None, Some(&fitting)).await);
    is_full(&site, &[("b", None, Some("")), ("a", Some(&fitting), Some(&"f".repeat(left)))]).await;
    assert!(change(&*site.store, "a", Some(&fitting), Some(&fitting.replace('f', "g"))).await);
    assert!(change(&*site.store, "1500", Some(&text), Some("")).await);
    assert!(change(&*site.other, "b", None, Some("1")).await);
    let rows = read(&*site.store, KEYS).await;
    assert_eq!(rows.rows.len(), COUNT + 2);
}
