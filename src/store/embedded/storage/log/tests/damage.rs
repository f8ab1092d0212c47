//! Damage is told from a normal end.
