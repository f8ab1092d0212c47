//! Tests of the whole log, on a simulated disk.

mod crashes;
mod damage;

use std::sync::Arc;

use super::super::damage::StorageError;
use super::super::files::Files;
use super::super::files::simulated::{Crash, Fault, OperationKind, Simulated};
use super::super::files::system::SystemFiles;
use super::*;

pub(super) const STORE: u128 = 77;
pub(super) const SEGMENT: u64 = 1_024;
pub(super) const START: LogStart = LogStart { segment: 0, seq: 1, synced_seq: 0 };

/// The result of reading everything: the sequence and the payload of each frame, and the end.
pub(super) type Read = (Vec<(u64, Vec<u8>)>, LogEnd);

pub(super) fn new_disk() -> Simulated {
    let files = Simulated::new();
    files.create_dir(DIRECTORY).unwrap();
    files
}

pub(super) fn read(files: &Simulated, start: LogStart) -> Result<Read, StorageError> {
    let mut reader = LogReader::open(Arc::new(files.clone()), STORE, start)?;
    let mut frames = Vec::new();
    while let Some(frame) = reader.next()? {
        frames.push((frame.seq, frame.payload.to_vec()));
    }
    Ok((frames, reader.finish()?))
}

pub(super) fn append_to(files: &Simulated, end: &mut LogEnd) -> LogAppender {
    LogAppender::open(Arc::new(files.clone()), STORE, end, SEGMENT).unwrap()
}

pub(super) fn new_log(files: &Simulated) -> LogAppender {
    append_to(files, &mut read(files, START).unwrap().1)
}

pub(super) fn sync_all(log: &mut LogAppender) {
    for sealed in log.take_sealed() {
        sealed.file.sync_data().unwrap();
    }
    log.current_file().sync_data().unwrap();
}

/// Returns a payload of 0 to 299 bytes that is different for each frame.
pub(super) fn payload(seq: u64, round: u64) -> Vec<u8> {
    let len = (seq * 97 + round * 31) % 300;
    (0..len).map(|i| (seq * 7 + round * 13 + i) as u8).collect()
}

fn seqs(read: &Read) -> Vec<u64> {
    read.0.iter().map(|(seq, _)| *seq).collect()
}

#[test]
fn a_new_log_is_empty_and_starts_at_segment_1() {
    let files = new_disk();
    let (frames, mut end) = read(&files, START).unwrap();
    assert_eq!(frames, []);
    assert_eq!((end.segment, end.offset, end.last_seq, end.next_segment), (0, 0, 0, 1));
    let mut log = append_to(&files, &mut end);
    assert_eq!((log.current_number(), log.next_seq()), (1, 1));
    log.append(1, 0, b"one").unwrap();
    let (frames, end) = read(&files, START).unwrap();
    assert_eq!(frames, [(1, b"one".to_vec())]);
    assert_eq!((end.segment, end.offset, end.last_seq, end.next_segment), (1, 72 + 32, 1, 2));
    assert_eq!(end.segments, [SegmentRange { number: 1, first_seq: 1, last_seq: 1, end: 104 }]);
    assert!(end.files_to_delete.is_empty());
}

#[test]
fn frames_are_read_across_segments() {
    let files = new_disk();
    let mut log = new_log(&files);
    let mut sealed = Vec::new();
    for seq in 1..=50 {
        let room = log.room();
        let before = log.current_number();
        log.append(seq, seq / 2, &payload(seq, 0)).unwrap();
        let fitted = log.current_number() == before;
        assert_eq!(fitted, room >= payload(seq, 0).len() as u64, "the room for frame {seq}");
        sealed.extend(log.take_sealed());
    }
    let (frames, end) = read(&files, START).unwrap();
    assert_eq!(frames, (1..=50).map(|seq| (seq, payload(seq, 0))).collect::<Vec<_>>());
    assert_eq!((end.segment, end.offset, end.last_seq), (log.current_number(), log.offset(), 50));
    assert_eq!(end.synced_seq, 25);
    let passed: Vec<SegmentRange> = sealed
        .iter()
        .map(|s| SegmentRange { number: s.number, first_seq: s.first_seq, last_seq: s.last_seq, end: s.end })
        .collect();
    assert_eq!(end.segments[..passed.len()], passed);
    assert_eq!(end.segments.len(), passed.len() + 1);
    assert_eq!(log.first_seq(), end.segments.last().unwrap().first_seq);
}

#[test]
fn a_frame_larger_than_a_segment_gets_its_own_segment() {
    let files = new_disk();
    let mut log = new_log(&files);
    let large = vec![7; 5_000];
    log.append(1, 0, &large).unwrap();
    assert_eq!(log.current_number(), 1);
    log.append(2, 0, b"small").unwrap();
    log.append(3, 0, &large).unwrap();
    let number = log.take_number();
    assert!(log.set_spare(SpareFile::create(&files, number, SEGMENT).unwrap()).is_none());
    log.append(4, 0, &large).unwrap();
    let (frames, _) = read(&files, START).unwrap();
    assert_eq!(frames, [(1, large.clone()), (2, b"small".to_vec()), (3, large.clone()), (4, large)]);
}

