//! The rolltop server that is measured: one started for the benchmark, or one that already runs and has other users.

use anyhow::anyhow;
use parking_lot::Mutex;
use serde_json::Value;

use super::api::Api;

/// A rolltop server and the boards that a scenario has created on it.
pub struct Target {
    pub api: Api,
    /// The prefix of the name of every board.
    prefix: String,
    created: Mutex<Vec<String>>,
}

impl Target {
    /// Uses a rolltop server started for the benchmark. Its boards are removed with the server.
    pub fn started(api: Api) -> Self {
        Self::new(api, "bench".to_owned())
    }

    fn new(api: Api, prefix: String) -> Self {
        Self { api, prefix, created: Mutex::default() }
    }

    /// Runs a scenario on a rolltop server that was not started for the benchmark. Its boards get unique names, and are
    /// removed afterwards, even if the scenario fails or is interrupted (Ctrl-C).
    pub async fn visit(api: &Api, scenario: impl AsyncFnOnce(&Target) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let target = Self::new(api.clone(), format!("bench-{:016x}", rand::random::<u64>()));
        let outcome = tokio::select! {
            outcome = scenario(&target) => outcome,
            _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted")),
        };
        let removed = target.remove_boards().await;
        // The first failure is returned. Boards that could not be removed are reported in any case.
        outcome.and(removed)
    }

    /// Defines a ranked board and returns its full name.
    pub async fn define(&self, name: &str, metric: &str, slot: &str) -> anyhow::Result<String> {
        let board = self.note(name);
        self.api.define(&board, metric, slot).await?;
        Ok(board)
    }

    /// Defines a board with any definition, in the same way.
    pub async fn define_with(&self, name: &str, definition: Value) -> anyhow::Result<String> {
        let board = self.note(name);
        self.api.define_with(&board, definition).await?;
        Ok(board)
    }

    /// Returns the full name of a board, which is recorded before the request is sent: the board may be created even if
    /// the response is lost.
    fn note(&self, name: &str) -> String {
        let board = format!("{}-{name}", self.prefix);
        self.created.lock().push(board.clone());
        board
    }

    async fn remove_boards(&self) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        let created = std::mem::take(&mut *self.created.lock());
        for board in created {
            if let Err(error) = self.api.remove(&board).await {
                eprintln!("the board {board} was not removed: {error:#}");
                outcome = Err(anyhow!("not every board of the benchmark was removed"));
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Starts a server that responds `{}` to everything and records method and path of each request.
    async fn server() -> (Api, Arc<Mutex<Vec<String>>>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = Api::at(&listener.local_addr().unwrap().to_string());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 4_096];
                let read = stream.read(&mut request).await.unwrap();
                let text = String::from_utf8_lossy(&request[..read]).into_owned();
                noted.lock().push(text.split_whitespace().take(2).collect::<Vec<_>>().join(" "));
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
            }
        });
        (api, seen)
    }

    #[tokio::test]
    async fn boards_of_a_visit_are_unique_and_removed_afterwards() {
        for fails in [false, true] {
            let (api, seen) = server().await;
            let visit = async |target: &Target| {
                for name in ["page", "single"] {
                    target.define(name, "COUNT(24h, hit, post)", "1h").await?;
                }
                if fails { Err(anyhow!("the scenario failed")) } else { Ok(()) }
            };
            let outcome = Target::visit(&api, visit).await;
            assert_eq!(outcome.is_err(), fails);
            let seen = seen.lock().clone();
            let (defined, removed): (Vec<_>, Vec<_>) = seen.iter().partition(|call| call.starts_with("PUT "));
            let path = |call: &&String| call.split_once(' ').map(|(_, path)| path.to_owned());
            assert_eq!(defined.len(), 2, "{seen:?}");
            assert_eq!(defined.iter().map(path).collect::<Vec<_>>(), removed.iter().map(path).collect::<Vec<_>>());
            assert!(removed.iter().all(|call| call.starts_with("DELETE /v1/boards/bench-")), "{seen:?}");
        }
    }

    #[test]
    fn visit_names_are_valid_and_random() {
        let name = || format!("bench-{:016x}-uniform", rand::random::<u64>());
        assert_ne!(name(), name());
        assert!(name().bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
    }
}
