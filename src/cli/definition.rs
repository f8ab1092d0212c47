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
    /// Begin again with each period: every=1mo, or more such as every=14d,start=2026-11-02,grace=1h,archive=12,archive_top=1000
    #[arg(long, value_name = "MEMBER=VALUE,…", value_delimiter = ',')]
    season: Vec<String>,
    /// Show in each line the rank just before this hour (1h) or day (1d) began, or in the period before (period)
    #[arg(long, value_name = "1h|1d|period")]
    movement: Option<String>,
    /// For AVG, measurements that each subject has beside its own: mean=3.5,weight=10
    #[arg(long, value_name = "MEMBER=VALUE,…", value_delimiter = ',')]
    prior: Vec<String>,
    /// A second key that orders equal scores: most=1000,order=asc, and field=seconds for events
    #[arg(long, value_name = "MEMBER=VALUE,…", value_delimiter = ',')]
    tie_break: Vec<String>,
    /// For COUNT, how much of one person counts for one subject in a day: per=user_id,most=10,every=1d
    #[arg(long, value_name = "MEMBER=VALUE,…", value_delimiter = ',')]
    cap: Vec<String>,
    /// Who is first among equal scores: the subject that has had its score for longer (first), or not as long (last); with a
    /// precision of times as first:1ms
    #[arg(long, value_name = "first|last[:PRECISION]")]
    ties: Option<String>,
    /// Whether subjects that tie share a rank (shared), or each line has a rank of its own (ordinal)
    #[arg(long, value_name = "shared|ordinal")]
    ranks: Option<String>,
    /// The day or hour with which slots and periods of a day or longer begin, such as 2026-11-02 or 2026-11-02T05:00
    #[arg(long, value_name = "DAY[THOUR:00]")]
    starts: Option<String>,
    /// The board that keeps the attributes of the subjects, such as names, so that several boards show the same ones
    #[arg(long, value_name = "BOARD")]
    attributes: Option<String>,
    /// Any other member of the definition, such as decimals=2 or timezone=Europe/Berlin; may be given several times
    #[arg(long = "set", value_name = "MEMBER=VALUE")]
    members: Vec<String>,
    /// A file with the definition as JSON, in place of all that
    #[arg(long, value_name = "PATH", conflicts_with_all = ["metric", "slot", "windows", "season", "movement", "starts", "prior", "tie_break", "cap", "ties", "ranks", "attributes", "members"])]
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
        for (key, option, texts) in [
            ("season", "--season", &self.season),
            ("prior", "--prior", &self.prior),
            ("tie_break", "--tie-break", &self.tie_break),
            ("cap", "--cap", &self.cap),
        ] {
            if !texts.is_empty() {
                definition.insert(key.to_owned(), Value::Object(members(option, texts)?));
            }
        }
        definition.extend(self.movement.as_ref().map(|movement| ("movement".to_owned(), json!(movement))));
        definition.extend(self.ties.as_ref().map(|ties| ("ties".to_owned(), json!(ties))));
        definition.extend(self.ranks.as_ref().map(|ranks| ("ranks".to_owned(), json!(ranks))));
        definition.extend(self.starts.as_ref().map(|starts| ("starts".to_owned(), json!(starts))));
        definition.extend(self.attributes.as_ref().map(|board| ("attributes".to_owned(), json!(board))));
        let others = members("--set", &self.members)?;
        if let Some(name) = others.keys().find(|name| !Definition::KEYS.contains(&name.as_str())) {
            bail!("--set {name}: a definition has no such member; it has {}", Definition::KEYS.join(", "));
        }
        definition.extend(others);
        Ok(Value::Object(definition))
    }
}

/// Returns members that are given as `MEMBER=VALUE`.
fn members(option: &str, texts: &[String]) -> anyhow::Result<Map<String, Value>> {
    let member = |text: &String| {
        let Some((name, value)) = text.split_once('=') else {
            bail!("{option} {text}: '=' is missing after the member")
        };
        // What is no JSON is a text, so that texts need no quotes.
        Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| json!(value))))
    };
    texts.iter().map(member).collect()
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

        let season = ["x", "m", "--season", "every=14d,start=2026-11-02", "--season", "archive=3"];
        let expected = json!({"metric": "m", "season": {"every": "14d", "start": "2026-11-02", "archive": 3}});
        assert_eq!(Line::parse_from(season).definition.read().unwrap(), expected);
        let movement = ["x", "m", "--movement", "1d"];
        let expected = json!({"metric": "m", "movement": "1d"});
        assert_eq!(Line::parse_from(movement).definition.read().unwrap(), expected);
        let cap = ["x", "m", "--cap", "per=user_id,most=10,every=1d"];
        let expected = json!({"metric": "m", "cap": {"per": "user_id", "most": 10, "every": "1d"}});
        assert_eq!(Line::parse_from(cap).definition.read().unwrap(), expected);
        let others = ["x", "m", "--prior", "mean=3.5,weight=10", "--tie-break", "most=9,order=asc"];
        let expected =
            json!({"metric": "m", "prior": {"mean": 3.5, "weight": 10}, "tie_break": {"most": 9, "order": "asc"}});
        assert_eq!(Line::parse_from(others).definition.read().unwrap(), expected);
        let starts = ["x", "m", "--starts", "2026-11-02T05:00"];
        let expected = json!({"metric": "m", "starts": "2026-11-02T05:00"});
        assert_eq!(Line::parse_from(starts).definition.read().unwrap(), expected);
        let error = Line::parse_from(["x", "m", "--season", "1mo"]).definition.read().unwrap_err().to_string();
        assert_eq!(error, "--season 1mo: '=' is missing after the member");
    }
}
