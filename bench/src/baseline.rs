//! The baselines of the comparison: the least work of a web server, and the least work of a leaderboard on Redis.

use std::net::SocketAddr;

use actix_web::{App, HttpResponse, HttpServer, web};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Increment {
    subject: String,
    amount: i64,
}

/// Serves increments by parsing their JSON and echoing it.
pub async fn serve_echo(listen: SocketAddr) -> anyhow::Result<()> {
    async fn echo(increment: web::Json<Increment>) -> web::Json<Increment> {
        increment
    }
    HttpServer::new(|| App::new().route("/", web::post().to(echo))).bind(listen)?.run().await?;
    Ok(())
}

/// Serves increments by sending HINCRBY and ZINCRBY for each, in one round trip over one multiplexed connection.
pub async fn serve_plain(listen: SocketAddr, redis: &str) -> anyhow::Result<()> {
    async fn add(
        increment: web::Json<Increment>,
        connection: web::Data<redis::aio::MultiplexedConnection>,
    ) -> HttpResponse {
        let mut connection = redis::aio::MultiplexedConnection::clone(&connection);
        let Increment { subject, amount } = increment.into_inner();
        let counted: redis::RedisResult<(i64, f64)> = redis::pipe()
            .hincr("plain:slot", &subject, amount)
            .zincr("plain:ranking", &subject, amount)
            .query_async(&mut connection)
            .await;
        match counted {
            Ok((_, score)) => HttpResponse::Ok().json(score),
            Err(error) => HttpResponse::ServiceUnavailable().body(error.to_string()),
        }
    }
    let connection = redis::Client::open(redis)?.get_multiplexed_async_connection().await?;
    let connection = web::Data::new(connection);
    HttpServer::new(move || App::new().app_data(connection.clone()).route("/", web::post().to(add)))
        .bind(listen)?
        .run()
        .await?;
    Ok(())
}
