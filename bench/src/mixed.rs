//! The typical calls of an application on a board: increments, pages and standings.

use std::sync::Arc;

use bytes::Bytes;

use super::process::{Redis, Server};
use super::report::{self, Side, Table};
use super::subjects::{self, Skew};
use super::target::Target;
use super::{LoadSetting, ingest, wire};

/// The default number of requests a second.
const RATE: u32 = 1_000;
/// The number of requests prepared in advance.
const PREPARED: usize = 1 << 15;

/// Measures these calls at a fixed rate, so that the latencies are those of a server that is not saturated.
pub async fn run(setting: &LoadSetting) -> anyhow::Result<()> {
    let rate = setting.rate.or(std::num::NonZeroU32::new(RATE));
    let setting = &LoadSetting { rate, ..setting.clone() };
    if let Some(api) = &setting.target {
        return Target::visit(api, async |target| measure(setting, target, None, &mut None).await).await;
    }
    let mut redis = Redis::of_store(&setting.setting.store).await?;
    let echo = Server::echo().await?;
    let rolltop = Server::rolltop(redis.as_ref().map(|redis| redis.url.as_str()), None).await?;
    measure(setting, &Target::started(rolltop.api()), Some(&echo), &mut redis).await
}

async fn measure(
    setting: &LoadSetting,
    target: &Target,
    echo: Option<&Server>,
    redis: &mut Option<Redis>,
) -> anyhow::Result<()> {
    let subjects = setting.setting.subjects;
    let board = target.define("mixed", "COUNT(24h, hit, post)", "1h").await?;
    ingest::seed(&target.api, &board, subjects).await?;
    target.api.ensure_total(&board, subjects).await?;

    let ours = requests(&[&board], &subjects::draw(Skew::Zipf, subjects, PREPARED));
    let ours = setting.load(&target.api.address, ours);
    ours.check("\"rejected\":[]").await?;
    let echo = echo.map(|echo| Side::new("bare echo", 1, setting.load(&echo.address, [wire::baseline("post-1")])));
    let sides = echo.into_iter().chain([Side::new("rolltop", 1, ours)]).collect();
    let (place, shown) = (setting.place(), setting.shown());
    let title = format!("increments, pages and standings, {subjects} subjects, {place}, {shown}");
    let mut table = Table { title, unit: "requests", sides };
    table.measure(&setting.setting, redis).await?;
    report::show(&table)
}

/// Returns an increment, the top 50 and a standing in turn. Each kind is sent for every board before the next kind, and
/// each request uses the next subject.
pub fn requests(boards: &[&str], subjects: &[u32]) -> Arc<[Bytes]> {
    let request = |(at, number): (usize, &u32)| {
        let (board, subject) = (boards[at % boards.len()], subjects::name(*number));
        match at / boards.len() % 3 {
            0 => wire::increment(board, &subject),
            1 => wire::get(&format!("/v1/boards/{board}/rankings?limit=50")),
            _ => wire::get(&format!("/v1/boards/{board}/subjects/{subject}")),
        }
    };
    subjects.iter().enumerate().map(request).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_board_gets_every_kind_of_request() {
        let requests = requests(&["calm", "large"], &(0..600).collect::<Vec<_>>());
        for board in ["calm", "large"] {
            for kind in ["POST /v1/boards/B/increments ", "GET /v1/boards/B/rankings?", "GET /v1/boards/B/subjects/"] {
                let start = kind.replace('B', board);
                let count = requests.iter().filter(|request| request.starts_with(start.as_bytes())).count();
                assert_eq!(count, 100, "{start}");
            }
        }
    }
}
