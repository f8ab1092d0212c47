//! Tests of what moderators set for subjects: hidden, shadowed and frozen ones.

use std::sync::Arc;

use rolltop::board::{
    Board, BoardTrack, Definition, Moderation, ModerationChange, ModerationList, RankingKey, Subject, Visibility,
};
use rolltop::store::{Batch, Outcome, Rejection, SlotRange, TextRange};

use super::editions::{attach, detach, exchange, twice};
use crate::given::{OnTrack, Units, With, definition, exact, plus, seen, subject, t, unranked};
use crate::site::{COUNTED, DUPLICATE, Site};

const HIDE: ModerationChange = ModerationChange::Visibility(Visibility::Hidden);
const SHADOW: ModerationChange = ModerationChange::Visibility(Visibility::Shadowed);
const SHOW: ModerationChange = ModerationChange::Visibility(Visibility::Visible);
const FREEZE: ModerationChange = ModerationChange::Frozen(true);
const UNFREEZE: ModerationChange = ModerationChange::Frozen(false);
const FROZEN: Outcome = Outcome::Rejected(Rejection::SubjectFrozen);

async fn set(site: &Site, board: &Arc<Board>, who: &str, change: ModerationChange) {
    site.store.moderate(board, &[(subject(who), change)]).await.unwrap();
}

/// Returns the names, ranks and scores of a ranking.
async fn lines(site: &Site, track: &impl OnTrack) -> Vec<(u64, String, i64)> {
    let lines = site.ranking(track).await;
    let status = site.other.status(&track.track()).await.unwrap();
    if !track.track().board().has_keys() {
        assert_eq!(status.total, Some(lines.len() as u64));
    }
    lines
}

fn line(rank: u64, who: &str, score: i64) -> (u64, String, i64) {
    (rank, who.to_owned(), score)
}

/// Returns rank, score and number of better subjects of a standing, which must be of a subject that is set so.
async fn standing(site: &Site, track: &impl OnTrack, who: &str, is: Visibility) -> (Option<u64>, i64, u64) {
    let standing = site.other.standing(&track.track(), &subject(who)).await.unwrap();
    assert_eq!(standing.visibility, is, "{who}");
    (standing.rank, standing.score.units(), standing.better)
}

/// Returns a list, read in pages of two.
async fn listed(site: &Site, board: &Arc<Board>, list: ModerationList) -> Vec<(String, Moderation)> {
    let mut found: Vec<(Subject, Moderation)> = Vec::new();
    loop {
        let after = found.last().map(|(subject, _)| subject.as_str());
        let page = site.other.moderated(board, list, TextRange { prefix: "", after }, 2).await.unwrap();
        let is_last = page.items.len() < 2;
        let total = page.total;
        found.extend(page.items);
        if is_last {
            assert_eq!(total, found.len() as u64);
            return found.into_iter().map(|(subject, set)| (subject.as_str().to_owned(), set)).collect();
        }
    }
}

async fn names(site: &Site, board: &Arc<Board>, list: ModerationList) -> Vec<String> {
    listed(site, board, list).await.into_iter().map(|(name, _)| name).collect()
}

pub async fn a_hidden_subject_counts_on_and_is_in_no_ranking(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let eight = "2026-01-01T08:00:00Z";
    site.count(&board, vec![plus("a", 3), plus("b", 9).at(eight), plus("c", 3), plus("d", 1)]).await;
    set(&site, &board, "b", HIDE).await;
    set(&site, &board, "b", HIDE).await;
    assert_eq!(lines(&site, &board).await, [line(1, "c", 3), line(1, "a", 3), line(3, "d", 1)]);
    assert_eq!(site.score(&board, vec![plus("b", 1)]).await, [Outcome::Counted { score: exact(10) }]);
    site.count(&board, vec![plus("d", 1), plus("b", 4)]).await;
    assert_eq!(lines(&site, &board).await, [line(1, "c", 3), line(1, "a", 3), line(3, "d", 2)]);
    assert_eq!(standing(&site, &board, "b", Visibility::Hidden).await, (None, 14, 0));
    assert_eq!(site.store.count(&board.main(), &subject("b"), SlotRange::Slots(3)).await.unwrap().units(), 14);
    let found = site.other.lookup(&board.main(), &[subject("b"), subject("d")], true).await.unwrap();
    assert_eq!((found.total, found.scores, found.ranks), (3, vec![None, exact(2)], vec![None, Some(3)]));
    let around = site.store.neighbors(&board.main(), &subject("b"), 2).await.unwrap();
    assert_eq!((around.items.len(), around.total), (0, 3));
    let around = site.store.neighbors(&board.main(), &subject("a"), 2).await.unwrap();
    assert!(around.items.into_iter().all(|line| line.subject != subject("b")));
    // A slot of it leaves the window while it is hidden.
    site.clock("2026-01-01T11:00:00Z").await;
    site.retire(&board).await;
    assert_eq!(standing(&site, &board, "b", Visibility::Hidden).await, (None, 5, 0));
    site.audit(&board).await;
    set(&site, &board, "b", SHOW).await;
    assert_eq!(lines(&site, &board).await[0], line(1, "b", 5));
    assert_eq!(standing(&site, &board, "b", Visibility::Visible).await, (Some(1), 5, 0));
    assert_eq!(site.audit(&board).await, 4);
}

