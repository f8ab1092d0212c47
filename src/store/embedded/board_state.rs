//! The state of one board in memory: that of each of its tracks, and what holds for all of them. It reads neither disk
//! nor clock.

use super::aggregate_state::Garbage;
use super::clock::ClockReading;
use super::ids::{Bucket, Ids};
use super::imports::Imports;
use super::tables::{Advance, Tables};
use crate::board::{Board, Timestamp, Window};
use crate::store::ClockTrust;

/// The state of one board in memory. One lock guards all tracks, so that a write changes all of them in one step.
#[derive(Debug)]
pub(super) struct BoardState {
    /// One for each of the board's [tracks](Board::tracks), the main one first.
    pub tracks: Box<[Tables]>,
    /// The ids counted recently, on all tracks together.
    pub ids: Ids,
    pub imports: Imports,
    /// Judges the system clock for this board. Created with the first reading.
    pub trust: Option<ClockTrust>,
    /// Whether the board was removed. A call that still has a reference must change nothing.
    pub removed: bool,
}

/// The effects of moving a board's clock.
#[derive(Debug, Default)]
pub(super) struct BoardAdvance {
    /// The effects on the tracks whose heads moved, each with the number of its track.
    pub tracks: Vec<(usize, Advance)>,
    /// Ids past their horizon, which must be freed without the lock.
    pub expired_ids: Option<Bucket>,
}

impl BoardState {
    pub(super) fn new(board: &Board, now: Timestamp) -> Self {
        Self {
            tracks: board.tracks().iter().map(|track| Tables::new(track, now)).collect(),
            ids: Ids::new(board.dedupe_horizon(), board.dedupe_bucket()),
            imports: Imports::default(),
            trust: None,
            removed: false,
        }
    }

    /// Returns the tables of the main track.
    pub(super) fn main(&self) -> &Tables {
        &self.tracks[0]
    }

    /// Returns the board's time, which never runs backward. It is that of every track.
    pub(super) fn now(&self) -> Timestamp {
        self.main().now
    }

    /// Returns the window of each track.
    pub(super) fn windows(&self) -> Box<[Window]> {
        self.tracks.iter().map(|tables| tables.window).collect()
    }

    /// Moves the time of the board, and head and floor of each track, forward to `now`. See [`Tables::advance`].
    pub(super) fn advance(&mut self, board: &Board, now: Timestamp) -> BoardAdvance {
        if now <= self.now() {
            return BoardAdvance::default();
        }
        let tracks = self.tracks.iter_mut().zip(board.tracks()).enumerate();
        let advanced = tracks.map(|(number, (tables, track))| (number, tables.advance(track, now)));
        // Between two slots, which is nearly always, this allocates nothing.
        let tracks = advanced.filter(|(_, advance)| advance.slots > 0).collect();
        BoardAdvance { tracks, expired_ids: self.ids.remove_expired(now.millis()) }
    }

    /// Moves the clock while a store is opened. See [`Tables::move_clock`].
    pub(super) fn move_clock(&mut self, board: &Board, now: Timestamp) {
        if now <= self.now() {
            return;
        }
        while self.ids.remove_expired(now.millis()).is_some() {}
        for (tables, track) in self.tracks.iter_mut().zip(board.tracks()) {
            tables.move_clock(track, now);
        }
    }

    /// Completes the state after everything was restored. See [`Tables::rebuild`].
    pub(super) fn rebuild(&mut self) {
        self.tracks.iter_mut().for_each(Tables::rebuild);
    }

    /// Returns the bytes that the board's data uses. O(tracks).
    pub(super) fn memory_bytes(&self) -> usize {
        self.tracks.iter().map(Tables::memory_bytes).sum::<usize>() + self.ids.memory_bytes()
    }

    /// Returns the data of all tracks that must be dropped without the lock.
    pub(super) fn take_garbage(&mut self) -> Vec<Garbage> {
        let mut garbage = Vec::new();
        for tables in &mut self.tracks {
            garbage.append(&mut tables.holdings.take_garbage());
        }
        garbage
    }
}

impl BoardState {
    /// Returns the believed time for this board.
    pub(super) fn believed_time(&mut self, board: &Board, reading: ClockReading) -> Timestamp {
        let (wall, monotonic) = match reading {
            ClockReading::Simulated(now) => return now,
            ClockReading::System { wall, monotonic } => (wall, monotonic),
        };
        let tolerance = match &*self.tracks {
            // What the window covers now: months differ in length.
            [only] if !board.edition().main().is_all_time() => {
                let slots = only.window.end.millis() - only.window.floor.millis();
                only.holdings.traits.counter_duration.unwrap_or(slots)
            }
            _ => board.clock_tolerance(),
        };
        let trust = self.trust.get_or_insert_with(|| ClockTrust::new(wall, monotonic));
        let doubted = trust.doubted();
        let believed = trust.believe(wall, monotonic, tolerance);
        if doubted.is_none()
            && let Some(leap) = trust.doubted()
        {
            tracing::warn!(board = %board.name(), reading = %leap, going_by = %believed,
                "the system clock is further ahead than expected; not trusted until it is consistent for a minute");
        }
        believed
    }
}
