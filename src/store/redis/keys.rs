//! The names of all keys. All keys of a partition share a hash tag, so that a cluster stores them on one node. A board
//! without shards has one partition, whose hash tag is the board's name. All keys except the board's own `meta` contain
//! the id of their track, or the board's generation. So a board that was removed and defined again never uses old keys.
//!
//! The meta key of a partition is also that of one of its tracks: the main one of the current edition. So it is named
//! by the board, and so are the ids of items, which belong to all editions. All other keys of a track are named by its
//! id, so that the exchange of two editions moves no data.

use std::fmt;

use crate::board::{BoardName, Generation, ModerationList, Subject, Timestamp, TrackId};
use crate::store::TableName;

/// The version of the key layout. It changes with the layout, so that two layouts never share keys.
const SCHEMA: u32 = 1;

const NAMES: &str = "boards";
const CLOCK: &str = "clock";
const CHECK: &str = "check";
const TABLE: &str = "table";

/// The keys that belong to no board.
#[derive(Clone, Debug)]
pub(super) struct StoreKeys {
    root: String,
}

/// The keys of one part of a board.
#[derive(Clone, Debug)]
pub(super) struct BoardKeys {
    pub meta: String,
    pub index: String,
    /// Sorted set: the ranking, subject by score. On a track with keys it is [`epochs`](Self::epochs) instead, from which
    /// scripts compute the names of its rankings.
    pub ranking: String,
    pub buckets: String,
    pub totals: String,
    /// Sorted set: the numbers of the expiry periods that exist.
    pub periods: String,
    root: String,
    /// The beginning of the keys of ids.
    ids: String,
}

impl StoreKeys {
    pub fn new(prefix: &str) -> Self {
        Self { root: format!("{prefix}:{SCHEMA}:") }
    }

    /// Set: the names of boards, for listing. A name without a meta key is not a board.
    pub fn names(&self) -> String {
        format!("{}{NAMES}", self.root)
    }

    /// String: the list version, drawn whenever a board is created or removed. Its hash tag is [`names`](Self::names),
    /// so that one script can use both keys in a cluster too.
    pub fn version(&self) -> String {
        format!("{}{{{}}}:version", self.root, self.names())
    }

    /// Hash: the clock mode, the time of a simulated clock, the last recorded believed time of a system clock, and the
    /// store's mark.
    pub fn clock(&self) -> String {
        format!("{}{CLOCK}", self.root)
    }

    /// Set: notes about boards that may have left data behind (see `removing`).
    pub fn removed(&self) -> String {
        format!("{}removed", self.root)
    }

    /// Hash: run id of a server to the instance that asked it to rewrite its append-only file.
    pub fn rewrites(&self) -> String {
        format!("{}rewrites", self.root)
    }

    /// String: written by health checks.
    pub fn check(&self) -> String {
        format!("{}{CHECK}", self.root)
    }

    /// Hash: the rows of a table, id to text. The field without a name, which no id can be, has the version and the
    /// bytes of the table.
    pub fn table(&self, table: TableName) -> String {
        format!("{}{TABLE}:{table}", self.root)
    }

    /// Hash: generation, definition, head, floor, and the other data about the board as a whole.
    pub fn meta(&self, board: &BoardName) -> String {
        format!("{}{{{board}}}:meta", self.root)
    }

    /// Returns the keys of the main track of the current edition of a board without shards.
    pub fn board(&self, board: &BoardName, generation: Generation, track: TrackId) -> BoardKeys {
        let root = |id: &dyn fmt::Display| format!("{}{{{board}}}:{id}", self.root);
        BoardKeys::new(self.meta(board), root(&track), root(&generation))
    }

    /// Returns the keys of the main track of the current edition in one of several partitions, whose hash tag is `tag`.
    /// The meta key is that of the partition. It contains the board's generation, so that a board never uses a
    /// partition that is left of an earlier board of the same name.
    pub fn partition(&self, tag: &str, generation: Generation, track: TrackId) -> BoardKeys {
        let root = |id: &dyn fmt::Display| format!("{}{{{tag}}}:{id}", self.root);
        BoardKeys::new(format!("{}:meta", root(&generation)), root(&track), root(&generation))
    }

