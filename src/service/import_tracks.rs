//! Which tracks of an edition receive the contents of which tracks of another one.

use crate::board::{Edition, Mode, Timestamp, Track};

/// For each track of the source, the numbers of the tracks that receive its contents.
pub(super) type Receivers = Vec<Vec<usize>>;

/// Chooses for each track of `to` the track of `from` whose contents it receives: see [`source_of`].
///
/// Returns why the contents of `from` cannot be those of `to`.
pub(super) fn receivers(from: &Edition, to: &Edition, as_of: Timestamp) -> Result<Receivers, String> {
    let (theirs, ours) = (from.definition(), to.definition());
    if !theirs.metric.same_but_window(&ours.metric) {
        return Err(format!("the contents are those of {}, and the board counts {}", theirs.metric, ours.metric));
    }
    if theirs.decimals != ours.decimals {
        return Err("the contents and the board differ in 'decimals'".to_owned());
    }
    if !from.has_same_unit_as(to) {
        return Err("the contents and the board differ in 'tie_break' or 'ties', or in 'order' with it".to_owned());
    }
    if !from.has_counters_of(to) {
        return Err(
            "the contents and the board differ in 'per' of the 'cap', or with it in 'timezone' or 'starts'".to_owned()
        );
    }
    if [theirs, ours].iter().any(|definition| definition.mode == Mode::FromFirst) {
        return Err("the windows of a board with mode = \"from_first\" begin with the first events of its subjects, so its contents cannot be merged".to_owned());
    }
    let mut receivers: Receivers = vec![Vec::new(); from.tracks().len()];
    for (number, track) in to.tracks().iter().enumerate() {
        let Some(source) = source_of(from, track, as_of) else {
            let what = match track.slot() {
                Some(slot) if !track.is_all_time() => {
                    format!("slots of which those of {slot} of the window {} consist", track.length())
                }
                _ => "totals over all time".to_owned(),
            };
            return Err(format!("the contents have no {what}"));
        };
        receivers[source].push(number);
    }
    Ok(receivers)
}

/// Returns the position of the track of `from` whose contents a track of another edition receives, if one fits: both
/// over all time or neither, with slots that its own consist of. Of several it is the shortest window that is at least
/// as long, or else the longest one; of equal ones the first. `as_of` is a time at which `from` is read.
pub(super) fn source_of(from: &Edition, track: &Track, as_of: Timestamp) -> Option<usize> {
    let is_usable = |source: &Track| {
        source.is_all_time() == track.is_all_time()
            && (track.kind().remembers_values() || has_unions_of(track, source, as_of))
    };
    let length = |source: &Track| source.length().approximate_millis();
    let wanted = length(track);
    let usable = from.tracks().iter().enumerate().filter(|(_, source)| is_usable(source));
    let best = usable.min_by_key(|(_, source)| match length(source) {
        enough if enough >= wanted => (0, enough),
        less => (1, -less),
    });
    best.map(|(number, _)| number)
}

