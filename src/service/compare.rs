//! The comparison of the two editions of a board, subject by subject.
//!
//! Both scores of a subject are read in one atomic step, so what differs there is a difference of the editions, and not
//! of the times at which they were read.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use futures_util::future::try_join;
use parking_lot::Mutex;

use super::{NextTo, Place, Result, Service, ServiceError, StoreError, WindowChoice};
use crate::access::{Caller, Scope};
use crate::board::{
    BoardName, BoardTrack, EditionRole, ModerationList, RankingKey, Scale, Subject, Timestamp, TrackId, Value,
    WindowLength,
};
use crate::store::{self, Compared, Content, ContentsCursor, PageStart, Ranked, TextRange};

/// The numbers of first lines whose overlap is reported.
const TOPS: [usize; 3] = [10, 100, 1_000];
/// The largest number of differences that are listed.
const LISTED: usize = 100;
/// The number of comparisons that an instance makes at the same time.
const AT_ONCE: usize = 2;
/// The largest number of subjects of an unranked board that is compared: they are all remembered, because a walk over
/// contents meets a subject several times.
const MAX_UNRANKED: usize = 2_000_000;
/// The number of keys that are read at once.
const KEYS: u32 = 1_000;
/// The number of attempts to compare subjects while expired slots are still being subtracted.
const ATTEMPTS: usize = 5;

/// The result of a comparison, so far.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The windows that are compared: that of the board and that of the successor.
    pub windows: [WindowLength; 2],
    pub scales: [Scale; 2],
    /// The store's times of the begin and the end. `None` while it runs, and if it failed.
    pub begun: Timestamp,
    pub ended: Option<Timestamp>,
    /// The error that ended it.
    pub failed: Option<String>,
    /// The number of subjects that both have, that only the board has, and that only the successor has.
    pub in_both: u64,
    pub only_board: u64,
    pub only_successor: u64,
    /// The number of subjects that both have, with different scores.
    pub different: u64,
    /// The first lines of both rankings. Empty on unranked boards, and on boards with keys, which have many rankings.
    pub tops: Vec<TopOverlap>,
    /// The first subjects that differ, each with the score on the board and in the successor.
    pub differences: Vec<(Subject, [Option<Value>; 2])>,
}

/// The first lines of the rankings of two editions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopOverlap {
    /// The number of lines, fewer if neither ranking has as many.
    pub lines: usize,
    /// The number of subjects that are among them in both.
    pub common: usize,
    /// The largest difference of the ranks of one of these.
    pub largest_change: u64,
}

/// The latest comparison of each successor, by its identity.
#[derive(Default)]
pub(super) struct Comparisons {
    known: Mutex<HashMap<TrackId, Arc<Mutex<Comparison>>>>,
}

impl Comparisons {
    pub(super) fn of(&self, successor: TrackId) -> Option<Comparison> {
        self.known.lock().get(&successor).map(|comparison| comparison.lock().clone())
    }

    /// Forgets the comparisons of all successors but these.
    pub(super) fn keep(&self, successors: &HashSet<TrackId>) {
        self.known.lock().retain(|successor, _| successors.contains(successor));
    }

    /// Begins a comparison. Returns `None` if one of this successor is running.
    fn begin(&self, board: &BoardName, successor: TrackId, new: Comparison) -> Result<Option<Arc<Mutex<Comparison>>>> {
        let mut known = self.known.lock();
        let is_running = |comparison: &Arc<Mutex<Comparison>>| {
            let comparison = comparison.lock();
            comparison.ended.is_none() && comparison.failed.is_none()
        };
        if known.get(&successor).is_some_and(is_running) {
            return Ok(None);
        }
        if known.values().filter(|comparison| is_running(comparison)).count() >= AT_ONCE {
            let detail = format!("this instance makes {AT_ONCE} comparisons already; wait until one of them has ended");
            return Err(ServiceError::EditionsRefused { board: board.clone(), detail });
        }
        let comparison = Arc::new(Mutex::new(new));
        known.insert(successor, comparison.clone());
        Ok(Some(comparison))
    }
}

