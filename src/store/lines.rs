//! The lines of a page, shared by all responses that contain the same page.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::Ranked;

/// Lines of a ranking, best first. Clones share the lines.
#[derive(Clone, Default)]
pub struct Lines(Arc<Shared>);

#[derive(Default)]
struct Shared {
    items: Vec<Ranked>,
    made: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Lines {
    /// Returns whether other clones of these lines exist, for example in a cache.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Returns the value that `make` computes from these lines. It is computed once and kept as long as any clone of
    /// the lines. Returns `None` if a value of another type was computed before.
    pub fn made<T: Any + Send + Sync>(&self, make: impl FnOnce(&[Ranked]) -> T) -> Option<&T> {
        self.0.made.get_or_init(|| Box::new(make(&self.0.items))).downcast_ref()
    }
}

impl Deref for Lines {
    type Target = [Ranked];

    fn deref(&self) -> &[Ranked] {
        &self.0.items
    }
}

impl From<Vec<Ranked>> for Lines {
    fn from(items: Vec<Ranked>) -> Self {
        Self(Arc::new(Shared { items, made: OnceLock::new() }))
    }
}

impl FromIterator<Ranked> for Lines {
    fn from_iter<I: IntoIterator<Item = Ranked>>(items: I) -> Self {
        Vec::from_iter(items).into()
    }
}

impl IntoIterator for Lines {
    type Item = Ranked;
    type IntoIter = std::vec::IntoIter<Ranked>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::try_unwrap(self.0).map_or_else(|shared| shared.items.clone(), |own| own.items).into_iter()
    }
}

impl<'a> IntoIterator for &'a Lines {
    type Item = &'a Ranked;
    type IntoIter = std::slice::Iter<'a, Ranked>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Lines {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.items == other.0.items
    }
}

impl Eq for Lines {}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.items.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Amount, Subject, Value};

    #[test]
    fn derived_data_is_built_once_for_all_copies_of_lines() {
        let line = Ranked { rank: 1, subject: Subject::parse("a").unwrap(), score: Value::Exact(Amount(7)) };
        let lines = Lines::from(vec![line.clone()]);
        assert!(!lines.is_shared());
        let copy = lines.clone();
        assert!(lines.is_shared() && lines == copy && lines == Lines::from(vec![line.clone()]));
        assert_eq!(lines.made(|lines| lines.len().to_string()).unwrap(), "1");
        assert_eq!(copy.made(|_| String::from("made again")).unwrap(), "1");
        assert_eq!(copy.made(|_| 7_u8), None);
        assert_eq!(copy.into_iter().collect::<Vec<_>>(), [line]);
    }
}
