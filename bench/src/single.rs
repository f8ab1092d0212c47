//! Requests with one increment.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::api::Api;
use super::process::{Redis, Server};
use super::report::{self, Side, Table};
use super::subjects::{self, Skew};
use super::target::Target;
use super::{LoadSetting, wire};

/// The number of requests prepared in advance.
const PREPARED: usize = 1 << 17;

const METRIC: &str = "COUNT(24h, hit, post)";
const SLOT: &str = "1h";
const FURTHER: [&str; 3] = ["1h/1m", "7d/6h", "all"];
const ALL_TIME: &str = "COUNT(all, hit, post)";

/// Measures uniform and Zipf-distributed subjects. If another rolltop program is given, measures it too.
pub async fn run(setting: &LoadSetting, against: Option<&Path>) -> anyhow::Result<()> {
    match &setting.target {
        Some(api) => Target::visit(api, async |target| at_target(setting, target).await).await,
        None => started(setting, against).await,
    }
}

async fn at_target(setting: &LoadSetting, target: &Target) -> anyhow::Result<()> {
    for skew in [Skew::Uniform, Skew::Zipf] {
        let board = define(target, skew).await?;
        let sides = vec![ours(setting, &target.api, &board, skew).await?];
        let mut table = Table { title: title(setting, skew), unit: "requests", sides };
        table.measure(&setting.setting, &mut None).await?;
        report::show(&table)?;
    }
    Ok(())
}

async fn started(setting: &LoadSetting, against: Option<&Path>) -> anyhow::Result<()> {
    let setting = &setting.for_comparison(against);
    let mut redis = Redis::of_store(&setting.setting.store).await?;
    let echo = Server::echo().await?;
    let plain = match &redis {
        Some(redis) => Some(Server::plain(&redis.url).await?),
        None => None,
    };
    let url = redis.as_ref().map(|redis| redis.url.clone());
    let rolltop = Server::rolltop(url.as_deref(), None).await?;
    let target = Target::started(rolltop.api());
    let other = match against {
        Some(program) => Some(Server::rolltop_of(program, url.as_deref(), None).await?),
        None => None,
    };
    for skew in [Skew::Uniform, Skew::Zipf] {
        let board = define(&target, skew).await?;
        let baseline = requests(setting, skew, wire::baseline);
        let mut sides = vec![Side::new("bare echo", 1, setting.load(&echo.address, Arc::clone(&baseline)))];
        if let Some(plain) = &plain {
            sides.push(Side::new("plain HINCRBY + ZINCRBY", 1, setting.load(&plain.address, baseline)));
        }
        sides.push(ours(setting, &target.api, &board, skew).await?.of(Some(&rolltop)));
        for (ending, label, definition) in [
            ("all", "rolltop, a board over all time", json!({"metric": ALL_TIME})),
            ("windows", "rolltop, a board with 4 windows", json!({"metric": METRIC, "slot": SLOT, "windows": FURTHER})),
        ] {
            let board = target.define_with(&format!("{}-{ending}", name(skew)), definition).await?;
            let requests = requests(setting, skew, |subject| wire::increment(&board, subject));
            sides.push(Side::new(label, 1, setting.load(&target.api.address, requests)).of(Some(&rolltop)));
        }
        if let Some(other) = &other {
            // On the embedded store the other program has its own boards. On Redis both use the same board.
            other.api().define(&board, METRIC, SLOT).await?;
            let requests = requests(setting, skew, |subject| wire::increment(&board, subject));
            sides.push(Side::new("the other rolltop", 1, setting.load(&other.address, requests)).of(Some(other)));
        }
        let mut table = Table { title: title(setting, skew), unit: "requests", sides };
        table.measure(&setting.setting, &mut redis).await?;
        report::show(&table)?;
        if let ([.., ours, _, _, theirs], true) = (&table.sides[..], other.is_some()) {
            report::show_ratio("rolltop to the other rolltop", ours, theirs)?;
        }
    }
    Ok(())
}

async fn define(target: &Target, skew: Skew) -> anyhow::Result<String> {
    target.define(name(skew), METRIC, SLOT).await
}

fn name(skew: Skew) -> &'static str {
    if skew == Skew::Uniform { "uniform" } else { "zipf" }
}

async fn ours(setting: &LoadSetting, api: &Api, board: &str, skew: Skew) -> anyhow::Result<Side> {
    let requests = requests(setting, skew, |subject| wire::increment(board, subject));
    let load = setting.load(&api.address, requests);
    load.check("\"rejected\":[]").await?;
    Ok(Side::new("rolltop", 1, load))
}

/// Returns a request for each of the subjects drawn.
fn requests(setting: &LoadSetting, skew: Skew, request: impl Fn(&str) -> Bytes) -> Arc<[Bytes]> {
    let drawn = subjects::draw(skew, setting.setting.subjects, PREPARED);
    drawn.into_iter().map(|number| request(&subjects::name(number))).collect()
}

fn title(setting: &LoadSetting, skew: Skew) -> String {
    let (place, subjects, shown) = (setting.place(), setting.setting.subjects, setting.shown());
    format!("single increments, {place}, {skew} over {subjects} subjects, {shown}")
}
