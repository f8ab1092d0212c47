//! Rolltop answers "what is on top over the last N hours?", exactly, and what rules ask of single subjects.
//!
//! The modules. Imports point downward only; a request passes through them from top to bottom:
//!
//! ```text
//! cli        commands: serve, check, replay, bench, healthcheck, backup, check-data, openapi
//! app        config -> store -> service -> HTTP + scheduler; run until stopped
//! http       the API by resource: parses requests, calls the service, writes responses
//!   items      parsing of a single item, a batch or a stream
//! service    boards, events, features and rules, rollover, audit, when the scheduler ticks: usable as a library
//! store      the trait and its written contract; a batch, and how it takes effect
//!   redis      hashes by slot and a result sorted set, or a key by subject, changed only through Lua
//!   embedded   the whole state in memory; a log and checkpoints on disk
//! board      pure: definitions, metrics, slots and windows, amounts (no I/O, no clock, no async)
//!   language   how metrics, filters and rules are written
//!   rule       what rules say of given fields and values
//! ```
//!
//! `config`, `descriptors` and `telemetry` stand beside it and are used by `app` and `cli`.

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
