//! What a server says about itself (`INFO server`).

use redis::{Cmd, Value, cmd};

/// The facts that matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store::redis) struct Info {
    /// As the server writes it; Valkey gives the version of Redis that it stands in for.
    pub version: String,
    /// `standalone`, `cluster` or `sentinel` (`redis_mode`; Valkey calls it `server_mode`).
    pub mode: String,
    /// Drawn by each process of a server.
    pub run: Option<String>,
}

impl Info {
    pub fn command() -> Cmd {
        let mut command = cmd("INFO");
        command.arg("server");
        command
    }

    pub fn read(answer: Value) -> Option<Self> {
        let text = match answer {
            Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Value::VerbatimString { text, .. } => text,
            _ => return None,
        };
        let mut info = Info::default();
        for (name, value) in text.lines().filter_map(|line| line.trim_end().split_once(':')) {
            match name {
                "redis_version" => info.version = value.to_owned(),
                "redis_mode" | "server_mode" => info.mode = value.to_owned(),
                "run_id" => info.run = Some(value.to_owned()),
                _ => {}
            }
        }
        Some(info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_are_found() {
        let text = "# Server\r\nredis_version:7.0.15\r\nredis_mode:cluster\r\nrun_id:4f3c\r\ntcp_port:6379\r\n";
        let wanted = Info { version: "7.0.15".to_owned(), mode: "cluster".to_owned(), run: Some("4f3c".to_owned()) };
        assert_eq!(Info::read(Value::BulkString(text.as_bytes().to_vec())), Some(wanted));
        assert_eq!(Info::read(Value::BulkString(Vec::new())), Some(Info::default()));
        assert_eq!(Info::read(Value::Nil), None);
    }
}
