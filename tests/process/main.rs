//! The program itself, from outside: started, loaded, killed, restarted, told to stop.

#[path = "../support/redis_server.rs"]
mod redis_server;

#[path = "../support/redis_cluster.rs"]
// The stores' tests use more of it.
#[allow(dead_code)]
mod redis_cluster;

mod clocks;
mod cluster;
mod command_line;
mod crash;
mod data;
mod disks;
mod expiring;
mod harness;
mod instances;
mod kills;
mod limits;
mod metrics;
mod replaying;
mod retiring;
mod running;
