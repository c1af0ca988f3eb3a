//! The index as it is saved: without what follows from the rest, so that little can be wrong with it,
//! and checked when it is read.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{BLOCK, More, SeqIndex, SetHash};
use crate::schema::predicate_set::checked_split_integer;

/// What is written of an index.
#[derive(Serialize)]
struct Written<'i> {
    /// The smallest `seq` of the run and its set, unless the run is empty.
    first: Option<(u64, SetHash)>,
    #[serde(serialize_with = "serialize_bytes")]
    differences: &'i [u8],
    sets: &'i [(usize, SetHash)],
    strays: &'i [(u64, SetHash)],
    floor: Option<u64>,
}

/// The same as it is read.
#[derive(Deserialize)]
struct Read {
    first: Option<(u64, SetHash)>,
    differences: Vec<u8>,
    sets: Vec<(usize, SetHash)>,
    strays: Vec<(u64, SetHash)>,
    floor: Option<u64>,
}

fn serialize_bytes<S: Serializer>(bytes: &&[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

impl Serialize for SeqIndex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let none = More::default();
        let more = self.more.as_deref().unwrap_or(&none);
        Written {
            first: (self.length > 0).then_some((self.first, self.first_set)),
            differences: &self.differences,
            sets: &more.sets,
            strays: &more.strays,
            floor: more.floor,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SeqIndex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Read::deserialize(deserializer)?;
        index_of(read).ok_or_else(|| D::Error::custom("an index of placements is damaged"))
    }
}

/// The index that was written, if what was read can be one.
fn index_of(read: Read) -> Option<SeqIndex> {
    let mut blocks = Vec::new();
    if read.first.is_none() && !read.differences.is_empty() {
        return None;
    }
    let (first, first_set) = read.first.unwrap_or_default();
    let (mut last, mut length) = (first, usize::from(read.first.is_some()));
    let mut rest = &*read.differences;
    while !rest.is_empty() {
        let difference;
        (difference, rest) = checked_split_integer(rest)?;
        last = last.checked_add(difference).filter(|_| difference > 0)?;
        if length.is_multiple_of(BLOCK) {
            blocks.push((last, read.differences.len() - rest.len()));
        }
        length += 1;
    }
    let is_within = read
        .sets
        .iter()
        .all(|&(start, _)| (1..length).contains(&start));
    let is_sorted =
        read.sets.is_sorted_by(|a, b| a.0 < b.0) && read.strays.is_sorted_by_key(|&(seq, _)| seq);
    if !(is_within && is_sorted) {
        return None;
    }
    let more = More {
        blocks,
        sets: read.sets,
        strays: read.strays,
        floor: read.floor,
    };
    let is_needed = more.floor.is_some()
        || !(more.blocks.is_empty() && more.sets.is_empty() && more.strays.is_empty());
    Some(SeqIndex {
        first,
        last,
        first_set,
        length,
        differences: read.differences,
        more: is_needed.then(|| Box::new(more)),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Lookup;
    use super::*;

    fn written(index: &SeqIndex) -> Vec<u8> {
        serde_json::to_vec(index).expect("an index has a form")
    }

    fn read(text: &[u8]) -> Option<SeqIndex> {
        serde_json::from_slice(text).ok()
    }

    proptest! {
        #[test]
        fn an_index_reads_back_and_goes_on(
            before in prop::collection::vec((0u64..9000, 0u64..3), 0..300),
            rises in prop::collection::vec(1u64..300, 0..300),
            floor in prop::option::of(0u64..50),
        ) {
            let mut index = SeqIndex::default();
            if let Some(floor) = floor {
                index.begin_after(floor);
            }
            let mut seq = 0;
            for rise in rises {
                seq += rise;
                index.add(seq, SetHash(seq / 500));
            }
            for (seq, set) in before {
                index.add(seq, SetHash(set));
            }
            let mut again = read(&written(&index)).expect("what was written");
            for seq in [9001, 9100, 17, 9000] {
                prop_assert_eq!(format!("{index:?}"), format!("{again:?}"));
                index.add(seq, SetHash(5));
                again.add(seq, SetHash(5));
            }
            for seq in 0..9200 {
                prop_assert_eq!(index.find(seq), again.find(seq), "{}", seq);
            }
        }
    }

    #[test]
    fn an_index_that_forgot_reads_back() {
        let mut index = SeqIndex::default();
        let mut n = 0;
        while !index.add(n * 3, SetHash(1 + n / 10)) {
            n += 1;
        }
        let again = read(&written(&index)).expect("what was written");
        assert_eq!(again.find(0), Lookup::Unknown);
        assert_eq!(format!("{index:?}"), format!("{again:?}"));
    }

    #[test]
    fn a_damaged_index_is_refused() {
        let text = |first: &str, differences: &str, sets: &str, strays: &str| {
            format!(
                r#"{{"first":{first},"differences":{differences},"sets":{sets},"strays":{strays},"floor":null}}"#
            )
        };
        let is_read = |first, differences, sets, strays| {
            read(text(first, differences, sets, strays).as_bytes()).is_some()
        };
        assert!(is_read("[1,1]", "[2,128,1]", "[[1,1]]", "[[1,1],[1,2]]"));
        assert!(is_read("null", "[]", "[]", "[]"));
        for (first, differences, sets, strays) in [
            ("null", "[2]", "[]", "[]"),
            ("[1,1]", "[128]", "[]", "[]"),
            ("[1,1]", "[0]", "[]", "[]"),
            ("[18446744073709551615,1]", "[1]", "[]", "[]"),
            (
                "[1,1]",
                "[255,255,255,255,255,255,255,255,255,2]",
                "[]",
                "[]",
            ),
            ("[1,1]", "[2]", "[[2,1]]", "[]"),
            ("[1,1]", "[2,2]", "[[1,1],[1,2]]", "[]"),
            ("[1,1]", "[2,2]", "[[0,1]]", "[]"),
            ("[1,1]", "[]", "[]", "[[2,1],[1,1]]"),
        ] {
            assert!(
                !is_read(first, differences, sets, strays),
                "{first} {differences} {sets} {strays}"
            );
        }
    }
}
