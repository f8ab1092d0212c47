//! Rolltop answers "what is on top over the last N hours?" exactly, and evaluates rules about single subjects.
//!
//! The modules are listed from top to bottom. Imports point downward only, and a request passes through them in this
//! order:
//!
//! ```text
//! cli        commands: serve, check, replay, bench, healthcheck, backup, check-data, openapi
//! app        config -> store -> service -> HTTP + scheduler; run until stopped
//! http       routes by resource: parse, call the service, respond
//!   intake     one item, a list or a stream of items, each accepted or rejected on its own
//! service    boards, events, features and rules, rollover, audit, scheduled jobs: usable as a library
//! store      the trait and its written contract; a batch, and how it takes effect
//!   redis      hashes by slot and a sorted set of results, or a key per subject, changed only by Lua scripts
//!   embedded   the whole state in memory; a log and checkpoints on disk
//! board      pure: definitions, metrics, slots and windows, amounts (no I/O, no clock, no async)
//!   language   the syntax of metrics, filters and rules
//!   rule       the evaluation of rules for given fields and values
//! ```
//!
//! `config`, `descriptors` and `telemetry` are outside this order and are used by `app` and `cli`.

#![forbid(unsafe_code)]

pub mod app;
pub mod board;
pub mod cli;
pub mod config;
pub mod descriptors;
pub mod http;
pub mod service;
pub mod store;
pub mod telemetry;
