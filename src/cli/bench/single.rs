//! One increment a request.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Setting;
use super::load::Load;
use super::process::{Redis, Server};
use super::report::{self, Side, Table};
use super::subjects::{self, Skew};
use super::wire::{self, Protocol};

/// Requests prepared in advance.
const PREPARED: usize = 1 << 17;

/// Rounds at least in which two programs are compared: they are close to each other.
const LEAST_ROUNDS: u32 = 9;

/// Measures uniform and Zipf-distributed subjects, of another rolltop program, too, if one is given.
pub async fn run(setting: &Setting, against: Option<&Path>) -> anyhow::Result<()> {
    let rounds = if against.is_some() { setting.rounds.max(LEAST_ROUNDS) } else { setting.rounds };
    let setting = &Setting { rounds, ..setting.clone() };
    let mut redis = Redis::of_store(&setting.store).await?;
    let echo = Server::echo().await?;
    let plain = match &redis {
        Some(redis) => Some(Server::plain(&redis.url).await?),
        None => None,
    };
    let url = redis.as_ref().map(|redis| redis.url.clone());
    let rolltop = Server::rolltop(url.as_deref(), None).await?;
    let other = match against {
        Some(program) => Some(Server::rolltop_of(program, url.as_deref(), None).await?),
        None => None,
    };
    for (board, skew) in [("bench-uniform", Skew::Uniform), ("bench-zipf", Skew::Zipf)] {
        rolltop.define(board, "COUNT(24h, hit, post)", "1h").await?;
        let path = format!("/v1/boards/{board}/increments");
        let mut sides = vec![Side::new("bare echo", 1, load(setting, &echo, "/", skew))];
        if let Some(plain) = &plain {
            sides.push(Side::new("plain HINCRBY + ZINCRBY", 1, load(setting, plain, "/", skew)));
        }
        let ours = load(setting, &rolltop, &path, skew);
        ours.check("\"rejected\":[]").await?;
        sides.push(Side::new("rolltop", 1, ours));
        if let Some(other) = &other {
            other.define(board, "COUNT(24h, hit, post)", "1h").await?;
            sides.push(Side::new("the other rolltop", 1, load(setting, other, &path, skew)));
        }
        let title = format!(
            "single increments, {}, {skew} over {} subjects, {} connections",
            setting.store, setting.subjects, setting.connections
        );
        let mut table = Table { title, unit: "requests", sides };
        table.measure(setting, &mut redis).await?;
        report::show(&table)?;
        if let ([.., ours, theirs], true) = (&table.sides[..], other.is_some()) {
            report::show(format!("  {:<48}{:>8.2}\n", "rolltop to the other rolltop", ours.ratio_to(theirs)))?;
        }
    }
    Ok(())
}

fn load(setting: &Setting, server: &Server, path: &str, skew: Skew) -> Load {
    let requests: Arc<[_]> = subjects::draw(skew, setting.subjects, PREPARED)
        .into_iter()
        .map(|number| {
            let body = format!("{{\"subject\":\"{}\",\"amount\":1}}", subjects::name(number));
            wire::request("POST", path, "application/json", body.as_bytes())
        })
        .collect();
    Load {
        address: server.address.clone(),
        protocol: Protocol::Http,
        requests,
        connections: setting.connections,
        pause: Duration::ZERO,
    }
}
