//! The buckets of ids: hashes that are written to for a part of the dedupe horizon and deleted as a whole.
//!
//! Bucket *n* has the ids that arrived from *n* × [`Board::dedupe_bucket`] on. This is half the horizon, except that
//! the additional slot of `cover = full` lengthens the horizon only: so instances of versions that disagree about the
//! horizon agree about the names of buckets, and none deletes what it needs itself.

use crate::board::{Board, Timestamp};

/// Returns the time for which one bucket accepts ids, in milliseconds.
pub(super) fn width(board: &Board) -> i64 {
    board.dedupe_bucket().max(1)
}

/// Returns the number of the bucket that accepts ids at `now`.
pub(super) fn number(board: &Board, now: Timestamp) -> i64 {
    now.millis().div_euclid(width(board))
}

/// Returns the number of buckets that may contain an id which arrived within the horizon: the current one and those
/// before it. Three, and up to five with `cover = full`.
pub(super) fn recent(board: &Board) -> i64 {
    board.dedupe_horizon().unsigned_abs().div_ceil(width(board).unsigned_abs()) as i64 + 1
}

/// Returns the number of the oldest bucket that is not deleted at `now`. One more than the recent ones is kept, because
/// clocks may differ a little.
pub(super) fn oldest_kept(board: &Board, now: Timestamp) -> i64 {
    number(board, now) - recent(board)
}

/// Returns the longest time for which an id is stored while housekeeping keeps up, in milliseconds.
pub(super) fn longest_stored(board: &Board) -> i64 {
    (recent(board) + 1) * width(board)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{BoardName, Generation};

    #[test]
    fn the_recent_buckets_cover_the_horizon_and_no_bucket_is_deleted_before_its_end() {
        for (keys, expected) in [
            (r#""metric":"COUNT(2h, a, b)","slot":"15m""#, 3),
            (r#""metric":"COUNT(2h, a, b)","slot":"15m","cover":"full""#, 4),
            (r#""metric":"COUNT(2h, a, b)","slot":"1h","cover":"full""#, 4),
            (r#""metric":"COUNT(1h, a, b)","slot":"1h","cover":"full""#, 5),
            (r#""metric":"COUNT(1s, a, b)","slot":"1s","cover":"full""#, 5),
            (r#""metric":"COUNT(2h, a, b)","slot":"15m","cover":"full","dedupe":"90d""#, 3),
            (r#""metric":"COUNT(2h, a, b)","slot":"15m","dedupe":"1m""#, 3),
            (r#""metric":"COUNT(all, a, b)""#, 3),
        ] {
            let definition = serde_json::from_str(&format!("{{{keys}}}")).unwrap();
            let board = Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap();
            assert_eq!(recent(&board), expected, "{keys}");
            let arrival = Timestamp::from_millis(1_767_225_600_123 / width(&board) * width(&board));
            for off in [0, 1, width(&board) - 1] {
                let arrival = arrival.plus_millis(off);
                let last = arrival.plus_millis(board.dedupe_horizon() - 1);
                assert!(number(&board, last) - number(&board, arrival) < recent(&board), "{keys}");
                // A minute of difference between clocks does no harm, unless the horizon is that short.
                let ahead = last.plus_millis(width(&board).min(60_000));
                assert!(oldest_kept(&board, ahead) <= number(&board, arrival), "{keys}");
            }
            let deleted = arrival.plus_millis(longest_stored(&board));
            assert!(oldest_kept(&board, deleted) > number(&board, arrival), "{keys}");
            assert!(oldest_kept(&board, deleted.plus_millis(-1)) <= number(&board, arrival), "{keys}");
        }
    }
}
