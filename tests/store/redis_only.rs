//! What only the Redis store promises: scripts, lost replies, several instances.
