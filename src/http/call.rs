//! What handlers take of a request.

use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpMessage, HttpRequest};

use super::client::Client;
use super::codes::Code;
use super::limits::{ItemLimits, Open};
use super::problem::Problem;
use super::state::HttpState;
use crate::access::Caller;
use crate::service::Service;

/// A request with its caller, who was admitted, and the state of the service.
///
/// The modules that parse parts of requests have methods of it: `path`, `parameters` and `body`. It is not `Send`,
/// because its request is not: take it apart for what continues on another thread.
pub(super) struct Call {
    pub(super) request: HttpRequest,
    pub(super) caller: Caller,
    pub(super) state: Data<HttpState>,
}

/// A path whose operations are not in the table has no caller.
impl FromRequest for Call {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let caller = request.extensions().get::<Caller>().cloned();
        let admitted = caller.zip(request.app_data::<Data<HttpState>>().cloned());
        let call = admitted.map(|(caller, state)| Self { request: request.clone(), caller, state });
        ready(call.ok_or_else(|| Problem::new(Code::Internal, "the request was not admitted")))
    }
}

impl Call {
    pub(super) fn service(&self) -> &Arc<Service> {
        &self.state.service
    }

    /// Returns the client that the request comes from.
    pub(super) fn client(&self) -> Client {
        self.state.client(self.request.head())
    }

    /// Returns the limits of the items of the request.
    pub(super) fn item_limits(&self) -> ItemLimits {
        self.state.limits.items(self.client(), &self.caller)
    }

    /// Counts a stream or an export as open until what is returned is dropped, or refuses it.
    pub(super) fn open(&self) -> Result<Open, Problem> {
        self.state.limits.open(self.client(), &self.caller)
    }
}
