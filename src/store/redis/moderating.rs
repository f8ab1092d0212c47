//! What is set for the subjects of a board: see [`Store::moderate`](crate::store::Store::moderate).
//!
//! Each partition has the letters of its subjects in a hash, and two lists of them. They belong to no track, and a
//! script about any track finds them by the field `marks` of its meta key. See `lua/hidden.lua`.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::{BoxFuture, try_join_all};
use redis::cmd;

use super::partition::Partition;
use super::reads;
use super::scripts::{LISTED, MODERATE, ScriptCall};
use super::servers::ServerFailure;
use super::session::{ScriptAnswer, Session};
use super::several_tracks::{Answer, call};
use super::timekeeping;
use crate::board::{Board, Moderation, ModerationChange, ModerationList, Subject, Visibility};
use crate::store::{Moderated, Result, StoreError, TextRange};

/// The number of subjects that one script changes: at most about 2 ms for each track.
const TOGETHER: usize = 250;
/// The number of subjects that are read at a time to copy them.
const COPIED_TOGETHER: u32 = 1_000;

/// The changes of one subject, folded into one.
#[derive(Clone, Copy, Debug, Default)]
struct Folded {
    visibility: Option<Visibility>,
    frozen: Option<bool>,
}

impl Folded {
    fn add(&mut self, change: ModerationChange) {
        match change {
            ModerationChange::Visibility(visibility) => self.visibility = Some(visibility),
            ModerationChange::Frozen(frozen) => self.frozen = Some(frozen),
            ModerationChange::Clear => {
                *self = Self { visibility: Some(Visibility::Visible), frozen: Some(false) };
            }
        }
    }

    /// Returns the two arguments of `moderate.lua`.
    fn words(self) -> [&'static str; 2] {
        let visibility = self.visibility.map_or("", |visibility| match visibility {
            Visibility::Visible => "v",
            visibility => Moderation { visibility, is_frozen: false }.letters(),
        });
        [visibility, self.frozen.map_or("", |frozen| if frozen { "1" } else { "0" })]
    }
}

/// Changes what is set for subjects.
pub(super) async fn moderate(
    session: &Session,
    board: &Arc<Board>,
    changes: &[(Subject, ModerationChange)],
) -> Result<()> {
    let partitions = session.partitions_of(board);
    let parts = partitions.of_track(0);
    let mut shares: Vec<BTreeMap<&Subject, Folded>> = vec![BTreeMap::new(); parts.count()];
    for (subject, change) in changes {
        shares[parts.number_of(subject)].entry(subject).or_default().add(*change);
    }
    let mut calls = Vec::with_capacity(shares.len());
    for (partition, share) in partitions.all().iter().zip(shares) {
        if !share.is_empty() {
            calls.push(moderate_share(session, partition.clone(), share.into_iter().collect()));
        }
    }
    // Boxed, because the compiler would have to look deep into callers otherwise.
    let all: BoxFuture<'_, _> = Box::pin(try_join_all(calls));
    all.await.map(drop)
}

async fn moderate_share(session: &Session, partition: Arc<Partition>, share: Vec<(&Subject, Folded)>) -> Result<()> {
    // A script costs as much for each track.
    let together = (TOGETHER / partition.parts().len()).max(1);
    for some in share.chunks(together) {
        moderate_some(session, &partition, some).await?;
    }
    Ok(())
}

async fn moderate_some(session: &Session, partition: &Partition, some: &[(&Subject, Folded)]) -> Result<()> {
    timekeeping::admit(session, &partition.clock).await?;
    let parts: Vec<_> = partition.parts().iter().map(|part| &**part).collect();
    let (keys, token) = (&partition.main().keys, session.token());
    let answer = call(session, &parts, &MODERATE, "", |_| {
        let own = |number: usize| {
            let is_final = number >= partition.board().written_tracks().len();
            let mut call = ScriptCall::default();
            call.arg("version", &token).arg("most", Moderation::MOST).arg("is_final", u8::from(is_final));
            if number == 0 {
                call.key(keys.marks()).key(keys.moderated(ModerationList::Hidden));
                call.key(keys.moderated(ModerationList::Frozen));
                for (subject, change) in some {
                    let [visibility, frozen] = change.words();
                    call.all([subject.as_str(), visibility, frozen]);
                }
            }
            call
        };
        (0..parts.len()).map(own).collect()
    });
    let Answer { mut reply, .. } = answer.await.map_err(|failure| session.servers.error(failure))?;
    match reply.count().map_err(|failure| session.servers.error(failure))? {
        1 => Ok(()),
        _ => Err(StoreError::TooManyModerated),
    }
}

/// Returns subjects of a list, of all partitions.
pub(super) async fn moderated(
    session: &Session,
    board: &Arc<Board>,
    list: ModerationList,
    range: TextRange<'_>,
    limit: u32,
) -> Result<Moderated, ServerFailure> {
    let partitions = session.partitions_of(board);
    let shares = partitions.all().iter().map(|partition| share(session, partition, list, range, limit));
    let mut all = Moderated::default();
    for share in try_join_all(shares).await? {
        all.total += share.total;
        all.items.extend(share.items);
    }
    all.items.sort_unstable_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
    all.items.truncate(limit as usize);
    Ok(all)
}

async fn share(
    session: &Session,
    partition: &Partition,
    list: ModerationList,
    range: TextRange<'_>,
    limit: u32,
) -> Result<Moderated, ServerFailure> {
    let part = partition.main();
    let answer = session.ask(part, &LISTED, |_, call| {
        call.key(part.keys.moderated(list)).key(part.keys.marks());
        call.arg("from", reads::range_start(range)).arg("prefix", range.prefix).arg("limit", limit).arg("texts", 1);
    });
    let ScriptAnswer { mut reply, .. } = answer.await?;
    let mut share = Moderated { total: reply.count()?, items: Vec::new() };
    while !reply.is_empty() {
        share.items.push((Subject::from_stored(reply.text()?), reply.moderation()?));
    }
    Ok(share)
}

/// Returns whether items of a subject are rejected. One command.
pub(super) async fn is_frozen(session: &Session, board: &Arc<Board>, subject: &Subject) -> Result<bool, ServerFailure> {
    let part = session.part_for(&board.main(), subject);
    // The reply is a list of one.
    let mut letters = cmd("HMGET");
    letters.arg(part.keys.marks()).arg(subject.as_str());
    let mut reply = session.read(&letters).await?;
    Ok(reply.moderation()?.is_frozen)
}

/// Copies what is set for the subjects of a frozen board to its copy, which has no data yet.
pub(super) async fn copy(session: &Session, from: &Arc<Board>, to: &Arc<Board>) -> Result<()> {
    for list in [ModerationList::Hidden, ModerationList::Frozen] {
        let mut after: Option<Subject> = None;
        loop {
            let range = TextRange { prefix: "", after: after.as_ref().map(Subject::as_str) };
            let page = moderated(session, from, list, range, COPIED_TOGETHER).await;
            let page = page.map_err(|failure| session.servers.error(failure))?;
            let changes: Vec<(Subject, ModerationChange)> = page
                .items
                .iter()
                .flat_map(|(subject, moderation)| moderation.changes().map(|change| (subject.clone(), change)))
                .collect();
            moderate(session, to, &changes).await?;
            match page.items.last() {
                Some((last, _)) => after = Some(last.clone()),
                None => break,
            }
        }
    }
    Ok(())
}
