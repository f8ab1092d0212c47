//! Tests of what stands beside subjects.

use std::sync::Arc;

use rolltop::board::{Attributes, AttributesChange, AttributesError, Board, Definition, RankingKey, Subject};
use rolltop::store::{StoreError, TextRange};
use serde_json::value::RawValue;

use super::editions::{attach, detach, exchange};
use crate::given::{definition, plus, subject};
use crate::site::Site;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// A change that merges the attributes of a JSON object with those of a subject.
fn merge(who: &str, json: &str) -> (Subject, AttributesChange) {
    (subject(who), AttributesChange::merging(&raw(json)).unwrap())
}

/// A change that replaces the attributes of a subject.
fn replace(who: &str, json: &str) -> (Subject, AttributesChange) {
    (subject(who), AttributesChange::replacing(&raw(json)).unwrap())
}

async fn set(site: &Site, board: &Arc<Board>, changes: &[(Subject, AttributesChange)]) {
    let outcomes = site.store.set_attributes(board, changes).await.unwrap();
    assert_eq!(outcomes, vec![Ok(()); changes.len()]);
}

fn json(attributes: &Attributes) -> String {
    serde_json::to_string(attributes).unwrap()
}

/// Returns the attributes of subjects, read through the other instance.
async fn read<const N: usize>(site: &Site, board: &Arc<Board>, who: [&str; N]) -> [String; N] {
    let found = site.other.attributes(board, &who.map(subject)).await.unwrap();
    let found: Vec<String> = found.iter().map(json).collect();
    found.try_into().unwrap()
}

/// Returns the subjects that have attributes, read in pages of two.
async fn listed(site: &Site, board: &Arc<Board>, prefix: &str) -> Vec<(String, String)> {
    let mut found: Vec<(Subject, Attributes)> = Vec::new();
    loop {
        let after = found.last().map(|(subject, _)| subject.as_str());
        let page = site.other.described(board, TextRange { prefix, after }, 2).await.unwrap();
        let is_last = page.items.len() < 2;
        found.extend(page.items);
        if is_last {
            let shown = |(subject, attributes): (Subject, Attributes)| (subject.as_str().to_owned(), json(&attributes));
            return found.into_iter().map(shown).collect();
        }
    }
}

fn pair(who: &str, json: &str) -> (String, String) {
    (who.to_owned(), json.to_owned())
}

