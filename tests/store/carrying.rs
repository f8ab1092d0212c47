//! Walks over contents, and imports of what they return.

use std::sync::Arc;

use rand::Rng;
use rand::rngs::StdRng;
use rolltop::board::{Board, BoardTrack, Change, Definition, FurtherWindow, Kind as Metric, Subject, Timestamp};
use rolltop::store::{
    Content, ContentsCursor, ImportBegun, ImportId, Increment, Merged, Piece, SlotQuery, SlotRange, Store,
};

use crate::given::{With, definition, plus, seen, subject, unranked};
use crate::site::{Kind, OnRedis, Site, audit_through, retire_through};

pub type Contents = Vec<(Subject, Content)>;

/// More steps than any walk of a test needs.
const MAX_STEPS: usize = 5_000;

/// A metric of each kind.
pub const METRICS: [&str; 8] = [
    "COUNT({w}, like, post)",
    "SUM({w}, sale, amount, seller)",
    "AVG({w}, sale, amount, seller)",
    "MIN({w}, sale, amount, seller)",
    "MAX({w}, sale, amount, seller)",
    "LAST({w}, rating, elo, player)",
    "COUNT_DISTINCT({w}, login, device, user)",
    "APPROX_COUNT_DISTINCT({w}, login, device, user)",
];

/// Returns the boards that a metric can have: ranked and not, with kept slots, several windows, over all time.
pub fn definitions_of(metric: &str) -> Vec<Definition> {
    let over = |window: &str| metric.replace("{w}", window);
    let ranked = definition(&over("3h"), "1h");
    let mut without_ranking = unranked(&over("3h"), "1h");
    let further = |text: &str| text.parse::<FurtherWindow>().unwrap();
    let several = Definition { windows: vec![further("1d/6h"), further("all")], ..ranked.clone() };
    let mut total = Definition::without_slots(over("all").parse().unwrap());
    let mut all = vec![ranked.clone(), several];
    if ranked.kind() == Metric::Distinct {
        all.push(Definition { ranked: false, ..total.clone() });
    } else {
        without_ranking.keep = Some("5h".parse().unwrap());
        (total.slot, total.keep) = ("1h".parse().ok(), "3h".parse().ok());
    }
    all.extend([without_ranking, total]);
    if ranked.kind() == Metric::Sum {
        all.iter_mut().for_each(|definition| definition.decimals = rolltop::board::Decimals::new(2).unwrap());
    }
    all
}

pub fn every_definition() -> Vec<Definition> {
    METRICS.into_iter().flat_map(definitions_of).collect()
}

/// Returns [some of](some_of) every definition.
pub fn definitions(site: &Site) -> Vec<Definition> {
    some_of(site, every_definition())
}

/// Draws items of the form that the board takes, no two of them with the same time. They happened in the six hours
/// before `now`.
pub fn history(rng: &mut StdRng, board: &Board, items: usize, now: Timestamp) -> Vec<Increment> {
    let mut history: Vec<Increment> = Vec::with_capacity(items);
    for nth in 0..items {
        let millis = rng.random_range(0..6 * 3_600) * 1_000 + (nth % 1_000) as i64;
        let at = now.plus_millis(-millis);
        if board.edition().takes_retractions() && !history.is_empty() && rng.random_bool(0.2) {
            let reversed: Increment = history[rng.random_range(0..nth)].clone();
            let later = rng.random_range(0..2) * 1_000;
            let at = match board.kind() {
                Metric::Distinct => reversed.at.map(|at| at.plus_millis(later).min(now)),
                _ => reversed.at,
            };
            history.push(Increment { retract: true, at, ..reversed });
            continue;
        }
        let who = format!("s{}", rng.random_range(0..25));
        let item = match board.kind() {
            Metric::Distinct | Metric::Sketch => seen(&who, &format!("v{}", rng.random_range(0..12))),
            _ => plus(&who, rng.random_range(-300..=500)),
        };
        history.push(item.at_time(at));
    }
    history
}

