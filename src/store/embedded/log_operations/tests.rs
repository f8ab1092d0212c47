use super::*;

const MARK: Mark = Mark { register: 2_047, rank: 54 };

fn clock() -> ClockRecord {
    ClockRecord { wall: 1, uptime: 2, boot: u128::MAX - 3 }
}

fn sample() -> Operations {
    let mut operations = Operations::of(Generation(7));
    operations.amount(-1, i64::MAX, "päth/😀");
    operations.amount(-1, i64::MIN, "päth/😀");
    operations.id(5, Fingerprint(9));
    operations.removed("x");
    operations.advanced(9);
    operations.samples(1, (-5, 2), "a");
    operations.marked(2, MARK, "b");
    operations.sketch(2, &[1, 2, 3], "b");
    operations.sighted(Some(Sighting { at: 3, gone: false }), "c", "v");
    operations.sighted(Some(Sighting { at: 4, gone: true }), "c", "w");
    operations.sighted(None, "e", "x");
    operations.capped(6, "f");
    operations.defined(Generation(8), "hot", "{}");
    operations.undefined(Generation(8));
    operations.clock(clock());
    operations.simulated(10);
    operations
}

#[test]
fn operations_read_back() {
    let sample = sample();
    let read: Vec<_> = operations(sample.bytes()).collect::<Result<_, _>>().unwrap();
    assert_eq!(
        read,
        [
            Operation::Board(Generation(7)),
            Operation::Amount { slot: -1, amount: i64::MAX, subject: "päth/😀" },
            Operation::Amount { slot: -1, amount: i64::MIN, subject: "päth/😀" },
            Operation::Id { arrival: 5, fingerprint: Fingerprint(9) },
            Operation::Removed { subject: "x" },
            Operation::Advanced { now: 9 },
            Operation::Samples { slot: 1, sum: -5, count: 2, subject: "a" },
            Operation::Marked { slot: 2, mark: MARK, subject: "b" },
            Operation::Sketch { slot: 2, sketch: &[1, 2, 3], subject: "b" },
            Operation::Sighted { sighting: Some(Sighting { at: 3, gone: false }), subject: "c", value: "v" },
            Operation::Sighted { sighting: Some(Sighting { at: 4, gone: true }), subject: "c", value: "w" },
            Operation::Sighted { sighting: None, subject: "e", value: "x" },
            Operation::Capped { at: 6, subject: "f" },
            Operation::Defined { generation: Generation(8), name: "hot", definition: "{}" },
            Operation::Undefined { generation: Generation(8) },
            Operation::Clock(clock()),
            Operation::Simulated { now: 10 },
        ]
    );
    assert_eq!(Operations::of(Generation(7)).len(), HEADER);
}

#[test]
fn buffers_join_in_any_order() {
    let mut one = Operations::of(Generation(1));
    one.amount(5, 1, "a");
    let mut two = Operations::of(Generation(2));
    two.amount(5, 1, "a");
    two.clear();
    assert_eq!(two.len(), HEADER);
    two.amount(5, 2, "a");
    for (first, second) in [(&one, &two), (&two, &one)] {
        let joined = [first.bytes(), second.bytes()].concat();
        let alone = |part: &Operations| operations(part.bytes()).map(|o| format!("{o:?}")).collect::<Vec<_>>();
        let read: Vec<_> = operations(&joined).map(|o| format!("{o:?}")).collect();
        assert_eq!(read, [alone(first), alone(second)].concat());
    }
}

#[test]
fn a_subject_and_slot_are_written_once_in_a_row() {
    let mut operations = Operations::of(Generation(1));
    operations.amount(1, 1, "a-subject-of-some-length");
    let first = operations.len();
    operations.amount(1, 2, "a-subject-of-some-length");
    assert_eq!(operations.len() - first, 3);
}

#[test]
fn no_bytes_panic_the_decoder() {
    let bytes = sample().bytes;
    for end in 0..bytes.len() {
        for value in 0..=255 {
            let mut mangled = bytes[..end].to_vec();
            mangled.push(value);
            let _ = operations(&mangled).count();
        }
    }
}
