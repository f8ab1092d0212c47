//! A question to one part, and what each kind of read defines.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use redis::{Cmd, Value};

use super::look::Look;
use super::pages::Pages;
use crate::board::{Frame, RankingKey, Timestamp, Track};
use crate::store::redis::kinds;
use crate::store::redis::part::Part;
use crate::store::redis::reply::Reply;
use crate::store::redis::scripts::{Script, ScriptCall, order_argument};
use crate::store::redis::servers::ServerFailure;
use crate::store::redis::session::Moment;

/// The smallest weight of a question: about the cost of its command for the server, however little it reads.
pub(super) const LEAST: u64 = 16;
/// The whole key of a subject is read if it has up to this many times the requested slots.
const WHOLE: u64 = 3;
/// A position beyond any sorted set, which is exact in Lua.
pub(super) const FARTHEST: u64 = 1 << 52;

/// A kind of read of one part. Equal values have the same reply at the same instant.
pub(super) trait Read: Clone + Debug + Eq + Hash + Send + Sync + 'static {
    type Reply: Clone + Debug + Send + 'static;

    /// Returns the cost of the reply for the server and its size in memory, in cells read.
    fn cells(&self, track: &Track) -> u64;

    /// Adds the keys and arguments that follow those of every script about a board, and returns the script. `key` is the
    /// key of the ranking, if it is one of several.
    fn call(&self, moment: &Moment<'_>, key: Option<&RankingKey>, call: &mut ScriptCall) -> &'static Script;

    /// Reads the rest of the script's reply.
    fn read(&self, moment: &Moment<'_>, seen: Seen, reply: &mut Reply) -> Result<Self::Reply, ServerFailure>;

    /// Returns how the read is answered without a script, or `None` if only a script can. `pages` is `None` if a cached
    /// reply was found to be outdated.
    fn peek(
        &self,
        _part: &Arc<Part>,
        _key: Option<&RankingKey>,
        _moment: &Moment<'_>,
        _pages: Option<&Pages>,
    ) -> Option<Peek<Self>> {
        None
    }

    /// Caches a reply that was read, if replies of this kind are cached. Returns the reply.
    fn keep(&self, _part: &Arc<Part>, _key: Option<&RankingKey>, reply: Self::Reply, _pages: &Pages) -> Self::Reply {
        reply
    }
}

/// What every reply of a script says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub frame: Frame,
    /// The incarnation of the part's node, or `None` if it changed in the meantime.
    pub incarnation: Option<u64>,
}

/// Commands that answer a read together with a [look](super::look) that follows them.
pub(super) struct Peek<R: Read> {
    pub commands: Vec<Cmd>,
    /// Whether the reply is a cached one, so that only the look is needed.
    pub is_cached: bool,
    pub read: PeekReader<R>,
}

/// Reads the replies to the commands, given a look that confirms the window. Returns `None` if they are not an answer.
pub(super) type PeekReader<R> =
    Box<dyn FnOnce(&R, &Moment<'_>, &Look, Vec<Value>) -> Result<Option<<R as Read>::Reply>, ServerFailure> + Send>;

/// A question about one part. Equal questions have the same answer at the same instant.
#[derive(Clone, Debug)]
pub(super) struct Question<R> {
    pub part: Arc<Part>,
    /// The head of a different part, to which this one advances first.
    pub at_least: Option<Timestamp>,
    /// The key of the ranking that is read, if the part has a ranking for each key.
    pub key: Option<RankingKey>,
    pub read: R,
}

impl<R: Read> Question<R> {
    pub fn new(part: Arc<Part>, read: R) -> Self {
        Self { part, at_least: None, key: None, read }
    }

    /// Returns the weight of the question in a flight.
    pub fn weight(&self) -> u64 {
        self.read.cells(&self.part.track).max(LEAST)
    }
}

impl<R: PartialEq> PartialEq for Question<R> {
    fn eq(&self, other: &Self) -> bool {
        let is_same_ranking = Arc::ptr_eq(&self.part, &other.part) && self.key == other.key;
        is_same_ranking && self.at_least == other.at_least && self.read == other.read
    }
}

impl<R: Hash> Hash for Question<R> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.part).hash(state);
        self.at_least.hash(state);
        self.key.hash(state);
        self.read.hash(state);
    }
}

