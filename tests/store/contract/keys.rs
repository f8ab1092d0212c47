//! Tests of boards that have a ranking for each key.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rolltop::board::{Board, BoardTrack, Change, Definition, RankingKey, Subject, Value};
use rolltop::store::{Batch, Increment, Outcome, Rejection, SlotQuery, SlotRange, Store, TextRange};

use crate::given::{With, definition, name, new_board, plus, seen, subject, t};
use crate::oracle::Oracle;
use crate::site::{COUNTED, DUPLICATE, Kind, START, Site, audit_through, plain, retire_through};

/// Every metric.
const METRICS: [&str; 8] = [
    "COUNT(3h, e, s BY k)",
    "SUM(3h, e, v, s BY k)",
    "AVG(3h, e, v, s BY k)",
    "MIN(3h, e, v, s BY k)",
    "MAX(3h, e, v, s BY k)",
    "LAST(3h, e, v, s BY k)",
    "COUNT_DISTINCT(3h, e, s BY k, c)",
    "APPROX_COUNT_DISTINCT(3h, e, s BY k, c)",
];

const TOO_MANY: Outcome = Outcome::Rejected(Rejection::TooManyKeys);

fn key(text: &str) -> RankingKey {
    RankingKey::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) trait InKey {
    /// Returns the same item in the ranking of a key.
    fn by(self, text: &str) -> Self;
}

impl InKey for Increment {
    fn by(self, text: &str) -> Self {
        Increment { subject: in_key(self.subject.as_str(), text), ..self }
    }
}

fn in_key(who: &str, text: &str) -> Subject {
    subject(who).in_ranking(Some(&key(text)))
}

fn of(board: &Arc<Board>, text: &str) -> BoardTrack {
    board.main().of_key(Some(key(text)))
}

/// Returns all keys, read in pages of two.
async fn keys(site: &Site, track: &BoardTrack) -> Vec<String> {
    let mut found: Vec<RankingKey> = Vec::new();
    loop {
        let page = site
            .other
            .keys(track, TextRange { after: found.last().map(RankingKey::as_str), ..TextRange::default() }, 2)
            .await
            .unwrap();
        let is_last = page.keys.len() < 2;
        found.extend(page.keys);
        if is_last {
            assert_eq!(page.total, found.len() as u64);
            let status = site.store.status(track).await.unwrap();
            assert_eq!(status.keys, Some(page.total));
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            for prefix in
                found.iter().map(|key| &key[..key.chars().next().map_or(0, char::len_utf8)]).chain(["k", "k1", "~"])
            {
                for after in [None, Some(key("\u{1f600}")), Some(key(" ")), found.first().map(|first| key(first))] {
                    let range = TextRange { prefix, after: after.as_ref().map(RankingKey::as_str) };
                    let some: Vec<String> =
                        site.other.keys(track, range, 50).await.unwrap().keys.iter().map(ToString::to_string).collect();
                    let is_after = |key: &String| after.as_ref().is_none_or(|after| key.as_str() > after.as_str());
                    let expected: Vec<&String> =
                        found.iter().filter(|key| key.starts_with(prefix) && is_after(key)).take(50).collect();
                    assert_eq!(some.iter().collect::<Vec<_>>(), expected, "{prefix:?} after {after:?}");
                }
            }
            return found;
        }
    }
}

fn line(rank: u64, who: &str, score: i64) -> (u64, String, i64) {
    (rank, who.to_owned(), score)
}

