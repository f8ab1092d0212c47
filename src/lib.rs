//! Rolltop answers "what is on top over the last N hours?" exactly, and evaluates rules about single subjects.
//!
//! The modules are listed from top to bottom. Imports point downward only, and a request passes through them in this
//! order:
//!
//! ```text
//! cli        commands: serve, and those that are clients of a running server
//! app        config -> store -> service -> HTTP + scheduler; run until stopped
//! http       the API by resource: parses requests, calls the service, writes responses
//!   items      parsing of a single item, a batch or a stream
//! service    boards, events, queries and rules, rollover, audit, scheduled jobs: usable as a library
//! store      the trait and its written contract; a batch, and how it takes effect
//!   redis      hashes by slot and a sorted set for the ranking, or a key per subject, changed only by Lua scripts
//!   embedded   the whole state in memory; a log and checkpoints on disk
//! access     pure: scopes, keys and callers: who may do what, and on which boards
//! board      pure: definitions, metrics, slots and windows, amounts (no I/O, no clock, no async)
//!   language   the syntax of metrics, filters and rules
//!   rule       the evaluation of rules for given fields and values
//! ```
//!
//! `config`, `descriptors`, `telemetry` and `tls` are outside this order and are used by `app` and `cli`.
//!
//! # Use as a library
//!
//! [`service::Service`] does everything that the HTTP API does. It takes any [`store::Store`]; here the embedded one,
//! on a simulated clock:
//!
//! ```
//! use rolltop::access::Caller;
//! use rolltop::board::{Amount, BoardName, Change, Definition, Subject, Timestamp};
//! use rolltop::service::Service;
//! use rolltop::store::embedded::{Embedded, EmbeddedOptions};
//! use rolltop::store::{Batch, ClockMode, Increment};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let data_dir = folder.path().join("data");
//! let clock = ClockMode::Simulated(Timestamp::parse("2026-01-01T10:00:00Z")?);
//! let caller = Caller::trusted(); // a program may do everything with its own service
//! let service = Service::new(Embedded::open(EmbeddedOptions::new(data_dir, clock)).await?);
//! let definition = Definition::new("COUNT(24h, like, post_id)".parse()?, "1h".parse()?);
//! let (board, _is_new) = service.define(&caller, &BoardName::parse("hot-posts")?, &definition).await?;
//!
//! let likes = |subject: &str, amount| -> Result<Batch, Box<dyn std::error::Error>> {
//!     let (subject, change) = (Subject::parse(subject)?, Change::Amount(Amount(amount)));
//!     let increment = Increment { other: None, subject, change, retract: false, at: None, id: None, period: None, event: None };
//!     Ok(Batch { increments: vec![increment], return_scores: false })
//! };
//! service.add(&caller, &board, likes("post-1", 3)?).await?; // in the slot 10:00 to 11:00
//! service.set_clock(&caller, Timestamp::parse("2026-01-01T12:00:00Z")?).await?;
//! service.add(&caller, &board, likes("post-2", 2)?).await?; // in the slot 12:00 to 13:00
//! let top = service.page(&board.main(), 0, 10).await?.answer;
//! assert_eq!((top.total, top.items[0].subject.as_str()), (2, "post-1"));
//!
//! // A day later the first slot has left the window. A `service::Scheduler` would do this automatically.
//! service.set_clock(&caller, Timestamp::parse("2026-01-02T10:30:00Z")?).await?;
//! let rollover = service.rollover(&board).await?.answer;
//! let top = service.page(&board.main(), 0, 10).await?.answer;
//! assert_eq!((rollover.slots_retired, top.total, top.items[0].subject.as_str()), (1, 1, "post-2"));
//! service.close().await?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod access;
pub mod app;
pub mod board;
pub mod cli;
pub mod config;
pub mod descriptors;
pub mod http;
pub mod service;
pub mod store;
pub mod telemetry;
pub mod tls;
