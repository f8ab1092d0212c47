//! The program itself, from outside: started, loaded, killed, restarted, told to stop.

#[path = "../support/redis_server.rs"]
mod redis_server;

mod clocks;
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
