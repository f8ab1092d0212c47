//! Tests that names are data: any name is returned unchanged and affects nothing else.

use rolltop::board::{EventId, Subject};
use rolltop::store::Increment;

use crate::given::{Units, definition, exact, plus, subject};
use crate::site::{DUPLICATE, Site};

/// Returns texts that are special to a parser, separator, pattern, number or script.
fn hostile() -> Vec<String> {
    let mut texts: Vec<String> = [
        " ",
        "  ",
        "a ",
        " a",
        "\"",
        "'",
        "\\",
        "/",
        "//",
        ":",
        "::",
        "{",
        "}",
        "{}",
        "{a}",
        "}{",
        "*",
        "?",
        "[a-z]",
        "%",
        "%00",
        "%20",
        "%s",
        "%d",
        "+",
        "-",
        "-1",
        "0",
        "00",
        "1",
        "1.0",
        "1e15",
        "nan",
        "inf",
        "-inf",
        "NaN",
        "true",
        "nil",
        "null",
        "false",
        "(1",
        "[1",
        "(",
        "[",
        "$1",
        "$(x)",
        "`x`",
        ";",
        "--",
        "..",
        "../..",
        "../../etc/passwd",
        ".",
        "#",
        "&",
        "|",
        "<script>",
        "&amp;",
        "日本語",
        "🎉",
        "👨\u{200d}👩\u{200d}👧",
        "\u{202e}rtl",
        "\u{feff}bom",
        "\u{200b}",
        "e\u{301}",
        "é",
        "ß",
        "SS",
        "ı",
        "I",
        "\u{10ffff}",
        "\u{fffd}",
        "\u{e000}",
        "KEYS[1]",
        "redis.call('flushall')",
        "https://example.com/a?b=c&d=%2F#e",
        "9007199254740993",
        "18446744073709551616",
        "\u{a0}",
        "\u{2028}",
        "\u{ad}",
    ]
    .map(String::from)
    .to_vec();
    texts.extend(('!'..='~').map(String::from));
    texts.extend(('!'..='~').map(|c| format!("a{c}b")));
    texts.extend([1, 2, 127, 128, 255, 256, 511, 512].map(|length| "x".repeat(length)));
    texts.extend([
        "é".repeat(256),
        "日".repeat(170),
        "🎉".repeat(128),
        "{".repeat(512),
        "%".repeat(512),
        "\\".repeat(512),
    ]);
    texts.extend((0..100).map(|i| format!("{}\u{2764}{}", "a".repeat(i), i)));
    texts.sort();
    texts.dedup();
    texts
}

pub async fn subjects_are_returned_unchanged(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let texts = hostile();
    site.count(&board, texts.iter().map(|who| plus(who, 1)).collect()).await;
    // All have the same score, so they are ordered by bytes, the greatest first.
    let lines: Vec<String> = site.ranking(&board).await.into_iter().map(|(_, who, _)| who).collect();
    assert_eq!(lines, texts.iter().rev().cloned().collect::<Vec<_>>());
    let asked: Vec<Subject> = texts.iter().map(|who| subject(who)).collect();
    let lookup = site.store.lookup(&board.main(), &asked, true).await.unwrap();
    assert!(lookup.scores.iter().all(|score| *score == exact(1)));
    assert_eq!(site.audit(&board).await, texts.len() as u64);
}

pub async fn changes_to_a_subject_do_not_affect_other_subjects(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let texts = hostile();
    let amount = |i: usize| 1 + (i as i64 * 31) % 1_009;
    site.count(&board, texts.iter().enumerate().map(|(i, who)| plus(who, amount(i))).collect()).await;
    for (i, who) in texts.iter().enumerate() {
        let standing = site.store.standing(&board.main(), &subject(who)).await.unwrap();
        assert_eq!((standing.score.units(), standing.slots.len()), (amount(i), 1), "{who:?}");
        let around = site.store.neighbors(&board.main(), &subject(who), 0).await.unwrap();
        assert_eq!(around.items[0].subject.as_str(), who);
    }
    for (i, who) in texts.iter().enumerate().step_by(3) {
        assert_eq!(site.store.remove(&board, &subject(who)).await.unwrap().score.units(), amount(i), "{who:?}");
    }
    let left = texts.len() - texts.len().div_ceil(3);
    assert_eq!(site.store.status(&board.main()).await.unwrap().total, Some(left as u64));
    site.clock("2026-01-01T12:00:00Z").await;
    assert_eq!(site.ranking(&board).await, []);
}

pub async fn ids_with_special_characters_are_distinct(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    // First pairs that become equal if they are joined by a separator, then every text as an id.
    let pairs = ["a:b|c", "a|b:c", "a b| c", "a |b  c", "a\u{1f41}|b", "a|\u{1f41}b", "x{|}y", "x|{}y", "1|12", "11|2"];
    let pairs = pairs.iter().filter_map(|pair| pair.split_once('|'));
    let texts: Vec<String> = hostile().into_iter().filter(|text| text.len() <= EventId::MAX_BYTES).collect();
    let items: Vec<Increment> = pairs
        .map(|(who, id)| (who.to_owned(), id.to_owned()))
        .chain(texts.into_iter().map(|id| ("one".to_owned(), id)))
        .map(|(who, id)| Increment { id: Some(EventId::parse(&id).unwrap()), ..plus(&who, 1) })
        .collect();
    let sent = items.len();
    site.count(&board, items.clone()).await;
    assert_eq!(site.add(&board, items).await, vec![DUPLICATE; sent]);
}

pub async fn boards_with_similar_names_are_independent(site: Site) {
    let names = [
        "a",
        "a.b",
        "a-b",
        "a_b",
        "a.",
        "a..",
        "a-",
        "0",
        "00",
        "a.b.c",
        "boards",
        "clock",
        "meta",
        "slot",
        &"z".repeat(63),
    ];
    let mut boards = Vec::new();
    for (i, each) in names.iter().enumerate() {
        let board = site.define(each, &definition("COUNT(3h, like, post)", "1h")).await;
        site.count(&board, vec![plus("a", 1 + i as i64), plus("b", 100)]).await;
        boards.push(board);
    }
    for (i, board) in boards.iter().enumerate() {
        assert_eq!(site.ranking(board).await, [(1, "b".to_owned(), 100), (2, "a".to_owned(), 1 + i as i64)]);
        if i % 2 == 0 {
            assert!(site.store.undefine(board).await.unwrap());
        }
    }
    for board in boards.iter().skip(1).step_by(2) {
        assert_eq!(site.ranking(board).await.len(), 2);
    }
}
