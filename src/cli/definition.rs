//! The definition of a board on the command line.

use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use crate::board::Definition;

/// What a board counts.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct DefinitionArgs {
    /// The metric, such as 'COUNT(24h, like, post_id)'
    #[arg(required_unless_present = "file")]
    metric: Option<String>,
    /// The length of a slot, such as 1h
    #[arg(long)]
    slot: Option<String>,
    /// A further window, such as 7d/6h or all; may be given several times
    #[arg(long = "window", value_name = "LENGTH/SLOT")]
    windows: Vec<String>,
    /// Any other member of the definition, such as decimals=2 or timezone=Europe/Berlin; may be given several times
    #[arg(long = "set", value_name = "MEMBER=VALUE")]
    members: Vec<String>,
    /// A file with the definition as JSON, in place of all that
    #[arg(long, value_name = "PATH", conflicts_with_all = ["metric", "slot", "windows", "members"])]
    file: Option<PathBuf>,
}

impl DefinitionArgs {
    pub(super) fn read(&self) -> anyhow::Result<Value> {
        if let Some(path) = &self.file {
            let shown = path.display();
            let text = std::fs::read_to_string(path).with_context(|| format!("--file: cannot read {shown}"))?;
            return serde_json::from_str(&text).with_context(|| format!("--file: {shown} is not JSON"));
        }
        let mut definition = Map::new();
        definition.extend(self.metric.as_ref().map(|metric| ("metric".to_owned(), json!(metric))));
        definition.extend(self.slot.as_ref().map(|slot| ("slot".to_owned(), json!(slot))));
        if !self.windows.is_empty() {
            definition.insert("windows".to_owned(), json!(self.windows));
        }
        for member in &self.members {
            let Some((name, text)) = member.split_once('=') else {
                bail!("--set {member}: '=' is missing after the member")
            };
            if !Definition::KEYS.contains(&name) {
                bail!("--set {name}: a definition has no such member; it has {}", Definition::KEYS.join(", "));
            }
            // What is no JSON is a text, so that texts need no quotes.
            definition.insert(name.to_owned(), serde_json::from_str(text).unwrap_or_else(|_| json!(text)));
        }
        Ok(Value::Object(definition))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        definition: DefinitionArgs,
    }

    #[test]
    fn members_are_json_or_texts() {
        let line = [
            "x",
            "SUM(30d, sale, amount, product)",
            "--slot",
            "1d",
            "--set",
            "decimals=2",
            "--set",
            "timezone=Asia/Tokyo",
            "--window",
            "all",
        ];
        let definition = Line::parse_from(line).definition.read().unwrap();
        let expected = json!({"metric": "SUM(30d, sale, amount, product)", "slot": "1d", "windows": ["all"], "decimals": 2, "timezone": "Asia/Tokyo"});
        assert_eq!(definition, expected);
        let error = Line::parse_from(["x", "m", "--set", "decimal=2"]).definition.read().unwrap_err().to_string();
        assert!(error.contains("decimals"), "{error}");
        assert!(Line::try_parse_from(["x"]).is_err());
    }
}
