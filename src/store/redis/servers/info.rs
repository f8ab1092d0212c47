//! The information that a server returns about itself (`INFO server`).

use redis::{Cmd, Value, cmd};

/// The fields that are used here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store::redis) struct Info {
    /// The version as the server writes it. Valkey returns the version of Redis with which it is compatible.
    pub version: String,
    /// `standalone`, `cluster` or `sentinel` (`redis_mode`; in Valkey `server_mode`).
    pub mode: String,
    /// A random id that each process of a server draws.
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
    fn server_info_is_parsed() {
        let text = "# Server\r\nredis_version:7.0.15\r\nredis_mode:cluster\r\nrun_id:4f3c\r\ntcp_port:6379\r\n";
        let wanted = Info { version: "7.0.15".to_owned(), mode: "cluster".to_owned(), run: Some("4f3c".to_owned()) };
        assert_eq!(Info::read(Value::BulkString(text.as_bytes().to_vec())), Some(wanted));
        assert_eq!(Info::read(Value::BulkString(Vec::new())), Some(Info::default()));
        assert_eq!(Info::read(Value::Nil), None);
    }
}
