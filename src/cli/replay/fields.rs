//! Logs whose lines have named fields (NDJSON and CSV), and how their fields are read.

use std::borrow::Cow;

use super::record::{self, Record, Skip};
use super::time_format;

/// The names of the fields that make up an increment.
#[derive(Clone, Debug)]
pub struct FieldNames {
    pub subject: String,
    /// The field of the amount. If absent, every line counts as one.
    pub amount: Option<String>,
    /// The field of the key of the ranking, on a board with BY.
    pub by: Option<String>,
    /// The field of the value, on a board that counts or measures values.
    pub value: Option<String>,
    /// The field of the time. If absent, every line counts when it arrives.
    pub time: Option<String>,
    pub id: Option<String>,
}

/// The texts of these fields in one line. The inner `None` stands for a field that is absent or empty.
#[derive(Clone, Debug, Default)]
pub struct FieldTexts<'l> {
    pub subject: Option<Cow<'l, str>>,
    pub amount: Option<Option<Cow<'l, str>>>,
    pub by: Option<Option<Cow<'l, str>>>,
    pub value: Option<Option<Cow<'l, str>>>,
    pub time: Option<Option<Cow<'l, str>>>,
    pub id: Option<Option<Cow<'l, str>>>,
}

impl<'l> FieldTexts<'l> {
    /// Returns the line's increment.
    pub fn record(self) -> Result<Record<'l>, Skip> {
        let subject = self.subject.ok_or(Skip::NoSubject)?;
        let present = |text: Option<Option<Cow<'l, str>>>, skip| text.map(|text| text.ok_or(skip)).transpose();
        let at = present(self.time, Skip::NoTime)?;
        let at = at.map(|text| time_format::parse(&text).ok_or(Skip::BadTime)).transpose()?;
        let amount = present(self.amount, Skip::NoAmount)?.map(record::amount).transpose()?;
        let (by, value) = (present(self.by, Skip::NoKey)?, present(self.value, Skip::NoValue)?);
        let id = present(self.id, Skip::NoId)?;
        Ok(Record { subject, amount, by, value, at, id })
    }
}
