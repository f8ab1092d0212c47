//! Tests of the program from outside: it reads real logs and sends them to a real service, and both are killed.

#[path = "../../../tests/support/waiting.rs"]
mod waiting;

#[path = "../../../tests/support/skipping.rs"]
mod skipping;

#[path = "../../../tests/support/redis_server.rs"]
#[allow(dead_code, reason = "the tests of the stores use more of it")]
mod redis_server;

#[path = "../../../clients/rust/tests/support/mod.rs"]
mod support;

mod dead_topic;
mod deciding;
mod files;
mod group;
mod guard;
mod jetstream;
mod kills;
mod many_topics;
mod registry;
mod running;
mod secured;
mod streams;
mod topics;
