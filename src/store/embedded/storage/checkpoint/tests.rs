use std::sync::Arc;

use proptest::prelude::*;

use super::super::damage::StorageError;
use super::super::files::Files;
use super::super::files::simulated::{Crash, Fault, OperationKind as Operation, Simulated};
use super::*;

const NAME: &str = "checkpoints/1.ckpt";
const SUBJECT: FileIdentity = FileIdentity { kind: FileKind::Board, store: 7, generation: 3 };

fn disk() -> Simulated {
    let files = Simulated::new();
    files.create_dir("checkpoints").unwrap();
    files
}

fn write(files: &Simulated, blocks: &[Vec<u8>]) -> Result<u64, StorageError> {
    let mut writer = CheckpointWriter::create(Arc::new(files.clone()), NAME, SUBJECT)?;
    for block in blocks {
        writer.block(block)?;
    }
    writer.finish(blocks.len() as u64 * 10)
}

fn read(files: &Simulated, bytes: Option<u64>) -> Result<Vec<Vec<u8>>, StorageError> {
    let mut reader = CheckpointReader::open(files, NAME, SUBJECT, bytes)?;
    let mut blocks = Vec::new();
    while let Some(block) = reader.next()? {
        blocks.push(block.to_vec());
    }
    assert_eq!(reader.next()?, None);
    assert_eq!(reader.summary().blocks, blocks.len() as u64);
    Ok(blocks)
}

fn is_damage<T>(result: &Result<T, StorageError>) -> bool {
    matches!(result, Err(StorageError::Damaged { file, .. }) if file == NAME)
}

/// Creates a disk on which the file has these bytes.
fn disk_with(bytes: &[u8]) -> Simulated {
    let files = disk();
    files.create_new(NAME).unwrap().write_all_at(bytes, 0).unwrap();
    files
}

fn bytes_of(files: &Simulated) -> Vec<u8> {
    let file = files.open(NAME).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn sample() -> Vec<Vec<u8>> {
    vec![b"first".to_vec(), b"second one".to_vec(), b"first".to_vec()]
}

#[test]
fn checkpoint_blocks_round_trip() {
    let large = vec![vec![1; 3_000_000], vec![2; 10], vec![3; 900_000], vec![4; 900_000], vec![5; 2_000_000]];
    for blocks in [Vec::new(), sample(), large] {
        let files = disk();
        let bytes = write(&files, &blocks).unwrap();
        assert_eq!(bytes, files.open(NAME).unwrap().len().unwrap());
        assert!(read(&files, Some(bytes)).unwrap() == blocks);
        let reader = CheckpointReader::open(&files, NAME, SUBJECT, None).unwrap();
        let payloads = blocks.iter().map(|block| block.len() as u64).sum();
        let expected = Summary { blocks: blocks.len() as u64, records: blocks.len() as u64 * 10, bytes: payloads };
        assert_eq!(reader.summary(), expected);
        // The file and its name survive any crash.
        assert!(read(&files.crash(1, Crash::PowerLoss), Some(bytes)).unwrap() == blocks);
    }
}

#[test]
fn large_checkpoints_are_synced_during_writing() {
    let files = disk();
    let mut writer = CheckpointWriter::create(Arc::new(files.clone()), NAME, SUBJECT).unwrap();
    files.when(1, Fault::Io, |op| op.kind == Operation::Sync);
    let error = (0..40).find_map(|_| writer.block(&[7; 1 << 20]).err()).unwrap();
    assert!(matches!(error, StorageError::Io { operation: "sync", .. }));
    // A later sync would not report the bytes that were lost.
    writer.block(&[7; 1 << 20]).unwrap_err();
    writer.finish(0).unwrap_err();
    assert!(!files.exists(NAME).unwrap());
}

#[test]
fn every_flipped_bit_and_truncation_is_detected() {
    let files = disk();
    write(&files, &sample()).unwrap();
    let bytes = bytes_of(&files);
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(is_damage(&read(&disk_with(&flipped), None)), "bit {bit}");
    }
    for end in 0..bytes.len() {
        assert!(is_damage(&read(&disk_with(&bytes[..end]), None)), "cut at {end}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(is_damage(&read(&disk_with(&longer), None)));
    assert!(is_damage(&read(&files, Some(bytes.len() as u64 + 1))));
}

#[test]
fn missing_repeated_and_reordered_blocks_are_detected() {
    let files = disk();
    write(&files, &sample()).unwrap();
    let bytes = bytes_of(&files);
    let ends = [HEADER, HEADER + 13, HEADER + 13 + 18, HEADER + 13 + 18 + 13];
    let block = |i: usize| &bytes[ends[i]..ends[i + 1]];
    let with = |order: &[usize]| {
        let mut mangled = bytes[..HEADER].to_vec();
        order.iter().for_each(|i| mangled.extend_from_slice(block(*i)));
        mangled.extend_from_slice(&bytes[ends[3]..]);
        mangled
    };
    assert_eq!(with(&[0, 1, 2]), bytes);
    for order in [&[0, 1][..], &[1, 2], &[2, 1, 0], &[0, 1, 2, 2], &[0, 2], &[]] {
        assert!(is_damage(&read(&disk_with(&with(order)), None)), "{order:?}");
    }
}

#[test]
fn foreign_and_newer_files_are_distinguished_from_damage() {
    let files = disk();
    write(&files, &sample()).unwrap();
    for other in [
        FileIdentity { kind: FileKind::Ids, ..SUBJECT },
        FileIdentity { store: 8, ..SUBJECT },
        FileIdentity { generation: 4, ..SUBJECT },
    ] {
        let error = CheckpointReader::open(&files, NAME, other, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "checkpoints/1.ckpt is damaged at byte 0: it belongs to a different store or board, or is a different kind of file"
        );
    }
    let mut bytes = bytes_of(&files);
    bytes[8] = 9;
    let crc = header_checksum(bytes.first_chunk().unwrap());
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    assert!(matches!(read(&disk_with(&bytes), None), Err(StorageError::Newer { found: 9, known: 1, .. })));
}

#[test]
fn empty_and_oversized_blocks_are_refused() {
    let files = disk();
    for block in [Vec::new(), vec![0; MAX_BLOCK + 1]] {
        let error = write(&files, &[block]).unwrap_err();
        assert!(matches!(error, StorageError::Io { source, .. } if source.kind() == std::io::ErrorKind::InvalidInput));
    }
}

#[test]
fn a_write_error_is_reported_and_leaves_no_usable_file() {
    let blocks = vec![vec![1; 1_200_000], vec![2; 10]];
    let files = disk();
    let first = files.operations();
    write(&files, &blocks).unwrap();
    let steps = files.operations() - first;
    for step in 2..=steps {
        let files = disk();
        files.at(first + step, Fault::NoSpace);
        write(&files, &blocks).unwrap_err();
        assert!(!files.exists(NAME).unwrap(), "step {step}");
        // A file that a crash left is replaced.
        files.create_new(NAME).unwrap().write_all_at(&[9; 5_000_000], 0).unwrap();
        let bytes = write(&files, &blocks).unwrap();
        assert!(read(&files, Some(bytes)).unwrap() == blocks);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(is_damage(&read(&disk_with(&bytes), None)));
        let with_header = [&SUBJECT.header()[..], &bytes].concat();
        prop_assert!(is_damage(&read(&disk_with(&with_header), None)));
    }
}
