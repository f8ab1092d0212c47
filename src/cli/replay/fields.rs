//! The fields of a line that make up an increment, and how they are read where they have names (NDJSON and CSV).

use std::borrow::Cow;

use super::record::{self, Record, Skip};
use super::time_format;

/// What is known of each field, such as its name, its column or its text. `None` for a field that is not asked for.
#[derive(Clone, Debug)]
pub struct Fields<T> {
    pub subject: Option<T>,
    /// If absent, every line counts as one.
    pub amount: Option<T>,
    /// The key of the ranking, on a board with BY.
    pub by: Option<T>,
    /// The value, on a board that counts or measures values.
    pub value: Option<T>,
    /// If absent, every line counts when it arrives.
    pub time: Option<T>,
    pub id: Option<T>,
}

impl<T> Fields<T> {
    /// Applies a function to each field that is asked for. Returns the first error.
    pub fn try_map<'f, U, E>(&'f self, map: impl Fn(&'f T) -> Result<U, E>) -> Result<Fields<U>, E> {
        let map = |field: &'f Option<T>| field.as_ref().map(&map).transpose();
        Ok(Fields {
            subject: map(&self.subject)?,
            amount: map(&self.amount)?,
            by: map(&self.by)?,
            value: map(&self.value)?,
            time: map(&self.time)?,
            id: map(&self.id)?,
        })
    }
}

impl<'l> Fields<Option<Cow<'l, str>>> {
    /// Returns the increment of a line with these texts. The inner `None` stands for a field that is absent or empty.
    pub fn record(self) -> Result<Record<'l>, Skip> {
        let subject = self.subject.flatten().ok_or(Skip::NoSubject)?;
        let present = |text: Option<Option<Cow<'l, str>>>, skip| text.map(|text| text.ok_or(skip)).transpose();
        let at = present(self.time, Skip::NoTime)?;
        let at = at.map(|text| time_format::parse(&text).ok_or(Skip::BadTime)).transpose()?;
        let amount = present(self.amount, Skip::NoAmount)?.map(record::amount).transpose()?;
        let (by, value) = (present(self.by, Skip::NoKey)?, present(self.value, Skip::NoValue)?);
        let id = present(self.id, Skip::NoId)?;
        Ok(Record { subject, amount, by, value, at, id })
    }
}
