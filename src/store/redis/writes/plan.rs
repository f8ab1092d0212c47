//! Plans: the items of a flush that are ready to be sent, the time for which that is valid, and how they are sent.

use std::collections::HashMap;
use std::hash::BuildHasher;

use super::chunk::PlanChunk;
use super::flush::Flush;
use super::retry::{repeat, too_late};
use crate::board::{Board, Change, Edition, Subject, Timestamp, Window};
use crate::store::redis::editions;
use crate::store::redis::id_buckets;
use crate::store::redis::kinds;
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::{Preamble, Session};
use crate::store::{Entry, Increment, Plan};

/// The items that must be planned, at first all of a flush, then those that a script has left.
#[derive(Debug)]
pub(super) struct Unplanned {
    /// The indexes of the items, in their order if they are tried one by one.
    pub items: Vec<usize>,
    /// Whether to apply each item by itself, because its sum with others was refused.
    pub singly: bool,
    /// The time that a reply returned. By this time the window has moved.
    pub now: Option<Timestamp>,
}

/// Items that are ready to be sent.
#[derive(Debug)]
pub(super) struct Planned<'a> {
    pub plan: Plan<'a>,
    pub validity: Validity,
    /// Whether `change.lua` applies the entries, one after the other.
    pub by_change: bool,
    /// Whether scripts return the scores of items for which nothing is left to do.
    pub looks: bool,
    /// Whether items are tried one by one.
    pub singly: bool,
}

/// The time for which a plan is valid, the windows and the dedupe bucket for which it was made.
#[derive(Clone, Debug)]
pub(super) struct Validity {
    /// The window of each track of the board, the main one first.
    pub windows: Box<[Window]>,
    /// The time at which the plan was made.
    pub now: Timestamp,
    pub low: Timestamp,
    pub high: Timestamp,
    pub bucket: i64,
}

impl Validity {
    /// Returns the validity of a plan that was made at `now`, when the tracks had these windows. With `strict`, an item
    /// that is too early now must also be too early when the script runs.
    pub fn new<'i>(
        board: &Board,
        windows: Box<[Window]>,
        now: Timestamp,
        max_skew: i64,
        strict: bool,
        items: impl Iterator<Item = &'i Increment>,
    ) -> Self {
        let main = windows[0];
        let both = |(low, high): (Timestamp, Timestamp), window: &Window| (low.max(window.head), high.min(window.end));
        let (mut low, mut high) = windows.iter().fold((main.head, main.end), both);
        for (boundary, next) in board.written_tracks().iter().filter_map(|track| track.boundaries_at(now)) {
            (low, high) = (low.max(boundary), high.min(next));
        }
        // An item counts for its person in the day of the instant at which it is planned, or in an earlier one.
        for days in board.editions().iter().filter_map(|edition| edition.main().days()) {
            (low, high) = (low.max(days.slot_of(now)), high.min(days.next(now)));
        }
        // An item without a time is in the period of the instant at which it is planned.
        for period in board.editions().iter().filter_map(Edition::period) {
            for bound in [period.start, period.end] {
                if bound <= now {
                    low = low.max(bound);
                } else {
                    high = high.min(bound);
                }
            }
        }
        let mut has_ids = false;
        for item in items {
            has_ids |= item.id.is_some();
            let Some(at) = item.at else { continue };
            let mut is_placed_by_window = true;
            for (number, edition) in board.editions().iter().enumerate() {
                let track = edition.main();
                if track.is_from_first() {
                    // From this instant on the item is too late.
                    let ends = at.plus_millis(track.length().approximate_millis());
                    if ends > now {
                        high = high.min(ends);
                    }
                }
                is_placed_by_window &= matches!(item.change_in(number), Change::Set { .. } | Change::Not(_));
            }
            // Samples are placed by the window alone.
            if at < main.head || is_placed_by_window {
                continue;
            }
            // From this instant on the item is no longer too early.
            let acceptable = at.plus_millis(-max_skew);
            if acceptable <= now {
                low = low.max(acceptable);
            } else if strict {
                high = high.min(acceptable);
            }
        }
        let (width, bucket) = (id_buckets::width(board), id_buckets::number(board, now));
        if has_ids {
            low = low.max(Timestamp::from_millis(bucket * width));
            high = high.min(Timestamp::from_millis((bucket + 1) * width));
        }
        Self { windows, now, low, high, bucket }
    }

    /// Returns the preamble for a track.
    pub fn preamble(&self, track: usize) -> Preamble {
        Preamble { window: self.windows[track], now: self.now, low: self.low, high: self.high }
    }
}

