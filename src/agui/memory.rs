//! What a run remembers of the identifiers in its events: a bounded number of them, and of each a
//! hash, so that neither many nor long identifiers take memory.

use std::collections::{HashMap, VecDeque};

use xxhash_rust::xxh3::xxh3_128;

/// Most tool calls and most reasoning messages that are remembered of one run. More than any run
/// for people has under way, and less than 200 KB.
///
/// Beyond it the oldest is forgotten, and with it what it could have shown to be a contradiction. A
/// complaint may then be missed; none is ever made of what is not remembered.
pub const MAX_REMEMBERED: usize = 1024;

/// An identifier of 128 bits that stands for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Id(u128);

impl Id {
    pub(super) fn of(text: &str) -> Id {
        Id(xxh3_128(text.as_bytes()))
    }
}

/// The identifiers that came last, at most [`MAX_REMEMBERED`], each with a value.
#[derive(Clone, Debug)]
pub(super) struct Recent<T> {
    values: HashMap<Id, T>,
    /// The keys of `values`, oldest first.
    order: VecDeque<Id>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Recent {
            values: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<T> Recent<T> {
    pub(super) fn get(&self, id: Id) -> Option<&T> {
        self.values.get(&id)
    }

    /// Remembers `id`, and gives what was forgotten for it.
    pub(super) fn insert(&mut self, id: Id, value: T) -> Option<(Id, T)> {
        if self.values.insert(id, value).is_some() {
            return None;
        }
        self.order.push_back(id);
        if self.order.len() <= MAX_REMEMBERED {
            return None;
        }
        let oldest = self.order.pop_front()?;
        self.values.remove(&oldest).map(|value| (oldest, value))
    }
}

/// As a list, oldest first.
#[cfg(feature = "serde")]
impl<T: serde::Serialize> serde::Serialize for Recent<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries: Vec<_> = self
            .order
            .iter()
            .map(|id| (id, self.values.get(id)))
            .collect();
        entries.serialize(serializer)
    }
}

#[cfg(feature = "serde")]
impl<'de, T: serde::Deserialize<'de>> serde::Deserialize<'de> for Recent<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut recent = Recent::default();
        for (id, value) in Vec::<(Id, Option<T>)>::deserialize(deserializer)? {
            if let Some(value) = value {
                recent.insert(id, value);
            }
        }
        Ok(recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten() {
        let mut recent = Recent::default();
        let id = |number: usize| Id::of(&number.to_string());
        for number in 0..MAX_REMEMBERED {
            assert_eq!(recent.insert(id(number), number), None);
        }
        assert_eq!(recent.insert(id(0), 7), None);
        assert_eq!(recent.insert(id(MAX_REMEMBERED), 1), Some((id(0), 7)));
        assert_eq!(recent.get(id(0)), None);
        assert_eq!(recent.get(id(1)), Some(&1));
        assert_eq!(recent.values.len(), MAX_REMEMBERED);
    }
}
