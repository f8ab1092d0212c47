//! A client of Rolltop, a service that counts events and keeps rankings over sliding
//! windows.
//!
//! ```no_run
//! # async fn example() -> Result<(), rolltop_client::Error> {
//! use rolltop_client::Service;
//!
//! let service = Service::new("http://127.0.0.1:8080")?;
//! let posts = service.board("hot-posts");
//! for line in posts.top().limit(10).await?.items {
//!     println!("{} {:?} {:?}", line.rank, line.subject, line.score);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - [`Service`] is the running service; [`Board`] one of its boards. Both are cheap to clone.
//! - A [`Request`] is sent when it is awaited, and answers with one of the types of [`answers`]. A request for a
//!   ranking has [`lines`](Request::lines), a stream of all of it, and [`live`](Request::live), one of what it is after
//!   each change.
//! - A [`Sender`] sends [`Increment`]s of a board, or [`Event`]s, in the background. Each counts once, whatever happens
//!   to the network or the service.
//! - Every call returns the same [`Error`], with the service's `code`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod answers;
mod board;
mod connection;
mod decimal;
mod delivery;
mod error;
mod export;
mod item;
mod live;
mod path;
mod pause;
mod queue;
mod request;
mod sender;
mod sending;
mod service;
mod sum;
mod text_lines;

pub use board::Board;
pub use connection::Builder;
pub use decimal::{Decimal, NotADecimal};
pub use delivery::Counts;
pub use error::{Error, Result};
pub use item::{Countable, Event, Increment};
pub use queue::Item;
pub use request::Request;
pub use reqwest::Method;
pub use sender::{Sender, SenderBuilder};
pub use service::Service;
pub use text_lines::Lines;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
