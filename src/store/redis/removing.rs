//! Deletion of the data of removed boards and of removed editions, in bounded steps, by any instance.
//!
//! Without its meta key, no data of a board is read or written, in any of its tracks. So the rest can be deleted slowly
//! and without scripts. A note with the board's name and generation is written before the meta key is deleted, and
//! removed after the last of the board's keys. So if an instance ends early, a different one finds everything that is
//! left.
//!
//! The data of an edition that was removed is noted in the same way before the board changes. It is deleted once the
//! board does not have the edition and every partition is in the epoch of the board, because until then a partition may
//! be written to in both editions.

use futures_util::future::try_join_all;
use redis::{Cmd, cmd};

use super::division::Division;
use super::edition_tracks::EditionTracks;
use super::expiry;
use super::keys::BoardKeys;
use super::partitions;
use super::reply::Reply;
use super::servers::{Channel, ServerFailure};
use super::session::Session;
use super::timekeeping;
use crate::board::{Board, BoardName, Edition, Generation, MAX_FURTHER, ModerationList, Timestamp, TrackId};

/// The largest number of slots, buckets or rankings that one step deletes.
const KEYS: usize = 200;
/// The number of steps that the call which removes a board makes before it leaves the rest to the scheduler.
const AT_ONCE: usize = 20;

/// The fields of the own meta key of a divided board.
const OWN_FIELDS: [&str; 9] =
    ["generation", "definition", "parts", "run", "announced", "defined_at", "epoch", "editions", "lease"];

/// The time, in milliseconds, within which a board must be created after its parts were noted.
pub(super) const UNBORN: i64 = 60_000;
/// The time after that, in milliseconds, before its parts are deleted. It is longer than the clocks of servers differ.
const GRACE: i64 = 240_000;

/// A note about a generation of a board that may have left data behind. It is stored as `<generation>:<name>`, followed
/// by `/<its parts>` if the board is divided, by `+<number of tracks after the main one>` if it has any, and by `@<time
/// of the note>` if the board is about to be created.
///
/// A note about partitions that the board no longer has, or does not have yet, ends with `^<time of the note>`.
///
/// If the ids of its tracks do not follow from its generation alone, each edition follows as `=<id of its first
/// track>+<number of the others>`, the current one first. A note about the removal of an edition alone has `~` in place
/// of `=`, and one about a packed period `%`. Earlier versions do not know these forms, and leave such notes alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    name: BoardName,
    generation: Generation,
    parts: Option<String>,
    /// The editions whose data is to be deleted.
    editions: Vec<EditionTracks>,
    what: What,
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// A board that is removed.
    Board,
    /// A board that was about to be created at this time.
    Unborn(Timestamp),
    /// An edition of a board, which remains with another one.
    Edition,
    /// A period of a board, of which the sheets and the meta keys stay.
    Packed,
    /// The partitions of a board, which has, or may get, other ones. With the time of the note.
    Division(Timestamp),
}

impl Noted {
    /// Creates the note for a board that is about to be removed.
    pub fn removed(board: &Board) -> Self {
        let parts = Division::of_board(board).stored();
        let editions = board.all_editions().iter().map(EditionTracks::of).collect();
        let (name, generation) = (board.name().clone(), board.generation());
        Self { name, generation, parts, editions, what: What::Board }
    }

    /// Creates the note for the second edition of a board, which is about to be removed. `None` if there is none.
    pub fn detached(board: &Board) -> Option<Self> {
        let other = EditionTracks::of(board.editions().get(1)?);
        Some(Self { editions: vec![other], what: What::Edition, ..Self::removed(board) })
    }

    /// Creates the note for the editions of the archive that a board will no longer have when it is `to`. `None` if there
    /// are none.
    pub fn left_archive(board: &Board, to: &Board) -> Option<Self> {
        let is_gone = |edition: &&Edition| !to.all_editions().iter().any(|kept| kept.id() == edition.id());
        let gone: Vec<_> = board.all_editions().iter().filter(is_gone).map(EditionTracks::of).collect();
        (!gone.is_empty()).then(|| Self { editions: gone, what: What::Edition, ..Self::removed(board) })
    }

    /// Creates the note for the periods that are packed when a board is `to`: of them the sheets stay, and all else is
    /// deleted. `None` if there are none.
    pub fn packed(board: &Board, to: &Board) -> Option<Self> {
        let was_packed = |id| board.archive().iter().any(|known| known.id() == id && known.packed().is_some());
        let is_new = |edition: &&Edition| edition.packed().is_some() && !was_packed(edition.id());
        let packed: Vec<_> = to.archive().iter().filter(is_new).map(EditionTracks::of).collect();
        (!packed.is_empty()).then(|| Self { editions: packed, what: What::Packed, ..Self::removed(board) })
    }