pub async fn each_key_has_a_ranking_of_its_own(site: Site) {
    let board = site.board("COUNT(3h, like, post BY community)", "1h").await;
    let items = vec![
        plus("a", 3).by("rust"),
        plus("b", 5).by("rust"),
        plus("c", 3).by("rust"),
        plus("a", 9).by("art"),
        plus("a", 1).by("art").id("x"),
        plus("a", 1).by("rust").id("x"),
        plus("a", 1).by("rust").id("x"),
    ];
    let outcomes = site.add(&board, items).await;
    assert_eq!(outcomes, [COUNTED, COUNTED, COUNTED, COUNTED, COUNTED, COUNTED, DUPLICATE]);
    let rust = of(&board, "rust");
    assert_eq!(site.ranking(&rust).await, [line(1, "b", 5), line(2, "a", 4), line(3, "c", 3)]);
    assert_eq!(site.ranking(&of(&board, "art")).await, [line(1, "a", 10)]);
    assert_eq!(site.value(&rust, "a").await, site.newest(&rust, "a", 3).await);
    let standing = site.store.standing(&rust, &subject("c")).await.unwrap();
    assert_eq!((standing.rank, standing.total, standing.better), (Some(3), 3, 2));
    let around = site.other.neighbors(&rust, &subject("a"), 1).await.unwrap();
    let lines: Vec<_> = around.items.into_iter().map(plain).collect();
    assert_eq!(lines, [line(1, "b", 5), line(2, "a", 4), line(3, "c", 3)]);
    let found = site.store.lookup(&of(&board, "art"), &[subject("a"), subject("b")], true).await.unwrap();
    assert_eq!((found.total, found.ranks), (1, vec![Some(1), None]));
    assert_eq!(keys(&site, &board.main()).await, ["art", "rust"]);
    assert_eq!(site.store.status(&board.main()).await.unwrap().total, Some(4));
    // A page of one key right after the same page of another one, without a write in between.
    for _ in 0..2 {
        for (key, first) in [("rust", "b"), ("art", "a")] {
            let page = site.store.page(&of(&board, key), 0, 1).await.unwrap();
            assert_eq!(page.items[0].subject.as_str(), first, "{key}");
        }
    }
}

pub async fn a_read_names_a_key_and_an_unknown_one_is_empty(site: Site) {
    let board = site.board("COUNT(3h, like, post BY community)", "1h").await;
    site.count(&board, vec![plus("a", 3).by("rust")]).await;
    let unknown = of(&board, "unknown");
    assert_eq!(site.ranking(&unknown).await, []);
    assert_eq!(site.store.neighbors(&unknown, &subject("a"), 3).await.unwrap().items.len(), 0);
    let standing = site.store.standing(&unknown, &subject("a")).await.unwrap();
    assert_eq!((standing.score, standing.rank, standing.total), (Some(Value::ZERO), None, 0));
    let none = board.main();
    assert!(site.store.page(&none, 0, 1).await.is_err());
    assert!(site.store.neighbors(&none, &subject("a"), 1).await.is_err());
    assert!(site.store.lookup(&none, &[subject("a")], true).await.is_err());
    assert!(site.store.standing(&none, &subject("a")).await.is_err());
    assert!(site.store.count(&none, &subject("a"), SlotRange::Slots(1)).await.is_err());
}

pub async fn a_key_without_ranked_subjects_is_gone(site: Site) {
    let board = site.board("COUNT(3h, like, post BY community)", "1h").await;
    let eight = "2026-01-01T08:00:00Z";
    let items = vec![plus("a", 1).by("early").at(eight), plus("b", 2).by("late"), plus("c", 1).by("removed")];
    site.count(&board, items).await;
    assert_eq!(keys(&site, &board.main()).await, ["early", "late", "removed"]);
    let removal = site.store.remove(&board, &in_key("c", "removed")).await.unwrap();
    assert_eq!((removal.score, removal.live_slots), (Some(Value::Exact(rolltop::board::Amount(1))), 1));
    assert_eq!(keys(&site, &board.main()).await, ["early", "late"]);
    // Cancelled, but with data.
    site.count(&board, vec![plus("d", 1).by("zero"), plus("d", -1).by("zero").at(eight)]).await;
    assert_eq!(keys(&site, &board.main()).await, ["early", "late"]);
    site.clock("2026-01-01T11:00:00Z").await;
    site.retire(&board).await;
    // What was cancelled has left the window.
    assert_eq!(keys(&site, &board.main()).await, ["late", "zero"]);
    assert_eq!(site.audit(&board).await, 2);
    // Everything expires at once.
    site.clock("2026-01-02T11:00:00Z").await;
    assert_eq!(keys(&site, &board.main()).await, Vec::<String>::new());
    site.count(&board, vec![plus("b", 7).by("late")]).await;
    assert_eq!(site.ranking(&of(&board, "late")).await, [line(1, "b", 7)]);
    site.retire(&board).await;
    assert_eq!(keys(&site, &board.main()).await, ["late"]);
    assert_eq!((site.audit(&board).await, site.store.status(&board.main()).await.unwrap().total), (1, Some(1)));
}

/// Returns whether boards have parts, which together allow somewhat more keys.
fn allows_more(site: &Site) -> bool {
    site.kind.parts() > 1
}

