//! Tests that damage is told from a normal end.

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;

/// Creates a log of several segments, all synced, in which each frame records that all frames before it were synced.
fn synced_log(frames: u64) -> (Simulated, LogEnd) {
    let files = new_disk();
    let mut log = new_log(&files);
    for seq in 1..=frames {
        log.append(seq, seq - 1, &payload(seq, 0)).unwrap();
        sync_all(&mut log);
    }
    let end = read(&files, START).unwrap().1;
    (files, end)
}

/// Checks what was read from such a log after damage: at least the frames up to `proven`.
fn check(result: Result<Read, StorageError>, proven: u64, what: &str) {
    match result {
        Ok((read, _)) => {
            assert!(read.len() as u64 >= proven, "{what}: only {} frames were read", read.len());
            assert!(read.iter().zip(1..).all(|((seq, bytes), n)| *seq == n && *bytes == payload(n, 0)), "{what}");
        }
        Err(StorageError::Damaged { file, what: why, .. }) => {
            assert!(file.starts_with("log/") && !why.is_empty(), "{what}");
        }
        Err(error) => panic!("{what}: {error}"),
    }
}

fn place_of(result: Result<Read, StorageError>) -> (String, u64) {
    match result {
        Err(StorageError::Damaged { file, offset, .. }) => (file, offset),
        other => panic!("not noticed: {other:?}"),
    }
}

#[test]
fn every_flipped_bit_is_detected_or_harmless() {
    let (files, end) = synced_log(16);
    assert!(end.segments.len() >= 3);
    for segment in &end.segments {
        for offset in 0..SEGMENT {
            for bit in 0..8 {
                let damaged = files.crash(0, Crash::PowerLoss);
                damaged.damage(&segment_name(segment.number), offset, |byte| byte ^ 1 << bit);
                check(read(&damaged, START), 15, &format!("segment {}, byte {offset}, bit {bit}", segment.number));
            }
        }
    }
}