    /// Creates the note for a board whose parts are about to be created, before the board itself is.
    pub fn unborn(board: &Board, now: Timestamp) -> Self {
        Self { what: What::Unborn(now), ..Self::removed(board) }
    }

    /// Creates the note for the partitions of a board that has, or may get, other ones.
    pub fn division(board: &Board, now: Timestamp) -> Self {
        Self { what: What::Division(now), ..Self::removed(board) }
    }

    /// Returns the time before which the board must be created.
    pub fn until(&self) -> Timestamp {
        match self.what {
            What::Unborn(noted) => noted.plus_millis(UNBORN),
            _ => Timestamp::MAX,
        }
    }

    /// Returns the time before which the data is not deleted.
    fn kept_until(&self) -> Option<Timestamp> {
        match self.what {
            What::Board | What::Edition | What::Packed => None,
            What::Unborn(noted) => Some(noted.plus_millis(UNBORN + GRACE)),
            // A write whose reply was lost finds its record there for a while.
            What::Division(noted) => Some(noted.plus_millis(GRACE)),
        }
    }

    /// Returns whether it is about editions of a board that remains.
    fn is_of_editions(&self) -> bool {
        matches!(self.what, What::Edition | What::Packed)
    }

    fn parse(text: &str) -> Option<Self> {
        let (generation, rest) = text.split_once(':')?;
        let generation = Generation::parse(generation)?;
        let time = |text: &str| text.parse().ok().map(Timestamp::from_millis);
        let (rest, what) = match (rest.split_once('@'), rest.split_once('^')) {
            (Some((rest, noted)), _) => (rest, What::Unborn(time(noted)?)),
            (None, Some((rest, noted))) => (rest, What::Division(time(noted)?)),
            (None, None) if rest.contains('~') => (rest, What::Edition),
            (None, None) if rest.contains('%') => (rest, What::Packed),
            (None, None) => (rest, What::Board),
        };
        let mut texts = rest.split(before_edition(what));
        let rest = texts.next()?;
        let mut editions = texts.map(EditionTracks::parse).collect::<Option<Vec<_>>>()?;
        let rest = match rest.split_once('+') {
            Some((rest, further)) if editions.is_empty() => {
                let further = further.parse().ok().filter(|number| (1..=MAX_FURTHER).contains(number))?;
                editions.push(EditionTracks { first: TrackId::first_of(generation), further });
                rest
            }
            Some(_) => return None,
            None => rest,
        };
        if editions.is_empty() {
            editions.push(EditionTracks { first: TrackId::first_of(generation), further: 0 });
        }
        let (name, parts) = match rest.split_once('/') {
            Some((name, parts)) => (name, Some(parts.to_owned())),
            None => (rest, None),
        };
        let name = BoardName::parse(name).ok()?;
        if let Some(parts) = &parts {
            Division::read(&name, partitions::count(parts), parts).ok()?;
        }
        Some(Self { name, generation, parts, editions, what })
    }

    fn print(&self) -> String {
        let parts = self.parts.as_ref().map_or_else(String::new, |parts| format!("/{parts}"));
        let first = TrackId::first_of(self.generation);
        let before = before_edition(self.what);
        let editions = match (self.is_of_editions(), &*self.editions) {
            (false, [EditionTracks { first: only, further: 0 }]) if *only == first => String::new(),
            (false, [EditionTracks { first: only, further }]) if *only == first => format!("+{further}"),
            (_, editions) => editions.iter().map(|edition| format!("{before}{}", edition.print())).collect(),
        };
        let time = match self.what {
            What::Board | What::Edition | What::Packed => String::new(),
            What::Unborn(noted) => format!("@{}", noted.millis()),
            What::Division(noted) => format!("^{}", noted.millis()),
        };
        format!("{}:{}{parts}{editions}{time}", self.generation, self.name)
    }

    /// Stores the note.
    pub async fn write(&self, session: &Session) -> Result<(), ServerFailure> {
        let mut command = cmd("SADD");
        command.arg(session.keys.removed()).arg(self.print());
        session.servers.set(Channel::Calls, &command).await.map(drop)
    }

    /// Removes the note, because no data is left or the board has been created.
    pub async fn strike(&self, session: &Session) -> Result<(), ServerFailure> {
        let mut command = cmd("SREM");
        command.arg(session.keys.removed()).arg(self.print());
        session.servers.set(Channel::Calls, &command).await.map(drop)
    }

