//! Which topics are read: by their names, and by how names begin, as boards are named.

use std::fmt;

use serde::Deserialize;

/// The length of the longest name of a topic.
pub const MAX_TOPIC: usize = 249;

/// The name of a topic, or how names begin: `likes`, `shop-*`, or `*` for all.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct TopicPattern {
    text: String,
    is_prefix: bool,
}

impl TopicPattern {
    /// Returns the name, if it is one.
    pub fn name(&self) -> Option<&str> {
        (!self.is_prefix).then_some(&self.text)
    }

    /// Returns whether it includes a topic. Those that a cluster keeps for itself have to be named.
    pub fn includes(&self, topic: &str, is_internal: bool) -> bool {
        match self.name() {
            Some(name) => name == topic,
            None => topic.starts_with(&self.text) && !is_internal && !topic.starts_with("__"),
        }
    }
}

impl TryFrom<String> for TopicPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (begin, is_prefix) = text.strip_suffix('*').map_or((text.as_str(), false), |begin| (begin, true));
        // The text before `*` is a name itself, or empty.
        let is_all = is_prefix && begin.is_empty();
        if !is_all && !is_topic(begin) {
            return Err(format!(
                "'{text}' is not a pattern of topics: the name of a topic, the beginning of names with '*' after it, or '*'"
            ));
        }
        Ok(Self { text: begin.to_owned(), is_prefix })
    }
}

impl fmt::Display for TopicPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, if self.is_prefix { "*" } else { "" })
    }
}

/// Returns whether a text can be the name of a topic.
pub fn is_topic(text: &str) -> bool {
    let is = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=MAX_TOPIC).contains(&text.len()) && text.bytes().all(is) && text != "." && text != ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_include_topics() {
        for (pattern, topic, is_included) in [
            ("likes", "likes", true),
            ("likes", "likes-2", false),
            ("Shop.*", "Shop.a", true),
            ("Shop.*", "Shop.", true),
            ("Shop.*", "shop.a", false),
            ("*", "anything", true),
            ("*", "__amazon_msk_canary", false),
            ("__*", "__consumer_offsets", false),
            ("__consumer_offsets", "__consumer_offsets", true),
        ] {
            let is = TopicPattern::try_from(pattern.to_owned()).unwrap().includes(topic, false);
            assert_eq!(is, is_included, "{pattern} {topic}");
        }
        assert!(!TopicPattern::try_from("*".to_owned()).unwrap().includes("kept", true));
        for wrong in ["", "**", "a*b", "a b", "a/*", "é", ".", &"a".repeat(250)] {
            assert!(TopicPattern::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
