//! Pages that were read before, and the check whether they are still current.

use super::{Answer, LinesOf, MergeError, Merged, Near, Parts, Read, of_one_head, take_apart};
use crate::board::Timestamp;

/// A page that was read before: the head and the versions of the parts from which it was made, in the order of the
/// parts.
///
/// A page is determined by the content of the parts, and a part with the same version and head has the same content. So
/// if each part returns these, at whatever instants, the page is also correct for these instants.
#[derive(Debug)]
pub(in crate::store::redis) struct Known<'a, V> {
    pub head: Timestamp,
    pub versions: &'a [V],
}

impl<V: PartialEq> Known<'_, V> {
    /// Returns whether these answers, one of each part in their order, have the head and versions of the page.
    pub(super) fn is_of<T>(&self, answers: &[&Answer<T, V>]) -> bool {
        let same = |(answer, version): (&&Answer<T, V>, &V)| answer.head() == self.head && answer.version == *version;
        answers.len() == self.versions.len() && answers.iter().zip(self.versions).all(same)
    }
}

/// Asks each part for its first line, to get its version. Returns `None` if a part has changed.
pub(super) async fn unchanged<P: Parts, T>(
    parts: &P,
    known: &Known<'_, P::Version>,
) -> Result<Option<Merged<Option<T>, P::Version>>, MergeError<P::Error>> {
    let all: Vec<usize> = (0..parts.count()).collect();
    let question = Near::first(1);
    let answers = of_one_head(&all, None, |part, at_least| parts.lines(part, at_least, &question)).await?;
    if !known.is_of(&answers.iter().collect::<Vec<_>>()) {
        return Ok(None);
    }
    as_known::<P, T>(answers).map(Some)
}

/// Returns the result for a page that has not changed.
pub(super) fn as_known<P: Parts, T>(answers: Vec<LinesOf<P>>) -> Read<P, Option<T>> {
    let (frame, versions, said) = take_apart(answers).ok_or(MergeError::Unsettled)?;
    let total = said.iter().map(|lines| lines.total).sum();
    Ok(Merged { frame, versions, total, found: None })
}
