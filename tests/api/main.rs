//! The API as a client meets it: real HTTP on a free port, the embedded store, a clock that tests set.

mod client;
#[path = "../support/drawn.rs"]
mod drawn;
#[path = "../support/event_stream.rs"]
mod event_stream;
mod failing_store;
#[path = "../support/signing.rs"]
mod signing;
mod site;
#[path = "../support/waiting.rs"]
mod waiting;

mod access;
mod all_time;
mod attributes;
mod backup;
mod boards;
mod bodies;
mod browsers;
mod calendars;
mod caps;
mod connections;
mod console;
mod contents;
mod delivery;
mod distribution;
mod document;
mod editions;
mod evaluate;
mod events;
mod exports;
mod failures;
mod first_and_last;
mod further_windows;
mod hostile;
mod increments;
mod kept_slots;
mod keys;
mod live;
mod moderation;
mod movement;
mod nameless_lines;
mod operations;
mod query;
mod rankings;
mod refusals;
mod refused_items;
mod rolling;
mod same_question;
mod samples;
mod scheduling;
mod seasons;
mod second_keys;
mod several_types;
mod sourced_increments;
mod sources;
mod streams;
mod subject_values;
mod subjects;
mod tiers;
mod value_removals;
mod windows;
mod windows_of_a_board;
