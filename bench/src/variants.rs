//! Increments to several boards, in turns: one a request, and many in a request.

use std::sync::Arc;

use bytes::Bytes;

use super::api::Api;
use super::process::Redis;
use super::report::{self, Side, Table};
use super::subjects::{self, Skew};
use super::{Setting, wire};

/// The number of connections that send many lines in each request.
const FEW: u16 = 4;
/// The number of subjects that are drawn in advance.
const PREPARED: usize = 1 << 17;

/// A board that is compared with others.
pub(super) struct Variant<'a> {
    pub name: &'static str,
    pub board: String,
    /// Returns an increment of the subject with this number.
    pub line: &'a dyn Fn(u32) -> String,
}

/// Measures single increments, and requests of this many. The first board is the baseline.
pub(super) async fn compare(
    setting: &Setting,
    redis: &mut Option<Redis>,
    api: &Api,
    about: &str,
    many: usize,
    variants: &[Variant<'_>],
) -> anyhow::Result<()> {
    for (lines, connections) in [(1, setting.connections), (many, FEW)] {
        let setting = &Setting { connections, ..setting.clone() };
        let mut table = Table { title: title(setting, about, lines), unit: "increments", sides: Vec::new() };
        for variant in variants {
            let load = setting.load(&api.address, requests(setting, lines, variant));
            table.sides.push(Side::new(variant.name, lines, load));
        }
        table.measure(setting, redis).await?;
        report::show(&table)?;
    }
    Ok(())
}

fn title(setting: &Setting, about: &str, lines: usize) -> String {
    let many = if lines == 1 { "single increments".to_owned() } else { format!("{lines} increments a request") };
    format!("{about}, {}: {many}, {} connections", setting.store, setting.connections)
}

fn requests(setting: &Setting, lines: usize, variant: &Variant<'_>) -> Arc<[Bytes]> {
    let path = format!("/v1/boards/{}/increments", variant.board);
    let kind = if lines == 1 { "application/json" } else { "application/x-ndjson" };
    let drawn = subjects::draw(Skew::Uniform, setting.subjects, PREPARED);
    let request = |chunk: &[u32]| {
        let body: String = chunk.iter().map(|number| (variant.line)(*number) + "\n").collect();
        wire::request("POST", &path, kind, body.as_bytes())
    };
    drawn.chunks(lines).map(request).collect()
}
