//! What moderators have set for a subject of a board.

/// Whether a subject is in the rankings of its board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Visibility {
    #[default]
    Visible,
    /// It goes on counting, and is in no ranking.
    Hidden,
    /// It goes on counting, and is in no ranking; its own standing has a rank all the same, as if it alone were visible
    /// besides those that are.
    Shadowed,
}

impl Visibility {
    pub fn is_hidden(self) -> bool {
        self != Self::Visible
    }

    /// Returns whether the standing of a subject with a score has a rank.
    pub fn sees_rank(self) -> bool {
        self != Self::Hidden
    }
}

/// What moderators have set for a subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Moderation {
    pub visibility: Visibility,
    /// Whether items of the subject are rejected. What it has goes on retiring.
    pub is_frozen: bool,
}

/// A change of what is set for a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModerationChange {
    Visibility(Visibility),
    Frozen(bool),
    /// Nothing is set any more.
    Clear,
}

/// A list of moderated subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModerationList {
    /// Those that are hidden, including the shadowed ones.
    Hidden,
    Frozen,
}

impl Moderation {
    /// The largest number of subjects of a board for which something may be set. On a board that is divided, that of a
    /// partition.
    pub const MOST: u64 = 1_000_000;

    /// Returns the changes after which exactly this is set.
    pub fn changes(self) -> [ModerationChange; 2] {
        [ModerationChange::Visibility(self.visibility), ModerationChange::Frozen(self.is_frozen)]
    }

    /// Returns whether anything is set.
    pub fn is_set(self) -> bool {
        self != Self::default()
    }

    /// Returns whether a list contains the subject.
    pub fn is_in(self, list: ModerationList) -> bool {
        match list {
            ModerationList::Hidden => self.visibility.is_hidden(),
            ModerationList::Frozen => self.is_frozen,
        }
    }

    /// Returns what is set after a change.
    #[must_use]
    pub fn after(self, change: ModerationChange) -> Self {
        match change {
            ModerationChange::Visibility(visibility) => Self { visibility, ..self },
            ModerationChange::Frozen(is_frozen) => Self { is_frozen, ..self },
            ModerationChange::Clear => Self::default(),
        }
    }

    /// Returns the letters that stores keep: `h` for hidden or `s` for shadowed, and `f` for frozen.
    pub fn letters(self) -> &'static str {
        match (self.visibility, self.is_frozen) {
            (Visibility::Visible, false) => "",
            (Visibility::Visible, true) => "f",
            (Visibility::Hidden, false) => "h",
            (Visibility::Hidden, true) => "hf",
            (Visibility::Shadowed, false) => "s",
            (Visibility::Shadowed, true) => "sf",
        }
    }

    /// Parses what [`letters`](Self::letters) returned.
    pub fn of_letters(letters: &str) -> Option<Self> {
        let all = [Visibility::Visible, Visibility::Hidden, Visibility::Shadowed]
            .into_iter()
            .flat_map(|visibility| [false, true].map(|is_frozen| Self { visibility, is_frozen }));
        all.into_iter().find(|moderation| moderation.letters() == letters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_leave_the_rest_as_it_is_and_letters_round_trip() {
        let mut seen = Vec::new();
        for visibility in [Visibility::Visible, Visibility::Hidden, Visibility::Shadowed] {
            for is_frozen in [false, true] {
                let before = Moderation::default().after(ModerationChange::Frozen(is_frozen));
                let set = before.after(ModerationChange::Visibility(visibility));
                assert_eq!(set, Moderation { visibility, is_frozen });
                assert_eq!(Moderation::of_letters(set.letters()), Some(set));
                assert_eq!(set.is_in(ModerationList::Hidden), visibility != Visibility::Visible);
                assert_eq!(set.is_in(ModerationList::Frozen), is_frozen);
                assert!(!set.after(ModerationChange::Clear).is_set());
                assert!(!seen.contains(&set.letters()));
                seen.push(set.letters());
            }
        }
        assert_eq!(Moderation::of_letters("fh"), None);
    }
}
