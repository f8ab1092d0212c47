//! Stretches of slots that are read from their beginnings on, one script after the other.
//!
//! Within a slot a reading continues at a cursor of the server, so the scripts of a stretch follow each other. On their
//! way to a distant server and back they take long, and the server little. So there the slots are divided into several
//! stretches, of which scripts are under way at the same time.

use serde::{Deserialize, Serialize};

use super::part::Part;
use super::scripts::ScriptCall;
use super::session::{Moment, Session};
use crate::board::Timestamp;

/// Slots of a part that follow each other: those from one start on, before another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stretch {
    /// `None` before the first slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<i64>,
    /// `None` after the last slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<i64>,
    /// The server's cursor within the first slot. Empty at its beginning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    cursor: String,
}

/// The slots that one script was given to read, oldest first.
#[derive(Debug)]
pub(super) struct Given {
    pub slots: Vec<Timestamp>,
    /// Whether the stretch may have more slots than one script reads.
    are_more: bool,
}

impl Stretch {
    /// Returns whether it continues within a slot, at a cursor of the server.
    pub fn is_within_slot(&self) -> bool {
        !self.cursor.is_empty()
    }

    /// Returns whether the cursor is a number. The server would report another one as an error of the script.
    pub fn is_sound(&self) -> bool {
        self.cursor.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// Returns the start of the slot in which it begins, if that is known.
    fn from(&self) -> Option<Timestamp> {
        self.from.map(Timestamp::from_millis)
    }

    fn has(&self, start: Timestamp) -> bool {
        self.from().is_none_or(|from| from <= start) && self.until.is_none_or(|until| start.millis() < until)
    }

    /// Gives a script its first slots from `oldest` on, at most `most`: the arguments `from`, `slots`, `cursor` and
    /// `read`, which are the last of its list, and the keys and starts of the slots.
    ///
    /// The script is also given the slot after the stretch, and does not read it. So it notices if there are slots in
    /// between that this instance does not know.
    pub fn give(&self, moment: &Moment<'_>, oldest: Option<Timestamp>, most: usize, call: &mut ScriptCall) -> Given {
        let from = self.from().max(oldest);
        let existing = moment.existing.slots.iter().copied();
        let later: Vec<Timestamp> = existing.filter(|start| from.is_none_or(|from| *start >= from)).collect();
        let within = later.iter().take_while(|start| self.has(**start)).count();
        let slots = &later[..later.len().min(within + 1).min(most)];
        // If the slot in which to continue no longer exists, the next one is begun.
        let is_continued = self.is_within_slot() && slots.first().copied() == self.from();
        let read = within.min(most);
        call.arg("from", start_text(from));
        // Without a slot after the stretch, these are all slots that exist.
        call.arg("slots", if slots.len() > within { slots.len() } else { most });
        call.arg("cursor", if is_continued { &self.cursor } else { "0" }).arg("read", read);
        for start in slots {
            call.key(moment.part.keys.slot(*start)).more(start.millis());
        }
        Given { slots: slots[..read].to_vec(), are_more: within >= most }
    }

    /// Returns where it goes on after a script has read this many of the given slots completely and has come to a cursor
    /// in the next one. `None` at its end.
    pub fn after(&self, given: &Given, whole: usize, cursor: &str) -> Option<Self> {
        let until = self.until;
        match given.slots.get(whole) {
            Some(start) => {
                let cursor = if cursor == "0" { String::new() } else { cursor.to_owned() };
                Some(Self { from: Some(start.millis()), until, cursor })
            }
            None if given.are_more => {
                let after = given.slots.last().map(|last| last.millis() + 1);
                Some(Self { from: after, until, cursor: String::new() })
            }
            None => None,
        }
    }

    /// Divides it in two of about the same number of slots, as far as they are known. `None` if it has only one.
    fn halves(&self, slots: &[Timestamp]) -> Option<[Self; 2]> {
        let within: Vec<Timestamp> = slots.iter().copied().filter(|start| self.has(*start)).collect();
        let middle = within.get(within.len() / 2).filter(|_| within.len() > 1)?.millis();
        let first = Self { until: Some(middle), ..self.clone() };
        Some([first, Self { from: Some(middle), until: self.until, cursor: String::new() }])
    }
}

/// Returns the start of the first slot that a script is given, as its argument.
pub(super) fn start_text(from: Option<Timestamp>) -> String {
    from.map_or_else(|| "-inf".to_owned(), |start| start.millis().to_string())
}

/// Returns the stretches to read together now, as many as commands can be under way to the server of the part, and those
/// that are left for later. While there are fewer, they are divided, each at most once.
pub(super) fn together(session: &Session, part: &Part, mut stretches: Vec<Stretch>) -> [Vec<Stretch>; 2] {
    let at_once = session.servers.at_once(part.slot());
    let later = stretches.split_off(stretches.len().min(at_once));
    let mut room = at_once - stretches.len();
    if room == 0 {
        return [stretches, later];
    }
    let slots = part.existing().slots;
    let mut all = Vec::with_capacity(at_once);
    for stretch in stretches {
        match stretch.halves(&slots).filter(|_| room > 0) {
            Some(halves) => {
                room -= 1;
                all.extend(halves);
            }
            None => all.push(stretch),
        }
    }
    [all, later]
}
