//! Requests with one event that feeds one board or ten.

use super::Setting;
use super::api::Api;
use super::load::Load;
use super::process::{Redis, Server};
use super::report::{self, Side, Table};
use super::subjects::{self, Skew};
use super::wire;

/// The boards that the event feeds: metrics, and whether they are ranked.
const MANY: [(&str, bool); 10] = [
    ("COUNT(24h, many, user)", true),
    ("COUNT(24h, many, device)", true),
    ("SUM(24h, many, amount, user)", true),
    ("AVG(24h, many, amount, user)", true),
    ("MAX(24h, many, amount, user)", true),
    ("COUNT_DISTINCT(24h, many, device, user)", true),
    ("COUNT(24h, many, user)", false),
    ("SUM(24h, many, amount, device)", false),
    ("MIN(24h, many, amount, device)", false),
    ("COUNT_DISTINCT(24h, many, user, device)", false),
];
/// The number of requests prepared in advance.
const PREPARED: usize = 1 << 14;

/// Measures with one connection, which compares the time of a request, and with the requested number of connections.
pub async fn run(setting: &Setting) -> anyhow::Result<()> {
    let mut redis = Redis::of_store(&setting.store).await?;
    let rolltop = Server::rolltop(redis.as_ref().map(|redis| redis.url.as_str()), None).await?;
    let api = rolltop.api();
    api.define("one", "COUNT(24h, one, user)", "1h").await?;
    for (number, (metric, ranked)) in MANY.into_iter().enumerate() {
        api.define_as(&format!("many-{number}"), metric, "1h", ranked).await?;
    }
    for connections in [1, setting.connections] {
        let setting = Setting { connections, ..setting.clone() };
        let one = load(&setting, &api, "one");
        one.check("\"rejected\":[]").await?;
        let many = load(&setting, &api, "many");
        many.check("\"rejected\":[]").await?;
        let sides =
            vec![Side::new("an event that feeds 1 board", 1, one), Side::new("an event that feeds 10", 1, many)];
        let title = format!("events, {}, {connections} connections", setting.store);
        let mut table = Table { title, unit: "events", sides };
        table.measure(&setting, &mut redis).await?;
        report::show(&table)?;
    }
    Ok(())
}

fn load(setting: &Setting, api: &Api, kind: &str) -> Load {
    let requests: Vec<_> = subjects::draw(Skew::Zipf, setting.subjects, PREPARED)
        .into_iter()
        .map(|number| {
            let (user, device) = (subjects::name(number), number % 10_000);
            let fields =
                format!("{{\"user\":\"{user}\",\"device\":\"device-{device}\",\"amount\":{}}}", number % 1_000);
            let body = format!("{{\"type\":\"{kind}\",\"fields\":{fields}}}");
            wire::request("POST", "/v1/events", "application/json", body.as_bytes())
        })
        .collect();
    setting.load(&api.address, requests)
}