/// Adds the ranking that is read, as every script about a ranking gets it.
pub(super) fn add_ranking(part: &Part, key: Option<&RankingKey>, call: &mut ScriptCall) {
    call.arg("order", order_argument(part.track.order())).arg("key", key.map_or("", RankingKey::as_str));
}

/// Returns the weight of this number of slots of one subject.
pub(super) fn cells(track: &Track, slots: u32) -> u64 {
    if track.is_from_first() {
        return 1;
    }
    let slots = u64::from(slots.min(track.slots()));
    let read = if reads_whole_key(track, slots as usize) { slots.max(track.kept().into()) } else { slots };
    read * kinds::of(track.kind()).read_weight()
}

/// Returns whether a subject's whole key is read, if this number of its slots is requested of an unranked board.
pub(super) fn reads_whole_key(track: &Track, slots: usize) -> bool {
    !track.is_ranked() && u64::from(track.kept()) <= WHOLE * slots as u64
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::subject::{Scope, SubjectRead};
    use super::*;
    use crate::board::{Board, BoardName, Definition, Generation, Subject, TrackId};
    use crate::store::SlotRange;
    use crate::store::redis::keys::StoreKeys;
    use crate::store::redis::partition_clock::PartitionClock;
    use crate::store::redis::store_clock::Start;

    /// Returns a part of a board with this metric.
    pub fn part(metric: &str, slot: &str, ranked: bool) -> Arc<Part> {
        let definition = Definition { ranked, ..Definition::new(metric.parse().unwrap(), slot.parse().unwrap()) };
        let board = Arc::new(Board::new(BoardName::parse("b").unwrap(), Generation(1), definition).unwrap());
        let keys = StoreKeys::new("p").board(board.name(), board.generation(), TrackId(1));
        let now = Timestamp::parse("2026-01-01T09:30:00Z").unwrap();
        let clock = PartitionClock::new(&board, false, |_| Start::believed(now));
        Arc::new(Part::new(board.main(), keys, Arc::new(clock)))
    }

    /// Returns a question for the last slots of a subject.
    pub fn window(part: &Arc<Part>, subject: &str, slots: u32) -> Question<SubjectRead> {
        let subject = Subject::parse(subject).unwrap();
        let scope = Scope::Slots { range: SlotRange::Slots(slots), as_of: None };
        Question::new(part.clone(), SubjectRead { subject, scope, with_rank: false, ties: false })
    }

    #[test]
    fn the_weight_of_a_question_is_what_it_reads() {
        let ranked = part("COUNT(2000m, e, s)", "1m", true);
        assert_eq!(window(&ranked, "a", 2_000).weight(), 2_000);
        assert_eq!(window(&ranked, "a", 5).weight(), LEAST);
        let sketches = part("APPROX_COUNT_DISTINCT(100m, e, s, c)", "1m", true);
        assert_eq!(window(&sketches, "a", 100).weight(), 100 * 16);
        // Of an unranked board everything that it keeps is read, unless that is much more than was requested.
        let unranked = part("COUNT(100m, e, s)", "1m", false);
        assert_eq!((window(&unranked, "a", 50).weight(), window(&unranked, "a", 20).weight()), (101, 20));
    }

    #[test]
    fn questions_about_the_same_partition_are_compared_by_content() {
        let (part, other) = (part("COUNT(2h, e, s)", "1h", true), part("COUNT(2h, e, s)", "1h", true));
        assert_eq!(window(&part, "a", 1), window(&part, "a", 1));
        assert_ne!(window(&part, "a", 1), window(&part, "a", 2));
        assert_ne!(window(&part, "a", 1), window(&other, "a", 1));
    }
}
