//! Counts some likes, and prints the ranking after each change: `cargo run --example top -- http://127.0.0.1:8080`

use std::time::Duration;

use futures_util::StreamExt;
use rolltop_client::{Error, Increment, Service};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
    let board = Service::new(&url)?.board("example-posts");
    board.define(&json!({"metric": "COUNT(24h, like, post_id)", "slot": "1h"})).await?;

    let sender = board.sender().every(Duration::from_millis(200)).start()?;
    let mut live = Box::pin(board.top().limit(10).live());
    for round in 0..5 {
        for like in 0..100 {
            sender.add(Increment::new(&format!("post-{}", like % (3 + round)))).await?;
        }
        sender.flush().await?;
        let Some(ranking) = live.next().await else { break };
        println!("round {round}");
        for line in ranking?.items {
            let score = line.score.map(|score| score.to_string()).unwrap_or_default();
            println!("{:>4}  {:<20} {score:>8}", line.rank, line.subject.as_deref().unwrap_or("(removed)"));
        }
    }
    sender.close().await
}
