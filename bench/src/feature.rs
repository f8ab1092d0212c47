//! A feature query: one subject's count over a shorter window of an unranked board.

use std::sync::Arc;

use super::process::{Redis, Server};
use super::report::{self, Side, Table};
use super::subjects::{self, Skew};
use super::{Setting, ingest, wire};

/// The number of requests prepared in advance.
const PREPARED: usize = 1 << 14;
/// The number of subjects with data.
const SUBJECTS: u32 = 100_000;

/// Measures against the bare echo.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    let mut redis = Redis::of_store(&setting.store).await?;
    let echo = Server::echo().await?;
    let rolltop = Server::rolltop(redis.as_ref().map(|redis| redis.url.as_str()), None).await?;
    let api = rolltop.api();
    api.define_as("feature", "COUNT(1h, login, device)", "1m", false).await?;
    let subjects = setting.subjects.min(SUBJECTS);
    ingest::seed(&api, "feature", subjects).await?;

    let queries: Arc<[_]> = subjects::draw(Skew::Uniform, subjects, PREPARED)
        .into_iter()
        .map(|number| wire::get(&format!("/v1/boards/feature/subjects/{}/window?last=30m", subjects::name(number))))
        .collect();
    let ours = setting.load(&api.address, queries);
    ours.check("\"count\":1").await?;
    let echo = setting.load(&echo.address, [wire::baseline("post-1")]);
    let sides = vec![Side::new("bare echo", 1, echo), Side::new("rolltop", 1, ours)];
    let title = format!("feature queries, {}, {} connections", setting.store, setting.connections);
    let mut table = Table { title, unit: "requests", sides };
    table.measure(setting, &mut redis).await?;
    report::show(&table)
}
