//! The handling of a request: the task in which its id is known.

use std::future::ready;

use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use actix_web::{Error, HttpResponse};
use futures_util::future::Either;

use super::problem::Problem;
use super::request_id::RequestId;

/// Calls the service of a path as the handling of the request with this id, unless it is answered before.
pub(super) fn call<S>(
    service: &S,
    request: ServiceRequest,
    before: Option<Result<HttpResponse, Problem>>,
    id: &RequestId,
) -> impl Future<Output = Result<ServiceResponse, Error>> + use<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse, Error = Error>,
{
    let response = match before {
        None => Either::Left(service.call(request)),
        // Made within the scope, because the response to a problem names the request.
        Some(answer) => {
            let response = id.clone().sync_scope(|| answer.unwrap_or_else(HttpResponse::from));
            Either::Right(ready(Ok(request.into_response(response))))
        }
    };
    id.clone().scope(response)
}
