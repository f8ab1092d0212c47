use super::*;
use crate::board::Position;

const IMPORT: ImportId = ImportId(u64::MAX - 1);
const PROGRESS: Progress = Progress { through: (1 << 40) - 2, partial: (1 << 40) - 1, done: 999 };
const MARK: Mark = Mark { register: 2_047, rank: 54 };

const MAIN: TrackId = TrackId(u64::MAX - 2);
const EDITIONS: [TrackId; MAX_EDITIONS] = [MAIN, TrackId(3)];
const NEVER_FILLED: EditionCounts =
    EditionCounts { since: -9, filled: None, missed: [[0, 1, 127, 128], [u64::MAX; 4]] };
const FILLED: EditionCounts = EditionCounts { filled: Some(i64::MAX), ..NEVER_FILLED };

fn clock() -> ClockRecord {
    ClockRecord { wall: 1, uptime: 2, boot: u128::MAX - 3 }
}

fn sample() -> LogOperations {
    let mut operations = LogOperations::of(TrackId(7));
    operations.amount(-1, i64::MAX, "päth/😀");
    operations.amount(-1, i64::MIN, "päth/😀");
    operations.id(5, Fingerprint(9));
    operations.removed("x");
    operations.advanced(9);
    operations.removed("y");
    operations.defined_at(8, 9);
    operations.samples(1, (-5, 2), "a");
    operations.marked(2, MARK, "b");
    operations.sketch(2, &[1, 2, 3], "b");
    operations.value(Some(LastSeen { at: 3, retracted: false }), "c", "v");
    operations.value(Some(LastSeen { at: 4, retracted: true }), "c", "w");
    operations.value(None, "e", "x");
    operations.capped(6, "f");
    operations.defined(Generation(8), "hot", "{}");
    operations.undefined(Generation(8));
    operations.clock(clock());
    operations.simulated(10);
    operations.events(3, u64::MAX);
    operations.row("keys", "k", Some(""));
    operations.row("keys", "päth", None);
    operations.import_begun(IMPORT);
    operations.merged(IMPORT, PROGRESS);
    operations.import_ended(IMPORT);
    operations.editions((Generation(8), Epoch(2)), MAIN, "{}", "ü");
    operations.edition_counts(EDITIONS, &NEVER_FILLED);
    operations.edition_counts(EDITIONS, &FILLED);
    operations.advanced(7);
    operations.sampled(false, 8, 9);
    operations.events(3, 1);
    operations.sampled(true, 8, 9);
    operations.reached(SourceNumber(u32::MAX), &Reached::evenly(Position::MAX));
    operations
}