    /// Returns the keys of the main track of the other edition. Its meta key has a name of its own, because the track
    /// may have been the current edition's, with the generation as its id.
    pub fn other(&self, tag: &str, track: TrackId) -> BoardKeys {
        let root = format!("{}{{{tag}}}:{track}", self.root);
        BoardKeys::new(format!("{root}:other"), root.clone(), root)
    }

    /// Returns the keys of any other track.
    pub fn further(&self, tag: &str, track: TrackId) -> BoardKeys {
        let root = format!("{}{{{tag}}}:{track}", self.root);
        BoardKeys::new(format!("{root}:meta"), root.clone(), root)
    }
}

impl BoardKeys {
    fn new(meta: String, root: String, ids: String) -> Self {
        Self {
            meta,
            index: format!("{root}:i"),
            ranking: format!("{root}:r"),
            buckets: format!("{ids}:b"),
            totals: format!("{root}:t"),
            periods: format!("{root}:e"),
            root,
            ids,
        }
    }

    /// Returns the keys with which every call of a script about a track begins.
    pub fn of_board(&self) -> [&str; 5] {
        [&self.meta, &self.index, &self.ranking, &self.buckets, &self.totals]
    }

    /// Returns the keys of a track that has a ranking for each key.
    pub fn with_rankings_by_key(self) -> Self {
        Self { ranking: self.epochs(), ..self }
    }

    /// Hash: subject, with its key if there are keys, to the letters of what is set for it. Of all tracks.
    pub fn marks(&self) -> String {
        format!("{}:m", self.ids)
    }

    /// Hash: subject, with its key if there are keys, to its attributes. Of all tracks.
    pub fn attributes(&self) -> String {
        format!("{}:a", self.ids)
    }

    /// Sorted set: the subjects that have attributes, all with the score 0. Of all tracks.
    pub fn described(&self) -> String {
        format!("{}:al", self.ids)
    }

    /// Hash: the number of a source to what the partition has reached of it.
    pub fn reached(&self) -> String {
        format!("{}:o", self.ids)
    }

    /// Sorted set: the subjects of a list of moderated ones, all with the score 0. Of all tracks.
    pub fn moderated(&self, list: ModerationList) -> String {
        // Scripts compute the first name from that of the hash.
        match list {
            ModerationList::Hidden => format!("{}:mh", self.ids),
            ModerationList::Frozen => format!("{}:mf", self.ids),
        }
    }

    /// Sorted set: the hidden subjects by score, with their keys if there are keys. Scripts compute the name from that
    /// of the ranking.
    pub fn hidden(&self) -> String {
        format!("{}:h", self.root)
    }

    /// Hash: the name of a sheet to its text.
    pub fn sheets(&self) -> String {
        format!("{}:p", self.root)
    }

    /// Tracks with keys. Sorted set: the epochs of the rankings that exist, each with itself as score. An epoch begins
    /// when all rankings are dropped at once.
    pub fn epochs(&self) -> String {
        format!("{}:k", self.root)
    }

    /// Tracks with keys. Sorted set: the keys that have a ranking in this epoch, all with the score 0.
    pub fn key_list(&self, epoch: &str) -> String {
        format!("{}:k:{epoch}", self.root)
    }

    /// Tracks with keys. Sorted set: the ranking of a key in this epoch, name by score.
    pub fn ranking_of(&self, epoch: &str, key: &str) -> String {
        format!("{}:r:{epoch}:{key}", self.root)
    }

    /// Hash: subject to cell.
    pub fn slot(&self, start: Timestamp) -> String {
        format!("{}:s:{}", self.root, start.millis())
    }

    /// Unranked boards. Hash: start of the slot to cell; on a `from_first` board, the counter.
    pub fn subject(&self, subject: &Subject) -> String {
        format!("{}:u:{subject}", self.root)
    }

