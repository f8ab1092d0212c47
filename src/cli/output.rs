//! What commands print to standard output.

use std::fmt;
use std::io::{self, ErrorKind, Write};

/// Prints a line. Unlike `println!` it returns an error, so that a reader that has enough, such as `head`, ends the
/// command without a panic.
macro_rules! say {
    ($($text:tt)+) => {
        $crate::cli::output::print_line(format_args!($($text)+))
    };
}
pub(super) use say;

pub(super) fn print_line(text: fmt::Arguments<'_>) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

/// Returns whether a command has ended because nobody reads what it prints.
pub(super) fn is_unread(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
