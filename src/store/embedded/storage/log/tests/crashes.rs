//! Crashes at any operation, one after another. Everything that was synced must be read, and nothing that was not
//! written.
//!
//! A run randomly appends, rotates, creates spares, syncs, and moves the log's start, with faults of the disk in
//! between. A crash may come at any operation: a kill, or a power loss. Then the log is opened again, and so on.
//!
//! `ROLLTOP_CRASH_RUNS=100000 cargo test --release --lib log::tests::crashes` tries this many runs of each kind.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::super::super::files::simulated::DiskOperation;
use super::super::super::manifest::{ClockMode, Manifest, RowsByTable};
use super::*;

/// The facts about a log that a test knows.
#[derive(Clone, Debug, Default)]
struct Known {
    /// The payload appended last with each sequence, finished or not. Absent if the sequence was never used.
    payloads: BTreeMap<u64, Vec<u8>>,
    /// The sequence up to which frames were written, so that a kill must not lose them.
    written: u64,
    /// The sequence up to which frames were synced, so that a power loss must not lose them.
    synced: u64,
}

/// A state of the disk that a crash may leave, and the facts known at that moment.
struct Image {
    disk: Simulated,
    known: Known,
}

/// Returns the position from which the log must be read.
fn start_of(files: &Simulated) -> LogStart {
    Manifest::read(files).unwrap().map_or(START, |manifest| manifest.log_start)
}

/// Opens a log and compares it with the known facts. From then on, what was read is what is known.
fn open(files: &Simulated, known: &mut Known, killed: bool) -> LogEnd {
    let start = start_of(files);
    let (frames, end) = read(files, start).unwrap_or_else(|error| {
        panic!("{error}; {start:?}; written {}, synced {}; {:?}", known.written, known.synced, files.list(DIRECTORY))
    });
    let seqs: Vec<u64> = frames.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(seqs, (start.seq..=end.last_seq).collect::<Vec<_>>(), "a gap");
    let promised = if killed { known.written } else { known.synced };
    assert!(end.last_seq >= promised, "{} was read, {promised} was promised", end.last_seq);
    for (seq, bytes) in &frames {
        assert_eq!(Some(bytes), known.payloads.get(seq), "frame {seq} is not what was written last");
    }
    known.payloads.split_off(&(end.last_seq + 1));
    (known.written, known.synced) = (end.last_seq, known.synced.min(end.last_seq));
    end
}

/// Moves the log's start to the current segment, as a checkpoint of everything does. Returns whether it succeeded.
fn move_start(files: &Simulated, log: &mut LogAppender, random: &mut StdRng) -> bool {
    if log.rotate().is_err() {
        return false;
    }
    let seq = log.next_seq();
    let manifest = Manifest {
        store: STORE,
        fingerprint_key: [0; 2],
        clock_mode: ClockMode::System,
        clock: None,
        simulated_clock: None,
        catalog_seq: 0,
        log_start: LogStart { segment: log.current_number(), seq, synced_seq: seq - 1 },
        boards: Vec::new(),
        rows: RowsByTable::new(),
    };
    if manifest.install(files).is_err() {
        return false;
    }
    for number in 1..log.current_number() {
        if random.random_bool(0.7) {
            // Most of the files are deleted already.
            drop(files.remove(&segment_name(number)));
        }
    }
    true
}

