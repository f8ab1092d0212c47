//! Answers that are sent before the body of their request has ended, such as a refusal in the middle of a stream.
//!
//! The server then reads on for a while without using it, so that a client that is still sending comes to read the answer,
//! and closes the connection. Of a chunked body it does so only while the body is held. If it was dropped while as much
//! waited as the server reads ahead, nothing would wake the connection (actix-http 3.20; its issue #2972 was one case):
//! it would neither be read nor closed. So an answer holds the body of its request until it is sent.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::HttpMessage;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use futures_util::Stream;

/// The chunked body of a request, held by its handler and by its answer.
#[derive(Clone)]
pub(super) struct Held(Rc<RefCell<Payload>>);

impl Held {
    /// Returns the body of a request, if it is chunked. The request still has it.
    pub(super) fn of(request: &mut ServiceRequest) -> Option<Self> {
        let body = request.take_payload();
        if matches!(body, Payload::None) || !request.chunked().unwrap_or(false) {
            request.set_payload(body);
            return None;
        }
        let held = Self(Rc::new(RefCell::new(body)));
        request.set_payload(Payload::Stream { payload: Box::pin(held.clone()) });
        Some(held)
    }

    /// Returns the answer, which holds the body until it is sent.
    pub(super) fn until_sent(self, response: ServiceResponse) -> ServiceResponse {
        response.map_body(|_, answer| BoxBody::new(Answer { answer, _held: self }))
    }
}

impl Stream for Held {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(context)
    }
}

/// The body of an answer, which holds that of its request.
struct Answer {
    answer: BoxBody,
    _held: Held,
}

impl MessageBody for Answer {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.answer.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.answer).poll_next(context)
    }
}