    fn stored_division(&self) -> Division {
        let read =
            self.parts.as_deref().and_then(|parts| Division::read(&self.name, partitions::count(parts), parts).ok());
        read.unwrap_or_else(|| Division::unsharded(&self.name))
    }

    /// Returns the keys of its partitions, as those of the main track of an edition.
    fn partitions(&self, session: &Session, edition: EditionTracks) -> Vec<BoardKeys> {
        partitions::main_keys(&session.keys, &self.name, self.generation, edition.first, &self.stored_division())
    }

    /// Returns the keys of its parts in all tracks.
    fn keys(&self, session: &Session) -> Vec<BoardKeys> {
        let division = self.stored_division();
        let mut keys = Vec::new();
        for (number, edition) in self.editions.iter().enumerate() {
            match number {
                0 if !self.is_of_editions() => keys.extend(self.partitions(session, *edition)),
                _ => keys.extend(division.tags().map(|tag| session.keys.other(tag, edition.first))),
            }
            for id in edition.further_ids() {
                keys.extend(division.tags().map(|tag| session.keys.further(tag, id)));
            }
        }
        keys
    }

    /// Deletes the meta keys of its parts, except the board's own. Afterwards no data of them is read or written.
    pub async fn close(&self, session: &Session) -> Result<(), ServerFailure> {
        let own = session.keys.meta(&self.name);
        let mut metas: Vec<String> = self.keys(session).into_iter().map(|keys| keys.meta).collect();
        if self.editions.len() > 1 {
            // A partition may be in an epoch in which the first edition was not the current one.
            let division = self.stored_division();
            metas.extend(division.tags().map(|tag| session.keys.other(tag, self.editions[0].first).meta));
        }
        let close = |meta: String| async move { session.servers.set(Channel::Calls, &unlink([&meta])).await };
        try_join_all(metas.into_iter().filter(|meta| *meta != own).map(close)).await.map(drop)
    }

    /// Deletes what the board's own meta key has about its only partition, now that it has others.
    async fn clear_own(&self, session: &Session) -> Result<(), ServerFailure> {
        let meta = session.keys.meta(&self.name);
        let mut names = cmd("HKEYS");
        names.arg(&meta);
        let mut fields = texts(session, &names).await?;
        fields.retain(|field| !OWN_FIELDS.contains(&field.as_str()));
        if !fields.is_empty() {
            session.servers.set(Channel::Calls, &taken_off("HDEL", &meta, &fields)).await?;
        }
        Ok(())
    }

