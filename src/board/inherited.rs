//! What the definition of a successor takes from its board.

use super::{Board, Definition, Edition, FurtherWindow, Movement, TrackId, WindowLength};

impl Board {
    /// Returns the definition of a successor. A key that `names` does not know has the value of the board, if that is
    /// allowed together with the rest: so nothing is lost because a definition does not repeat it. Of the further
    /// windows each is taken that is allowed.
    ///
    /// The metric is always given, and so is the slot, except that of the slots that a total over all time keeps. A
    /// season is not taken, because a board with one has no successor. `shards` and `dedupe` are the board's, and always
    /// taken.
    #[must_use]
    pub fn completed(&self, given: Definition, names: impl Fn(&str) -> bool) -> Definition {
        let ours = self.definition();
        let mut whole =
            Definition { shards: given.shards.or(ours.shards), dedupe: given.dedupe.or(ours.dedupe), ..given };
        let mut take = |key: &str, change: &dyn Fn(&mut Definition)| {
            if names(key) {
                return;
            }
            let mut candidate = whole.clone();
            change(&mut candidate);
            if Edition::new(TrackId(1), candidate.clone()).is_ok() {
                whole = candidate;
            }
        };
        take("ranked", &|to| to.ranked = ours.ranked);
        take("mode", &|to| to.mode = ours.mode);
        take("order", &|to| to.order = ours.order);
        take("decimals", &|to| to.decimals = ours.decimals);
        take("cover", &|to| to.cover = ours.cover);
        take("keep", &|to| {
            to.keep = ours.keep;
            if to.metric.window == WindowLength::All && ours.metric.window == WindowLength::All {
                to.slot = to.slot.or(ours.slot);
            }
        });
        take("min_samples", &|to| to.min_samples = ours.min_samples);
        take("prior", &|to| to.prior = ours.prior);
        take("tie_break", &|to| to.tie_break.clone_from(&ours.tie_break));
        take("ties", &|to| to.ties = ours.ties);
        take("ranks", &|to| to.ranks = ours.ranks);
        take("attributes", &|to| to.attributes.clone_from(&ours.attributes));
        take("cap", &|to| to.cap.clone_from(&ours.cap));
        take("max_values", &|to| to.max_values = ours.max_values);
        take("max_keys", &|to| to.max_keys = ours.max_keys);
        take("stamp", &|to| to.stamp = ours.stamp);
        // A total over all time has a time zone only for its further windows, and those depend on it.
        take("timezone", &|to| to.timezone = ours.timezone);
        let at = |window: &FurtherWindow, to: &mut Definition| {
            to.windows.push(*window);
            if !names("timezone") {
                to.timezone = ours.timezone;
            }
        };
        for window in &ours.windows {
            take("windows", &|to| at(window, to));
        }
        // It is refused where it has no effect, so it is taken after what it has an effect on.
        take("starts", &|to| to.starts = ours.starts);
        take("movement", &|to| {
            to.movement = ours.movement;
            if !names("timezone") {
                to.timezone = ours.timezone;
            }
            if ours.movement == Some(Movement::Day) && !names("starts") {
                to.starts = ours.starts;
            }
        });
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Generation};

    fn definition(text: &str) -> Definition {
        serde_json::from_str(text).unwrap()
    }

    /// Returns the definition of a successor of a board, in its stored form.
    fn completed(board: &str, given: &str) -> serde_json::Value {
        let board = Board::new(BoardName::parse("b").unwrap(), Generation(7), definition(board)).unwrap();
        let named: serde_json::Map<String, serde_json::Value> = serde_json::from_str(given).unwrap();
        let whole = board.completed(definition(given), |key| named.contains_key(key));
        assert_eq!(board.completed(whole.clone(), |key| Definition::KEYS.contains(&key)), whole);
        serde_json::to_value(whole).unwrap()
    }

    #[track_caller]
    fn assert_completed(board: &str, given: &str, expected: &str) {
        assert_eq!(completed(board, given), serde_json::to_value(definition(expected)).unwrap());
    }