pub async fn new_keys_are_refused_beyond_max_keys(site: Site) {
    if allows_more(&site) {
        return;
    }
    let limited = Definition { max_keys: Some(3), ..definition("AVG(3h, sale, price, item BY shop)", "1h") };
    let board = site.define("limited", &Definition { min_samples: 2, ..limited }).await;
    // The second measurement of an item ranks it.
    let twice = |who: &str, shop: &str| vec![plus(who, 4).by(shop), plus(who, 6).by(shop)];
    for shop in ["a", "b", "c"] {
        site.count(&board, twice("x", shop)).await;
    }
    let outcomes = site.add(&board, twice("x", "d")).await;
    assert_eq!(outcomes, [TOO_MANY, TOO_MANY]);
    site.count(&board, twice("y", "b")).await;
    assert_eq!(keys(&site, &board.main()).await, ["a", "b", "c"]);
    site.store.remove(&board, &in_key("x", "a")).await.unwrap();
    site.count(&board, twice("x", "d")).await;
    assert_eq!(keys(&site, &board.main()).await, ["b", "c", "d"]);
    assert_eq!(site.add(&board, twice("x", "a")).await, [TOO_MANY, TOO_MANY]);
    // An id of an item that was refused may come again.
    let item = || vec![plus("x", 1).by("a").id("i")];
    assert_eq!(site.add(&board, item()).await, [TOO_MANY]);
    site.store.remove(&board, &in_key("x", "d")).await.unwrap();
    assert_eq!(site.add(&board, item()).await, [COUNTED]);
}

pub async fn keys_of_one_batch_are_counted_one_by_one(site: Site) {
    if allows_more(&site) {
        return;
    }
    let limited = Definition { max_keys: Some(10), ..definition("COUNT(3h, like, post BY community)", "1h") };
    let board = site.define("limited", &limited).await;
    let items = (0..40).map(|nth| plus(&format!("p{}", nth / 20), 1).by(&format!("k{:02}", nth % 20))).collect();
    let outcomes = site.add(&board, items).await;
    let (counted, refused) = outcomes.split_at(10);
    assert!(counted.iter().all(|outcome| *outcome == COUNTED), "{outcomes:?}");
    assert!(refused[..10].iter().all(|outcome| *outcome == TOO_MANY), "{outcomes:?}");
    assert!(refused[10..20].iter().all(|outcome| *outcome == COUNTED), "{outcomes:?}");
    assert!(refused[20..].iter().all(|outcome| *outcome == TOO_MANY), "{outcomes:?}");
    assert_eq!(keys(&site, &board.main()).await.len(), 10);
}

pub async fn keys_and_names_of_every_form_are_distinct(site: Site) {
    let board = site.board("COUNT_DISTINCT(3h, like, post BY community, user)", "1h").await;
    let long = "é".repeat(256);
    let texts = ["a", "a}", "{a}", "*", "[a-z]?", "\\", ":", "a:b", "[\"a\",1]", " ", "%00", "日本語", &long];
    for (nth, text) in texts.iter().enumerate() {
        let items = texts[..=nth].iter().map(|who| seen(who, "u").by(text)).collect();
        site.count(&board, items).await;
    }
    let mut sorted: Vec<&str> = texts.to_vec();
    sorted.sort_unstable();
    assert_eq!(keys(&site, &board.main()).await, sorted);
    for (nth, text) in texts.iter().enumerate() {
        let track = of(&board, text);
        let found: BTreeSet<String> = site.ranking(&track).await.into_iter().map(|(_, who, _)| who).collect();
        assert_eq!(found, texts[..=nth].iter().map(ToString::to_string).collect(), "{text}");
        assert_eq!(site.values(&track, texts[0]).await.len(), 1);
    }
    assert_eq!(site.audit(&board).await, (1..=texts.len() as u64).sum::<u64>());
}

