//! The choice of the board that serves a metric, and the suggestion of a definition if no board does.
//!
//! A window of a board serves every metric that differs from its own only by a shorter window. It reads as many of its
//! newest slots as cover that window. A window over all time has no slots to choose from, so it serves metrics over all
//! time only; the slots that its board may keep beside the total serve the others, as an unranked board does. A
//! `from_first` board has no slots, so it serves only its own window, and only if no sliding board does. Its result has
//! a different meaning: it covers the subject's own window and not the most recent time of that length.
//!
//! A board that was defined after the window began lacks what happened before, so another board that serves the metric
//! is preferred until then: defining a board must not change the value of a metric to that of an empty board.

use std::sync::Arc;

use crate::board::{
    Board, BoardEdition, BoardTrack, Decimals, Definition, MAX_SLOTS, Metric, Span, Term, Timestamp, Track, Unit,
    WindowLength,
};
use crate::store::SlotRange;

/// A track that serves a metric.
#[derive(Clone, Debug)]
pub(super) struct Serving {
    pub track: BoardTrack,
    /// The number of its newest slots that cover the window of the metric.
    pub slots: u32,
}

impl Serving {
    pub(super) fn range(&self) -> SlotRange {
        SlotRange::Slots(self.slots)
    }

    /// Returns the time since which the board has counted, if at `now` that is within the window of the metric that it
    /// serves. The slots of the board do not matter: of all boards that serve a metric, those that were defined before
    /// the same instant cover it.
    pub(super) fn covers_since(&self, metric: &Metric, now: Timestamp) -> Option<Timestamp> {
        let start = match metric.window {
            WindowLength::All => Timestamp::EPOCH,
            WindowLength::Span(_) => now.plus_millis(-metric.window.approximate_millis()),
        };
        self.track.covers_since(start)
    }
}

/// Returns the time since which a board has counted, if that is after the start of the slots that were read at `now`,
/// of which `floor` is the oldest. The window of a subject of a `from_first` board may begin at any time within its
/// length.
pub(super) fn covers_since(track: &BoardTrack, floor: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let start = match track.is_from_first() {
        false => floor,
        true => Timestamp::from_millis(now.millis().saturating_sub(track.length().approximate_millis())),
    };
    track.covers_since(start)
}

/// Returns all tracks of boards that serve a metric. O(tracks of all boards).
pub(super) fn serving<'a>(boards: impl IntoIterator<Item = &'a Arc<Board>>, metric: &Metric) -> Vec<Serving> {
    let serves = |track: BoardTrack| Some(Serving { slots: slots_for(&track, metric)?, track });
    // A metric over all time is not about a period.
    let boards = boards.into_iter().filter(|board| board.season().is_none());
    let tracks = boards.flat_map(|board| board.current().each_track());
    tracks.filter_map(serves).collect()
}

/// Returns the one with the finest slots, then an unranked one, then the first by name, then the main window. Without
/// regard to what they cover.
pub(super) fn finest_of(all: &[Serving]) -> Option<&Serving> {
    all.iter().min_by(|a, b| preference(&a.track).cmp(&preference(&b.track)))
}

/// Returns the one that is to answer, if this is known without the time: the [finest](finest_of), if it was defined
/// first, or covers the window of the metric at some time `before` now. A `from_first` board does not count beside a
/// sliding one.
pub(super) fn chosen_at_any_time<'a>(all: &'a [Serving], metric: &Metric, before: Timestamp) -> Option<&'a Serving> {
    let finest = finest_of(all)?;
    let alike = all.iter().filter(|other| other.track.is_from_first() == finest.track.is_from_first());
    let is_first = alike.map(|other| other.track.board().defined_at()).min() >= Some(finest.track.board().defined_at());
    (is_first || finest.covers_since(metric, before).is_none()).then_some(finest)
}

/// Returns the one that is to answer at `now`: the [finest](finest_of) of those that cover the window of the metric. If
/// none does, of those that were defined first.
pub(super) fn chosen_at<'a>(all: &'a [Serving], metric: &Metric, now: Timestamp) -> Option<&'a Serving> {
    // A time since which a board covers orders it behind every board that covers the window.
    let key = |serving: &Serving| (serving.track.is_from_first(), serving.covers_since(metric, now));
    let keyed = all.iter().map(|serving| (key(serving), serving));
    let best = keyed.min_by(|(a, x), (b, y)| a.cmp(b).then_with(|| preference(&x.track).cmp(&preference(&y.track))));
    best.map(|(_, serving)| serving)
}