impl Service {
    /// Begins a comparison of the windows of this length of a board and its successor, or of their main windows. It
    /// continues after the call; returns its state. If one is running, returns the state of that one.
    pub async fn compare(
        self: &Arc<Self>,
        caller: &Caller,
        name: &BoardName,
        length: Option<WindowLength>,
    ) -> Result<Comparison> {
        caller.require(Scope::Read)?;
        let of = Some(EditionRole::Next);
        let choice = |of: Option<EditionRole>| WindowChoice { of: of.into(), length, ..WindowChoice::default() };
        let successor = self.window_of_all_keys(caller, name, choice(of)).await?;
        let track = self.window_of_all_keys(caller, name, choice(None)).await?;
        if !Arc::ptr_eq(track.board(), successor.board()) {
            return Err(StoreError::BoardChanged.into());
        }
        let tracks = [track, successor];
        let new = Comparison {
            windows: [tracks[0].length(), tracks[1].length()],
            scales: [tracks[0].scale(), tracks[1].scale()],
            begun: self.store.now().await?,
            ended: None,
            failed: None,
            in_both: 0,
            only_board: 0,
            only_successor: 0,
            different: 0,
            tops: Vec::new(),
            differences: Vec::new(),
        };
        let id = tracks[1].edition().id();
        if let Some(comparison) = self.comparisons.begin(name, id, new)? {
            let service = self.clone();
            tokio::spawn(async move {
                let ended = match service.compare_all(&tracks, &comparison).await {
                    Ok(()) => service.store.now().await,
                    Err(error) => Err(error),
                };
                let mut comparison = comparison.lock();
                match ended {
                    Ok(at) => comparison.ended = Some(at),
                    Err(error) => comparison.failed = Some(error.to_string()),
                }
            });
        }
        self.comparisons.of(id).ok_or_else(|| StoreError::BoardChanged.into())
    }

    async fn compare_all(&self, tracks: &[BoardTrack; 2], comparison: &Mutex<Comparison>) -> store::Result<()> {
        if tracks.iter().all(|track| track.is_ranked() && !track.board().has_keys()) {
            comparison.lock().tops = self.tops(tracks).await?;
        }
        for (number, track) in tracks.iter().enumerate() {
            let mut walk = Walk::of(track);
            let mut next = self.next_subjects(track, &mut walk).await?;
            while let Some(subjects) = next {
                // The next ones are read while some are compared.
                let compare = async {
                    for subjects in subjects.chunks(Compared::MAX_SUBJECTS) {
                        let values = self.compare_settled(tracks, subjects).await?;
                        comparison.lock().add(number, subjects, values);
                    }
                    Ok(())
                };
                ((), next) = try_join(compare, self.next_subjects(track, &mut walk)).await?;
            }
        }
        Ok(())
    }

    /// Compares subjects at a time at which no expired slots are left to subtract: until then a score may contain parts
    /// of them.
    async fn compare_settled(
        &self,
        tracks: &[BoardTrack; 2],
        subjects: &[Subject],
    ) -> store::Result<Vec<[Option<Value>; 2]>> {
        let mut attempt = 1;
        loop {
            let Compared { frames, values } = self.store.compare([&tracks[0], &tracks[1]], subjects).await?;
            if frames.iter().all(|frame| frame.retiring == 0) {
                return Ok(values);
            }
            if attempt == ATTEMPTS {
                return Err(busy("expired slots are still being subtracted from the scores; compare again later"));
            }
            for (track, frame) in tracks.iter().zip(frames) {
                if frame.retiring > 0 {
                    self.rollover.run(track).await?;
                }
            }
            attempt += 1;
        }
    }

    async fn tops(&self, tracks: &[BoardTrack; 2]) -> store::Result<Vec<TopOverlap>> {
        let most = u32::try_from(TOPS[TOPS.len() - 1]).unwrap_or(u32::MAX);
        let board = self.store.page(&tracks[0], 0, most).await?.items;
        let successor = self.store.page(&tracks[1], 0, most).await?.items;
        Ok(TOPS.map(|lines| overlap(&board, &successor, lines)).into())
    }

