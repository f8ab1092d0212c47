//! The routes of the application, built from the table of operations.

use std::future::ready;
use std::rc::Rc;
use std::sync::Arc;

use actix_web::dev::ServiceResponse;
use actix_web::http::Method;
use actix_web::http::header::ACCESS_CONTROL_ALLOW_ORIGIN;
use actix_web::web::{self, Data};
use actix_web::{HttpMessage, HttpRequest, HttpResponse, Route, guard};

use super::admission;
use super::audit::Act;
use super::codes::Code;
use super::delivery::Delivery;
use super::handling::call;
use super::live::{self, LiveViews};
use super::metrics::{self, EventMetrics, IncrementMetrics, RouteMetrics};
use super::needs::{Needs, answers, needs_of};
use super::operations::Document;
use super::problem::Problem;
use super::request_id::RequestId;
use super::routes::{self, OPERATIONS};
use super::state::{HttpOptions, HttpState};
use super::{console, cors, document, explorer};
use crate::access::Caller;

/// The paths that most requests are for. To find that a request is for another path takes some hundred instructions.
const OFTEN: [&str; 7] = [
    "/v1/boards/{board}/increments",
    "/v1/boards/{board}/rankings",
    "/v1/events",
    "/v1/evaluate",
    "/healthz",
    "/v1/boards/{board}/subjects/{subject}",
    "/v1/boards/{board}/subjects/{subject}/window",
];

/// Returns a function that registers all routes: the operations, the API explorer, and errors for other paths and
/// methods.
///
/// Wrap the application in [`outermost`](super::outermost()). Install the metrics recorder before the application is
/// built, because metric handles are created then.
pub fn configure(state: Data<HttpState>, live: Arc<LiveViews>) -> impl FnOnce(&mut web::ServiceConfig) + Clone {
    let document = document::openapi(state.options.simulated_clock).to_json().unwrap_or_default();
    let document = Data::new(Document::new(document));
    metrics::describe();
    live::describe();
    move |app| {
        let HttpOptions { console, simulated_clock, explorer, .. } = state.options;
        let mut paths: Vec<&'static str> = Vec::new();
        for operation in routes::operations(simulated_clock) {
            if !paths.contains(&operation.path) {
                paths.push(operation.path);
            }
        }
        // They are tried in this order.
        paths.sort_by_key(|path| OFTEN.iter().position(|often| often == path).unwrap_or(OFTEN.len()));
        for path in paths {
            register(app, path, methods_of(path), &state);
        }
        for file in console::files(console, simulated_clock, explorer, &state.service.keys().anonymous()) {
            let path = file.path;
            let respond = web::to(move || ready(respond_with(&file)));
            register(app, path, vec![(Method::GET, Needs::Nothing, respond)], &state);
        }
        if explorer {
            app.service(explorer::files(&state));
        }
        app.app_data(state.clone())
            .app_data(Data::from(live))
            .app_data(document)
            .app_data(Data::new(IncrementMetrics::new()))
            .app_data(Data::new(EventMetrics::new()))
            .default_service(web::to(move |request| not_found(state.clone(), request)));
    }
}

/// Returns the methods of a path, with the routes of their handlers.
fn methods_of(path: &str) -> Vec<(Method, Needs, Route)> {
    let operations = OPERATIONS.iter().filter(|operation| operation.path == path);
    operations.map(|operation| (operation.method.clone(), operation.needs, (operation.handler)())).collect()
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
    methods: Vec<(Method, Needs, Route)>,
    state: &Data<HttpState>,
) {
    let mut resource = web::resource(path);
    let (mut known, mut allowed) = (Vec::new(), Vec::new());
    for (method, needs, route) in methods {
        allowed.push(method.to_string());
        if method == Method::GET {
            allowed.push("HEAD".to_owned());
        }
        known.push((method.clone(), needs));
        // `Route::method` would note the method in every request, for a refusal that is made here.
        let guard = guard::fn_guard(move |context| answers(&method, &context.head().method));
        resource = resource.route(route.guard(guard));
    }
    let allowed = allowed.join(", ");
    let refuse = move |request: HttpRequest| {
        let detail = format!("method {} is not allowed; allowed: {allowed}", request.method());
        ready(HttpResponse::from(Problem::new(Code::MethodNotAllowed, detail).allow(&allowed)))
    };
    let metrics = RouteMetrics::new(path, |method| known.iter().any(|(own, _)| own == method));
    let of_path = Rc::new((state.clone(), known, Delivery::new(path, &state.options), metrics));
    app.service(resource.default_service(web::to(refuse)).wrap_fn(move |request, inner| {
        let (of_path, method) = (of_path.clone(), request.method().clone());
        let (state, known, ..) = &*of_path;
        let id = RequestId::from_headers(request.headers());
        let before = admission::admit(state, &request, path, known);
        let act = needs_of(&method, known)
            .and_then(|needs| Act::of(&request, needs, &state.proxies, request.extensions().get::<Caller>(), &id))
            .map(Box::new);
        let response = call(inner, request, before, &id);
        let handled = async move {
            let (state, _, delivery, metrics) = &*of_path;
            let measurement = metrics.begin();
            let delivered = response.await.map(|response| {
                let (request, mut response) = delivery.finish(response, &id).into_parts();
                if let Some(act) = act {
                    act.end(response.status());
                }
                cors::share(state, &request, response.head_mut());
                ServiceResponse::new(request, response)
            });
            measurement.end(&method, &delivered);
            delivered
        };
        // Every request moves this future several times.
        debug_assert!(size_of_val(&handled) <= 1_024, "{} bytes", size_of_val(&handled));
        handled
    }));
}

async fn not_found(state: Data<HttpState>, request: HttpRequest) -> HttpResponse {
    let id = RequestId::of(request.headers());
    let checked = admission::admit_anybody(&state, request.head());
    let problem = checked.err().unwrap_or_else(|| Problem::not_found(request.path()));
    let mut response: HttpResponse = id.sync_scope(|| problem.into());
    cors::share(&state, &request, response.head_mut());
    response
}

#[cfg(test)]
mod tests {
    use actix_web::Handler;

    use super::super::{evaluate, events, increments, rankings, subjects};

    /// Each request moves the future of its handler to the heap once; a large one costs cache misses. What few requests
    /// need, such as calling again for a board that another instance has changed, is boxed.
    #[test]
    fn futures_of_frequent_requests_have_no_room_for_what_is_rare() {
        fn size_of_future<H: Handler<T>, T>(_: H) -> usize {
            size_of::<H::Future>()
        }
        let sizes = [
            (size_of_future(increments::add), 1_710),
            (size_of_future(rankings::page), 1_200),
            (size_of_future(rankings::lookup), 1_250),
            (size_of_future(subjects::neighbors), 1_050),
            (size_of_future(events::add), 2_300),
            (size_of_future(subjects::standing), 1_560),
            (size_of_future(evaluate::evaluate), 2_200),
        ];
        assert!(sizes.iter().all(|(size, most)| size <= most), "{sizes:?}");
    }
}