/// Returns the track of an edition that covers the requested time with the finest slots: the first one of
/// them for which `fits` returns `Ok`. Returns the error of the longest one if none covers it.
pub(super) fn finest<T, E>(
    edition: &BoardEdition,
    fits: impl Fn(&BoardTrack) -> Result<T, E>,
) -> Result<(BoardTrack, T), E> {
    let mut tracks: Vec<BoardTrack> = edition.each_track().collect();
    tracks.sort_by_key(|track| (track.is_all_time(), slot_millis(track)));
    let mut refusals = Vec::with_capacity(tracks.len());
    for track in tracks {
        match fits(&track) {
            Ok(found) => return Ok((track, found)),
            Err(error) => refusals.push((track, error)),
        }
    }
    // Over all time there are no slots to choose from, so its reason is useless if there is another one.
    let longest =
        refusals.into_iter().max_by_key(|(track, _)| (!track.is_all_time(), track.length().approximate_millis()));
    match longest {
        Some((_, error)) => Err(error),
        None => Ok((edition.main_track(), fits(&edition.main_track())?)),
    }
}

/// Returns the nominal length of a slot in milliseconds, or 0 without slots. The slots that a board over all time keeps
/// are those of another track.
fn slot_millis(track: &Track) -> i64 {
    track.slot().filter(|_| !track.is_all_time()).map_or(0, Span::approximate_millis)
}

/// Returns the sort key of a track. The track with the smallest key serves the metric.
fn preference(track: &BoardTrack) -> (bool, i64, bool, &str) {
    (track.is_from_first(), slot_millis(track), track.is_ranked(), track.board().name().as_str())
}

/// Returns the number of the track's newest slots that cover the metric's window, or `None` if the track cannot serve
/// it.
fn slots_for(track: &Track, metric: &Metric) -> Option<u32> {
    let own = track.metric();
    if !own.same_but_window(metric) {
        return None;
    }
    if track.is_from_first() {
        return own.window.is_as_long_as(metric.window).then_some(1);
    }
    let WindowLength::Span(window) = metric.window else { return track.is_all_time().then_some(1) };
    track.slots_for(window)
}

/// The usual lengths of slots, finest first.
const USUAL_SLOTS: [(u32, Unit); 15] = [
    (1, Unit::Second),
    (5, Unit::Second),
    (10, Unit::Second),
    (30, Unit::Second),
    (1, Unit::Minute),
    (5, Unit::Minute),
    (15, Unit::Minute),
    (30, Unit::Minute),
    (1, Unit::Hour),
    (6, Unit::Hour),
    (12, Unit::Hour),
    (1, Unit::Day),
    (1, Unit::Week),
    (1, Unit::Month),
    (1, Unit::Year),
];

/// The largest number of slots of a suggested window, if a usual slot allows it. The error is then about 3 % of the
/// window.
const SUGGESTED_SLOTS: u32 = 32;

/// Suggests a board that would serve the metric: unranked, unless it has `BY`, with the finest usual slot that divides
/// its window into at most 32 slots, or else with the coarsest possible one. A window of all time needs no slot. It has
/// as many decimals as other boards have for the same fields of the same events, and the weights need. Returns `None` if
/// no usual slot divides the window. O(boards).
pub(super) fn suggestion<'a>(
    boards_of_events: impl IntoIterator<Item = &'a Arc<Board>>,
    metric: &Metric,
) -> Option<Definition> {
    // Returns what a term needs if amounts of its field have as many decimals as on another board.
    let needed = |term: &Term, other: &Definition| {
        let same = |known: &Term| known.event == term.event && known.field == term.field;
        let has_field = term.field.is_some() && other.metric.terms.iter().any(same);
        has_field.then(|| other.decimals.digits() + term.weight.number().decimals.digits())
    };
    let others = boards_of_events.into_iter().map(|board| board.definition());
    let of_fields = others.flat_map(|other| metric.terms.iter().filter_map(move |term| needed(term, other)));
    let most = of_fields.max().unwrap_or_default().min(Decimals::MAX);
    let decimals = Decimals::new(most).unwrap_or_default().max(metric.terms.decimals());
    // Without rankings, keys are a part of the subject.
    let ranked = metric.by.is_some();
    if metric.window == WindowLength::All {
        return Some(Definition { ranked, decimals, ..Definition::without_slots(metric.clone()) });
    }
    let define = |(count, unit)| {
        let mut definition = Definition::new(metric.clone(), Span::new(count, unit)?);
        (definition.ranked, definition.decimals) = (ranked, decimals);
        let slots =
            definition.layout().ok().map(|layout| layout.slots).filter(|slots| u64::from(*slots) <= MAX_SLOTS)?;
        Some((definition, slots))
    };
    let mut coarsest = None;
    for (definition, slots) in USUAL_SLOTS.into_iter().filter_map(define) {
        if slots <= SUGGESTED_SLOTS {
            return Some(definition);
        }
        coarsest = Some(definition);
    }
    coarsest
}

