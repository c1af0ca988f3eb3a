//! A set of predicates as the state of a trace keeps it.

use std::borrow::Cow;

use super::requirements::{Asked, Requirements};
use super::{Predicate, PredicateKind};

/// P, the predicate set derived from requirements that were matched.
#[derive(Debug)]
pub(crate) struct Matched<'r, 'a> {
    /// One for each entry, in the order of the requirements.
    pub(crate) asked: &'r [Asked<'a>],
    /// Indices into `asked`: each predicate once, sorted.
    order: Cow<'r, [u32]>,
    /// Whether every entry could be read, and so the set is all that was asked for.
    pub(crate) complete: bool,
    packed: Cow<'r, [u8]>,
}

impl<'r, 'a> Matched<'r, 'a> {
    pub(crate) fn of(requirements: &'r Requirements<'a>) -> Self {
        let asked = &*requirements.asked;
        let count = u32::try_from(asked.len()).expect("a line has fewer than 2^32 entries");
        let mut order: Vec<u32> = (0..count).collect();
        let predicate = |index: &u32| &asked[*index as usize].predicate;
        order.sort_unstable_by(|left, right| predicate(left).cmp(predicate(right)));
        order.dedup_by(|left, right| predicate(left) == predicate(right));
        let mut packed = Vec::new();
        pack_into(order.iter().map(predicate), &mut packed);
        let complete = requirements.complete;
        Matched {
            asked,
            order: Cow::Owned(order),
            complete,
            packed: Cow::Owned(packed),
        }
    }

    /// A complete set of which the parts are known.
    pub(crate) fn known(asked: &'r [Asked<'a>], order: &'r [u32], packed: &'r [u8]) -> Self {
        let (order, packed) = (Cow::Borrowed(order), Cow::Borrowed(packed));
        Matched {
            asked,
            order,
            complete: true,
            packed,
        }
    }

    /// The order of the predicates, and the set as the state of a trace keeps it.
    pub(crate) fn into_parts(self) -> (Vec<u32>, Vec<u8>) {
        (self.order.into_owned(), self.packed.into_owned())
    }

    /// The predicates, sorted and without repeats.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Predicate<'a>> {
        self.order
            .iter()
            .map(|&index| &self.asked[index as usize].predicate)
    }

    /// Whether the set holds `predicate`.
    pub(crate) fn holds(&self, predicate: &Predicate<'_>) -> bool {
        let compare = |index: &u32| self.asked[*index as usize].predicate.cmp(predicate);
        self.order.binary_search_by(compare).is_ok()
    }

    /// The set as the state of a trace keeps it.
    pub(crate) fn packed(&self) -> &[u8] {
        &self.packed
    }
}

/// A complete set of predicates, packed into one allocation: sorted, without repeats, each as its
/// kind, version, and the length and bytes of its name. Two sets are equal exactly when their
/// bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PredicateSet(Box<[u8]>);

impl PredicateSet {
    /// The set that [`pack_into`] packed.
    pub(crate) fn from_packed(packed: &[u8]) -> Self {
        PredicateSet(packed.into())
    }

    /// The predicates, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Predicate<'_>> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (&kind, after) = rest.split_first()?;
            let (version, after) = split_integer(after);
            let (length, after) = split_integer(after);
            let (name, after) = after.split_at(length as usize);
            rest = after;
            let name = std::str::from_utf8(name).expect("packed from a str");
            Some(Predicate {
                kind: PredicateKind::ALL[kind as usize],
                name: Cow::Borrowed(name),
                version,
            })
        })
    }

    /// Whether the bytes are what [`pack_into`] writes; of what was read back, nobody knows.
    #[cfg(feature = "serde")]
    fn is_well_packed(&self) -> Option<()> {
        let mut rest = &*self.0;
        while let Some((&kind, after)) = rest.split_first() {
            PredicateKind::ALL.get(kind as usize)?;
            let (_, after) = checked_split_integer(after)?;
            let (length, after) = checked_split_integer(after)?;
            let (name, after) = after.split_at_checked(usize::try_from(length).ok()?)?;
            std::str::from_utf8(name).ok()?;
            rest = after;
        }
        Some(())
    }

    /// The packed form.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for PredicateSet {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for PredicateSet {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let packed = Vec::deserialize(deserializer)?;
        let set = PredicateSet(packed.into_boxed_slice());
        match set.is_well_packed() {
            Some(()) => Ok(set),
            None => Err(serde::de::Error::custom("a set of predicates is damaged")),
        }
    }
}

