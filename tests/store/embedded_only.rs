//! What only the embedded store promises: durability, locking, damage.
