//! The partitions of topics, and the names of their sources.

use std::collections::BTreeSet;

use krafka::admin::ListTopicsOptions;

use super::super::{LogError, NoLog};
use super::brokers::plain;
use super::{KafkaConfig, Reader};

/// The largest number of partitions that a source of the configuration reads: each has connections and memory of its own.
const MAX_PARTITIONS: usize = 1_000;

/// The length of the longest name of a source, and of the longest end of one: `-2147483647.5f1c2a9d`.
const MAX_SOURCE: usize = 120;
const MAX_SUFFIX: usize = 20;

/// A partition of a topic by its identity: one that is created again has the same name and another id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    pub topic: String,
    pub number: i32,
    pub topic_id: [u8; 16],
}

impl Partition {
    /// Returns the name of the partition's source, which begins with `name`, and with the topic after it if there are
    /// several.
    pub fn source(&self, name: &str, config: &KafkaConfig) -> String {
        let suffix = self.suffix();
        if config.topic.is_some() {
            return format!("{name}{suffix}");
        }
        let room = MAX_SOURCE.saturating_sub(name.len() + 1 + MAX_SUFFIX);
        format!("{name}-{}{suffix}", &self.topic[..self.topic.len().min(room)])
    }

    /// Returns what the name of the partition's source ends with.
    fn suffix(&self) -> String {
        let words =
            self.topic_id.chunks_exact(4).map(|word| word.iter().fold(0, |id, byte| (id << 8) | u32::from(*byte)));
        let id = words.fold(0, |id, word| id ^ word);
        // A broker that is too old has no ids.
        if id == 0 { format!("-{}", self.number) } else { format!("-{}.{id:08x}", self.number) }
    }
}

/// Returns the partitions that the topics have now, each with the name of its source.
pub async fn partitions(config: &KafkaConfig, name: &str) -> Result<Vec<(String, Partition)>, LogError> {
    let kafka = config.connect().await?;
    let tried = match &config.topic {
        Some(topic) => format!("cannot read the topic '{topic}'"),
        None => "cannot list topics".to_owned(),
    };
    let wrong = |error| LogError::later(&tried, plain(error));
    let consumer = Reader::new(kafka.consumer_without_group().build().await.map_err(wrong)?);
    let mut topics = match &config.topic {
        Some(topic) => consumer.fetch_metadata(Some(topic)).await.map_err(wrong)?.topics,
        None => {
            // This asks, and the consumer has what was answered.
            kafka.admin().list_topics(ListTopicsOptions::default()).await.map_err(wrong)?;
            consumer.fetch_metadata(None).await.map_err(wrong)?.topics
        }
    };
    topics.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    topics.retain(|topic| config.includes(&topic.name, topic.is_internal));
    let is_wanted = |number: &i32| config.partitions.as_ref().is_none_or(|wanted| wanted.contains(number));
    let mut found = Vec::new();
    for topic in topics {
        let mut numbers: Vec<i32> = topic.partitions.into_keys().filter(is_wanted).collect();
        numbers.sort_unstable();
        let partition = |number| Partition { topic: topic.name.clone(), number, topic_id: topic.topic_id };
        found.extend(numbers.into_iter().map(partition));
    }
    if found.is_empty() {
        return Err(LogError::Later(NoLog(config.missing()).into()));
    }
    config.named(name, found)
}

impl KafkaConfig {
    fn includes(&self, topic: &str, is_internal: bool) -> bool {
        match &self.topic {
            Some(name) => name == topic,
            None => {
                let is = self.topics.iter().any(|pattern| pattern.includes(topic, is_internal));
                is && (self.names(topic) || !self.excluded.iter().any(|other| other == topic))
            }
        }
    }

    /// Says that there is nothing of what is to be read.
    fn missing(&self) -> String {
        match (&self.topic, &self.partitions) {
            (Some(topic), None) => format!("there is no topic '{topic}'"),
            (Some(topic), Some(partitions)) => format!("there is no topic '{topic}' with partitions of {partitions:?}"),
            (None, _) => {
                let patterns: Vec<String> = self.topics.iter().map(ToString::to_string).collect();
                format!("there is no topic of {}", patterns.join(", "))
            }
        }
    }