    const USERS: &str = r#"{"metric":"COUNT(24h, edit, user)","slot":"1h","windows":["1h/1m","all"],"movement":"1d","order":"asc",
        "timezone":"Europe/Berlin","cover":"full","dedupe":"2h","shards":3}"#;

    #[test]
    fn what_is_not_named_is_that_of_the_board() {
        assert_completed(
            USERS,
            r#"{"metric":"COUNT(48h, edit, user)","slot":"1h"}"#,
            r#"{"metric":"COUNT(48h, edit, user)","slot":"1h","windows":["1h/1m","all"],"movement":"1d","order":"asc",
                "timezone":"Europe/Berlin","cover":"full","dedupe":"2h","shards":3}"#,
        );
        let sums = r#"{"metric":"AVG(24h, m, value, city)","slot":"1h","decimals":2,"min_samples":5}"#;
        assert_completed(
            sums,
            r#"{"metric":"AVG(7d, m, value, city)","slot":"6h","min_samples":3}"#,
            r#"{"metric":"AVG(7d, m, value, city)","slot":"6h","decimals":2,"min_samples":3}"#,
        );
        let unranked = r#"{"metric":"COUNT(24h, m, city)","slot":"1h","ranked":false,"keep":"72h"}"#;
        assert_completed(
            unranked,
            r#"{"metric":"COUNT(48h, m, city)","slot":"1h"}"#,
            r#"{"metric":"COUNT(48h, m, city)","slot":"1h","ranked":false,"keep":"72h"}"#,
        );
        let kept = r#"{"metric":"COUNT(all, m, city)","slot":"1h","keep":"48h","timezone":"Asia/Tokyo"}"#;
        assert_completed(
            kept,
            r#"{"metric":"SUM(all, m, value, city)"}"#,
            r#"{"metric":"SUM(all, m, value, city)","slot":"1h","keep":"48h","timezone":"Asia/Tokyo"}"#,
        );
        let first = r#"{"metric":"COUNT(24h, m, city)","ranked":false,"mode":"from_first"}"#;
        assert_completed(
            first,
            r#"{"metric":"COUNT(48h, m, city)","slot":"1d"}"#,
            r#"{"metric":"COUNT(48h, m, city)","slot":"1d","ranked":false,"mode":"from_first"}"#,
        );
    }

    /// `starts` is taken if the successor has slots that begin with it, or days that are compared.
    #[test]
    fn days_begin_as_those_of_the_board() {
        let days = r#"{"metric":"COUNT(7d, edit, user)","slot":"1d","windows":["1d/1h","1mo/1mo"],"movement":"1d",
            "timezone":"Europe/Berlin","starts":"2026-11-15T05:00"}"#;
        assert_completed(
            days,
            r#"{"metric":"COUNT(14d, edit, user)","slot":"1d"}"#,
            r#"{"metric":"COUNT(14d, edit, user)","slot":"1d","windows":["1d/1h","1mo/1mo"],"movement":"1d",
                "timezone":"Europe/Berlin","starts":"2026-11-15T05:00"}"#,
        );
        assert_completed(
            days,
            r#"{"metric":"COUNT(7h, edit, user)","slot":"1h","windows":[]}"#,
            r#"{"metric":"COUNT(7h, edit, user)","slot":"1h","movement":"1d","timezone":"Europe/Berlin",
                "starts":"2026-11-15T05:00"}"#,
        );
        assert_completed(
            days,
            r#"{"metric":"COUNT(7h, edit, user)","slot":"1h","windows":[],"movement":null}"#,
            r#"{"metric":"COUNT(7h, edit, user)","slot":"1h","timezone":"Europe/Berlin"}"#,
        );
        assert_completed(
            days,
            r#"{"metric":"COUNT(14d, edit, user)","slot":"1d","windows":["1d/6h"],"starts":"2026-11-15T06:00"}"#,
            r#"{"metric":"COUNT(14d, edit, user)","slot":"1d","windows":["1d/6h"],"movement":"1d",
                "timezone":"Europe/Berlin","starts":"2026-11-15T06:00"}"#,
        );
        assert_completed(
            days,
            r#"{"metric":"COUNT(all, edit, user)"}"#,
            r#"{"metric":"COUNT(all, edit, user)","windows":["1d/1h","1mo/1mo"],"movement":"1d",
                "timezone":"Europe/Berlin","starts":"2026-11-15T05:00"}"#,
        );
        assert_completed(
            r#"{"metric":"COUNT(24h, edit, user)","slot":"1h","windows":["7d/1d"],"movement":"1h","starts":"2026-11-15"}"#,
            r#"{"metric":"COUNT(48h, edit, user)","slot":"1h","windows":[]}"#,
            r#"{"metric":"COUNT(48h, edit, user)","slot":"1h","movement":"1h"}"#,
        );
    }

    #[test]
    fn what_is_named_is_left_as_it_is() {
        assert_completed(
            USERS,
            r#"{"metric":"COUNT(48h, edit, user)","slot":"1h","windows":[],"movement":null,"order":"desc","timezone":"UTC","cover":"current"}"#,
            r#"{"metric":"COUNT(48h, edit, user)","slot":"1h","dedupe":"2h","shards":3}"#,
        );
    }

    /// A window that the metric has, and keys that are for another kind of board, are left out.
    #[test]
    fn what_is_not_allowed_together_is_not_taken() {
        assert_completed(
            USERS,
            r#"{"metric":"COUNT(1h, edit, user)","slot":"1m"}"#,
            r#"{"metric":"COUNT(1h, edit, user)","slot":"1m","windows":["all"],"movement":"1d","order":"asc",
                "timezone":"Europe/Berlin","cover":"full","dedupe":"2h","shards":3}"#,
        );
        assert_completed(
            r#"{"metric":"SUM(24h, m, value, city)","slot":"1h","decimals":2,"windows":["7d/6h"]}"#,
            r#"{"metric":"COUNT_DISTINCT(24h, m, city, user)","slot":"1h","ranked":false}"#,
            r#"{"metric":"COUNT_DISTINCT(24h, m, city, user)","slot":"1h","ranked":false}"#,
        );
        assert_completed(
            r#"{"metric":"AVG(24h, m, value, city)","slot":"1h","min_samples":5}"#,
            r#"{"metric":"SUM(all, m, value, city)"}"#,
            r#"{"metric":"SUM(all, m, value, city)"}"#,
        );
    }
}