/// While an expired slot retires, reads of small rankings have nothing of it, and those of others say so.
pub async fn a_small_ranking_is_exact_while_a_slot_retires(site: Site) {
    let early = "2026-01-01T07:10:00Z";
    let mut boards = Vec::new();
    for (nth, metric) in METRICS.into_iter().enumerate() {
        let board = site.define(&format!("b{nth}"), &definition(metric, "1h")).await;
        let of_values = metric.contains("DISTINCT");
        let item = |who: &str, n: i64| if of_values { seen(who, &format!("c{n}")) } else { plus(who, n) };
        let mut items: Vec<Increment> = Vec::new();
        for small in 0..6 {
            // `both` keeps what it has in the later slot, and `early` has no other.
            let own = [item("both", 9).at(early), item("both", 4), item("early", 7).at(early)];
            items.extend(own.map(|item| item.by(&format!("small{small}"))));
        }
        items.extend((0..400).map(|nth| item(&format!("s{nth}"), 5).by("large").at(early)));
        site.count(&board, items).await;
        boards.push((board, if of_values { 1 } else { 4 }));
    }
    site.clock("2026-01-01T10:00:00Z").await;
    for (board, left) in boards {
        let metric = board.main().metric().to_string();
        // On the oracle nothing has to be subtracted.
        if !matches!(site.kind, Kind::Oracle) {
            let large = site.store.page(&of(&board, "large"), 0, 1).await.unwrap();
            assert_eq!((large.frame.retiring, large.total), (1, 400), "{metric}");
        }
        for small in 0..6 {
            // The second half is read after a step.
            if small == 3 {
                site.other.retire_step(&board.main()).await.unwrap();
            }
            let track = of(&board, &format!("small{small}"));
            let page = site.store.page(&track, 0, 10).await.unwrap();
            assert_eq!(page.frame.retiring, 0, "{metric}");
            let score = |value: &Value| match value {
                Value::Exact(amount) => amount.0.to_string(),
                Value::Real(real) => real.to_string(),
            };
            let lines: Vec<_> = page.items.iter().map(|line| (line.subject.as_str(), score(&line.score))).collect();
            assert_eq!(lines, [("both", left.to_string())], "{metric}, small{small}");
            let standing = site.other.standing(&track, &subject("early")).await.unwrap();
            assert_eq!((standing.rank, standing.total, standing.frame.retiring), (None, 1, 0), "{metric}");
            let found = site.other.lookup(&track, &[subject("both"), subject("early")], true).await.unwrap();
            assert_eq!((found.ranks, found.frame.retiring), (vec![Some(1), None], 0), "{metric}");
            let around = site.store.neighbors(&track, &subject("both"), 2).await.unwrap();
            assert_eq!((around.total, around.frame.retiring), (1, 0), "{metric}");
        }
        retire_through(&site.store, &board.main()).await;
        assert_eq!(site.store.page(&of(&board, "large"), 0, 1).await.unwrap().total, 0, "{metric}");
        let status = site.store.status(&board.main()).await.unwrap();
        assert_eq!((status.total, status.keys, status.frame.retiring), (Some(6), Some(6), 0), "{metric}");
        let (_, differences) = audit_through(&[site.store.clone(), site.other.clone()], &board.main()).await;
        assert_eq!(differences, [], "{metric}");
    }
}

/// A subject whose cells cancel each other is in no ranking until the older ones have expired.
pub async fn a_cancelled_subject_is_not_missed_while_a_slot_retires(site: Site) {
    let board = site.board("COUNT(3h, e, s BY k)", "1h").await;
    let early = "2026-01-01T07:10:00Z";
    site.count(&board, vec![plus("zero", 1).by("small").at(early), plus("zero", -1).by("small")]).await;
    site.count(&board, (0..400).map(|nth| plus(&format!("s{nth}"), 1).by("large").at(early)).collect()).await;
    site.clock("2026-01-01T10:00:00Z").await;
    let small = of(&board, "small");
    let page = site.store.page(&small, 0, 9).await.unwrap();
    let lines: Vec<_> = page.items.into_iter().map(plain).collect();
    assert!(page.frame.retiring == 1 || lines == [line(1, "zero", -1)], "{lines:?}");
    site.retire(&board).await;
    assert_eq!(site.ranking(&small).await, [line(1, "zero", -1)]);
}

