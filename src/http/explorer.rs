//! The API explorer at `/swagger-ui/`: the files of Swagger UI, a library.

use actix_web::HttpResponse;
use actix_web::dev::HttpServiceFactory;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use actix_web::web::{self, Data};
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::admission;
use super::handling::call;
use super::problem::Problem;
use super::request_id::{RequestId, X_REQUEST_ID};
use super::state::HttpState;

/// What the page may load: files of this service. Its script adds styles, and images that are part of them.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
     object-src 'none'",
);

/// Returns the files of the explorer. The same rules of access apply to them as to operations.
pub(super) fn files(state: &Data<HttpState>) -> impl HttpServiceFactory + use<> {
    let state = state.clone();
    let files = SwaggerUi::new("/{_:.*}").config(Config::from("/openapi.json").try_it_out_enabled(true));
    let scope = web::scope("/swagger-ui").route("", web::get().to(redirect)).service(files);
    scope.wrap_fn(move |request, inner| {
        let id = RequestId::from_headers(request.headers());
        let path = request.path().to_owned();
        let response = {
            let refused = admission::admit_anybody(&state, request.head()).err();
            call(inner, request, refused.map(Err), &id)
        };
        async move {
            let mut response = response.await?;
            // The library answers 404 without a body.
            if response.status() == StatusCode::NOT_FOUND {
                let problem = id.clone().sync_scope(|| HttpResponse::from(Problem::not_found(&path)));
                response = response.into_response(problem);
            }
            let headers = response.headers_mut();
            headers.insert(CONTENT_SECURITY_POLICY, POLICY);
            headers.insert(X_REQUEST_ID, id.header_value().clone());
            Ok(response)
        }
    })
}

async fn redirect() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header(("location", "/swagger-ui/")).finish()
}