/// Appends the packed form of `predicates`, which are sorted and without repeats.
pub(crate) fn pack_into<'p>(
    predicates: impl Iterator<Item = &'p Predicate<'p>>,
    packed: &mut Vec<u8>,
) {
    for predicate in predicates {
        packed.push(predicate.kind as u8);
        push_integer(packed, predicate.version);
        push_integer(packed, predicate.name.len() as u64);
        packed.extend_from_slice(predicate.name.as_bytes());
    }
}

/// Appends `value` in groups of seven bits, lowest first; the high bit says that more follow.
pub(crate) fn push_integer(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Splits off the integer that `bytes` begins with. Only for what [`push_integer`] wrote.
pub(crate) fn split_integer(bytes: &[u8]) -> (u64, &[u8]) {
    let mut value = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return (value, &bytes[index + 1..]);
        }
    }
    unreachable!("an integer was written whole")
}

/// The same for what may be anything. `None` where it is no integer.
#[cfg(feature = "serde")]
pub(crate) fn checked_split_integer(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().enumerate() {
        let group = u64::from(byte & 0x7f);
        let shift = u32::try_from(7 * index).ok()?;
        let placed = group
            .checked_shl(shift)
            .filter(|placed| placed >> shift == group)?;
        value |= placed;
        if byte < 0x80 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_read_back() {
        for value in [
            0,
            1,
            127,
            128,
            300,
            16_383,
            16_384,
            u64::from(u32::MAX),
            u64::MAX,
        ] {
            let mut bytes = Vec::new();
            push_integer(&mut bytes, value);
            bytes.push(9);
            assert_eq!(split_integer(&bytes), (value, &[9][..]));
            #[cfg(feature = "serde")]
            assert_eq!(checked_split_integer(&bytes), Some((value, &[9][..])));
        }
    }

    #[test]
    fn sets_read_back() {
        let texts = [
            "capability:a.b/18446744073709551615",
            "clearance:",
            "tool:a\nb",
            "agentRef:é",
        ];
        let predicates: Vec<_> = texts
            .iter()
            .map(|t| Predicate::parse(t).expect(t))
            .collect();
        let mut packed = Vec::new();
        pack_into(predicates.iter(), &mut packed);
        let set = PredicateSet::from_packed(&packed);
        assert_eq!(set.iter().collect::<Vec<_>>(), predicates);
        assert_eq!(PredicateSet::from_packed(&[]).iter().count(), 0);
    }

    #[test]
    #[cfg(feature = "serde")]
    fn sets_are_saved_and_damaged_ones_refused() {
        let clearance = PredicateKind::Clearance as u8;
        let read = |text: &str| serde_json::from_str::<PredicateSet>(text).ok();
        let set = PredicateSet::from_packed(&[clearance, 0, 2, b'a', b'b']);
        let text = serde_json::to_string(&set).expect("a form");
        assert_eq!(read(&text), Some(set));
        assert!(read("[]").is_some());
        for text in [
            "[99,0,0]",
            "[0]",
            "[0,128]",
            "[0,0]",
            "[0,0,2,97]",
            "[0,0,1,255]",
            "[0,0,255,255,255,255,255,255,255,255,255,127]",
        ] {
            assert!(read(text).is_none(), "{text}");
        }
    }
}
