//! The numbers of slots, and how 16 bits of them are enough.
//!
//! A calendar numbers its slots; a later slot has a greater number. Memory holds the number modulo 65,536, the
//! *ordinal*, and reads it back by the newest slot there is. That is right for slots of which fewer than 65,536 lie up
//! to the newest. Whoever moves the newest slot on sees to it that nothing older than [`OLDEST`] slots stays.

use std::cell::Cell;

use crate::board::{Calendar, Timestamp};

/// No slice is in a slot that is so many slots before the newest, or more.
pub(super) const OLDEST: i64 = 32_768;

/// Numbers, ordinals and starts of a board's slots.
#[derive(Clone, Debug)]
pub(super) struct Numbering {
    calendar: Calendar,
    /// The greatest number so far.
    newest: i64,
    /// Start and number of the newest slot, and a time asked about last.
    head: (i64, i64),
    last: Cell<(i64, i64)>,
}

impl Numbering {
    /// `head`: the start of the newest slot, in milliseconds.
    pub(super) fn new(calendar: &Calendar, head: i64) -> Self {
        let number = calendar.number(Timestamp::from_millis(head));
        Self { calendar: calendar.clone(), newest: number, head: (head, number), last: Cell::new((head, number)) }
    }

    /// Makes the slot that starts here the newest, and answers its number. Time does not run backward.
    pub(super) fn move_to(&mut self, head: i64) -> i64 {
        if head != self.head.0 {
            self.head = (head, self.calendar.number(Timestamp::from_millis(head)));
            self.newest = self.newest.max(self.head.1);
        }
        self.newest
    }

    /// The greatest number so far.
    pub(super) fn newest(&self) -> i64 {
        self.newest
    }

    /// Notes that there is a slot of this number.
    pub(super) fn reach(&mut self, number: i64) {
        self.newest = self.newest.max(number);
    }

    /// The number of the slot that contains this time, in milliseconds.
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

    /// When the slot of a number starts, in milliseconds.
    pub(super) fn start(&self, number: i64) -> i64 {
        if number == self.head.1 { self.head.0 } else { self.calendar.start_of(number).millis() }
    }

    /// When the slot of a number ends, in milliseconds.
    pub(super) fn end(&self, number: i64) -> i64 {
        self.calendar.start_of(number + 1).millis()
    }

    /// The number of the slot of an ordinal, of the last 65,536.
    pub(super) fn of_ordinal(&self, ordinal: u16) -> i64 {
        self.newest - i64::from((self.newest as u16).wrapping_sub(ordinal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_read_back_in_every_calendar_while_time_passes() {
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
                assert_eq!(numbering.of_ordinal(number as u16), number);
                assert_eq!((numbering.start(number), numbering.number(start)), (start, number), "{slot} {zone}");
                assert_eq!(numbering.number(start + 999), number);
            }
        }
    }
}
