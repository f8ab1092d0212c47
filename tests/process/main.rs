//! The program itself, from outside: started, loaded, killed, restarted, told to stop.

#[path = "../support/redis_server.rs"]
mod redis_server;

mod command_line;
mod crash;
mod instances;
mod limits;
mod metrics;
mod replaying;
mod retiring;
mod running;