/// Every metric, with windows of several lengths, on a site and on the oracle: random items of some keys, removals,
/// and rollovers.
pub async fn every_metric_ranks_each_key_as_the_oracle_does(site: Site) {
    const KEYS: [&str; 4] = ["k1", "k2", "k3", "k4"];
    let seed = crate::drawn::seed();
    let mut rng = StdRng::seed_from_u64(seed);
    let oracle: Arc<dyn Store> = Arc::new(Oracle::new(rolltop::store::ClockMode::Simulated(t(START))));
    let mut boards = Vec::new();
    for (nth, metric) in METRICS.into_iter().enumerate() {
        let windows = if nth % 2 == 0 { vec!["6h/2h".parse().unwrap(), "all".parse().unwrap()] } else { Vec::new() };
        let order = if nth % 3 == 0 { rolltop::board::Order::Asc } else { rolltop::board::Order::Desc };
        let definition = Definition { windows, order, ..definition(metric, "1h") };
        let ours = site.define(&format!("m{nth}"), &definition).await;
        let of_oracle = new_board(&name(&format!("m{nth}")), &definition);
        let rolltop::store::Defined::Created(theirs) = oracle.define(of_oracle).await.unwrap() else { unreachable!() };
        boards.push((ours, theirs));
    }
    let mut now = t(START);
    for round in 0..12 {
        for (ours, theirs) in &boards {
            let items: Vec<Increment> = (0..30)
                .map(|_| {
                    let who = format!("s{}", rng.random_range(0..6));
                    let item = match ours.edition().takes(&Change::Amount(rolltop::board::Amount(1))) {
                        true => plus(&who, rng.random_range(-3..=5)),
                        false => seen(&who, &format!("c{}", rng.random_range(0..5))),
                    };
                    item.by(KEYS.choose(&mut rng).unwrap()).at_time(now.plus_millis(-rng.random_range(0..7_200_000)))
                })
                .collect();
            let batch = |increments| Batch { increments, return_scores: true };
            let [found, expected] = [
                site.store.add(ours, batch(items.clone())).await.unwrap(),
                oracle.add(theirs, batch(items)).await.unwrap(),
            ];
            assert_eq!(found.outcomes, expected.outcomes, "seed {seed}, round {round}");
            if rng.random_bool(0.3) {
                let who = in_key(&format!("s{}", rng.random_range(0..6)), KEYS.choose(&mut rng).unwrap());
                let removed = site.other.remove(ours, &who).await.unwrap();
                assert_eq!(removed.score, oracle.remove(theirs, &who).await.unwrap().score, "seed {seed}");
            }
        }
        now = now.plus_millis(if round == 8 { 86_400_000 } else { rng.random_range(0..5_400_000) });
        site.clock_at(now).await;
        oracle.set_clock(now).await.unwrap();
        for (ours, theirs) in &boards {
            for (ours, theirs) in ours.each_track().zip(theirs.each_track()) {
                let in_key = |text| [&ours, &theirs].map(|track| track.clone().of_key(Some(key(text))));
                // What a read says is not retiring is exact, also before the rollover.
                for text in KEYS {
                    let tracks = in_key(text);
                    let page = site.store.page(&tracks[0], 0, 100).await.unwrap();
                    if page.frame.retiring == 0 {
                        assert_same_ranking(&site, &oracle, &tracks, &format!("seed {seed}, {text}, retiring")).await;
                    }
                }
                retire_through(&site.store, &ours).await;
                assert_eq!(
                    site.store.keys(&ours, TextRange::default(), 100).await.unwrap().keys,
                    oracle.keys(&theirs, TextRange::default(), 100).await.unwrap().keys,
                    "seed {seed}, round {round}, {}",
                    ours.metric()
                );
                let [found, expected] =
                    [site.other.status(&ours).await.unwrap(), oracle.status(&theirs).await.unwrap()];
                assert_eq!((found.total, found.keys, found.slots), (expected.total, expected.keys, expected.slots));
                for text in KEYS.into_iter().chain(["k5"]) {
                    assert_same_ranking(&site, &oracle, &in_key(text), &format!("seed {seed}, {text}")).await;
                }
                let (_, differences) = audit_through(&[site.store.clone(), site.other.clone()], &ours).await;
                assert_eq!(differences, [], "seed {seed}");
            }
        }
    }
}

async fn assert_same_ranking(site: &Site, oracle: &Arc<dyn Store>, [ours, theirs]: &[BoardTrack; 2], about: &str) {
    let (found, expected) = (site.other.page(ours, 0, 100).await.unwrap(), oracle.page(theirs, 0, 100).await.unwrap());
    assert_eq!((found.total, &found.items[..]), (expected.total, &expected.items[..]), "{about}, {}", ours.metric());
    for who in ["s0", "s3"].map(subject) {
        let [found, expected] =
            [site.store.standing(ours, &who).await.unwrap(), oracle.standing(theirs, &who).await.unwrap()];
        let of = |standing: rolltop::store::Standing| {
            (standing.score, standing.rank.map(|rank| (rank, standing.better)), standing.slots)
        };
        assert_eq!(of(found), of(expected), "{about}, {who}, {}", ours.metric());
        let query = |track: &BoardTrack| {
            vec![SlotQuery { track: track.clone(), subject: who.clone(), range: SlotRange::Slots(1), as_of: None }]
        };
        let [found, expected] = [site.store.read(query(ours)).await, oracle.read(query(theirs)).await]
            .map(|mut contents| contents.pop().unwrap().unwrap().aggregates);
        assert_eq!(found, expected, "{about}, {who}, {}", ours.metric());
    }
}