pub async fn a_shadowed_subject_sees_the_rank_that_it_would_have(site: Site) {
    let board = site.board("SUM(3h, sale, amount, seller)", "1h").await;
    site.count(&board, vec![plus("a", 5), plus("b", 3), plus("c", 3), plus("d", 1)]).await;
    set(&site, &board, "c", SHADOW).await;
    assert_eq!(lines(&site, &board).await, [line(1, "a", 5), line(2, "b", 3), line(3, "d", 1)]);
    assert_eq!(standing(&site, &board, "c", Visibility::Shadowed).await, (Some(2), 3, 1));
    // Its rank is one beyond the last where it is the worst.
    site.count(&board, vec![plus("c", -7)]).await;
    assert_eq!(standing(&site, &board, "c", Visibility::Shadowed).await, (Some(4), -4, 3));
    set(&site, &board, "a", SHADOW).await;
    assert_eq!(standing(&site, &board, "c", Visibility::Shadowed).await, (Some(3), -4, 2));
    assert_eq!(standing(&site, &board, "b", Visibility::Visible).await, (Some(1), 3, 0));
    // What cancels each other out has no rank, shadowed or not.
    site.count(&board, vec![plus("c", 4)]).await;
    assert_eq!(standing(&site, &board, "c", Visibility::Shadowed).await.0, None);
    set(&site, &board, "a", HIDE).await;
    assert_eq!(standing(&site, &board, "a", Visibility::Hidden).await, (None, 5, 0));
    for who in ["a", "c"] {
        set(&site, &board, who, SHOW).await;
    }
    assert_eq!(lines(&site, &board).await, [line(1, "a", 5), line(2, "b", 3), line(3, "d", 1)]);
    site.audit(&board).await;
}

pub async fn items_of_a_frozen_subject_are_rejected(site: Site) {
    for (number, board) in site.both("SUM(3h, sale, amount, seller)", "1h").await.into_iter().enumerate() {
        site.clock(&format!("2026-01-0{}T09:30:00Z", number + 2)).await;
        let eight = format!("2026-01-0{}T08:00:00Z", number + 2);
        site.count(&board, vec![plus("a", 5).at(&eight), plus("a", 2).id("known"), plus("b", 1)]).await;
        set(&site, &board, "a", FREEZE).await;
        let items = vec![
            plus("a", 1),
            plus("b", 1),
            plus("a", 1).id("new"),
            plus("a", 2).id("known"),
            plus("a", 2).undone(),
            plus("a", 1).at("2025-12-31T00:00:00Z"),
        ];
        let late = Outcome::Rejected(Rejection::TooLate);
        assert_eq!(site.add(&board, items).await, [FROZEN, COUNTED, FROZEN, DUPLICATE, FROZEN, late]);
        let replaced = site.store.replace(&board, plus("a", 40)).await.unwrap();
        assert_eq!(replaced.outcomes, [FROZEN]);
        assert_eq!(site.value(&board, "a").await, exact(7));
        // What it has goes on expiring.
        site.clock(&format!("2026-01-0{}T11:00:00Z", number + 2)).await;
        assert_eq!(site.value(&board, "a").await, exact(2));
        set(&site, &board, "a", UNFREEZE).await;
        let added = site.add(&board, vec![plus("a", 1).id("new"), plus("a", 1)]).await;
        assert_eq!(added, [COUNTED, COUNTED], "the id of a rejected item is not remembered");
        assert_eq!(site.value(&board, "a").await, exact(4));
        let replaced = site.store.replace(&board, plus("a", 40)).await.unwrap();
        assert_eq!(replaced.outcomes, [Outcome::Counted { score: exact(40) }]);
    }
}

