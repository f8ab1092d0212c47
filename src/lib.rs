//! Rolltop answers "what is on top over the last N hours?", exactly.
//!
//! The map of the house. Arrows point downward only; a request walks it from top to bottom:
//!
//! ```text
//! cli        commands: serve, check, replay, bench, healthcheck, openapi
//! app        config -> store -> service -> HTTP + scheduler; run until stopped
//! http       routes by resource: parse, call the service, answer
//! service    boards, rollover, audit, when the scheduler ticks: usable as a library
//! store      the trait and its written contract
//!   redis      per-slot hashes and a result sorted set, changed only through Lua
//!   embedded   an order-statistics ranking in memory, a journal on disk
//! board      pure: definitions, metrics, slots and windows, amounts (no I/O, no clock, no async)
//! ```
//!
//! `config` and `telemetry` stand beside it and are used by `app` and `cli`.

#![forbid(unsafe_code)]

pub mod app;
pub mod board;
pub mod cli;
pub mod config;
pub mod http;
pub mod service;
pub mod store;
pub mod telemetry;