/// Returns a name for the suggested board that is not taken, such as `login-per-device_id`. If several such names are taken,
/// another name must be chosen.
pub(super) fn suggested_name(metric: &Metric, is_taken: impl Fn(&str) -> bool) -> String {
    let name = name_of(metric);
    let more = (2..100).map(|number| format!("{}-{number}", name.chars().take(60).collect::<String>()));
    std::iter::once(name.clone()).chain(more).find(|name| !is_taken(name)).unwrap_or(name)
}

fn name_of(metric: &Metric) -> String {
    let by = metric.by.as_ref().map_or_else(String::new, |by| format!("-by-{by}"));
    let events: Vec<&str> = metric.terms.types().collect();
    let text = format!("{}-per-{}{by}", events.join("-"), metric.subject).to_ascii_lowercase();
    let mut name = String::with_capacity(text.len());
    for c in text.chars().map(|c| if matches!(c, 'a'..='z' | '0'..='9' | '_' | '.') { c } else { '-' }) {
        // A run of characters that are not allowed in a name becomes one dash.
        if !(c == '-' && name.ends_with('-')) {
            name.push(c);
        }
    }
    let name = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    name.chars().take(63).collect::<String>().trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Cover, Generation, Mode};

    const HOUR: i64 = 3_600_000;
    const NOW: Timestamp = Timestamp::from_millis(500_000 * HOUR);

    fn board(name: &str, metric: &str, slot: &str, change: impl FnOnce(&mut Definition)) -> Arc<Board> {
        let mut definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
        change(&mut definition);
        Arc::new(Board::new(BoardName::parse(name).unwrap(), Generation(1), definition).unwrap())
    }

    /// Returns the track that serves a metric, of boards that cover every window.
    fn track_for(boards: &[Arc<Board>], metric: &Metric) -> Option<(BoardTrack, SlotRange)> {
        let all = serving(boards, metric);
        let finest = finest_of(&all)?;
        let name = |found: Option<&Serving>| found.map(|found| found.track.board().name().clone());
        assert_eq!(name(chosen_at_any_time(&all, metric, Timestamp::EPOCH)), Some(finest.track.board().name().clone()));
        assert_eq!(name(chosen_at(&all, metric, NOW)), Some(finest.track.board().name().clone()));
        Some((finest.track.clone(), finest.range()))
    }

    fn served(boards: &[Arc<Board>], metric: &str) -> Option<(String, SlotRange)> {
        track_for(boards, &metric.parse().unwrap()).map(|(track, range)| (track.board().name().to_string(), range))
    }

    #[test]
    fn a_board_serves_shorter_windows_from_its_newest_slots() {
        let boards = [board("day", "COUNT(24h, login, device_id)", "1h", |_| ())];
        for (metric, slots) in [
            ("COUNT(24h, login, device_id)", Some(24)),
            ("COUNT(1d, login, device_id)", Some(24)),
            ("COUNT(61m, login, device_id)", Some(2)),
            ("COUNT(1s, login, device_id)", Some(1)),
            ("COUNT(25h, login, device_id)", None),
            ("COUNT(1mo, login, device_id)", None),
            ("COUNT(1h, logout, device_id)", None),
            ("COUNT(1h, login, user_id)", None),
            ("SUM(1h, login, device_id, device_id)", None),
        ] {
            assert_eq!(served(&boards, metric), slots.map(|n| ("day".to_owned(), SlotRange::Slots(n))), "{metric}");
        }
        let full = [board("full", "COUNT(24h, login, device_id)", "1h", |d| d.cover = Cover::Full)];
        for (metric, slots) in [("COUNT(24h, login, device_id)", Some(25)), ("COUNT(2h, login, device_id)", Some(3))] {
            assert_eq!(served(&full, metric), slots.map(|n| ("full".to_owned(), SlotRange::Slots(n))), "{metric}");
        }
        assert_eq!(served(&full, "COUNT(25h, login, device_id)"), None);
    }

    #[test]
    fn a_board_over_all_time_serves_all_time_only() {
        let all_time = Definition::without_slots("COUNT(all, login, device_id)".parse().unwrap());
        let all_time = Board::new(BoardName::parse("all").unwrap(), Generation(1), all_time).unwrap();
        let boards = [board("day", "COUNT(24h, login, device_id)", "1h", |_| ()), Arc::new(all_time)];
        let served = |metric: &str| served(&boards, metric).map(|(name, _)| name);
        assert_eq!(served("COUNT(all, login, device_id)").as_deref(), Some("all"));
        assert_eq!(served("COUNT(24h, login, device_id)").as_deref(), Some("day"));
        assert_eq!(served("COUNT(25h, login, device_id)"), None);
        assert_eq!(served("COUNT(all, login, user_id)"), None);
    }

    #[test]
    fn kept_slots_serve_shorter_windows_and_the_total_all_time() {
        let keeping = |name, slot| board(name, "COUNT(all, login, device_id)", slot, |d| d.keep = "2d".parse().ok());
        let boards =
            [keeping("a", "1h"), keeping("b", "15m"), board("day", "COUNT(24h, login, device_id)", "1h", |_| ())];
        let served = |metric: &str| {
            let (track, range) = track_for(&boards, &metric.parse().unwrap())?;
            Some((track.board().name().to_string(), track.length().to_string(), range))
        };
        for (asked, name, length, slots) in
            [("30m", "b", "2d", 2), ("24h", "b", "2d", 96), ("2d", "b", "2d", 192), ("all", "a", "all", 1)]
        {
            let found = served(&format!("COUNT({asked}, login, device_id)"));
            assert_eq!(found, Some((name.to_owned(), length.to_owned(), SlotRange::Slots(slots))), "{asked}");
        }
        assert_eq!(served("COUNT(49h, login, device_id)"), None);
        assert_eq!(served("COUNT(1h, login, user_id)"), None);
    }

    #[test]
    fn every_window_of_a_board_serves_metrics() {
        let with_windows = |d: &mut Definition| {
            d.windows = ["1h/1m", "7d/6h", "all"].map(|window| window.parse().unwrap()).into();
        };
        let boards = [board("tabs", "COUNT(24h, login, device_id)", "1h", with_windows)];
        let served = |metric: &str| {
            let (window, range) = track_for(&boards, &metric.parse().unwrap())?;
            Some((window.length().to_string(), range))
        };
        for (asked, length, slots) in [
            ("5m", "1h", 5),
            ("60m", "1h", 60),
            ("61m", "24h", 2),
            ("24h", "24h", 24),
            ("25h", "7d", 5),
            ("all", "all", 1),
        ] {
            let metric = format!("COUNT({asked}, login, device_id)");
            assert_eq!(served(&metric), Some((length.to_owned(), SlotRange::Slots(slots))), "{asked}");
        }
        assert_eq!(served("COUNT(8d, login, device_id)"), None);
        // Another board with finer slots is chosen before the main window.
        let finer = board("finer", "COUNT(24h, login, device_id)", "15m", |_| ());
        let boards = [boards[0].clone(), finer];
        let name = |metric: &str| {
            track_for(&boards, &metric.parse().unwrap()).map(|(track, _)| track.board().name().to_string())
        };
        assert_eq!(name("COUNT(2h, login, device_id)").as_deref(), Some("finer"));
        assert_eq!(name("COUNT(1h, login, device_id)").as_deref(), Some("tabs"));
    }

    #[test]
    fn the_board_with_the_shortest_slots_then_the_unranked_then_the_first_by_name_is_chosen() {
        let metric = "COUNT(24h, login, device_id)";
        let unranked = |d: &mut Definition| d.ranked = false;
        let from_first = |d: &mut Definition| (d.ranked, d.mode) = (false, Mode::FromFirst);
        let all = [
            board("f", metric, "1s", from_first),
            board("e", metric, "1h", |_| ()),
            board("d", metric, "15m", |_| ()),
            board("c", metric, "15m", unranked),
            board("b", metric, "15m", unranked),
        ];
        let winner = |from: usize, to: usize| served(&all[from..to], metric).map(|(name, _)| name);
        assert_eq!(winner(0, 5).as_deref(), Some("b"));
        assert_eq!(winner(0, 4).as_deref(), Some("c"));
        assert_eq!(winner(0, 3).as_deref(), Some("d"));
        assert_eq!(winner(0, 2).as_deref(), Some("e"));
        // A subject's own window has a different meaning: it serves only exactly that window, and only if no other
        // board does.
        assert_eq!(served(&all[..1], "COUNT(1d, login, device_id)"), Some(("f".to_owned(), SlotRange::Slots(1))));
        assert_eq!(served(&all[..1], "COUNT(1h, login, device_id)"), None);
    }

    #[test]
    fn a_board_younger_than_the_window_gives_way_to_one_that_covers_more() {
        let at = |hours: i64| Timestamp::from_millis(NOW.millis() + hours * HOUR);
        let defined = |name: &str, metric: &str, slot: &str, hours: Option<i64>, change: fn(&mut Definition)| {
            let mut definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
            change(&mut definition);
            let board = Board::new(BoardName::parse(name).unwrap(), Generation(1), definition).unwrap();
            Arc::new(board.with_defined_at(hours.map(at)))
        };
        let (metric, unchanged): (_, fn(&mut Definition)) = ("COUNT(24h, login, device_id)", |_| ());
        let old = defined("old", metric, "1h", None, unchanged);
        let day = defined("day", metric, "1h", Some(-24), unchanged);
        let new = defined("new", metric, "15m", Some(0), unchanged);
        let full = defined("full", metric, "1m", Some(0), |d| d.cover = Cover::Full);
        let chosen = |boards: &[&Arc<Board>], asked: &str, hours: i64| {
            let asked = asked.parse().unwrap();
            let all = serving(boards.iter().copied(), &asked);
            let found = chosen_at(&all, &asked, at(hours)).unwrap();
            for before in (hours - 30..=hours).map(at) {
                let known = chosen_at_any_time(&all, &asked, before);
                assert!(
                    known.is_none_or(|known| known.track.board().name() == found.track.board().name()),
                    "{asked} {hours} {before}"
                );
            }
            (found.track.board().name().to_string(), found.covers_since(&asked, at(hours)))
        };
        let covering = |name: &str| (name.to_owned(), None);
        assert_eq!(chosen(&[&old, &new], metric, 0), covering("old"));
        assert_eq!(chosen(&[&old, &new], metric, 23), covering("old"));
        assert_eq!(chosen(&[&old, &new], metric, 24), covering("new"));
        // A shorter window is covered sooner.
        assert_eq!(chosen(&[&old, &new], "COUNT(1h, login, device_id)", 1), covering("new"));
        assert_eq!(chosen(&[&new, &full], "COUNT(1h, login, device_id)", 1), covering("full"));
        // If none covers the window, the oldest covers most of it.
        assert_eq!(chosen(&[&day, &new], metric, -2), ("day".to_owned(), Some(at(-24))));
        assert_eq!(chosen(&[&day, &new], metric, 1), covering("day"));
        assert_eq!(chosen(&[&new], metric, 1), ("new".to_owned(), Some(at(0))));
        let known = |boards: &[&Arc<Board>]| {
            let asked = metric.parse().unwrap();
            chosen_at_any_time(&serving(boards.iter().copied(), &asked), &asked, Timestamp::EPOCH).is_some()
        };
        assert!(!known(&[&old, &new]) && !known(&[&day, &new]) && known(&[&old]) && known(&[&full, &new]));
        // Slots of a day do not make a board cover what it does not, and a third board changes nothing.
        let coarse = defined("coarse", metric, "1d", Some(-4), unchanged);
        let hourly = defined("hourly", metric, "1h", Some(-12), unchanged);
        for boards in [&[&hourly, &coarse][..], &[&hourly, &coarse, &new], &[&new, &coarse, &hourly]] {
            assert_eq!(chosen(boards, metric, 1), ("hourly".to_owned(), Some(at(-12))));
            assert_eq!(chosen(boards, metric, 13), covering("hourly"));
        }
        // A `from_first` board serves only if no sliding board does, whatever they cover.
        let first = defined("first", metric, "1h", None, |d| (d.ranked, d.mode) = (false, Mode::FromFirst));
        assert_eq!(chosen(&[&first, &new], metric, 1), ("new".to_owned(), Some(at(0))));
        assert!(known(&[&first, &new]));
        // No board covers all time, so the oldest serves it.
        let all = "COUNT(all, login, device_id)";
        let total = |name: &str, hours: i64| {
            let definition = Definition::without_slots(all.parse().unwrap());
            let board = Board::new(BoardName::parse(name).unwrap(), Generation(1), definition).unwrap();
            Arc::new(board.with_defined_at(Some(at(hours))))
        };
        assert_eq!(chosen(&[&total("a", 2), &total("b", 1)], all, 9_000), ("b".to_owned(), Some(at(1))));
    }

    #[test]
    fn a_suggested_definition_serves_the_metric() {
        for (window, slot) in [
            ("30m", "1m"),
            ("1h", "5m"),
            ("24h", "1h"),
            ("7d", "6h"),
            ("30d", "1d"),
            ("47m", "1m"),
            ("1s", "1s"),
            ("61s", "1s"),
            ("3mo", "1mo"),
            ("2y", "1mo"),
            ("5y", "1y"),
            ("2000w", "1w"),
        ] {
            let metric: Metric = format!("COUNT({window}, login, device_id)").parse().unwrap();
            let definition = suggestion(&[], &metric).unwrap_or_else(|| panic!("{window}"));
            assert_eq!((definition.slot.unwrap().to_string().as_str(), definition.ranked), (slot, false), "{window}");
            let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
            assert!(slots_for(board.edition().main(), &metric).is_some(), "{window}");
        }
        assert_eq!(suggestion(&[], &"COUNT(4001s, a, b)".parse().unwrap()), None);
        let prices = board("p", "AVG(24h, order, amount, shop)", "1h", |d| d.decimals = Decimals::new(2).unwrap());
        for (metric, decimals) in [
            ("SUM(1d, order, amount, user)", 2),
            ("SUM(1d, order: amount*0.125 + visit*5, user)", 5),
            ("SUM(1d, order: amount*0.00000001, user)", 9),
            ("SUM(1d, refund: amount + visit*0.5, user)", 1),
            ("COUNT(1d, order, user)", 0),
        ] {
            let suggested = suggestion([&prices], &metric.parse().unwrap()).unwrap();
            assert_eq!(suggested.decimals.digits(), decimals, "{metric}");
        }
        let all_time: Metric = "COUNT(all, login, device_id)".parse().unwrap();
        let definition = suggestion(&[], &all_time).unwrap();
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
        assert_eq!((board.definition().slot, slots_for(board.edition().main(), &all_time)), (None, Some(1)));
    }

    #[test]
    fn a_suggested_name_is_valid() {
        for (metric, name) in [
            ("COUNT(1h, login, device_id)", "login-per-device_id"),
            ("COUNT(1h, _Log.In, user)", "log.in-per-user"),
            ("COUNT(1h, LOGIN, user)", "login-per-user"),
        ] {
            assert_eq!(suggested_name(&metric.parse().unwrap(), |_| false), name);
        }
        let long: Metric = format!("COUNT(1h, {}, {})", "_a".repeat(32), "b-".repeat(32)).parse().unwrap();
        for first_free in [1, 2, 12] {
            let asked = std::cell::Cell::new(0);
            let name = suggested_name(&long, |_| asked.replace(asked.get() + 1) + 1 < first_free);
            assert!(BoardName::parse(&name).is_ok(), "{name}");
        }
        let taken = ["like-post-per-user", "like-post-per-user-2"];
        let metric = "SUM(1h, like*2 + post, user)".parse().unwrap();
        assert_eq!(suggested_name(&metric, |name| taken.contains(&name)), "like-post-per-user-3");
    }
}