pub async fn what_is_set_outlives_data_restarts_and_rollovers(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    // Both have no data yet.
    site.store.moderate(&board, &[(subject("a"), HIDE), (subject("b"), FREEZE), (subject("c"), SHADOW)]).await.unwrap();
    assert_eq!(site.add(&board, vec![plus("a", 3), plus("b", 1), plus("c", 2), plus("d", 1)]).await[1], FROZEN);
    let site = site.reopened().await;
    assert_eq!(lines(&site, &board).await, [line(1, "d", 1)]);
    assert_eq!(standing(&site, &board, "a", Visibility::Hidden).await, (None, 3, 0));
    site.count(&board, vec![plus("a", 1), plus("d", 1)]).await;
    // Everything expires at once.
    site.clock("2026-01-02T09:30:00Z").await;
    assert_eq!(lines(&site, &board).await, []);
    assert_eq!(standing(&site, &board, "a", Visibility::Hidden).await.1, 0);
    site.count(&board, vec![plus("a", 4), plus("d", 1), plus("c", 9)]).await;
    let site = site.reopened().await;
    assert_eq!(lines(&site, &board).await, [line(1, "d", 1)]);
    assert_eq!(standing(&site, &board, "c", Visibility::Shadowed).await, (Some(1), 9, 0));
    assert_eq!(site.add(&board, vec![plus("b", 1)]).await, [FROZEN]);
    assert_eq!(names(&site, &board, ModerationList::Hidden).await, ["a", "c"]);
    for who in ["a", "b", "c"] {
        site.store.moderate(&board, &[(subject(who), SHOW), (subject(who), UNFREEZE)]).await.unwrap();
    }
    let site = site.reopened().await;
    assert_eq!(lines(&site, &board).await, [line(1, "c", 9), line(2, "a", 4), line(3, "d", 1)]);
    site.count(&board, vec![plus("b", 1)]).await;
    assert_eq!(site.audit(&board).await, 4);
}

pub async fn lists_of_moderated_subjects_are_ordered_and_paged(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let who = ["a", "b", "B", "a b", "日本", "🎉", "{x}:y", "\u{ffee}", "a*[?]\\", "ab"];
    let mut changes: Vec<(Subject, ModerationChange)> =
        who.iter().map(|who| (subject(who), if *who == "b" { SHADOW } else { HIDE })).collect();
    changes.extend([(subject("ab"), FREEZE), (subject("z"), FREEZE), (subject("🎉"), SHOW)]);
    // The last of several changes holds.
    changes.extend([(subject("y"), FREEZE), (subject("y"), UNFREEZE), (subject("x"), SHOW), (subject("x"), HIDE)]);
    site.store.moderate(&board, &changes).await.unwrap();
    site.store.moderate(&board, &[]).await.unwrap();
    let mut expected = vec!["a", "b", "B", "a b", "日本", "{x}:y", "\u{ffee}", "a*[?]\\", "ab", "x"];
    expected.sort_unstable();
    assert_eq!(names(&site, &board, ModerationList::Hidden).await, expected);
    assert_eq!(names(&site, &board, ModerationList::Frozen).await, ["ab", "z"]);
    let hidden = listed(&site, &board, ModerationList::Hidden).await;
    let of = |who: &str| hidden.iter().find(|(name, _)| name == who).unwrap().1;
    assert_eq!(of("b"), Moderation { visibility: Visibility::Shadowed, is_frozen: false });
    assert_eq!(of("ab"), Moderation { visibility: Visibility::Hidden, is_frozen: true });
    for prefix in ["a", "a*", "日", "~"] {
        let range = TextRange { prefix, after: None };
        let page = site.store.moderated(&board, ModerationList::Hidden, range, 50).await.unwrap();
        let found: Vec<&str> = page.items.iter().map(|(subject, _)| subject.as_str()).collect();
        let wanted: Vec<&str> = expected.iter().copied().filter(|who| who.starts_with(prefix)).collect();
        assert_eq!((found, page.total), (wanted, expected.len() as u64), "{prefix}");
    }
}