impl<'a> Planned<'a> {
    /// Makes the steps of the season that are due, then places items in slots and adds up amounts where possible, by the
    /// expected time or by a time that a reply returned.
    pub async fn plan_items(session: &Session, flush: &Flush<'a>, left: &Unplanned) -> Result<Self, ServerFailure> {
        let partition = flush.partition;
        let Unplanned { items, singly, now } = left;
        // A failure to read a simulated clock says nothing about the items, which are not sent yet.
        let is_known = now.is_some();
        let now = repeat(flush.deadline, async || session.time_for(&partition.clock, *now).await).await;
        let now = now.map_err(|failure| if failure.is_unknown() { too_late() } else { failure })?;
        let board = partition.board();
        let turned = editions::turn(session, board, now).await;
        if turned.map_err(|failure| if failure.is_unknown() { too_late() } else { failure })? {
            return Err(ServerFailure::StaleEpoch);
        }
        let windows = partition.windows(now);
        let max_skew = session.limits.max_skew;
        let increments = items.iter().map(|i| (*i, flush.item(*i)));
        let mut plan = Plan::new(board, &windows, now, max_skew, *singly, increments);
        if flush.has_scores() {
            group_by_subject(&mut plan);
        }
        // A time that a reply returned after the items arrived is an instant by which they may be judged. Only on a
        // simulated clock, which stands still, they must be judged by the instant at which the script runs.
        let strict = session.simulated || !is_known;
        let validity = Validity::new(board, windows, now, max_skew, strict, items.iter().map(|i| flush.item(*i)));
        let looks = !flush.budget.reads_scores && plan.without_effect.iter().any(|i| flush.is_scored(*i));
        let by_change = looks || !is_sum_of_amounts(board, &plan);
        Ok(Self { plan, validity, by_change, looks, singly: *singly })
    }

    /// Divides the plan into scripts.
    pub fn divide<'p>(&'p self, flush: &Flush<'a>) -> Vec<PlanChunk<'p, 'a>> {
        let wants_score = |entry: &Entry<'a>| flush.wants_score(entry);
        flush.budget.divide(&self.plan, self.by_change, wants_score, |i| &flush.item(i).subject, self.looks)
    }

    /// Divides the plan by the hash of subjects.
    pub fn split(self, flush: &Flush<'a>, lanes: usize) -> Vec<Planned<'a>> {
        let Planned { plan, validity, by_change, looks, singly } = self;
        let hasher = rapidhash::fast::RandomState::default();
        let lane = |subject: &Subject| hasher.hash_one(subject.as_str()) as usize % lanes;
        let mut plans: Vec<Plan<'a>> = (0..lanes).map(|_| Plan::default()).collect();
        for entry in plan.entries {
            plans[lane(entry.subject)].entries.push(entry);
        }
        for (i, rejection) in plan.rejected {
            plans[lane(&flush.item(i).subject)].rejected.push((i, rejection));
        }
        for i in plan.without_effect {
            plans[lane(&flush.item(i).subject)].without_effect.push(i);
        }
        let planned = |plan| Planned { plan, validity: validity.clone(), by_change, looks, singly };
        plans.into_iter().map(planned).collect()
    }

    pub fn is_empty(&self) -> bool {
        let Plan { entries, rejected, without_effect } = &self.plan;
        entries.is_empty() && rejected.is_empty() && without_effect.is_empty()
    }
}

/// Puts entries of one subject next to each other, in their order. Then they are in one script if they fit, and all get
/// the score after the last of them.
fn group_by_subject(plan: &mut Plan<'_>) {
    let mut places: HashMap<&str, usize, rapidhash::fast::RandomState> = HashMap::default();
    for entry in &plan.entries {
        let next = places.len();
        places.entry(entry.subject.as_str()).or_insert(next);
    }
    if places.len() < plan.entries.len() {
        plan.entries.sort_by_key(|entry| places.get(entry.subject.as_str()).copied());
    }
}