    /// Returns whether the board, as it is stored, may have the data, so that it must not be deleted now.
    async fn is_in_use(&self, session: &Session) -> Result<bool, ServerFailure> {
        let read = |meta: String| async move {
            let mut fields = cmd("HMGET");
            fields.arg(meta).arg("generation").arg("epoch").arg("editions").arg("parts");
            let mut reply = session.read(&fields).await?;
            let is_generation = reply.maybe_text()?.is_some_and(|found| found == self.generation.to_string());
            let (epoch, editions, parts) = (reply.maybe_text()?, reply.maybe_text()?, reply.maybe_text()?);
            Ok::<_, ServerFailure>((is_generation, epoch, editions, parts))
        };
        let (exists, epoch, editions, parts) = read(session.keys.meta(&self.name)).await?;
        if exists && matches!(self.what, What::Division(_)) {
            let is_copied_to =
                editions.zip(self.parts.as_ref()).is_some_and(|(form, parts)| form.contains(&format!("[{parts}]")));
            return Ok(parts == self.parts || is_copied_to);
        }
        if !exists || !self.is_of_editions() {
            return Ok(exists);
        }
        for edition in &self.editions {
            let is_packed = |form: &String| form.contains(&format!("\"{}\",\"packed\"", edition.first));
            let is_named = |form: &String| {
                form.contains(&format!("\"{}\"", edition.first)) && !(self.what == What::Packed && is_packed(form))
            };
            if editions.as_ref().map_or(edition.first == TrackId::first_of(self.generation), is_named) {
                return Ok(true);
            }
            for keys in self.partitions(session, *edition) {
                let (exists, of_partition, ..) = read(keys.meta).await?;
                if exists && of_partition != epoch {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Returns what each edition follows in the text of a note.
fn before_edition(what: What) -> char {
    match what {
        What::Edition => '~',
        What::Packed => '%',
        What::Board | What::Unborn(_) | What::Division(_) => '=',
    }
}

/// Deletes the data that a note is about, or most of it, without waiting.
pub(super) async fn begin(session: &Session, removed: &Noted) -> Result<(), ServerFailure> {
    for _ in 0..AT_ONCE {
        if step(session, removed, None).await? {
            break;
        }
    }
    Ok(())
}

/// Deletes the parts of a board that will never be created, which have only meta keys, and the note about them.
pub(super) async fn clear(session: &Session, unborn: &Noted) -> Result<(), ServerFailure> {
    unborn.close(session).await?;
    unborn.strike(session).await
}

/// Makes one bounded step for each removed board. Returns whether no data is left of any of them. A board for which the
/// step fails does not prevent the steps for the others.
pub(super) async fn go_on(session: &Session) -> Result<bool, ServerFailure> {
    let mut command = cmd("SMEMBERS");
    command.arg(session.keys.removed());
    let (mut done, mut failed) = (true, None);
    for text in texts(session, &command).await? {
        match Noted::parse(&text) {
            Some(noted) => match step(session, &noted, noted.kept_until()).await {
                Ok(is_done) => done &= is_done,
                Err(failure) => failed = Some(failure),
            },
            None => tracing::warn!(text, "a note about a removed board has a form that this version does not know"),
        }
    }
    failed.map_or(Ok(done), Err)
}

/// Deletes a bounded part of the board's data, unless it is kept until a later time. Returns whether nothing is left to
/// do now.
async fn step(session: &Session, noted: &Noted, kept_until: Option<Timestamp>) -> Result<bool, ServerFailure> {
    if noted.is_in_use(session).await? {
        // Its removal has not been done yet, and perhaps never will be. Or the board was about to be created, and now
        // is.
        if matches!(noted.what, What::Unborn(_)) {
            noted.strike(session).await?;
        }
        return Ok(true);
    }
    if let Some(time) = kept_until
        && timekeeping::look(session).await? < time
    {
        return Ok(true);
    }
    if noted.what != What::Packed {
        noted.close(session).await?;
    }
    let left = Left { has_ids: !noted.is_of_editions(), has_sheets: noted.what != What::Packed };
    let steps = noted.keys(session).into_iter().map(|keys| step_of_part(session, keys, left));
    let steps = try_join_all(steps).await?;
    if steps.contains(&false) {
        return Ok(false);
    }
    if matches!(noted.what, What::Division(_)) && noted.parts.is_none() {
        noted.clear_own(session).await?;
    }
    noted.strike(session).await?;
    Ok(true)
}

/// What is deleted of a part beside the data of its track.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// Whether the ids of items, and what is set for subjects, are. They belong to the board and not to one of its
    /// editions.
    has_ids: bool,
    /// Whether the sheets of a period are.
    has_sheets: bool,
}

/// Deletes a bounded part of the data of one part. Returns whether nothing is left.
async fn step_of_part(
    session: &Session,
    keys: BoardKeys,
    Left { has_ids, has_sheets }: Left,
) -> Result<bool, ServerFailure> {
    let work = leftovers(session, &keys, has_ids).await?;
    for command in &work {
        session.servers.set(Channel::Calls, command).await?;
    }
    if work.is_empty() {
        let mut left = vec![keys.ranking.clone(), keys.totals.clone(), keys.hidden()];
        if has_sheets {
            left.push(keys.sheets());
        }
        if has_ids {
            left.extend([keys.marks(), keys.attributes(), keys.described(), keys.reached()]);
            left.extend([ModerationList::Hidden, ModerationList::Frozen].map(|list| keys.moderated(list)));
        }
        session.servers.set(Channel::Calls, &unlink(left)).await?;
    }
    Ok(work.is_empty())
}

/// Returns the commands that delete some of the keys whose names are stored in other keys. Each of these names is
/// deleted after its key.
async fn leftovers(session: &Session, keys: &BoardKeys, has_ids: bool) -> Result<Vec<Cmd>, ServerFailure> {
    let oldest = |key: &str, some: usize| {
        let mut command = cmd("ZRANGE");
        command.arg(key).arg(0).arg(some - 1);
        command
    };
    for (index, is_slot) in [(&keys.index, true), (&keys.buckets, false)] {
        if !is_slot && !has_ids {
            continue;
        }
        let numbers = texts(session, &oldest(index, KEYS)).await?;
        if !numbers.is_empty() {
            let named = numbers.iter().filter_map(|number| number.parse::<i64>().ok());
            let held = named.map(|number| match is_slot {
                true => keys.slot(Timestamp::from_millis(number)),
                false => keys.dedupe(number),
            });
            return Ok(vec![unlink(held), taken_off("ZREM", index, &numbers)]);
        }
    }
    if let Some(epoch) = texts(session, &oldest(&keys.epochs(), 1)).await?.pop() {
        let list = keys.key_list(&epoch);
        let ranked = texts(session, &oldest(&list, KEYS)).await?;
        return Ok(match ranked.is_empty() {
            true => vec![taken_off("ZREM", &keys.epochs(), &[epoch])],
            false => {
                vec![unlink(ranked.iter().map(|key| keys.ranking_of(&epoch, key))), taken_off("ZREM", &list, &ranked)]
            }
        });
    }
    let periods = texts(session, &oldest(&keys.periods, 1)).await?;
    let Some(number) = periods.into_iter().next() else { return Ok(Vec::new()) };
    let written = keys.written(number.parse().unwrap_or_default());
    let subjects = expiry::members(session, &written).await?;
    if subjects.is_empty() {
        return Ok(vec![taken_off("ZREM", &keys.periods, &[number])]);
    }
    let held = subjects.iter().flat_map(|subject| [keys.subject(subject), keys.seen(subject), keys.gone(subject)]);
    let names: Vec<String> = subjects.iter().map(|subject| subject.as_str().to_owned()).collect();
    Ok(vec![unlink(held), taken_off("SREM", &written, &names)])
}

fn unlink<K: AsRef<str>>(keys: impl IntoIterator<Item = K>) -> Cmd {
    let mut command = cmd("UNLINK");
    for key in keys {
        command.arg(key.as_ref());
    }
    command
}

fn taken_off(verb: &str, key: &str, members: &[String]) -> Cmd {
    let mut command = cmd(verb);
    command.arg(key).arg(members);
    command
}

/// Reads a list of texts. The command is sent once more if its reply is lost.
async fn texts(session: &Session, command: &Cmd) -> Result<Vec<String>, ServerFailure> {
    Reply::texts(session.servers.read(Channel::Calls, command).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removal_notes_round_trip() {
        let name = BoardName::parse("hot-posts").unwrap();
        let edition = |first, further| EditionTracks { first: TrackId(first), further };
        let (parts, editions) = (None, vec![edition(7, 0)]);
        let removed = Noted { name, generation: Generation(7), parts, editions, what: What::Board };
        let divided = Noted { parts: Some("5,0,12".to_owned()), ..removed.clone() };
        let of_two = Noted { editions: vec![edition(9, 0), edition(7, 2)], ..divided.clone() };
        let of_another = Noted { editions: vec![edition(9, 0)], ..removed.clone() };
        let detached = Noted { editions: vec![edition(9, 1)], what: What::Edition, ..divided.clone() };
        let of_first = Noted { editions: vec![edition(7, 0)], what: What::Edition, ..removed.clone() };
        let packed = Noted { what: What::Packed, ..detached.clone() };
        let left = Noted { what: What::Division(Timestamp::from_millis(9)), ..divided.clone() };
        let left_whole = Noted { what: What::Division(Timestamp::from_millis(9)), ..of_another.clone() };
        let unborn = Noted { what: What::Unborn(Timestamp::from_millis(9)), ..divided.clone() };
        let of_windows = Noted { editions: vec![edition(7, 8)], ..removed.clone() };
        let divided_windows = Noted { editions: vec![edition(7, 3)], ..unborn.clone() };
        for (noted, text) in [
            (removed, "0000000000000007:hot-posts"),
            (divided, "0000000000000007:hot-posts/5,0,12"),
            (unborn, "0000000000000007:hot-posts/5,0,12@9"),
            (of_windows, "0000000000000007:hot-posts+8"),
            (divided_windows, "0000000000000007:hot-posts/5,0,12+3@9"),
            (of_two, "0000000000000007:hot-posts/5,0,12=0000000000000009+0=0000000000000007+2"),
            (of_another, "0000000000000007:hot-posts=0000000000000009+0"),
            (detached, "0000000000000007:hot-posts/5,0,12~0000000000000009+1"),
            (packed, "0000000000000007:hot-posts/5,0,12%0000000000000009+1"),
            (of_first, "0000000000000007:hot-posts~0000000000000007+0"),
            (left, "0000000000000007:hot-posts/5,0,12^9"),
            (left_whole, "0000000000000007:hot-posts=0000000000000009+0^9"),
        ] {
            assert_eq!(noted.print(), text);
            assert_eq!(Noted::parse(text), Some(noted));
        }
        for bad in [
            "",
            "7",
            "x:b",
            "7:",
            "7:{",
            "7:b/",
            "7:b/1,1",
            "7:b/1@",
            "7:b/x",
            "7:b+",
            "7:b+0",
            "7:b+9",
            "7:b+1/1",
            "7:b=9",
            "7:b=x+0",
            "7:b~",
            "7:b^",
            "7:b+1=0000000000000009+0",
        ] {
            assert!(Noted::parse(bad).is_none(), "{bad}");
        }
    }
}