pub async fn many_subjects_are_hidden_at_once(site: Site) {
    let board = site.board("COUNT(3h, like, post)", "1h").await;
    let name = |number: i64| format!("s{number:04}");
    site.count(&board, (1..=1_500).map(|number| plus(&name(number), number)).collect()).await;
    let even = || (1..=1_500).filter(|number| number % 2 == 0);
    let all = |change| even().map(|number| (subject(&name(number)), change)).collect::<Vec<_>>();
    site.store.moderate(&board, &all(HIDE)).await.unwrap();
    let page = site.store.page(&board.main(), 0, 3).await.unwrap();
    assert_eq!((page.total, page.items[1].subject.as_str(), page.items[1].rank), (750, "s1497", 2));
    site.count(&board, (1..=1_500).map(|number| plus(&name(number), 1)).collect()).await;
    assert_eq!(site.audit(&board).await, 1_500);
    site.clock("2026-01-01T12:00:00Z").await;
    assert_eq!(site.ranking_size(&board).await, 0);
    site.count(&board, (1..=1_500).map(|number| plus(&name(number), number)).collect()).await;
    site.store.moderate(&board, &all(SHOW)).await.unwrap();
    let page = site.other.page(&board.main(), 0, 1_000).await.unwrap();
    assert_eq!((page.total, page.items[0].score.units(), page.items[999].score.units()), (1_500, 1_500, 501));
    assert_eq!(site.audit(&board).await, 1_500);
}

pub async fn removing_a_subject_ends_its_moderation_and_replacing_does_not(site: Site) {
    let windows = ["6h/2h", "all"].map(|window| window.parse().unwrap());
    let board = Definition { windows: windows.into(), ..definition("COUNT(3h, like, post)", "1h") };
    let board = site.define("windows", &board).await;
    site.count(&board, vec![plus("a", 3), plus("b", 1)]).await;
    set(&site, &board, "a", HIDE).await;
    for track in board.each_track() {
        assert_eq!(lines(&site, &track).await, [line(1, "b", 1)]);
        assert_eq!(standing(&site, &track, "a", Visibility::Hidden).await, (None, 3, 0));
    }
    let replaced = site.store.replace(&board, plus("a", 7)).await.unwrap();
    assert_eq!(replaced.outcomes, [Outcome::Counted { score: exact(7) }]);
    for track in board.each_track() {
        assert_eq!(lines(&site, &track).await, [line(1, "b", 1)]);
    }
    set(&site, &board, "a", FREEZE).await;
    let removal = site.store.remove(&board, &subject("a")).await.unwrap();
    assert_eq!((removal.score, removal.live_slots), (exact(7), 1));
    assert_eq!(names(&site, &board, ModerationList::Hidden).await, Vec::<String>::new());
    assert_eq!(names(&site, &board, ModerationList::Frozen).await, Vec::<String>::new());
    site.count(&board, vec![plus("a", 2)]).await;
    for track in board.each_track() {
        assert_eq!(lines(&site, &track).await, [line(1, "a", 2), line(2, "b", 1)]);
        assert_eq!(site.audit(&track).await, 2);
    }
    // A subject without data is removed too.
    set(&site, &board, "c", HIDE).await;
    site.store.remove(&board, &subject("c")).await.unwrap();
    assert_eq!(names(&site, &board, ModerationList::Hidden).await, Vec::<String>::new());
}

