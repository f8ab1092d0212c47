//! Crashes at any operation.
