//! The numbers of slots, and their 16-bit form.
//!
//! A calendar numbers its slots, and a later slot has a greater number. Memory holds the number modulo 65,536, the
//! *ordinal*, and restores the full number with the help of the newest slot. This is correct for the newest 65,536
//! slots. So the code that advances the newest slot must make sure that no cell older than [`MAX_SLOT_AGE`] slots
//! remains.

use std::cell::Cell;

use crate::board::{Calendar, Timestamp};

/// No cell is in a slot that is this many slots before the newest, or more.
pub(super) const MAX_SLOT_AGE: i64 = 32_768;

/// Converts between numbers, ordinals and starts of a track's slots.
#[derive(Clone, Debug)]
pub(super) struct Numbering {
    calendar: Calendar,
    /// The greatest number so far.
    newest: i64,
    /// The start and the number of the newest slot. `last` has the start asked about last, with its number.
    head: (i64, i64),
    last: Cell<(i64, i64)>,
}

impl Numbering {
    /// Creates the numbering of a track. `head` is the start of the newest slot, in milliseconds.
    pub(super) fn new(calendar: &Calendar, head: i64) -> Self {
        let number = calendar.number(Timestamp::from_millis(head));
        Self { calendar: calendar.clone(), newest: number, head: (head, number), last: Cell::new((head, number)) }
    }

    /// Makes the slot that starts at `head` the newest, and returns its number. Time does not run backward.
    pub(super) fn move_to(&mut self, head: i64) -> i64 {
        if head != self.head.0 {
            self.head = (head, self.calendar.number(Timestamp::from_millis(head)));
            self.newest = self.newest.max(self.head.1);
        }
        self.newest
    }

    /// Returns the greatest number so far.
    pub(super) fn newest(&self) -> i64 {
        self.newest
    }

    /// Records that there is a slot of this number.
    pub(super) fn range(&mut self, number: i64) {
        self.newest = self.newest.max(number);
    }

    /// Returns the number of the slot that contains this time, in milliseconds.
    pub(super) fn number(&self, time: i64) -> i64 {
        let known = [self.head, self.last.get()].into_iter().find(|(start, _)| *start == time);
        known.map_or_else(
            || {
                let number = self.calendar.number(Timestamp::from_millis(time));
                self.last.set((time, number));
                number
            },
            |(_, number)| number,
        )
    }

    /// Returns the start of the slot of a number, in milliseconds.
    pub(super) fn start(&self, number: i64) -> i64 {
        if number == self.head.1 { self.head.0 } else { self.calendar.start_of(number).millis() }
    }

    /// Returns the end of the slot of a number, in milliseconds.
    pub(super) fn end(&self, number: i64) -> i64 {
        self.calendar.start_of(number + 1).millis()
    }

    /// Returns the number of the slot with this ordinal among the last 65,536.
    pub(super) fn number_of_ordinal(&self, ordinal: u16) -> i64 {
        self.newest - i64::from((self.newest as u16).wrapping_sub(ordinal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_numbers_round_trip_in_every_calendar() {
        for (slot, zone) in [("1s", "UTC"), ("1h", "Europe/Berlin"), ("1d", "Pacific/Apia"), ("1mo", "America/Havana")]
        {
            let calendar = Calendar::new(slot.parse().unwrap(), zone.parse().unwrap()).unwrap();
            let mut head = Timestamp::from_millis(1_000_000_000_000);
            let mut numbering = Numbering::new(&calendar, calendar.slot_of(head).millis());
            let mut slots = Vec::new();
            for _ in 0..2_000 {
                head = calendar.next(head);
                let newest = numbering.move_to(head.millis());
                assert!(slots.last().is_none_or(|(number, _)| *number < newest));
                assert_eq!((newest, newest), (numbering.newest(), numbering.number(head.millis())));
                slots.push((newest, head.millis()));
            }
            for (number, start) in slots {
                assert_eq!(numbering.number_of_ordinal(number as u16), number);
                assert_eq!((numbering.start(number), numbering.number(start)), (start, number), "{slot} {zone}");
                assert_eq!(numbering.number(start + 999), number);
            }
        }
    }
}