pub async fn hidden_subjects_of_every_metric_return_with_their_scores(site: Site) {
    for (number, metric) in [
        "SUM(3h, e, v, s)",
        "AVG(3h, e, v, s)",
        "MIN(3h, e, v, s)",
        "LAST(3h, e, v, s)",
        "COUNT_DISTINCT(3h, e, s, c)",
        "APPROX_COUNT_DISTINCT(3h, e, s, c)",
    ]
    .into_iter()
    .enumerate()
    {
        let board = site.define(&format!("board-{number}"), &definition(metric, "1h")).await;
        let item = |who: &str, n: i64| match metric.contains("DISTINCT") {
            true => seen(who, &format!("v{n}")),
            false => plus(who, n),
        };
        let day = site.store.now().await.unwrap();
        site.count(&board, vec![item("a", 4), item("a", 5), item("b", 4)]).await;
        set(&site, &board, "a", HIDE).await;
        site.count(&board, vec![item("a", 6), item("b", 9)]).await;
        let page = site.store.page(&board.main(), 0, 9).await.unwrap();
        assert_eq!((page.total, page.items[0].subject.as_str()), (1, "b"), "{metric}");
        site.audit(&board).await;
        site.clock_at(day.plus_millis(2 * 3_600_000)).await;
        site.count(&board, vec![item("a", 7)]).await;
        site.clock_at(day.plus_millis(4 * 3_600_000)).await;
        site.retire(&board).await;
        let hidden = site.store.standing(&board.main(), &subject("a")).await.unwrap();
        set(&site, &board, "a", SHOW).await;
        let shown = site.store.standing(&board.main(), &subject("a")).await.unwrap();
        assert_eq!((hidden.score, hidden.slots), (shown.score, shown.slots.clone()), "{metric}");
        assert_eq!((shown.rank, shown.total), (Some(1), 1), "{metric}");
        assert_eq!(board.edition().main().value(shown.slots.iter().map(|(_, one)| one)), shown.score, "{metric}");
        site.audit(&board).await;
    }
}

pub async fn both_editions_know_what_is_set(site: Site) {
    let (first, second) =
        (definition("SUM(3h, sale, amount, seller)", "1h"), definition("SUM(6h, sale, amount, seller)", "1h"));
    let board = site.define("pair", &first).await;
    site.count(&board, vec![plus("a", 5), plus("b", 3)]).await;
    site.store.moderate(&board, &[(subject("a"), HIDE), (subject("c"), FREEZE)]).await.unwrap();
    let pair = attach(&site, &board, &second).await;
    let added = site.add(&pair, vec![twice(plus("a", 1)), twice(plus("b", 1)), twice(plus("c", 1))]).await;
    assert_eq!(added, [COUNTED, COUNTED, FROZEN]);
    let tracks: Vec<BoardTrack> = pair.each_track().collect();
    site.store.fill(&tracks[0], &tracks[1], &[(subject("a"), t("2026-01-01T09:00:00Z"))]).await.unwrap();
    assert_eq!(lines(&site, &tracks[1]).await, [line(1, "b", 1)]);
    assert_eq!(standing(&site, &tracks[1], "a", Visibility::Hidden).await, (None, 6, 0));
    set(&site, &pair, "b", SHADOW).await;
    for track in &tracks {
        assert_eq!(lines(&site, track).await, []);
    }
    let exchanged = exchange(&site, &pair).await;
    assert_eq!(lines(&site, &exchanged).await, []);
    assert_eq!(site.add(&exchanged, vec![twice(plus("c", 1))]).await, [FROZEN]);
    set(&site, &exchanged, "b", SHOW).await;
    for track in exchanged.each_track() {
        assert_eq!(lines(&site, &track).await.len(), 1);
        site.audit(&track).await;
    }
    let alone = detach(&site, &exchanged).await;
    let site = site.reopened().await;
    assert_eq!(lines(&site, &alone).await, [line(1, "b", 1)]);
    assert_eq!(names(&site, &alone, ModerationList::Hidden).await, ["a"]);
    assert_eq!(names(&site, &alone, ModerationList::Frozen).await, ["c"]);
    set(&site, &alone, "a", SHOW).await;
    assert_eq!(lines(&site, &alone).await, [line(1, "a", 6), line(2, "b", 1)]);
}

