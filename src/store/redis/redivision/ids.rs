//! Copying of the ids of items, so that an item which is sent again after a change of shards counts once.
//!
//! Nothing is written to a frozen board, so a walk over a bucket returns all its ids, unless the server is replaced in
//! the meantime: then the bucket is read again. Buckets that expire are deleted in both places.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::try_join_all;
use redis::{Value, cmd};

use super::lease::Lease;
use crate::board::{Board, Subject};
use crate::store::redis::part::Part;
use crate::store::redis::partition::Partition;
use crate::store::redis::partitions::Parts;
use crate::store::redis::reply::Reply;
use crate::store::redis::servers::{Channel, ServerFailure};
use crate::store::redis::session::Session;

/// The number of ids that are read at a time.
const AT_ONCE: usize = 2_000;
/// The number of times that a bucket is read because the server was replaced.
const ATTEMPTS: usize = 4;

/// A field of a bucket, the subject and the id of an item, and the time of its arrival, as they are stored.
type StoredId = (Vec<u8>, Vec<u8>);

/// Copies all ids of a frozen board.
pub(super) async fn copy(
    session: &Session,
    frozen: &Arc<Board>,
    copied: &Arc<Board>,
    lease: &Lease<'_>,
) -> Result<(), ServerFailure> {
    let target = session.parts_of(&copied.main());
    for partition in session.partitions_of(frozen).all() {
        let part = partition.main();
        let mut numbers = cmd("ZRANGE");
        numbers.arg(&part.keys.buckets).arg(0).arg(-1);
        let numbers = Reply::texts(session.servers.read(Channel::Calls, &numbers).await?)?;
        for number in numbers.iter().filter_map(|number| number.parse::<i64>().ok()) {
            copy_bucket(session, partition, number, &target, lease).await?;
        }
    }
    Ok(())
}

async fn copy_bucket(
    session: &Session,
    partition: &Partition,
    bucket: i64,
    target: &Parts,
    lease: &Lease<'_>,
) -> Result<(), ServerFailure> {
    let part = partition.main();
    for _ in 0..ATTEMPTS {
        let incarnation = session.servers.incarnation(part.slot());
        let mut cursor = "0".to_owned();
        loop {
            let (next, ids) = scan(session, part, bucket, &cursor).await?;
            let count = ids.len();
            write(session, bucket, ids, target).await?;
            lease.keep(0, count).await?;
            if next == "0" {
                break;
            }
            cursor = next;
        }
        if session.servers.incarnation(part.slot()) == incarnation {
            return Ok(());
        }
    }
    Err(ServerFailure::KeptChanging)
}

/// Reads some ids: each field, of a subject and an id, with the time of arrival. Also returns the next cursor.
async fn scan(
    session: &Session,
    part: &Part,
    bucket: i64,
    cursor: &str,
) -> Result<(String, Vec<StoredId>), ServerFailure> {
    let mut scan = cmd("HSCAN");
    scan.arg(part.keys.dedupe(bucket)).arg(cursor).arg("COUNT").arg(AT_ONCE);
    let mut reply = session.read(&scan).await?;
    let next = reply.text()?;
    let mut bytes = reply.list()?.map(|value| match value {
        Value::BulkString(bytes) => Ok(bytes),
        other => Err(ServerFailure::Corrupt(format!("unexpected part of an id: {other:?}"))),
    });
    let mut ids = Vec::new();
    while let (Some(field), Some(arrival)) = (bytes.next(), bytes.next()) {
        ids.push((field?, arrival?));
    }
    Ok((next, ids))
}

/// Writes ids to the partitions that have their subjects.
async fn write(session: &Session, bucket: i64, ids: Vec<StoredId>, target: &Parts) -> Result<(), ServerFailure> {
    let mut shares: BTreeMap<usize, Vec<StoredId>> = BTreeMap::new();
    for (field, arrival) in ids {
        // A subject with a key has a zero byte too.
        let subject = field.rsplitn(2, |byte| *byte == 0).last().unwrap_or_default();
        let subject = Subject::from_stored(String::from_utf8_lossy(subject).into_owned());
        shares.entry(target.number_of(&subject)).or_default().push((field, arrival));
    }
    let write = |(number, share): (usize, Vec<StoredId>)| async move {
        let part = &target.all()[number];
        // The bucket is listed first, so that it is deleted in time.
        let mut listed = cmd("ZADD");
        listed.arg(&part.keys.buckets).arg(bucket).arg(bucket);
        session.servers.set(Channel::BulkWrites, &listed).await?;
        let mut fields = cmd("HSET");
        fields.arg(part.keys.dedupe(bucket));
        for (field, arrival) in share {
            fields.arg(field).arg(arrival);
        }
        session.servers.set(Channel::BulkWrites, &fields).await.map(drop)
    };
    try_join_all(shares.into_iter().map(write)).await.map(drop)
}