/// Returns what must be different of two contents of a subject.
fn place(content: &Content) -> (u8, Timestamp, &str) {
    match content {
        Content::Cell { slot, .. } => (0, *slot, ""),
        Content::Value { value, .. } => (1, Timestamp::EPOCH, value.as_str()),
        Content::Dropped { .. } => (2, Timestamp::EPOCH, ""),
        Content::Counter { .. } => (3, Timestamp::EPOCH, ""),
    }
}

/// Sorts contents, and checks that none of them is there twice.
pub fn once(mut contents: Contents) -> Result<Contents, String> {
    contents.sort_by(|(one, this), (other, that)| (one, place(this)).cmp(&(other, place(that))));
    let twice = contents.windows(2).find(|pair| pair[0].0 == pair[1].0 && place(&pair[0].1) == place(&pair[1].1));
    match twice {
        Some(pair) => Err(format!("twice in a walk: {pair:?}")),
        None => Ok(contents),
    }
}

/// Walks over all contents of a track of a quiet board, each step through the next store. Returns them in order.
pub async fn walk(stores: &[Arc<dyn Store>], track: &BoardTrack) -> Result<Contents, String> {
    let (mut contents, mut cursor) = (Vec::new(), ContentsCursor::default());
    for store in stores.iter().cycle().take(MAX_STEPS) {
        let step = store.contents_step(track, cursor).await.map_err(|error| format!("{error:?}"))?;
        contents.extend(step.contents);
        match step.next {
            Some(next) => cursor = next,
            None => return once(contents),
        }
    }
    Err(format!("the walk is not done after {MAX_STEPS} steps"))
}

/// Returns the cells of everything that a track has, as a fill names them.
pub async fn cells_of(stores: &[Arc<dyn Store>], from: &BoardTrack) -> Result<Vec<(Subject, Timestamp)>, String> {
    let cell = |(subject, content)| match content {
        Content::Cell { slot, .. } => Some((subject, slot)),
        Content::Value { at, .. } => Some((subject, from.calendar().slot_of(at))),
        Content::Dropped { .. } | Content::Counter { .. } => None,
    };
    let mut cells: Vec<_> = walk(stores, from).await?.into_iter().filter_map(cell).collect();
    cells.dedup();
    Ok(cells)
}

/// Divides contents into pieces of this size. Numbers of items belong to the first of them.
pub fn pieces(contents: &[(Subject, Content)], events: &[(Timestamp, u64)], size: usize) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = contents
        .chunks(size)
        .zip(1..)
        .map(|(contents, number)| Piece { number, contents: contents.to_vec(), events: Vec::new() })
        .collect();
    if pieces.is_empty() {
        pieces.push(Piece { number: 1, contents: Vec::new(), events: Vec::new() });
    }
    pieces[0].events = events.to_vec();
    pieces
}

/// Returns the pieces of every track of a board.
pub async fn pieces_of(store: &Arc<dyn Store>, board: &Arc<Board>, size: usize) -> Vec<Vec<Piece>> {
    let mut all = Vec::new();
    for track in board.each_track() {
        let contents = walk(std::slice::from_ref(store), &track).await.unwrap();
        let events = store.status(&track).await.unwrap().events;
        all.push(pieces(&contents, &events, size));
    }
    all
}

/// Merges the pieces of every track into a board, each through the next instance.
pub async fn import(site: &Site, board: &Arc<Board>, id: ImportId, of_tracks: &[Vec<Piece>]) -> Merged {
    let through = vec![0; of_tracks.len()];
    assert_eq!(site.store.begin_import(board, id).await.unwrap(), ImportBegun::Open { through });
    let mut all = Merged::default();
    for (track, pieces) in board.each_track().zip(of_tracks) {
        for (nth, piece) in pieces.iter().enumerate() {
            let store = [&site.store, &site.other][nth % 2];
            let merged = store.merge(&track, id, piece).await.unwrap();
            assert_eq!(sum(merged), piece.contents.len() as u64, "{merged:?}");
            all.add(merged);
        }
    }
    assert!(site.other.end_import(board, id).await.unwrap());
    all
}