/// Simulates one run of a process: opens, secures, deletes garbage and appends, for some steps. An error of the disk
/// ends it. `note` is called when more is known.
fn live(files: &Simulated, known: &mut Known, killed: bool, random: &mut StdRng, note: &dyn Fn(&Known)) {
    let mut end = open(files, known, killed);
    note(known);
    if Manifest::recover(files).is_err() {
        return;
    }
    if end.make_durable(files).is_err() {
        return;
    }
    known.synced = end.last_seq;
    note(known);
    // Garbage may be deleted before or after this, in part or not at all.
    for name in &end.files_to_delete {
        if random.random_bool(0.5) && files.remove(name).is_err() {
            return;
        }
    }
    let Ok(mut log) = LogAppender::open(Arc::new(files.clone()), STORE, &mut end, SEGMENT) else { return };
    let round = random.random_range(0..1_000);
    let mut unsynced = Vec::new();
    for _ in 0..random.random_range(0..25) {
        match random.random_range(0..20) {
            0 => drop(log.rotate()),
            1 | 2 => {
                if let Ok(spare) = SpareFile::create(files, log.take_number(), SEGMENT)
                    && let Some(other) = log.set_spare(spare)
                {
                    drop(other.discard(files));
                }
            }
            3..=6 => {
                unsynced.extend(log.take_sealed().into_iter().map(|sealed| sealed.file));
                unsynced.push(log.current_file());
                let written = known.written;
                if unsynced.drain(..).any(|file| file.sync_data().is_err()) {
                    // The engine would make checkpoints of everything then. Here the process ends.
                    return;
                }
                known.synced = written;
                note(known);
                if random.random_bool(0.2) && !move_start(files, &mut log, random) {
                    return;
                }
            }
            _ => {
                let seq = log.next_seq();
                let bytes = if random.random_bool(0.03) { vec![seq as u8; 3_000] } else { payload(seq, round) };
                known.payloads.insert(seq, bytes.clone());
                note(known);
                let mut tries = 3;
                while log.append(seq, known.synced, &bytes).is_err() && tries > 0 {
                    tries -= 1;
                }
                if log.next_seq() == seq {
                    return;
                }
                known.written = seq;
                note(known);
            }
        }
    }
}

fn run(seed: u64, faults: bool) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut files = new_disk();
    let mut known = Known::default();
    let mut killed = true;
    for life in 0..6 {
        // Takes the disk image at one operation of this run. The operation is chosen before the number of operations is
        // known.
        let crash = [Crash::Killed, Crash::PowerLoss, Crash::PowerLossInOrder][random.random_range(0..3)];
        let at = random.random_range(1..200);
        let image: Arc<Mutex<Option<Image>>> = Arc::default();
        let current = Arc::new(Mutex::new(known.clone()));
        let hook = {
            let (files, image, current) = (files.clone(), Arc::clone(&image), Arc::clone(&current));
            let mut changes = 0;
            let changes = Mutex::new(move || {
                changes += 1;
                changes
            });
            move |number: u64, op: &DiskOperation| {
                if op.changes() && changes.lock()() == at {
                    let disk = files.crash(seed ^ number, crash);
                    *image.lock() = Some(Image { disk, known: current.lock().clone() });
                }
            }
        };
        files.on_operation(Box::new(hook));
        if faults {
            let (chance, mut dice) = (0.02, StdRng::seed_from_u64(seed ^ life));
            let fault = [Fault::Io, Fault::NoSpace][random.random_range(0..2)];
            let dice = Mutex::new(move || dice.random_bool(chance));
            files.when(u32::MAX, fault, move |op| op.changes() && dice.lock()());
        }
        let note = |known: &Known| *current.lock() = known.clone();
        live(&files, &mut known, killed, &mut random, &note);
        let left = image.lock().take();
        files.on_operation(Box::new(|_, _| {}));
        let left = left.unwrap_or_else(|| Image { disk: files.crash(seed, crash), known });
        (files, known) = (left.disk, left.known);
        killed = crash == Crash::Killed;
        if !killed {
            known.written = known.synced;
        }
    }
    open(&files, &mut known, killed);
}

/// Returns the number of runs.
fn runs() -> u64 {
    std::env::var("ROLLTOP_CRASH_RUNS").map_or(400, |runs| runs.parse().unwrap())
}

#[test]
fn synced_frames_survive_crashes() {
    (0..runs()).for_each(|seed| run(seed, false));
}

#[test]
fn synced_frames_survive_crashes_of_a_failing_disk() {
    (0..runs()).for_each(|seed| run(seed, true));
}