    /// COUNT_DISTINCT. Sorted set: the subject's values by the time each was last seen.
    pub fn seen(&self, subject: &Subject) -> String {
        format!("{}:v:{subject}", self.root)
    }

    /// COUNT_DISTINCT. Sorted set: the subject's tombstones by time, and the time of the latest value that was dropped
    /// because of `max_values`.
    pub fn gone(&self, subject: &Subject) -> String {
        format!("{}:x:{subject}", self.root)
    }

    /// Set: the subjects that were written to in an expiry period.
    pub fn written(&self, period: i64) -> String {
        format!("{}:e:{period}", self.root)
    }

    /// Hash: subject and id, separated by a zero byte, to time of arrival.
    pub fn dedupe(&self, bucket: i64) -> String {
        format!("{}:d:{bucket}", self.ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redis::hash_slot::HashSlot;

    /// Returns the part of a key that a cluster hashes.
    fn tag(key: &str) -> &str {
        let from = key.find('{').unwrap() + 1;
        &key[from..from + key[from..].find('}').unwrap()]
    }

    #[test]
    fn keys_of_a_board_share_a_hash_tag_and_differ_by_generation() {
        let keys = StoreKeys::new("rolltop");
        let name = BoardName::parse("hot-posts").unwrap();
        let subject = Subject::parse("{a}:b").unwrap();
        let of = |generation| {
            let board = keys.board(&name, Generation(generation), TrackId(generation));
            [
                board.slot(Timestamp::from_millis(3_600_000)),
                board.dedupe(7),
                board.subject(&subject),
                board.seen(&subject),
                board.gone(&subject),
                board.written(7),
                board.epochs(),
                board.marks(),
                board.attributes(),
                board.described(),
                board.reached(),
                board.moderated(ModerationList::Hidden),
                board.moderated(ModerationList::Frozen),
                board.hidden(),
                board.sheets(),
                board.key_list("7"),
                board.ranking_of("7", "{a}:b"),
                board.periods,
                board.totals,
                board.index,
                board.ranking,
                board.buckets,
            ]
        };
        let (one, other) = (of(1), of(2));
        assert_eq!(tag(&keys.version()), keys.names());
        assert_eq!(HashSlot::of_key(keys.names().as_bytes()), HashSlot::of_key(keys.version().as_bytes()));
        assert_eq!(keys.meta(&name), "rolltop:1:{hot-posts}:meta");
        assert_eq!(one[0], "rolltop:1:{hot-posts}:0000000000000001:s:3600000");
        for key in &one {
            assert_eq!(tag(key), "hot-posts");
            assert!(!other.contains(key));
        }
        let distinct: std::collections::HashSet<_> = one.iter().collect();
        assert_eq!(distinct.len(), one.len());
    }
    #[test]
    fn editions_share_the_ids_and_no_other_key() {
        let keys = StoreKeys::new("rolltop");
        let name = BoardName::parse("hot-posts").unwrap();
        let (first, second) = (TrackId(7), TrackId(99));
        for tag in ["hot-posts", "hot-posts/5"] {
            let current = |track| match tag {
                "hot-posts" => keys.board(&name, Generation(7), track),
                _ => keys.partition(tag, Generation(7), track),
            };
            for (one, other) in [(first, second), (second, first)] {
                let (current, other) = (current(one), keys.other(tag, other));
                assert_eq!(current.meta, partition_meta(tag));
                assert_eq!(current.dedupe(3), format!("rolltop:1:{{{tag}}}:0000000000000007:d:3"));
                for key in [&other.meta, &other.index, &other.ranking, &other.totals, &other.periods] {
                    assert!(![&current.meta, &current.index, &current.buckets].contains(&key), "{key}");
                }
            }
            assert_eq!(current(first).index, keys.other(tag, first).index, "an exchange moves no data");
        }
    }

    fn partition_meta(tag: &str) -> &'static str {
        match tag {
            "hot-posts" => "rolltop:1:{hot-posts}:meta",
            _ => "rolltop:1:{hot-posts/5}:0000000000000007:meta",
        }
    }
}