#[test]
fn a_spare_becomes_the_next_segment_without_creating_a_file() {
    let files = new_disk();
    let mut log = new_log(&files);
    log.append(1, 0, &[1; 600]).unwrap();
    let number = log.take_number();
    assert!(log.set_spare(SpareFile::create(&files, number, SEGMENT).unwrap()).is_none());
    assert_eq!(log.spare_len(), SEGMENT);
    // A spare is not part of the log.
    assert_eq!(read(&files, START).unwrap().1.segment, 1);
    files.set_capacity(Some(files.used()));
    files.when(u32::MAX, Fault::Io, |op| {
        matches!(op.kind, OperationKind::Create | OperationKind::Allocate | OperationKind::Sync)
    });
    log.append(2, 0, &[2; 600]).unwrap();
    assert_eq!((log.current_number(), log.spare_len()), (number, 0));
    files.clear_faults();
    assert_eq!(seqs(&read(&files, START).unwrap()), [1, 2]);
}

#[test]
fn a_late_or_second_spare_is_returned() {
    let files = new_disk();
    let mut log = new_log(&files);
    log.append(1, 0, &[1; 600]).unwrap();
    let late = SpareFile::create(&files, log.take_number(), SEGMENT).unwrap();
    log.append(2, 0, &[1; 600]).unwrap();
    assert_eq!(log.current_number(), 3);
    log.set_spare(late).unwrap().discard(&files).unwrap();
    assert_eq!(files.list(DIRECTORY).unwrap().len(), 2);
    let early = SpareFile::create(&files, log.take_number(), SEGMENT).unwrap();
    let next = SpareFile::create(&files, log.take_number(), SEGMENT).unwrap();
    assert!(log.set_spare(early).is_none());
    assert!(log.set_spare(next).is_some());
}

