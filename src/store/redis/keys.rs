//! Every key there is. All keys of a board share the hash tag `{name}`, so that in a cluster they live together;
//! all but `meta` carry the generation, so that a deleted and re-created board never meets old keys.

use crate::board::{BoardName, Generation, Subject, Timestamp};

/// Changes when the layout does, so that two layouts never meet.
const SCHEMA: u32 = 1;

/// Keys that belong to no board.
#[derive(Clone, Debug)]
pub(super) struct StoreKeys {
    root: String,
}

/// Keys of one board.
#[derive(Clone, Debug)]
pub(super) struct BoardKeys {
    pub meta: String,
    pub index: String,
    pub ranking: String,
    pub buckets: String,
    pub totals: String,
    generation: String,
}

impl StoreKeys {
    pub fn new(prefix: &str) -> Self {
        Self { root: format!("{prefix}:{SCHEMA}:") }
    }

    /// Set of the names of boards, for listing; a name without a meta key is no board.
    pub fn names(&self) -> String {
        format!("{}boards", self.root)
    }

    /// Drawn anew whenever the list of boards has become another. On the hash tag of [`names`](Self::names), so that
    /// in a cluster too one script may touch both.
    pub fn version(&self) -> String {
        format!("{}{{{}}}:version", self.root, self.names())
    }

    /// Hash: clock mode, and the time of a simulated clock.
    pub fn clock(&self) -> String {
        format!("{}clock", self.root)
    }

    /// Written by health checks.
    pub fn check(&self) -> String {
        format!("{}check", self.root)
    }

    /// Hash: generation, definition, head, floor, retiring cursor.
    pub fn meta(&self, board: &BoardName) -> String {
        format!("{}{{{board}}}:meta", self.root)
    }

    pub fn board(&self, board: &BoardName, generation: Generation) -> BoardKeys {
        let root = format!("{}{{{board}}}:{generation}", self.root);
        BoardKeys {
            meta: self.meta(board),
            index: format!("{root}:i"),
            ranking: format!("{root}:r"),
            buckets: format!("{root}:b"),
            totals: format!("{root}:t"),
            generation: root,
        }
    }
}

impl BoardKeys {
    /// Hash: subject to cell.
    pub fn slot(&self, start: Timestamp) -> String {
        format!("{}:s:{}", self.generation, start.millis())
    }

    /// Unranked boards. Hash: start of the slot to cell; on a `from_first` board its counter.
    pub fn subject(&self, subject: &Subject) -> String {
        format!("{}:u:{subject}", self.generation)
    }

    /// COUNT_DISTINCT. Sorted set: the subject's values by the time each was last seen.
    pub fn seen(&self, subject: &Subject) -> String {
        format!("{}:v:{subject}", self.generation)
    }

    /// COUNT_DISTINCT. Sorted set: the subject's tombstones by time, and when a value was dropped for want of room.
    pub fn gone(&self, subject: &Subject) -> String {
        format!("{}:x:{subject}", self.generation)
    }

    /// Hash: subject and id, with a zero byte between, to time of arrival.
    pub fn dedupe(&self, bucket: i64) -> String {
        format!("{}:d:{bucket}", self.generation)
    }

    /// The last operation of one lane of one writer, with its reply.
    pub fn operation(&self, writer: &str, lane: usize) -> String {
        format!("{}:o:{writer}:{lane}", self.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of a key that a cluster hashes.
    fn tag(key: &str) -> &str {
        let from = key.find('{').unwrap() + 1;
        &key[from..from + key[from..].find('}').unwrap()]
    }

    #[test]
    fn a_board_lives_on_one_hash_tag_and_generations_never_share_a_key() {
        let keys = StoreKeys::new("rolltop");
        let name = BoardName::parse("hot-posts").unwrap();
        let subject = Subject::parse("{a}:b").unwrap();
        let of = |generation| {
            let board = keys.board(&name, Generation(generation));
            [
                board.slot(Timestamp::from_millis(3_600_000)),
                board.dedupe(7),
                board.operation("w", 0),
                board.subject(&subject),
                board.seen(&subject),
                board.gone(&subject),
                board.totals,
                board.index,
                board.ranking,
                board.buckets,
            ]
        };
        let (one, other) = (of(1), of(2));
        assert_eq!(tag(&keys.version()), keys.names());
        assert_eq!(keys.meta(&name), "rolltop:1:{hot-posts}:meta");
        assert_eq!(one[0], "rolltop:1:{hot-posts}:0000000000000001:s:3600000");
        for key in &one {
            assert_eq!(tag(key), "hot-posts");
            assert!(!other.contains(key));
        }
        let distinct: std::collections::HashSet<_> = one.iter().collect();
        assert_eq!(distinct.len(), one.len());
    }
}