#[test]
fn log_operations_round_trip() {
    let sample = sample();
    let read: Vec<_> = operations(sample.bytes()).collect::<Result<_, _>>().unwrap();
    assert_eq!(
        read,
        [
            LogOperation::Track(TrackId(7)),
            LogOperation::Amount { slot: -1, amount: i64::MAX, subject: "päth/😀" },
            LogOperation::Amount { slot: -1, amount: i64::MIN, subject: "päth/😀" },
            LogOperation::Id { arrival: 5, fingerprint: Fingerprint(9) },
            LogOperation::Removed { subject: "x" },
            LogOperation::Advanced { now: 9 },
            LogOperation::Removed { subject: "y" },
            LogOperation::DefinedAt { at: 8 },
            LogOperation::Advanced { now: 9 },
            LogOperation::Samples { slot: 1, sum: -5, count: 2, subject: "a" },
            LogOperation::Marked { slot: 2, mark: MARK, subject: "b" },
            LogOperation::Sketch { slot: 2, sketch: &[1, 2, 3], subject: "b" },
            LogOperation::Value { last_seen: Some(LastSeen { at: 3, retracted: false }), subject: "c", value: "v" },
            LogOperation::Value { last_seen: Some(LastSeen { at: 4, retracted: true }), subject: "c", value: "w" },
            LogOperation::Value { last_seen: None, subject: "e", value: "x" },
            LogOperation::Capped { at: 6, subject: "f" },
            LogOperation::Defined { generation: Generation(8), name: "hot", definition: "{}" },
            LogOperation::Undefined { generation: Generation(8) },
            LogOperation::Clock(clock()),
            LogOperation::Simulated { now: 10 },
            LogOperation::Events { slot: 3, count: u64::MAX },
            LogOperation::Row { table: "keys", id: "k", text: Some("") },
            LogOperation::Row { table: "keys", id: "päth", text: None },
            LogOperation::ImportBegun { import: IMPORT },
            LogOperation::Merged { import: IMPORT, progress: PROGRESS },
            LogOperation::ImportEnded { import: IMPORT },
            LogOperation::Editions {
                generation: Generation(8),
                epoch: Epoch(2),
                main: MAIN,
                definition: "{}",
                form: "ü"
            },
            LogOperation::Counts { editions: EDITIONS, counts: NEVER_FILLED },
            LogOperation::Counts { editions: EDITIONS, counts: FILLED },
            LogOperation::Advanced { now: 7 },
            LogOperation::Sampled { any: false },
            LogOperation::DefinedAt { at: 8 },
            LogOperation::Advanced { now: 9 },
            LogOperation::Events { slot: 3, count: 1 },
            LogOperation::Sampled { any: true },
            LogOperation::DefinedAt { at: 8 },
            LogOperation::Advanced { now: 9 },
            LogOperation::Reached { source: SourceNumber(u32::MAX), text: "ffffffffffffffffffffffffffffffff" },
        ]
    );
    assert_eq!(LogOperations::of(TrackId(7)).len(), HEADER);
}

/// Tests that versions which know no samples read times only, of which the last two are the right ones.
#[test]
fn earlier_versions_can_read_whether_there_are_samples() {
    for any in [false, true] {
        let (mut sampled, mut times) = (LogOperations::of(TrackId(7)), LogOperations::of(TrackId(7)));
        sampled.sampled(any, 8_000, 9_000);
        [i64::from(any), 8_000, 9_000].into_iter().for_each(|time| times.advanced(time));
        assert_eq!(sampled.bytes(), times.bytes());
    }
}

#[test]
fn buffers_can_be_joined_in_any_order() {
    let mut one = LogOperations::of(TrackId(1));
    one.amount(5, 1, "a");
    let mut two = LogOperations::of(TrackId(2));
    two.amount(5, 1, "a");
    two.clear();
    assert_eq!(two.len(), HEADER);
    two.amount(5, 2, "a");
    for (first, second) in [(&one, &two), (&two, &one)] {
        let joined = [first.bytes(), second.bytes()].concat();
        let alone = |part: &LogOperations| operations(part.bytes()).map(|o| format!("{o:?}")).collect::<Vec<_>>();
        let read: Vec<_> = operations(&joined).map(|o| format!("{o:?}")).collect();
        assert_eq!(read, [alone(first), alone(second)].concat());
    }
}

#[test]
fn consecutive_operations_share_subject_and_slot() {
    let mut operations = LogOperations::of(TrackId(1));
    operations.amount(1, 1, "a-subject-of-some-length");
    let first = operations.len();
    operations.amount(1, 2, "a-subject-of-some-length");
    assert_eq!(operations.len() - first, 3);
}

#[test]
fn arbitrary_bytes_do_not_panic_the_decoder() {
    let bytes = sample().bytes;
    for end in 0..bytes.len() {
        for value in 0..=255 {
            let mut mangled = bytes[..end].to_vec();
            mangled.push(value);
            let _ = operations(&mangled).count();
        }
    }
}

#[test]
fn an_operation_of_a_later_version_is_not_damage() {
    let mut operations = LogOperations::of(TrackId(1));
    operations.amount(1, 1, "a");
    operations.bytes.push(200);
    let error = super::operations(operations.bytes()).find_map(Result::err).unwrap();
    assert_eq!(error, OperationError::Unknown(200));
    let text = error.in_file("log/1", 7).to_string();
    assert!(text.contains("log/1") && text.contains("use the version that wrote it"), "{text}");
}