#[test]
fn a_failed_append_can_be_retried_at_the_same_place() {
    for kind in [
        OperationKind::Write,
        OperationKind::WriteRest,
        OperationKind::Create,
        OperationKind::Allocate,
        OperationKind::Sync,
        OperationKind::SyncDir,
    ] {
        for fault in [Fault::Io, Fault::NoSpace] {
            let files = new_disk();
            let mut log = new_log(&files);
            for seq in 1..=30 {
                let before = (log.offset(), log.next_seq());
                files.when(1, fault, move |op| op.kind == kind);
                let failed = log.append(seq, 0, &payload(seq, 0)).is_err();
                files.clear_faults();
                if failed {
                    assert_eq!(log.next_seq(), before.1);
                    let end = read(&files, START).unwrap().1;
                    // The missing bytes may all be zeros at the end of the frame.
                    assert!(end.last_seq == seq - 1 || end.last_seq == seq && kind == OperationKind::WriteRest);
                    log.append(seq, 0, &payload(seq, 0)).unwrap();
                }
            }
            let (frames, _) = read(&files, START).unwrap();
            assert_eq!(frames, (1..=30).map(|seq| (seq, payload(seq, 0))).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_rotation_discards_the_bytes_of_a_failed_append() {
    let files = new_disk();
    let mut log = new_log(&files);
    log.rotate().unwrap();
    assert_eq!(log.current_number(), 1, "there is nothing to end");
    log.append(1, 0, b"one").unwrap();
    files.when(1, Fault::Io, |op| op.kind == OperationKind::WriteRest);
    log.append(2, 0, &[2; 100]).unwrap_err();
    log.rotate().unwrap();
    assert_eq!((log.current_number(), log.take_sealed().len()), (2, 1));
    log.append(2, 0, &[2; 100]).unwrap();
    let (frames, end) = read(&files, START).unwrap();
    assert_eq!(frames, [(1, b"one".to_vec()), (2, vec![2; 100])]);
    assert_eq!(end.segment, 2);
}

#[test]
fn wrong_sequences_are_refused() {
    let files = new_disk();
    let mut log = new_log(&files);
    for (seq, synced_seq) in [(0, 0), (2, 0), (1, 1)] {
        assert_eq!(log.append(seq, synced_seq, b"").unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    }
    log.append(1, 0, b"").unwrap();
    assert_eq!(log.append(1, 0, b"").unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    assert_eq!(seqs(&read(&files, START).unwrap()), [1]);
}

#[test]
fn reading_starts_at_the_place_in_the_manifest() {
    let files = new_disk();
    let mut log = new_log(&files);
    (1..=30).for_each(|seq| log.append(seq, 0, &payload(seq, 0)).unwrap());
    let all = read(&files, START).unwrap().1.segments;
    let from = all[2];
    let start = LogStart { segment: from.number, seq: from.first_seq, synced_seq: 0 };
    let (frames, end) = read(&files, start).unwrap();
    assert_eq!(frames.first().unwrap().0, from.first_seq);
    assert_eq!(frames.last().unwrap().0, 30);
    assert_eq!(end.files_to_delete, [segment_name(all[0].number), segment_name(all[1].number)]);
    end.files_to_delete.iter().for_each(|name| files.remove(name).unwrap());
    assert_eq!(read(&files, start).unwrap().0, frames);
}

#[test]
fn a_large_log_is_read_and_made_durable() {
    let files = new_disk();
    let mut end = read(&files, START).unwrap().1;
    let mut log = LogAppender::open(Arc::new(files.clone()), STORE, &mut end, 3 << 20).unwrap();
    let large = |seq: u64| vec![seq as u8; 100_000 + seq as usize * 1_001];
    for seq in 1..=60 {
        log.append(seq, if seq < 50 { seq - 1 } else { 48 }, &large(seq)).unwrap();
    }
    let mut reader = LogReader::open(Arc::new(files.clone()), STORE, START).unwrap();
    let mut seq = 0;
    while let Some(frame) = reader.next().unwrap() {
        seq += 1;
        assert!(frame.seq == seq && frame.payload == large(seq));
        let (done, all) = reader.progress();
        assert!(done <= all);
    }
    assert_eq!(seq, 60);
    let mut end = reader.finish().unwrap();
    assert_eq!(end.synced_seq, 48);
    // The log was never really synced here. Frames up to 48 count as synced, so frames are written again from frame 49
    // on, or from shortly before it.
    let before = files.operations();
    end.make_durable(&files).unwrap();
    assert_eq!(end.synced_seq, 60);
    assert!(files.operations() - before < 40, "most of the log was written again");
    end.make_durable(&files).unwrap();
}

#[test]
fn a_log_on_a_real_disk_is_read_and_made_durable() {
    let directory = tempfile::tempdir().unwrap();
    let files: Arc<dyn Files> = Arc::new(SystemFiles::new(directory.path()));
    files.create_dir(DIRECTORY).unwrap();
    for life in 0..3u64 {
        let mut end = LogReader::open(Arc::clone(&files), STORE, START).unwrap().finish().unwrap();
        assert_eq!((end.last_seq, end.synced_seq), (life * 20, if life == 0 { 0 } else { life * 20 - 1 }));
        end.make_durable(&*files).unwrap();
        let mut log = LogAppender::open(Arc::clone(&files), STORE, &mut end, SEGMENT).unwrap();
        for seq in end.last_seq + 1..=end.last_seq + 20 {
            log.append(seq, seq - 1, &payload(seq, 0)).unwrap();
        }
        sync_all(&mut log);
        files.create_new(&segment_name(log.take_number())).unwrap();
    }
    let mut reader = LogReader::open(files, STORE, START).unwrap();
    for seq in 1..=60 {
        assert_eq!(reader.next().unwrap().map(|frame| frame.payload.to_vec()), Some(payload(seq, 0)));
    }
    assert_eq!(reader.next().unwrap(), None);
}

#[test]
fn frames_that_cannot_be_reread_are_not_made_durable() {
    let files = new_disk();
    let mut log = new_log(&files);
    (1..=20).for_each(|seq| log.append(seq, 0, &payload(seq, 0)).unwrap());
    files.when(1, Fault::Io, |op| op.kind == OperationKind::Sync);
    log.current_file().sync_data().unwrap_err();
    let mut end = read(&files, START).unwrap().1;
    assert_eq!(end.last_seq, 20);
    let mut again = end.clone();
    let images = files.crash(0, Crash::Killed);
    files.evict();
    assert!(matches!(end.make_durable(&files), Err(StorageError::Damaged { .. })));
    assert!(read(&files, START).unwrap().1.last_seq < 20);
    // As long as the log can be read, it can be written again, whatever fails in between.
    let first = images.operations();
    images.at(first + 20, Fault::Io);
    while again.make_durable(&images).is_err() {}
    let left = images.crash(3, Crash::PowerLoss);
    assert_eq!(read(&left, START).unwrap().1.last_seq, 20);
}

#[test]
fn make_durable_detects_frames_changed_since_they_were_read() {
    let files = new_disk();
    new_log(&files).append(1, 0, &[1; 100]).unwrap();
    let end = read(&files, START).unwrap().1;
    for offset in 0..end.offset - 4 {
        let changed = files.crash(0, Crash::Killed);
        changed.damage(&segment_name(1), offset, |byte| byte ^ 1);
        let error = end.clone().make_durable(&changed).unwrap_err();
        assert!(matches!(error, StorageError::Damaged { .. }), "byte {offset}");
    }
    end.clone().make_durable(&files).unwrap();
}

#[test]
fn a_log_can_be_opened_after_space_is_freed() {
    let files = new_disk();
    new_log(&files).append(1, 0, b"one").unwrap();
    let mut end = read(&files, START).unwrap().1;
    files.set_capacity(Some(files.used()));
    // Not even the created file can be removed.
    files.when(u32::MAX, Fault::Io, |op| op.kind == OperationKind::Remove);
    for _ in 0..3 {
        end.make_durable(&files).unwrap();
        let error = LogAppender::open(Arc::new(files.clone()), STORE, &mut end, SEGMENT).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        assert_eq!(seqs(&read(&files, START).unwrap()), [1]);
    }
    files.set_capacity(None);
    append_to(&files, &mut end).append(2, 1, b"two").unwrap();
    assert_eq!(seqs(&read(&files, START).unwrap()), [1, 2]);
}