#[test]
fn every_truncation_and_missing_segment_is_detected_or_harmless() {
    let (files, end) = synced_log(16);
    for segment in &end.segments {
        let name = segment_name(segment.number);
        let file = files.open(&name).unwrap();
        let mut bytes = vec![0; SEGMENT as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        // Frames cut off the last segment are the ones that would confirm each other.
        let proven = if segment.number == end.segment { segment.first_seq - 1 } else { 15 };
        for cut in 0..bytes.len() {
            let damaged = files.crash(0, Crash::PowerLoss);
            damaged.remove(&name).unwrap();
            damaged.create_new(&name).unwrap().write_all_at(&bytes[..cut], 0).unwrap();
            check(read(&damaged, START), proven, &format!("{name} cut at {cut}"));
        }
        let damaged = files.crash(0, Crash::PowerLoss);
        damaged.remove(&name).unwrap();
        let result = read(&damaged, START);
        if segment.number == end.segment {
            assert_eq!(result.unwrap().1.last_seq, segment.first_seq - 1, "nothing confirms the last segment");
        } else {
            assert_eq!(place_of(result).1, if segment.number == 1 { 0 } else { end_before(&end, segment.number) });
        }
    }
}

/// Returns the position at which the log ends in the segment before this one.
fn end_before(end: &LogEnd, number: u64) -> u64 {
    end.segments.iter().find(|segment| segment.number + 1 == number).unwrap().end
}

#[test]
fn missing_frames_that_the_manifest_confirms_are_detected() {
    let (files, end) = synced_log(16);
    let last = *end.segments.last().unwrap();
    files.remove(&segment_name(last.number)).unwrap();
    let reached = last.first_seq - 1;
    assert_eq!(read(&files, LogStart { synced_seq: reached, ..START }).unwrap().1.last_seq, reached);
    let result = read(&files, LogStart { synced_seq: reached + 1, ..START });
    assert_eq!(place_of(result), (segment_name(last.number - 1), end_before(&end, last.number)));
    // The log does not exist at all.
    let empty = Simulated::new();
    assert_eq!(place_of(read(&empty, LogStart { segment: 4, seq: 9, synced_seq: 9 })), (segment_name(4), 0));
    assert_eq!(read(&empty, LogStart { segment: 4, seq: 9, synced_seq: 8 }).unwrap().1.last_seq, 8);
}

#[test]
fn the_damage_message_states_place_and_reason() {
    let (files, end) = synced_log(16);
    let at = end.segments[1].end - 8;
    files.damage(&segment_name(2), at, |byte| byte ^ 1);
    let error = read(&files, START).unwrap_err().to_string();
    assert!(error.starts_with("log/0000000002.log is damaged at byte "), "{error}");
    assert!(error.contains("the payload of the frame is not valid; the frame with sequence"), "{error}");
    assert!(error.contains("but log/0000000003.log states at byte 0 that all frames up to"), "{error}");
}

/// Tests that a hole in unsynced data is the end of the log, although later frames survived, and that these never
/// return.
#[test]
fn frames_after_an_unsynced_hole_are_dropped_permanently() {
    let files = new_disk();
    let mut log = new_log(&files);
    let mut places = Vec::new();
    for seq in 1..=16 {
        places.push((log.current_number(), log.offset()));
        log.append(seq, seq.min(5) - 1, &payload(seq, 0)).unwrap();
    }
    sync_all(&mut log);
    let last_number = log.current_number();
    assert!(last_number > 2);
    // Frame 7 is lost. Nothing proves that it was synced.
    let (number, offset) = log_place(&files, 7);
    files.damage(&segment_name(number), offset, |byte| byte ^ 1);
    let (frames, mut end) = read(&files, START).unwrap();
    assert_eq!((frames.len(), end.last_seq, end.next_segment), (6, 6, last_number + 1));
    assert_eq!((end.segment, end.offset), (number, offset));
    let dead: Vec<String> = (number + 1..=last_number).map(segment_name).collect();
    assert_eq!(end.files_to_delete, dead);
    end.make_durable(&files).unwrap();
    // The log is continued with different frames, while the dead files still exist.
    let mut log = append_to(&files, &mut end);
    for seq in 7..=12 {
        log.append(seq, seq - 1, &payload(seq, 1)).unwrap();
    }
    let (frames, end) = read(&files, START).unwrap();
    let expected: Vec<_> = (1..=12).map(|seq| (seq, payload(seq, u64::from(seq > 6)))).collect();
    assert_eq!(frames, expected);
    assert_eq!(end.files_to_delete, dead);
    // The same without some of the dead files.
    files.remove(&dead[0]).unwrap();
    assert_eq!(read(&files, START).unwrap().0, expected);
}

/// Returns the segment and the offset of a frame.
fn log_place(files: &Simulated, seq: u64) -> (u64, u64) {
    let mut reader = LogReader::open(Arc::new(files.clone()), STORE, START).unwrap();
    while let Some(frame) = reader.next().unwrap() {
        if frame.seq == seq {
            return (frame.segment, frame.offset);
        }
    }
    panic!("no frame {seq}");
}

#[test]
fn an_invalid_header_of_an_unsynced_segment_ends_the_log() {
    for synced in [false, true] {
        let files = new_disk();
        let mut log = new_log(&files);
        log.append(1, 0, b"one").unwrap();
        log.rotate().unwrap();
        log.append(2, 0, b"two").unwrap();
        log.append(3, if synced { 2 } else { 1 }, b"three").unwrap();
        files.damage(&segment_name(2), 20, |byte| byte ^ 1);
        let result = read(&files, START);
        if synced {
            assert_eq!(place_of(result), (segment_name(1), 72 + 32));
        } else {
            let (frames, end) = result.unwrap();
            assert_eq!((frames.len(), end.next_segment), (1, 3));
        }
    }
}

/// Tests a chain in which the header of a later segment survives, but not the header of the one in between.
#[test]
fn a_broken_chain_of_unsynced_segments_ends_the_log() {
    for synced in [false, true] {
        let files = new_disk();
        let mut log = new_log(&files);
        for seq in 1..=3 {
            log.append(seq, if synced { seq - 1 } else { 0 }, b"x").unwrap();
            log.rotate().unwrap();
        }
        files.damage(&segment_name(2), 0, |_| 0);
        let result = read(&files, START);
        if synced {
            assert_eq!(place_of(result), (segment_name(1), 72 + 32));
        } else {
            let (frames, mut end) = result.unwrap();
            assert_eq!((frames.len(), end.segment, end.next_segment), (1, 1, 5));
            end.make_durable(&files).unwrap();
            append_to(&files, &mut end).append(2, 1, b"other").unwrap();
            assert_eq!(read(&files, START).unwrap().0, [(1, b"x".to_vec()), (2, b"other".to_vec())]);
        }
    }
}

#[test]
fn segments_of_another_store_or_number_are_refused() {
    let (files, _) = synced_log(16);
    let open = |store, start| LogReader::open(Arc::new(files.clone()), store, start).map(|_| ()).unwrap_err();
    let error = open(STORE + 1, START).to_string();
    assert_eq!(error, "log/0000000001.log is damaged at byte 0: the segment belongs to another store");
    let error = open(STORE, LogStart { segment: 2, seq: 1, synced_seq: 0 }).to_string();
    assert!(error.starts_with("log/0000000002.log is damaged at byte 0: it begins with sequence "), "{error}");
    files.link_to(&segment_name(2), &files, &segment_name(9)).unwrap();
    let error = open(STORE, START).to_string();
    assert_eq!(error, "log/0000000009.log is damaged at byte 0: the file is segment 2");
}

/// Tests that a disk which cannot be read is not taken for the end of the log.
#[test]
fn io_errors_are_not_taken_for_the_end_of_the_log() {
    let (files, _) = synced_log(16);
    let first = files.operations();
    let all = read(&files, START).unwrap();
    let steps = files.operations() - first;
    for step in 1..=steps {
        let first = files.operations();
        files.at(first + step, Fault::Io);
        assert!(matches!(read(&files, START), Err(StorageError::Io { .. })), "step {step}");
    }
    assert_eq!(read(&files, START).unwrap(), all);
}

#[test]
fn the_search_for_later_frames_reads_each_byte_once() {
    let files = new_disk();
    let mut end = read(&files, START).unwrap().1;
    let mut log = LogAppender::open(Arc::new(files.clone()), STORE, &mut end, 4 << 20).unwrap();
    log.append(1, 0, b"one").unwrap();
    let bytes = Arc::new(AtomicU64::new(0));
    files.on_operation(Box::new({
        let bytes = Arc::clone(&bytes);
        move |_, op| {
            if op.kind == OperationKind::Read {
                bytes.fetch_add(op.bytes, Ordering::Relaxed);
            }
        }
    }));
    assert_eq!(read(&files, START).unwrap().0.len(), 1);
    // Once to read frames, for which the first part of a segment is enough, and once to search.
    assert!(bytes.load(Ordering::Relaxed) <= (4 << 20) + (2 << 20));
}

proptest! {
    /// Tests that reading ends without a panic, whatever is in the files.
    #[test]
    fn arbitrary_bytes_do_not_panic(
        contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 0..4),
        headers in any::<bool>(),
        start in 0u64..3,
    ) {
        let files = new_disk();
        for (number, bytes) in (1..).zip(contents) {
            let file = files.create_new(&segment_name(number)).unwrap();
            let mut offset = 0;
            if headers {
                let header = super::super::segment::SegmentHeader {
                    store: STORE, number, first_seq: number - 1, previous: number - 1,
                    previous_end: u64::from(bytes.first().copied().unwrap_or(0)), synced_seq: 0,
                };
                file.write_all_at(&header.encode(), 0).unwrap();
                offset = 72;
            }
            file.write_all_at(&bytes, offset).unwrap();
        }
        if let Ok((frames, _)) = read(&files, LogStart { segment: start, seq: 1, synced_seq: 0 }) {
            prop_assert!(frames.is_empty());
        }
    }
}