pub async fn attributes_are_replaced_merged_and_removed(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    assert_eq!(read(&site, &board, ["a", "b"]).await, ["{}", "{}"]);
    // In one call each change takes effect after the one before. Values are kept as they were written.
    set(
        &site,
        &board,
        &[
            replace("a", r#"{"z":"last","name":"Ann","level":1.50,"big":12345678901234567890123,"gone":null}"#),
            merge("a", r#"{"level":null,"badges":["x", {"y": 1e2}],"name":"\u00c4nn"}"#),
            merge("b", r#"{"name":"Bob \" \\ 🎉"}"#),
            merge("c", r#"{"nothing":null}"#),
        ],
    )
    .await;
    let ann = r#"{"badges":["x",{"y":1e2}],"big":12345678901234567890123,"name":"\u00c4nn","z":"last"}"#;
    assert_eq!(read(&site, &board, ["b", "a", "c", "a"]).await, [r#"{"name":"Bob \" \\ 🎉"}"#, ann, "{}", ann]);
    set(&site, &board, &[replace("a", r#"{"only":true}"#), merge("b", "{}")]).await;
    set(&site, &board, &[merge("a", r#"{"only":true}"#)]).await;
    assert_eq!(read(&site, &board, ["a", "b"]).await, [r#"{"only":true}"#, r#"{"name":"Bob \" \\ 🎉"}"#]);
    set(&site, &board, &[(subject("a"), AttributesChange::clear()), merge("b", r#"{"name":null}"#)]).await;
    assert_eq!(read(&site, &board, ["a", "b"]).await, ["{}", "{}"]);
    assert_eq!(listed(&site, &board, "").await, []);
    // Nothing of it is counted or ranked.
    assert_eq!(site.ranking_size(&board).await, 0);
}

pub async fn attributes_beyond_a_bound_change_nothing(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let of = |name: &str, bytes: usize| format!("{{\"{name}\":{}}}", text(bytes));
    set(&site, &board, &[replace("a", &of("a", 1_018))]).await;
    let whole = &read(&site, &board, ["a"]).await[0];
    assert_eq!(whole.len(), 1_024);
    let many = (0..31).map(|number| format!("\"a{number}\":1")).collect::<Vec<_>>().join(",");
    set(&site, &board, &[replace("b", &format!("{{{many}}}"))]).await;
    let changes = [
        merge("a", r#"{"b":1}"#),
        merge("b", r#"{"b":1,"a0":2}"#),
        merge("b", r#"{"c":1}"#),
        merge("c", r#"{"b":1}"#),
        merge("b", r#"{"c":1,"b":null}"#),
    ];
    let outcomes = site.store.set_attributes(&board, &changes).await.unwrap();
    assert_eq!(outcomes, [Err(AttributesError::TooLong), Ok(()), Err(AttributesError::TooMany), Ok(()), Ok(())]);
    let [a, b, c] = read(&site, &board, ["a", "b", "c"]).await;
    assert_eq!((&a, c.as_str()), (whole, r#"{"b":1}"#));
    assert!(b.starts_with(r#"{"a0":2,"#) && b.ends_with(r#","c":1}"#) && !b.contains("\"b\""), "{b}");
}

pub async fn attributes_outlive_data_restarts_and_rollovers_and_leave_with_their_subject(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let many: Vec<_> = (0..1_500).map(|number| merge(&format!("s{number:04}"), r#"{"name":"N"}"#)).collect();
    set(&site, &board, &many).await;
    set(&site, &board, &[merge("a", r#"{"name":"Ann"}"#), merge("b", r#"{"name":"Bob"}"#)]).await;
    site.count(&board, vec![plus("a", 3), plus("s0000", 1)]).await;
    let site = site.reopened().await;
    set(&site, &board, &[merge("a", r#"{"level":2}"#)]).await;
    // Everything expires.
    site.clock("2026-01-02T09:30:00Z").await;
    let site = site.reopened().await;
    assert_eq!(read(&site, &board, ["a", "b"]).await, [r#"{"level":2,"name":"Ann"}"#, r#"{"name":"Bob"}"#]);
    assert_eq!(site.store.described(&board, TextRange::default(), 0).await.unwrap().total, 1_502);
    assert_eq!(listed(&site, &board, "s149").await.len(), 10);
    site.count(&board, vec![plus("a", 3)]).await;
    site.store.replace(&board, plus("a", 7)).await.unwrap();
    assert_eq!(read(&site, &board, ["a"]).await, [r#"{"level":2,"name":"Ann"}"#]);
    // Also of a subject without data.
    for who in ["a", "b"] {
        site.store.remove(&board, &subject(who)).await.unwrap();
    }
    let site = site.reopened().await;
    assert_eq!(read(&site, &board, ["a", "b", "s0007"]).await, ["{}", "{}", r#"{"name":"N"}"#]);
    assert_eq!(site.store.described(&board, TextRange::default(), 0).await.unwrap().total, 1_500);
}

pub async fn what_is_for_new_subjects_leaves_those_that_have_some(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    set(&site, &board, &[merge("a", r#"{"n":1}"#)]).await;
    let begin = |(who, change): (Subject, AttributesChange)| (who, change.for_new());
    set(&site, &board, &[replace("a", r#"{"m":2}"#), replace("b", r#"{"m":2}"#)].map(begin)).await;
    assert_eq!(read(&site, &board, ["a", "b"]).await, [r#"{"n":1}"#, r#"{"m":2}"#]);
}

pub async fn subjects_with_attributes_are_listed_in_order(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let mut who = ["a", "b", "B", "a b", "日本", "🎉", "{x}:y", "\u{ffee}", "a*[?]\\", "ab"];
    set(&site, &board, &who.map(|who| merge(who, r#"{"n":1}"#))).await;
    who.sort_unstable();
    assert_eq!(listed(&site, &board, "").await, who.map(|who| pair(who, r#"{"n":1}"#)));
    for prefix in ["a", "a*", "日", "~"] {
        let wanted: Vec<_> =
            who.iter().filter(|who| who.starts_with(prefix)).map(|who| pair(who, r#"{"n":1}"#)).collect();
        assert_eq!(listed(&site, &board, prefix).await, wanted, "{prefix}");
    }
}

pub async fn every_edition_has_the_same_attributes(site: Site) {
    let (first, second) =
        (definition("SUM(3h, sale, amount, seller)", "1h"), definition("SUM(6h, sale, amount, seller)", "1h"));
    let board = site.define("pair", &first).await;
    set(&site, &board, &[merge("a", r#"{"n":1}"#)]).await;
    let pair_of = attach(&site, &board, &second).await;
    assert!(matches!(site.other.attributes(&board, &[subject("a")]).await, Err(StoreError::StaleEpoch)));
    let stale = site.store.set_attributes(&board, &[merge("a", r#"{"n":9}"#)]).await;
    assert!(matches!(stale, Err(StoreError::StaleEpoch)), "{stale:?}");
    set(&site, &pair_of, &[merge("b", r#"{"n":2}"#)]).await;
    let exchanged = exchange(&site, &pair_of).await;
    assert_eq!(read(&site, &exchanged, ["a", "b"]).await, [r#"{"n":1}"#, r#"{"n":2}"#]);
    let alone = detach(&site, &exchanged).await;
    let site = site.reopened().await;
    assert_eq!(read(&site, &alone, ["a", "b"]).await, [r#"{"n":1}"#, r#"{"n":2}"#]);
    site.store.undefine(&alone).await.unwrap();
    let board = site.define("pair", &first).await;
    assert_eq!(read(&site, &board, ["a", "b"]).await, ["{}", "{}"]);
    let gone = site.other.attributes(&alone, &[subject("a")]).await;
    assert!(matches!(gone, Err(StoreError::BoardChanged)), "{gone:?}");
}

pub async fn attributes_of_a_key_are_its_own(site: Site) {
    let board = site.define("keys", &Definition { ..definition("COUNT(3h, like, post BY community)", "1h") }).await;
    let key = |text: &str| RankingKey::parse(text).unwrap();
    let of = |(who, change): (Subject, AttributesChange), text: &str| (who.in_ranking(Some(&key(text))), change);
    let changes = [of(merge("a", r#"{"n":1}"#), "rust"), of(merge("a", r#"{"n":2}"#), "art")];
    set(&site, &board, &changes).await;
    let subjects = changes.map(|(subject, _)| subject);
    let found = site.other.attributes(&board, &subjects).await.unwrap();
    assert_eq!(found.iter().map(json).collect::<Vec<_>>(), [r#"{"n":1}"#, r#"{"n":2}"#]);
    assert_eq!(listed(&site, &board, "").await, [pair("art\0a", r#"{"n":2}"#), pair("rust\0a", r#"{"n":1}"#)]);
    site.store.remove(&board, &subjects[0]).await.unwrap();
    assert_eq!(listed(&site, &board, "").await, [pair("art\0a", r#"{"n":2}"#)]);
}
