//! How far partitions are counted, said to a consumer group. Tools show then how far it is behind; nothing else depends on it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use krafka::admin::{AdminClient, AlterConsumerGroupOffsetsOptions, TopicPartition};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::KafkaConfig;
use super::brokers::plain;

/// How often it is said, and how long that may take.
const EVERY: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(4);

/// The next offsets that are not counted, by partition.
#[derive(Debug, Default)]
pub struct GroupOffsets {
    offsets: Mutex<HashMap<TopicPartition, NextOffset>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct NextOffset {
    counted: i64,
    /// What the group knows.
    said: Option<i64>,
}

impl GroupOffsets {
    /// Sets the offset of a partition.
    pub fn set(&self, topic: &str, partition: i32, next: u128) {
        let Ok(next) = i64::try_from(next) else { return };
        self.offsets.lock().entry(TopicPartition::new(topic, partition)).or_default().counted = next;
    }

    /// Forgets a partition that is gone.
    pub fn forget(&self, topic: &str, partition: i32) {
        self.offsets.lock().remove(&TopicPartition::new(topic, partition));
    }

    /// Says it to the group every few seconds, until `end` is dropped, and then once more.
    pub async fn say(self: Arc<Self>, source: String, config: KafkaConfig, mut end: oneshot::Receiver<()>) {
        let Some(group) = &config.group else { return };
        let (mut admin, mut has_failed) = (None, false);
        loop {
            let is_end = tokio::time::timeout(EVERY, &mut end).await.is_ok();
            let said = tokio::time::timeout(ANSWER, self.commit(group, &config, &mut admin)).await;
            let said = said.context("no answer").flatten();
            if let Err(error) = &said {
                admin = None;
                if !has_failed {
                    tracing::warn!(
                        source,
                        "cannot say to the group '{group}' how far partitions are counted: {error:#}"
                    );
                }
            }
            has_failed = said.is_err();
            if is_end {
                return;
            }
        }
    }

    async fn commit(&self, group: &str, config: &KafkaConfig, admin: &mut Option<AdminClient>) -> anyhow::Result<()> {
        let new: HashMap<TopicPartition, i64> = {
            let offsets = self.offsets.lock();
            let new = offsets.iter().filter(|(_, next)| next.said != Some(next.counted));
            new.map(|(partition, next)| (partition.clone(), next.counted)).collect()
        };
        if new.is_empty() {
            return Ok(());
        }
        let admin = match admin {
            Some(admin) => admin,
            None => admin.insert(config.connect().await?.admin()),
        };
        let options = AlterConsumerGroupOffsetsOptions::default().timeout(ANSWER);
        let said = admin.alter_consumer_group_offsets(group, new.clone(), options).await.map_err(plain)?;
        let (mut offsets, mut failed) = (self.offsets.lock(), None);
        for (partition, said) in said {
            match (said, offsets.get_mut(&partition)) {
                (Ok(()), Some(next)) => next.said = new.get(&partition).copied(),
                (Err(error), _) => failed = Some((partition, error)),
                (Ok(()), None) => {}
            }
        }
        match failed {
            Some((partition, error)) => bail!("{}-{}: {error}", partition.topic, partition.partition),
            None => Ok(()),
        }
    }
}