    /// Returns partitions with the names of their sources.
    fn named(&self, name: &str, partitions: Vec<Partition>) -> Result<Vec<(String, Partition)>, LogError> {
        if partitions.len() > MAX_PARTITIONS {
            return Err(LogError::stop(format!(
                "there are {} partitions, and a source has at most {MAX_PARTITIONS}: name fewer topics, or make several sources \
                 of them",
                partitions.len()
            )));
        }
        let mut known = BTreeSet::new();
        let mut named = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let source = partition.source(name, self);
            // Only long names of topics are cut off, so that two may become one.
            if !known.insert(source.clone()) {
                return Err(LogError::stop(format!(
                    "'{source}' would be the source of two topics, one of them '{}', because the end of a long name is left out: \
                     read it with a source of its own",
                    partition.topic
                )));
            }
            named.push((source, partition));
        }
        Ok(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(topics: &str) -> KafkaConfig {
        toml::from_str(&format!("brokers = \"b\"\n{topics}")).unwrap()
    }

    fn partition(topic: &str, number: i32, id: [u8; 4]) -> Partition {
        let mut topic_id = [0; 16];
        topic_id[..4].copy_from_slice(&id);
        Partition { topic: topic.to_owned(), number, topic_id }
    }

    #[test]
    fn the_name_of_a_source_says_which_topic_it_is() {
        let (one, several) = (config("topic = \"a.b\""), config("topics = [\"*\"]"));
        let old = partition("a.b", 7, [0; 4]);
        assert_eq!((old.source("n", &one), old.source("n", &several)), ("n-7".to_owned(), "n-a.b-7".to_owned()));
        let mut new = partition("a.b", 7, [0x5f, 0x1c, 0x2a, 0x9d]);
        new.topic_id[15] = 2;
        assert_eq!(new.source("n", &one), "n-7.5f1c2a9f");
        assert_eq!(new.source("n", &several), "n-a.b-7.5f1c2a9f");
    }

    #[test]
    fn the_longest_names_fit_and_differ() {
        let config = config("topics = [\"*\"]");
        let (name, topic) = ("n".repeat(50), "t".repeat(249));
        let all = [i32::MAX, 0].map(|number| partition(&topic, number, [1; 4]));
        let other = partition(&format!("{}u", "t".repeat(248)), 0, [2; 4]);
        let named = config.named(&name, [&all[..], std::slice::from_ref(&other)].concat()).unwrap();
        assert_eq!(named[0].0, format!("{name}-{}-2147483647.01010101", "t".repeat(49)));
        assert_eq!((named[0].0.len(), named.len()), (120, 3));
        assert!(rolltop::board::SourceName::parse(&named[0].0).is_ok());
        // Without ids nothing tells them apart.
        let old = [&all[1], &other].map(|partition| Partition { topic_id: [0; 16], ..partition.clone() });
        let error = format!("{:#}", anyhow::Error::from(config.named(&name, old.to_vec()).unwrap_err()));
        assert!(error.contains("two topics"), "{error}");
    }

    #[test]
    fn a_source_has_at_most_so_many_partitions() {
        let many = |number| (0..number).map(|number| partition("t", number, [1; 4])).collect();
        let config = config("topic = \"t\"");
        assert_eq!(config.named("n", many(1_000)).unwrap().len(), 1_000);
        let error = format!("{:#}", anyhow::Error::from(config.named("n", many(1_001)).unwrap_err()));
        assert!(error.contains("1001 partitions") && error.contains("at most 1000"), "{error}");
    }

    #[test]
    fn dead_letters_are_not_read_by_a_pattern() {
        let mut config = config("topics = [\"likes*\", \"a.dead\"]");
        config.excluded = vec!["likes.dead".to_owned(), "a.dead".to_owned()];
        assert!(config.includes("likes", false) && !config.includes("likes.dead", false));
        // Somebody may want to read what another source has written.
        assert!(config.includes("a.dead", false) && !config.includes("other", false));
    }
}