pub async fn a_subject_is_hidden_in_the_ranking_of_one_key(site: Site) {
    let limited = Definition { max_keys: Some(2), ..definition("COUNT(3h, like, post BY community)", "1h") };
    let board = site.define("keys", &limited).await;
    let key = |text: &str| RankingKey::parse(text).unwrap();
    let of = |text: &str| board.main().of_key(Some(key(text)));
    let in_key = |who: &str, text: &str| subject(who).in_ranking(Some(&key(text)));
    let by = |who: &str, units: i64, text: &str| rolltop::store::Increment {
        subject: in_key(who, text),
        ..plus(who, units)
    };
    let eight = "2026-01-01T08:00:00Z";
    site.count(&board, vec![by("a", 3, "rust").at(eight), by("b", 1, "rust"), by("a", 1, "art")]).await;
    site.store.moderate(&board, &[(in_key("a", "rust"), SHADOW), (in_key("a", "art"), HIDE)]).await.unwrap();
    assert_eq!(site.ranking(&of("rust")).await, [line(1, "b", 1)]);
    assert_eq!(standing(&site, &of("rust"), "a", Visibility::Shadowed).await, (Some(1), 3, 0));
    assert_eq!(standing(&site, &of("art"), "a", Visibility::Hidden).await, (None, 1, 0));
    // A key whose subjects are all hidden does not exist.
    let keys = async || {
        let found = site.other.keys(&board.main(), TextRange::default(), 9).await.unwrap();
        let status = site.store.status(&board.main()).await.unwrap();
        assert_eq!(status.keys, Some(found.total));
        (found.keys.iter().map(ToString::to_string).collect::<Vec<_>>(), status.total)
    };
    assert_eq!(keys().await, (vec!["rust".to_owned()], Some(1)));
    site.count(&board, vec![by("a", 1, "art")]).await;
    assert_eq!(keys().await, (vec!["rust".to_owned()], Some(1)));
    if site.kind.parts() == 1 {
        site.count(&board, vec![by("x", 1, "third")]).await;
        let refused = Outcome::Rejected(Rejection::TooManyKeys);
        assert_eq!(site.add(&board, vec![by("y", 1, "fourth"), by("y", 1, "art")]).await, [refused, refused]);
    }
    // There are as many keys as there may be, and a hidden subject goes on counting.
    site.count(&board, vec![by("a", 1, "art")]).await;
    // A slot expires: a small ranking is exact before it is retired, and so is the score of a shadowed subject.
    site.count(&board, vec![by("a", 2, "rust")]).await;
    site.clock("2026-01-01T11:00:00Z").await;
    let page = site.store.page(&of("rust"), 0, 9).await.unwrap();
    assert_eq!((page.frame.retiring, page.total), (0, 1));
    let shadowed = site.other.standing(&of("rust"), &subject("a")).await.unwrap();
    assert_eq!((shadowed.frame.retiring, shadowed.score, shadowed.rank), (0, exact(2), Some(1)));
    site.retire(&board).await;
    site.audit(&board).await;
    site.store.moderate(&board, &[(in_key("a", "art"), SHOW), (in_key("a", "rust"), SHOW)]).await.unwrap();
    assert_eq!(site.ranking(&of("art")).await, [line(1, "a", 3)]);
    assert_eq!(site.ranking(&of("rust")).await, [line(1, "a", 2), line(2, "b", 1)]);
    assert!(keys().await.0.contains(&"art".to_owned()));
    site.audit(&board).await;
    // Everything of a key expires at once while its subject is hidden.
    site.store.moderate(&board, &[(in_key("a", "rust"), HIDE)]).await.unwrap();
    site.clock("2026-01-02T11:00:00Z").await;
    site.count(&board, vec![by("a", 1, "rust"), by("b", 5, "rust")]).await;
    assert_eq!(site.ranking(&of("rust")).await, [line(1, "b", 5)]);
    site.retire(&board).await;
    site.audit(&board).await;
}

pub async fn counters_and_kept_slots_of_a_frozen_subject_stay(site: Site) {
    let mut counters = unranked("COUNT(3h, login, device)", "1h");
    counters.mode = rolltop::board::Mode::FromFirst;
    let counters = site.define("counters", &counters).await;
    let mut kept = definition("COUNT(all, like, post)", "1h");
    kept.keep = "3h".parse().ok();
    let kept = site.define("kept", &kept).await;
    for board in [counters, kept] {
        site.count(&board, vec![plus("a", 2)]).await;
        set(&site, &board, "a", FREEZE).await;
        assert_eq!(site.add(&board, vec![plus("a", 1), plus("b", 1)]).await, [FROZEN, COUNTED]);
        assert_eq!(site.value(&board, "a").await, exact(2));
        let batch = Batch { increments: vec![plus("a", 1)], return_scores: true };
        assert_eq!(site.store.add(&board, batch).await.unwrap().outcomes, [FROZEN]);
        set(&site, &board, "a", UNFREEZE).await;
        site.count(&board, vec![plus("a", 1)]).await;
        assert_eq!(site.value(&board, "a").await, exact(3));
    }
}
