//! How items come in: one, a list, or a stream without end; and how what is wrong with one is told.
//!
//! An [`Item`] is one JSON object, parsed in one pass that borrows from the body and judged afterwards, so that
//! what is wrong with it is a [`Flaw`] of its own and not the end of the request. [`read`] takes a JSON body apart,
//! [`stream::take`] a stream of lines.

mod flaw;
mod item;
mod lines;
mod place;
mod sent;
pub(super) mod stream;
mod text;

pub(super) use flaw::{Flaw, Stray, unsound};
pub(super) use item::{Item, Name, unknown};
pub(super) use lines::Line;
pub(super) use place::{Place, RejectedCounts, SHOWN, code_of, detail_of};
pub(super) use sent::{OneOrMany, from_line, from_raw, read};
pub(super) use text::{Text, Truth, any_other, retraction_is_dated};