    /// Returns the next subjects of a walk over a track, or `None` at its end.
    async fn next_subjects(&self, track: &BoardTrack, walk: &mut Walk) -> store::Result<Option<Vec<Subject>>> {
        match std::mem::replace(walk, Walk::Ended) {
            Walk::Ended => Ok(None),
            Walk::Ranking(start) => {
                let page = self.store.page_from(track, &start, Compared::MAX_SUBJECTS as u32).await?;
                *walk = match page.items.last() {
                    Some(last) => Walk::Ranking(PageStart::Place(NextTo::after(Place::of(last)))),
                    None => Walk::Hidden { after: None },
                };
                Ok(Some(page.items.iter().map(|line| line.subject.clone()).collect()))
            }
            Walk::Keys { after, mut rest, start } => {
                let Some(key) = rest.pop_front() else {
                    let range = TextRange { after: after.as_ref().map(RankingKey::as_str), ..TextRange::default() };
                    let keys = self.store.keys(track, range, KEYS).await?.keys;
                    *walk = match keys.last().cloned() {
                        Some(last) => Walk::Keys { after: Some(last), rest: keys.into(), start },
                        None => Walk::Hidden { after: None },
                    };
                    return Ok(Some(Vec::new()));
                };
                let track = track.clone().of_key(Some(key.clone()));
                let page = self.store.page_from(&track, &start, Compared::MAX_SUBJECTS as u32).await?;
                let start = match page.items.last() {
                    Some(last) if page.has_next() => {
                        rest.push_front(key);
                        PageStart::Place(NextTo::after(Place::of(last)))
                    }
                    _ => PageStart::Offset(0),
                };
                *walk = Walk::Keys { after, rest, start };
                Ok(Some(page.items.iter().map(|line| track.stored(&line.subject).into_owned()).collect()))
            }
            Walk::Hidden { after } => {
                let range = TextRange { after: after.as_ref().map(Subject::as_str), ..TextRange::default() };
                let most = Compared::MAX_SUBJECTS as u32;
                let hidden = self.store.moderated(track.board(), ModerationList::Hidden, range, most).await?.items;
                let subjects: Vec<Subject> = hidden.into_iter().map(|(subject, _)| subject).collect();
                let last = subjects.last().cloned();
                *walk = last.map_or(Walk::Ended, |last| Walk::Hidden { after: Some(last) });
                Ok(Some(subjects))
            }
            Walk::Contents(cursor, mut seen) => {
                let step = self.store.contents_step(track, cursor).await?;
                let is_new = |(subject, _): (Subject, Content)| seen.insert(subject.clone()).then_some(subject);
                let subjects = step.contents.into_iter().filter_map(is_new).collect();
                if seen.len() > MAX_UNRANKED {
                    return Err(busy("an unranked board of so many subjects cannot be compared"));
                }
                if let Some(next) = step.next {
                    *walk = Walk::Contents(next, seen);
                }
                Ok(Some(subjects))
            }
        }
    }
}

fn busy(detail: &str) -> StoreError {
    StoreError::EditionsBusy { detail: detail.to_owned() }
}

/// A walk over the subjects of a track.
enum Walk {
    /// Over a ranking, in its order. A subject that moves meanwhile may be met twice or not at all.
    Ranking(PageStart),
    /// Over the rankings of all keys: after which key more are read, those that are left of the ones read before, and
    /// where the ranking of the first of these continues.
    Keys {
        after: Option<RankingKey>,
        rest: VecDeque<RankingKey>,
        start: PageStart,
    },
    /// Over the hidden subjects, which no ranking has, in the order of their bytes.
    Hidden {
        after: Option<Subject>,
    },
    /// Over contents, with the subjects so far, because a subject has several of them.
    Contents(ContentsCursor, HashSet<Subject>),
    Ended,
}

impl Walk {
    fn of(track: &BoardTrack) -> Self {
        let start = PageStart::Offset(0);
        match (track.is_ranked(), track.board().has_keys()) {
            (true, false) => Walk::Ranking(start),
            (true, true) => Walk::Keys { after: None, rest: VecDeque::new(), start },
            (false, _) => Walk::Contents(ContentsCursor::default(), HashSet::new()),
        }
    }
}

