//! A progress bar on standard error, if that is a terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use super::input::Input;
use super::summary::PostStats;

/// A progress bar with the part of the log that was read and the number of lines posted.
pub struct Progress {
    bar: ProgressBar,
    position: Arc<AtomicU64>,
}

impl Progress {
    /// Shows the bar, or a byte count if the size is unknown.
    pub fn start(input: &Input) -> Self {
        let (bar, template) = match input.size {
            Some(size) => (ProgressBar::new(size), "{bar:30} {percent:>3}% {bytes}/{total_bytes} {eta}  {msg}"),
            None => (ProgressBar::no_length(), "{spinner} {bytes} {elapsed}  {msg}"),
        };
        // The default style is used if the template cannot be parsed.
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self { bar: bar.with_style(style), position: Arc::clone(&input.position) }
    }

    /// Updates the bar.
    pub fn show(&self, posts: &PostStats) {
        self.bar.set_position(self.position.load(Ordering::Relaxed));
        let seconds = self.bar.elapsed().as_secs_f64().max(0.001);
        self.bar.set_message(format!(
            "{} posted, {:.0}/s, {} rejected",
            posts.posted,
            posts.posted as f64 / seconds,
            posts.rejections()
        ));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
