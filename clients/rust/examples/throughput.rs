//! Measures how fast one process counts: `cargo run --release --example throughput -- http://127.0.0.1:8080 1000000
//! [sums]`

use std::time::Instant;

use rolltop_client::{Error, Increment, Service};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
    let items: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let coalesces = arguments.next().is_some_and(|text| text == "sums");
    let board = Service::new(&url)?.board(if coalesces { "throughput-sums" } else { "throughput" });
    board.define(&json!({"metric": "COUNT(24h, play, track)", "slot": "1h"})).await?;

    let sender = board.sender().coalesces(coalesces).start()?;
    let names: Vec<String> = (0..1_000).map(|number| format!("track-{number}")).collect();
    let began = Instant::now();
    for number in 0..items {
        // Not in order, and some more often than others.
        let track = (number * number + number / 7) % 1_000;
        sender.add(Increment::new(&names[track as usize])).await?;
    }
    sender.close().await?;
    let seconds = began.elapsed().as_secs_f64();
    println!("{items} items in {seconds:.1} s: {:.0} a second; {:?}", items as f64 / seconds, sender.counts());
    Ok(())
}