impl Comparison {
    /// Adds subjects that the board, 0, or the successor, 1, has. Those of the successor that the board has too were
    /// added before.
    fn add(&mut self, walked: usize, subjects: &[Subject], values: Vec<[Option<Value>; 2]>) {
        for (subject, values) in subjects.iter().zip(values) {
            let is_different = match values {
                [Some(_), Some(_)] if walked == 1 => continue,
                [Some(board), Some(successor)] => {
                    self.in_both += 1;
                    let is_different = !is_same((board, self.scales[0]), (successor, self.scales[1]));
                    self.different += u64::from(is_different);
                    is_different
                }
                [Some(_), None] if walked == 0 => {
                    self.only_board += 1;
                    true
                }
                [None, Some(_)] if walked == 1 => {
                    self.only_successor += 1;
                    true
                }
                // It has left, or has come, since it was met.
                _ => continue,
            };
            if is_different && self.differences.len() < LISTED {
                self.differences.push((subject.clone(), values));
            }
        }
    }
}

/// Returns whether two values are the same number, each in its own unit, with the same second key if both have one.
pub(super) fn is_same((a, of_a): (Value, Scale), (b, of_b): (Value, Scale)) -> bool {
    match (a, b) {
        (Value::Exact(a), Value::Exact(b)) => {
            let power = |scale: Scale| 10_i128.pow(u32::from(scale.decimals.digits()));
            let has_same_key = !of_a.has_same_ties_as(of_b) || of_a.key(a) == of_b.key(b);
            has_same_key && i128::from(of_a.amount(a).0) * power(of_b) == i128::from(of_b.amount(b).0) * power(of_a)
        }
        (a, b) if of_a == of_b => a == b,
        (a, b) => {
            let number =
                |value: Value, scale: Scale| value.as_units(scale) / 10_f64.powi(i32::from(scale.decimals.digits()));
            number(a, of_a) == number(b, of_b)
        }
    }
}

fn overlap(board: &[Ranked], successor: &[Ranked], lines: usize) -> TopOverlap {
    let of_board: HashMap<&Subject, u64> = board.iter().take(lines).map(|line| (&line.subject, line.rank)).collect();
    let change = |line: &Ranked| Some(of_board.get(&line.subject)?.abs_diff(line.rank));
    let changes: Vec<u64> = successor.iter().take(lines).filter_map(change).collect();
    TopOverlap {
        lines: lines.min(board.len().max(successor.len())),
        common: changes.len(),
        largest_change: changes.into_iter().max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Amount, Decimals};

    #[test]
    fn numbers_are_the_same_whatever_their_decimals() {
        let decimals = |digits| Scale::from(Decimals::new(digits).unwrap());
        let exact = |units, digits| (Value::Exact(Amount(units)), decimals(digits));
        assert!(is_same(exact(150, 2), exact(15, 1)) && !is_same(exact(155, 2), exact(15, 1)));
        assert!(is_same(exact(-3, 0), exact(-3_000_000_000, 9)));
        assert!(is_same((Value::Real(1.5), decimals(0)), (Value::Real(15.0), decimals(1))));
        assert!(is_same((Value::Real(2.0), decimals(0)), exact(2, 0)));
    }

    #[test]
    fn tops_have_what_is_in_both_and_the_largest_change_of_rank() {
        let ranking = |subjects: &str| -> Vec<Ranked> {
            let line = |(at, subject): (usize, char)| Ranked {
                rank: at as u64 + 1,
                subject: Subject::parse(&subject.to_string()).unwrap(),
                score: Value::ZERO,
            };
            subjects.chars().enumerate().map(line).collect()
        };
        let top = |lines| overlap(&ranking("abcde"), &ranking("bxcyaz"), lines);
        assert_eq!(top(3), TopOverlap { lines: 3, common: 2, largest_change: 1 });
        assert_eq!(top(10), TopOverlap { lines: 6, common: 3, largest_change: 4 });
    }
}
