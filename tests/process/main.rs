//! Tests of the program from outside: it is started, loaded, killed, restarted and stopped.

#[path = "../support/waiting.rs"]
mod waiting;

#[path = "../support/drawn.rs"]
mod drawn;

#[path = "../support/documented_user.rs"]
mod documented_user;

#[path = "../support/skipping.rs"]
mod skipping;

#[path = "../support/redis_server.rs"]
mod redis_server;

#[path = "../support/redis_cluster.rs"]
// The tests of the stores use more of this module.
#[allow(dead_code)]
mod redis_cluster;

#[path = "../support/event_stream.rs"]
mod event_stream;

#[path = "../support/signing.rs"]
mod signing;

mod access;
mod auditing;
mod clocks;
mod cluster;
mod command_line;
mod commands;
mod compatibility;
mod copying;
mod crash;
mod data;
mod deploy;
mod disks;
mod doctor;
mod expiring;
mod exporting;
mod harness;
mod instances;
mod kills;
mod limits;
mod live;
mod loading;
mod malformed;
mod metrics;
mod nameless_lines;
mod permissions;
mod replaying;
mod retiring;
mod running;
mod sources;
mod tls;
mod tokens;
