//! Every key there is. All keys of a part of a board share a hash tag, so that in a cluster they live together: that of
//! the only part of a board without shards is the board's name. All but the board's own `meta` carry the generation, so
//! that a deleted and re-created board never meets old keys.

use super::hash_slot::HashSlot;
use crate::board::{BoardName, Generation, Subject, Timestamp};

/// Changes when the layout does, so that two layouts never meet.
const SCHEMA: u32 = 1;

const NAMES: &str = "boards";
const CLOCK: &str = "clock";
const CHECK: &str = "check";

/// Keys that belong to no board.
#[derive(Clone, Debug)]
pub(super) struct StoreKeys {
    root: String,
    names_slot: HashSlot,
    clock_slot: HashSlot,
    check_slot: HashSlot,
}

/// Keys of one part of a board.
#[derive(Clone, Debug)]
pub(super) struct BoardKeys {
    pub meta: String,
    pub index: String,
    pub ranking: String,
    pub buckets: String,
    pub totals: String,
    /// Sorted set: the numbers of the expiry periods that exist.
    pub periods: String,
    generation: String,
}

impl StoreKeys {
    pub fn new(prefix: &str) -> Self {
        let root = format!("{prefix}:{SCHEMA}:");
        let slot = |key: &str| HashSlot::of_key(format!("{root}{key}").as_bytes());
        Self { names_slot: slot(NAMES), clock_slot: slot(CLOCK), check_slot: slot(CHECK), root }
    }

    /// Set of the names of boards, for listing; a name without a meta key is no board.
    pub fn names(&self) -> String {
        format!("{}{NAMES}", self.root)
    }

    /// Drawn anew whenever the list of boards has become another. On the hash tag of [`names`](Self::names), so that
    /// in a cluster too one script may touch both.
    pub fn version(&self) -> String {
        format!("{}{{{}}}:version", self.root, self.names())
    }

    /// Hash: clock mode, and the time of a simulated clock.
    pub fn clock(&self) -> String {
        format!("{}{CLOCK}", self.root)
    }

    /// Set: generation and name of every board that was removed and of which something may be left.
    pub fn removed(&self) -> String {
        format!("{}removed", self.root)
    }

    /// Hash: run id of a server to the instance that has asked it to rewrite its append-only file.
    pub fn rewrites(&self) -> String {
        format!("{}rewrites", self.root)
    }

    /// Written by health checks.
    pub fn check(&self) -> String {
        format!("{}{CHECK}", self.root)
    }

    /// Where the names of boards and the version of their list are.
    pub fn names_slot(&self) -> HashSlot {
        self.names_slot
    }

    pub fn clock_slot(&self) -> HashSlot {
        self.clock_slot
    }

    pub fn removed_slot(&self) -> HashSlot {
        HashSlot::of_key(self.removed().as_bytes())
    }

    pub fn rewrites_slot(&self) -> HashSlot {
        HashSlot::of_key(self.rewrites().as_bytes())
    }

    pub fn check_slot(&self) -> HashSlot {
        self.check_slot
    }

    /// Hash: generation, definition, head, floor, and what else is known of the board as a whole.
    pub fn meta(&self, board: &BoardName) -> String {
        format!("{}{{{board}}}:meta", self.root)
    }

    /// The keys of the only part of a board without shards.
    pub fn board(&self, board: &BoardName, generation: Generation) -> BoardKeys {
        BoardKeys::new(self.meta(board), format!("{}{{{board}}}:{generation}", self.root))
    }

    /// The keys of a part with a hash tag of its own. Its meta key too carries the generation, so that a board never
    /// meets a part that an earlier one of its name has left.
    pub fn part(&self, tag: &str, generation: Generation) -> BoardKeys {
        let root = format!("{}{{{tag}}}:{generation}", self.root);
        BoardKeys::new(format!("{root}:meta"), root)
    }
}

impl BoardKeys {
    fn new(meta: String, root: String) -> Self {
        Self {
            meta,
            index: format!("{root}:i"),
            ranking: format!("{root}:r"),
            buckets: format!("{root}:b"),
            totals: format!("{root}:t"),
            periods: format!("{root}:e"),
            generation: root,
        }
    }

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

    /// Set: the subjects that were written to in an expiry period.
    pub fn written(&self, period: i64) -> String {
        format!("{}:e:{period}", self.generation)
    }

    /// Hash: subject and id, with a zero byte between, to time of arrival.
    pub fn dedupe(&self, bucket: i64) -> String {
        format!("{}:d:{bucket}", self.generation)
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
                board.subject(&subject),
                board.seen(&subject),
                board.gone(&subject),
                board.written(7),
                board.periods,
                board.totals,
                board.index,
                board.ranking,
                board.buckets,
            ]
        };
        let (one, other) = (of(1), of(2));
        assert_eq!(tag(&keys.version()), keys.names());
        assert_eq!(keys.names_slot(), HashSlot::of_key(keys.version().as_bytes()));
        assert_eq!(keys.clock_slot(), HashSlot::of_key(keys.clock().as_bytes()));
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