/// Returns whether each slot that the source has at this time is a part of one slot of the track.
fn has_unions_of(track: &Track, source: &Track, as_of: Timestamp) -> bool {
    if track.is_all_time() {
        return true;
    }
    let window = source.window_at(as_of);
    let (ours, theirs) = (track.calendar(), source.calendar());
    let mut start = source.oldest_kept(window.floor);
    while start < window.end {
        let end = theirs.next(start);
        if end > ours.next(ours.slot_of(start)) {
            return false;
        }
        start = end;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Board, BoardName, Definition, Generation};

    fn board(metric: &str, slot: &str, change: impl FnOnce(&mut Definition)) -> Board {
        let mut definition = Definition::new(metric.parse().unwrap(), slot.parse().unwrap());
        change(&mut definition);
        Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap()
    }

    fn of(from: &Board, to: &Board) -> Result<Receivers, String> {
        receivers(from.edition(), to.edition(), Timestamp::parse("2026-03-29T10:07:00Z").unwrap())
    }

    #[test]
    fn each_window_receives_the_best_of_the_other_board() {
        let plain = |window: &str, slot: &str| board(&format!("COUNT({window}, like, post)"), slot, |_| ());
        assert_eq!(of(&plain("24h", "1h"), &plain("24h", "1h")), Ok(vec![vec![0]]));
        assert_eq!(of(&plain("24h", "5m"), &plain("7d", "6h")), Ok(vec![vec![0]]));
        let several = |windows: &[&str]| {
            board("COUNT(24h, like, post)", "1h", |definition| {
                definition.windows = windows.iter().map(|window| window.parse().unwrap()).collect();
            })
        };
        let from = several(&["1h/1m", "7d/6h", "all"]);
        assert_eq!(of(&from, &several(&["1h/1m", "7d/6h", "all"])), Ok(vec![vec![0], vec![1], vec![2], vec![3]]));
        // Slots of an hour are unions of minutes, but not of six hours.
        assert_eq!(of(&from, &plain("3d", "1h")), Ok(vec![vec![0], vec![], vec![], vec![]]));
        assert_eq!(of(&from, &plain("3d", "12h")), Ok(vec![vec![], vec![], vec![0], vec![]]));
        assert_eq!(of(&from, &plain("30m", "5m")), Ok(vec![vec![], vec![0], vec![], vec![]]));
        assert_eq!(of(&from, &several(&["2h/1h"])), Ok(vec![vec![0, 1], vec![], vec![], vec![]]));
    }

    #[test]
    fn slots_that_begin_elsewhere_are_filled_from_those_that_they_consist_of() {
        let from = |window: &str, slot: &str, starts: Option<&str>| {
            board(&format!("COUNT({window}, like, post)"), slot, |definition| {
                definition.timezone = "Europe/Berlin".parse().unwrap();
                definition.starts = starts.map(|starts| starts.parse().unwrap());
            })
        };
        let five = Some("2026-11-01T05:00");
        // The day has 23 hours.
        for (source, fits) in [
            (from("48h", "1h", None), true),
            (from("7d", "1d", five), true),
            (from("7d", "1d", None), false),
            (from("2d", "6h", None), false),
        ] {
            assert_eq!(of(&source, &from("7d", "1d", five)).is_ok(), fits, "{:?}", source.definition());
        }
        assert!(of(&from("3mo", "1mo", None), &from("1y", "3mo", Some("2026-02-01"))).is_ok());
        assert!(of(&from("28d", "1d", five), &from("2mo", "1mo", Some("2026-02-15T05:00"))).is_ok());
        assert!(of(&from("28d", "1d", five), &from("2mo", "1mo", Some("2026-02-15"))).is_err());
    }

    #[test]
    fn contents_that_do_not_fit_are_refused_with_the_reason() {
        let plain = board("COUNT(24h, like, post)", "1h", |_| ());
        for (other, reason) in [
            (board("COUNT(24h, like, user)", "1h", |_| ()), "COUNT(24h, like, post)"),
            (board("COUNT(24h, like, post WHERE app = 1)", "1h", |_| ()), "WHERE"),
            (board("COUNT(24h, like, post)", "5m", |_| ()), "no slots of which those of 5m of the window 24h consist"),
            (
                board("COUNT(all, like, post)", "1h", |definition| definition.keep = Some("30d".parse().unwrap())),
                "no totals over all time",
            ),
            (
                board("COUNT(3d, like, post)", "1d", |definition| {
                    definition.timezone = "Asia/Kolkata".parse().unwrap()
                }),
                "no slots",
            ),
        ] {
            let refused = of(&plain, &other).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
        let sum = |decimals: u8| {
            board("SUM(24h, sale, price, shop)", "1h", |definition| {
                definition.decimals = crate::board::Decimals::new(decimals).unwrap();
            })
        };
        assert!(of(&sum(2), &sum(3)).unwrap_err().contains("decimals"));
        let keyed = |most: u64, order: crate::board::Order| {
            board("SUM(24h, sale, price, shop)", "1h", |definition| {
                let tie_break = serde_json::json!({"most": most, "order": "asc"});
                definition.tie_break = serde_json::from_value(tie_break).unwrap();
                definition.order = order;
            })
        };
        use crate::board::Order::{Asc, Desc};
        assert!(of(&keyed(1_000, Desc), &keyed(1_000, Desc)).is_ok());
        for other in [keyed(1_001, Desc), keyed(1_000, Asc), sum(0)] {
            assert!(of(&keyed(1_000, Desc), &other).unwrap_err().contains("tie_break"));
        }
        let values = |slot: &str| board("COUNT_DISTINCT(3h, login, device, user)", slot, |_| ());
        assert_eq!(of(&values("1h"), &values("5m")), Ok(vec![vec![0]]), "values have times of their own");
    }
}
