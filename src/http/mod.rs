//! HTTP API: parses requests, calls the service and writes responses.
//!
//! The modules in layers. Each imports only from layers below its own, and none imports the store:
//!
//! ```text
//! outermost    wraps the application; early_answer
//! router       builds the routes of the application; explorer
//! document     the OpenAPI document
//! routes       the table of operations: method, path, handler, errors
//! resources    query, evaluate -> windows, events; subjects; live -> rankings -> export; samples -> increments;
//!              boards -> preview -> definition; contents, values, rollover, rules, clock, backup, operations,
//!              problem_pages
//! items        parsing of a single item, a batch or a stream; rejections
//! requests     path, parameters, object -> body -> incoming; large
//! responses    ranking_lines -> response; frame, cursor, delivery, caching, compression, metrics, counts
//! base         call -> state -> body_memory, access, proxies, limits -> rates -> client; schemas, problem,
//!              request_id -> trace_parent, service_error, codes; cors -> access; handling; console
//! ```
//!
//! Each resource module holds its handlers, the body types they read and the response types they return. A handler
//! takes a `Call`: the request with its caller and the state of the service; or a `Plain` call if its operation has no
//! parameters.
//! A refused request is a [`Problem`] with a [`Code`]; a rejected item of a request has an [`ItemCode`].

mod access;
mod admission;
mod attributes;
mod audit;
mod backup;
mod boards;
mod body;
mod body_memory;
mod caching;
mod call;
mod client;
mod clock;
mod codes;
mod comparison;
mod compression;
mod connections;
mod console;
mod contents;
mod cors;
mod counts;
mod cursor;
mod definition;
mod delivery;
mod distribution;
mod document;
mod early_answer;
mod edition_changes;
mod editions;
mod evaluate;
mod events;
mod explorer;
mod export;
mod frame;
mod handling;
mod incoming;
mod increments;
mod items;
mod keys;
mod large;
mod limits;
mod live;
mod metrics;
mod moderation;
mod needs;
mod object;
mod operations;
mod outermost;
mod parameters;
mod path;
mod periods;
mod preview;
mod problem;
mod problem_pages;
mod proxies;
mod query;
mod ranking_keys;
mod ranking_lines;
mod rankings;
mod rates;
mod removals;
mod request_id;
mod response;
mod rollover;
mod router;
mod routes;
mod rules;
mod samples;
mod schemas;
mod sent_items;
mod service_error;
mod set_subject;
mod shards;
mod shares;
mod sources;
mod state;
mod subject_changes;
mod subjects;
mod tiers;
mod trace_parent;
mod values;
mod windows;

pub use self::codes::{Code, ItemCode};
pub use self::connections::{Connections, on_connect};
pub use self::console::ConsoleMode;
pub use self::document::openapi;
pub use self::live::LiveViews;
pub use self::metrics::{DURATION, EVENTS, IN_FLIGHT, INCREMENTS, REQUESTS};
pub use self::outermost::outermost;
pub use self::problem::Problem;
pub use self::proxies::{Network, NetworkError, ProxyHeader};
pub use self::router::configure;
pub use self::routes::registered;
pub use self::state::{HttpOptions, HttpState};
