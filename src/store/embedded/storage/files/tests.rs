//! Tests that every implementation of [`Files`] must pass.

use super::simulated::{Fault, OperationKind, Simulated};
use super::system::SystemFiles;
use super::*;

/// Calls a test with a directory of the system, and with a simulated one.
fn with_each(test: impl Fn(&dyn Files)) {
    let directory = tempfile::tempdir().unwrap();
    let files = SystemFiles::new(directory.path().join("some/data"));
    files.create_dir("").unwrap();
    test(&files);
    test(&Simulated::new());
}

fn contents(files: &dyn Files, name: &str) -> Vec<u8> {
    let file = files.open(name).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn write(files: &dyn Files, name: &str, bytes: &[u8]) {
    files.create_new(name).unwrap().write_all_at(bytes, 0).unwrap();
}

#[test]
fn bytes_are_read_where_they_were_written() {
    with_each(|files| {
        let file = files.create_new("a").unwrap();
        file.write_all_at(b"world", 1_000).unwrap();
        file.write_all_at(b"hello", 510).unwrap();
        file.sync_data().unwrap();
        assert_eq!(file.len().unwrap(), 1_005);
        let mut bytes = [1; 8];
        assert_eq!(file.read_at(&mut bytes, 508).unwrap(), 8);
        assert_eq!(&bytes, b"\0\0hello\0");
        assert_eq!(file.read_at(&mut bytes, 1_002).unwrap(), 3);
        assert_eq!(&bytes[..3], b"rld");
        assert_eq!(file.read_at(&mut bytes, 2_000).unwrap(), 0);
        assert_eq!(file.read_exact_at(&mut bytes, 1_000).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    });
}

#[test]
fn allocated_bytes_are_zero_and_existing_bytes_are_kept() {
    with_each(|files| {
        let file = files.create_new("a").unwrap();
        file.write_all_at(b"abc", 0).unwrap();
        file.allocate(5_000).unwrap();
        assert_eq!(file.len().unwrap(), 5_000);
        assert_eq!(contents(files, "a")[..5], *b"abc\0\0");
        file.allocate(10).unwrap();
        file.allocate(0).unwrap();
        assert_eq!(file.len().unwrap(), 5_000);
    });
}

#[test]
fn files_are_created_renamed_linked_and_removed() {
    with_each(|files| {
        files.create_dir("log/x").unwrap();
        files.create_dir("log").unwrap();
        write(files, "log/1", b"one");
        assert_eq!(files.create_new("log/1").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(files.create_new("none/1").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(files.open("log/2").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(files.list("none").unwrap_err().kind(), io::ErrorKind::NotFound);
        write(files, "log/2", b"two");
        let open = files.open("log/2").unwrap();
        files.rename("log/1", "log/2").unwrap();
        assert!(!files.exists("log/1").unwrap() && files.exists("log/2").unwrap() && files.exists("log").unwrap());
        assert_eq!(files.list("log").unwrap(), ["2", "x"]);
        assert_eq!(files.list("").unwrap(), ["log"]);
        assert_eq!(contents(files, "log/2"), b"one");
        files.link_to("log/2", files, "log/3").unwrap();
        assert_eq!(files.link_to("log/2", files, "log/3").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        files.remove("log/2").unwrap();
        assert_eq!(files.remove("log/2").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(contents(files, "log/3"), b"one");
        files.sync_dir("log").unwrap();
        // The replaced file can be read as long as it is open.
        let mut bytes = [0; 3];
        open.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"two");
        assert!(files.available().unwrap() > 0);
    });
}

#[test]
fn only_files_opened_for_writing_can_be_written() {
    with_each(|files| {
        write(files, "a", b"abc");
        assert!(files.open("a").unwrap().write_all_at(b"x", 0).is_err());
        files.open_for_writing("a").unwrap().write_all_at(b"x", 0).unwrap();
        assert_eq!(contents(files, "a"), b"xbc");
    });
}

#[test]
fn a_file_is_linked_or_copied_into_another_directory() {
    with_each(|files| {
        let bytes: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
        write(files, "a", &bytes);
        let other = files.rooted(&files.root().join("backup"));
        other.create_dir("log").unwrap();
        assert!(link_or_copy(files, "a", &*other, "log/a").unwrap());
        assert!(contents(&*other, "log/a") == bytes);
        assert_eq!(link_or_copy(files, "a", &*other, "log/a").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        copy(files, "a", &*other, "short", 2_000_000).unwrap();
        assert!(contents(&*other, "short") == bytes[..2_000_000]);
    });
}

#[test]
fn a_failed_link_falls_back_to_a_complete_copy() {
    let files = Simulated::new();
    write(&files, "a", &[7; 1_000]);
    files.when(u32::MAX, Fault::Io, |op| op.kind == OperationKind::Link);
    assert!(!link_or_copy(&files, "a", &files, "b").unwrap());
    assert_eq!(contents(&files, "b"), [7; 1_000]);
    files.when(1, Fault::NoSpace, |op| op.kind == OperationKind::WriteRest);
    assert_eq!(link_or_copy(&files, "a", &files, "c").unwrap_err().kind(), io::ErrorKind::StorageFull);
    files.when(1, Fault::Io, |op| op.kind == OperationKind::Sync);
    link_or_copy(&files, "a", &files, "d").unwrap_err();
    assert_eq!(files.list("").unwrap(), ["a", "b"]);
}
