//! The signals of a program that runs until it is told to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that stop a program: SIGTERM and SIGINT.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Begins to notice them, in place of being ended by them.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Lets a write that exceeds the limit of file sizes (`ulimit -f`) fail like a write to a full disk. By default the
/// system ends the process with SIGXFSZ.
pub fn survive_file_size_limit() -> std::io::Result<()> {
    let file_size_exceeded = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    // The handler stays installed when the stream of signals is dropped.
    signal(file_size_exceeded).map(drop)
}
