//! The routes of the application, built from the table of operations.

use std::future::ready;
use std::rc::Rc;
use std::sync::Arc;

use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::ACCESS_CONTROL_ALLOW_ORIGIN;
use actix_web::web::{self, Data};
use actix_web::{Error, HttpRequest, HttpResponse, Route, guard};
use futures_util::future::Either;

use super::access::Access;
use super::codes::Code;
use super::console;
use super::delivery::Delivery;
use super::document;
use super::explorer::explorer;
use super::live::{self, LiveViews};
use super::metrics::{self, EventMetrics, IncrementMetrics, RouteMetrics};
use super::operations::Document;
use super::problem::Problem;
use super::request_id::RequestId;
use super::routes::{self, OPERATIONS};
use super::state::{HttpOptions, HttpState};

/// Returns a function that registers all routes: the operations, the API explorer, and errors for other paths and
/// methods.
///
/// Wrap the application in [`outermost`](super::outermost()), and in [`cors`](super::cors()) to allow pages of other
/// origins. Install the metrics recorder before the application is built, because metric handles are created then.
pub fn configure(state: Data<HttpState>, live: Arc<LiveViews>) -> impl FnOnce(&mut web::ServiceConfig) + Clone {
    let document = document::openapi(state.options.simulated_clock).to_json().unwrap_or_default();
    let document = Data::new(Document(document.into()));
    let access = Arc::new(Access::new(&state.options));
    metrics::describe();
    live::describe();
    move |app| {
        let mut paths: Vec<&'static str> = Vec::new();
        for operation in routes::operations(state.options.simulated_clock) {
            if !paths.contains(&operation.path) {
                paths.push(operation.path);
                register(app, operation.path, methods_of(operation.path), &state.options, &access);
            }
        }
        for file in console::files(&state.options) {
            let path = file.path;
            register(
                app,
                path,
                vec![(Method::GET, web::to(move || ready(respond_with(&file))))],
                &state.options,
                &access,
            );
        }
        if state.options.explorer {
            app.service(explorer(&access));
        }
        app.app_data(state)
            .app_data(Data::from(live))
            .app_data(document)
            .app_data(Data::new(IncrementMetrics::new()))
            .app_data(Data::new(EventMetrics::new()))
            .default_service(web::to(move |request| not_found(access.clone(), request)));
    }
}

/// Returns the methods of a path, with the routes of their handlers.
fn methods_of(path: &str) -> Vec<(Method, Route)> {
    let operations = OPERATIONS.iter().filter(|operation| operation.path == path);
    operations.map(|operation| (operation.method.clone(), (operation.handler)())).collect()
}

/// Returns the response with a file of the console or the custom element.
fn respond_with(file: &console::File) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    if file.is_public {
        response.insert_header((ACCESS_CONTROL_ALLOW_ORIGIN, "*"));
        response.insert_header(("cross-origin-resource-policy", "cross-origin"));
    }
    response
        .content_type(file.media_type)
        .insert_header(("content-security-policy", console::CONTENT_SECURITY_POLICY))
        .insert_header(("referrer-policy", "no-referrer"))
        .body(file.body.clone())
}

/// Registers a path with all its methods. Other methods are refused with a list of the allowed ones.
fn register(
    app: &mut web::ServiceConfig,
    path: &'static str,
    methods: Vec<(Method, Route)>,
    options: &HttpOptions,
    access: &Arc<Access>,
) {
    let mut resource = web::resource(path);
    let (mut known, mut allowed) = (Vec::new(), Vec::new());
    for (method, route) in methods {
        allowed.push(method.to_string());
        resource = resource.route(if method == Method::GET {
            allowed.push("HEAD".to_owned());
            route.guard(guard::Any(guard::Get()).or(guard::Head()))
        } else {
            route.method(method.clone())
        });
        known.push(method);
    }
    let allowed = allowed.join(", ");
    let refuse = move |request: HttpRequest| {
        let detail = format!("method {} is not allowed; allowed: {allowed}", request.method());
        ready(HttpResponse::from(Problem::new(Code::MethodNotAllowed, detail).allow(&allowed)))
    };
    let metrics = Rc::new(RouteMetrics::new(path, |method| known.contains(method)));
    let (access, delivery) = (access.clone(), Rc::new(Delivery::new(path, options)));
    app.service(resource.default_service(web::to(refuse)).wrap_fn(move |request, inner| {
        let (metrics, delivery, method) = (metrics.clone(), delivery.clone(), request.method().clone());
        let id = RequestId::from_headers(request.headers());
        let response = call(&access, inner, request, &id);
        let deliver = async move { Ok(delivery.finish(response.await?, &id)) };
        // Every request moves this future several times.
        debug_assert!(size_of_val(&deliver) <= 1_024, "{} bytes", size_of_val(&deliver));
        async move { metrics.measure(method, deliver).await }
    }));
}

/// Calls the service of a path as the handling of the request with this id, unless access is refused.
pub(super) fn call<S>(
    access: &Access,
    service: &S,
    request: ServiceRequest,
    id: &RequestId,
) -> impl Future<Output = Result<ServiceResponse, Error>> + use<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse, Error = Error>,
{
    let response = match access.check(request.head()) {
        Ok(()) => Either::Left(service.call(request)),
        // Made within the scope, because the response to a problem names the request.
        Err(problem) => Either::Right(async move { Ok(request.into_response(HttpResponse::from(problem))) }),
    };
    id.clone().scope(response)
}

async fn not_found(access: Arc<Access>, request: HttpRequest) -> HttpResponse {
    let id = RequestId::of(request.headers());
    let problem = access.check(request.head()).err().unwrap_or_else(|| Problem::not_found(request.path()));
    id.scope(async { problem.into() }).await
}