/// Returns whether the plan only adds amounts to ranked sums, which `write.lua` does in all tracks at once.
fn is_sum_of_amounts(board: &Board, plan: &Plan<'_>) -> bool {
    kinds::adds_amounts(board) && plan.entries.iter().all(Entry::adds_alike)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Amount, BoardName, Definition, EventId, Generation, NotCounted, TrackId};

    const SKEW: i64 = 5_000;

    fn board(text: &str) -> Board {
        let definition: Definition = serde_json::from_str(text).unwrap();
        Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap()
    }

    fn windows(board: &Board, now: Timestamp) -> Box<[Window]> {
        board.tracks().iter().map(|track| track.window_at(now)).collect()
    }

    fn t(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn item() -> Increment {
        let subject = Subject::parse("a").unwrap();
        Increment {
            other: None,
            subject,
            change: Change::Amount(Amount(1)),
            retract: false,
            at: None,
            id: None,
            period: None,
            event: None,
        }
    }

    #[test]
    fn a_plan_is_valid_while_every_window_of_the_board_stays() {
        let board = board(r#"{"metric":"COUNT(2h, like, post)","slot":"1h","windows":["3m/1m","all"]}"#);
        let now = t("2026-01-01T10:30:30Z");
        let validity = Validity::new(&board, windows(&board, now), now, SKEW, true, [item()].iter());
        let Preamble { window, low, high, .. } = validity.preamble(0);
        assert_eq!(
            (window, low, high),
            (windows(&board, now)[0], t("2026-01-01T10:30:00Z"), t("2026-01-01T10:31:00Z"))
        );
        assert_eq!(validity.windows, windows(&board, now));
    }

    #[test]
    fn amounts_are_added_to_two_editions_alike() {
        let now = t("2026-01-01T10:30:30Z");
        let alone = board(r#"{"metric":"SUM(24h, sale, amount, seller)","slot":"1h"}"#);
        let with = |text: &str| alone.attached(serde_json::from_str(text).unwrap(), TrackId(100)).unwrap();
        let longer = with(r#"{"metric":"SUM(48h, sale, amount, seller)","slot":"2h","windows":["1h/1m"]}"#);
        let mean = with(r#"{"metric":"AVG(24h, sale, amount, seller)","slot":"1h"}"#);
        let other = |change| Increment { other: Some(Box::new(change)), ..item() };
        let is_sum = |board: &Board, item: Increment| {
            let windows = windows(board, now);
            is_sum_of_amounts(board, &Plan::new(board, &windows, now, SKEW, false, [(0, &item)]))
        };
        assert!(is_sum(&alone, item()));
        assert!(is_sum(&longer, other(Change::Amount(Amount(1)))));
        assert!(!is_sum(&longer, other(Change::Amount(Amount(100)))), "other decimals");
        assert!(is_sum(&longer, other(Change::Not(NotCounted::Filtered))));
        assert!(is_sum(&longer, Increment { change: Change::Not(NotCounted::NotAccepted), ..other(item().change) }));
        assert!(!is_sum(&longer, other(Change::Not(NotCounted::Unknown))));
        let late = Increment { at: Some(now.plus_millis(-30 * 3_600_000)), ..other(Change::Amount(Amount(1))) };
        assert!(!is_sum(&longer, late), "only the second edition has its slot");
        assert!(!is_sum(&mean, other(Change::Amount(Amount(1)))));
    }

    #[test]
    fn a_plan_is_valid_while_the_placement_of_every_item_is_unchanged() {
        let board = board(r#"{"metric":"COUNT(2h, like, post)","slot":"1h"}"#);
        let now = t("2026-01-01T10:30:00Z");
        let at = |millis: i64| Increment { at: Some(now.plus_millis(millis)), ..item() };
        let validity = |items: Vec<Increment>, strict| {
            let Validity { low, high, .. } =
                Validity::new(&board, windows(&board, now), now, SKEW, strict, items.iter());
            (low, high)
        };
        let window = windows(&board, now)[0];
        assert_eq!(validity(vec![item()], true), (window.head, window.end));
        // Past items are judged by the window alone.
        assert_eq!(validity(vec![at(-3_600_000), at(-7_200_000)], true), (window.head, window.end));
        // An item 3 s ahead is acceptable from 2 s ago on. An item 7 s ahead is too early until 2 s from now.
        let items = || vec![at(3_000), at(SKEW + 2_000), at(-1)];
        assert_eq!(validity(items(), true), (now.plus_millis(3_000 - SKEW), now.plus_millis(2_000)));
        assert_eq!(validity(items(), false), (now.plus_millis(3_000 - SKEW), window.end));
        // The dedupe buckets of a horizon of 2 h begin with the hours.
        let with_id = Increment { id: Some(EventId::parse("x").unwrap()), ..item() };
        assert_eq!(validity(vec![with_id], true), (window.head, window.end));
    }
}
