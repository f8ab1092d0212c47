//! `rolltop healthcheck`: checks that a server is up, for container images that have no curl.

use std::time::Duration;

use anyhow::bail;
use rolltop_client::Method;
use serde::de::IgnoredAny;

use super::server::ServerArgs;

/// Check that a server is up: exit code 0 if it is, 1 if not.
#[derive(Clone, Debug, clap::Args)]
pub struct HealthcheckArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// Check that the server is ready: its store can be reached, and no rollover is overdue.
    #[arg(long)]
    ready: bool,
}

/// Sends one request, and waits at most 2 seconds.
pub async fn run(args: HealthcheckArgs) -> anyhow::Result<()> {
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let service = args.server.builder()?.timeout(Duration::from_secs(2)).build()?;
    match service.request::<IgnoredAny>(Method::GET, path).await {
        Ok(IgnoredAny) => Ok(()),
        Err(error) => match error.status() {
            Some(status) => bail!("{}{path} returned {status}", service.url()),
            None => Err(error.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn healthcheck_requests_the_endpoint_and_returns_its_status() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = vec![0; 1_000];
                let read = stream.read(&mut request).await.unwrap();
                let lives = request[..read].starts_with(b"GET /healthz ");
                let status = if lives { "200 OK" } else { "503 Service Unavailable" };
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\
                     content-length: 2\r\nconnection: close\r\n\r\n{{}}"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let check = |ready| run(HealthcheckArgs { server: ServerArgs::with_url(&url, None), ready });
        assert!(check(false).await.is_ok());
        let error = check(true).await.unwrap_err().to_string();
        assert!(error.contains("/readyz returned 503"), "{error}");
        server.await.unwrap();
        assert!(check(false).await.is_err(), "the server has stopped");
    }
}