/// Returns the number of contents that a result is about.
pub fn sum(merged: Merged) -> u64 {
    merged.merged + merged.expired + merged.refused + merged.repeated
}

/// Returns everything that can be read about a board once nothing is retiring, as text, each track and subject on a
/// line of its own.
pub async fn all_of(site: &Site, board: &Arc<Board>, subjects: &[Subject]) -> Vec<String> {
    let mut lines = Vec::new();
    for track in board.each_track() {
        lines.extend(all_of_track(site, &track, subjects).await);
    }
    lines
}

/// Returns everything that can be read about a track once nothing is retiring.
pub async fn all_of_track(site: &Site, track: &BoardTrack, subjects: &[Subject]) -> Vec<String> {
    let mut lines = Vec::new();
    retire_through(&site.store, track).await;
    let (_, differences) = audit_through(&[site.store.clone(), site.other.clone()], track).await;
    assert_eq!(differences, []);
    let status = site.other.status(track).await.unwrap();
    lines.push(format!("{} {:?} {:?} {:?}", track.metric(), status.total, status.slots, status.events));
    if track.is_ranked() {
        lines.push(format!("{:?}", site.store.page(track, 0, 10_000).await.unwrap().items));
    }
    for who in subjects {
        let standing = site.other.standing(track, who).await.unwrap();
        let mut line = format!("{who} {:?} {:?} {}", standing.score, standing.rank, standing.capped);
        line += &format!(" {:?}", standing.slots);
        if track.kind() == Metric::Distinct {
            line += &format!(" {:?}", site.store.values(track, who, 0, 10_000).await.unwrap().items);
        } else if !track.is_ranked() && track.kept() > track.slots() {
            let now = site.store.now().await.unwrap();
            let head = track.window_at(now).head;
            let as_of = (0..track.kept() - track.slots()).fold(head, |at, _| track.calendar().previous(at));
            let range = SlotRange::Slots(track.slots());
            let query = SlotQuery { track: track.clone(), subject: who.clone(), range, as_of: Some(as_of) };
            line += &format!(" {:?}", site.store.read(vec![query]).await.pop().unwrap().unwrap().aggregates);
        }
        lines.push(line);
    }
    lines
}

/// Returns all of these on the oracle, the embedded store and one server. Returns one of each three, or nine, where a
/// board takes many keys on many servers: each kind of store is tested with each kind of board, and which is drawn.
pub fn some_of<T>(site: &Site, all: Vec<T>) -> Vec<T> {
    let one_of = match &site.kind {
        Kind::Redis(OnRedis { is_cluster, .. }) => {
            let cluster = if *is_cluster { 3 } else { 1 };
            let parts = if site.kind.parts() > 1 { 3 } else { 1 };
            all.len().min(cluster * parts).max(1)
        }
        _ => 1,
    };
    let first = crate::drawn::seed() % one_of as u64;
    all.into_iter().skip(first as usize).step_by(one_of).collect()
}

/// Checks that two boards have the same, and shows the first difference otherwise.
pub fn assert_same(found: &[String], expected: &[String], what: &dyn std::fmt::Display) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected, "{what}");
    }
    assert_eq!(found.len(), expected.len(), "{what}");
}

/// Returns the subjects of [`history`].
pub fn subjects() -> Vec<Subject> {
    (0..25).map(|nth| subject(&format!("s{nth}"))).collect()
}

/// Returns whether a board takes samples.
pub fn takes_samples(board: &Board) -> bool {
    board.edition().takes(&Change::Set { sum: rolltop::board::Amount(1), count: 1 })
}
