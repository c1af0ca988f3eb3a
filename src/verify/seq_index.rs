//! Which placements of a trace carried a full explanation (R16): the only thing that a trace's
//! state keeps for each of its records.

#[cfg(feature = "serde")]
mod saved;

use super::MAX_INDEX_BYTES;
use crate::schema::predicate_set::{push_integer, split_integer};

/// Identifies the predicate set that a placement was held to: a hash, as it only serves an
/// advisory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SetHash(u64);

impl SetHash {
    /// Of a set that could not be read whole.
    pub(crate) const INCOMPLETE: SetHash = SetHash(0);

    /// Of a set in its packed form.
    pub(crate) fn of(packed: &[u8]) -> Self {
        SetHash(xxhash_rust::xxh3::xxh3_64(packed).max(1))
    }

    /// Whether both sets are known, and differ.
    pub(crate) fn differs(self, other: SetHash) -> bool {
        self != Self::INCOMPLETE && other != Self::INCOMPLETE && self != other
    }
}

/// Entries after which the index notes where it is, so that a look-up decodes no more than these.
const BLOCK: usize = 64;

/// The `seq`s of placements with a full explanation, and the set each was held to.
///
/// Rising `seq`s, as traces have them, are kept as differences: one byte up to 127, two up to
/// 16,383, and a quarter of a byte for finding them again. One that does not rise was reported
/// already (R3) and goes to a sorted list of strays, so that the run stays sorted whatever comes.
/// Over [`MAX_INDEX_BYTES`] the oldest half is forgotten, and what it held is unknown from then on.
#[derive(Debug, Default)]
pub(crate) struct SeqIndex {
    /// The smallest `seq` of the run, and the greatest.
    first: u64,
    last: u64,
    /// The set that the first of the run was held to.
    first_set: SetHash,
    /// How many `seq`s the run has.
    length: usize,
    /// Differences between neighbours of the run, in groups of seven bits.
    differences: Vec<u8>,
    more: Option<Box<More>>,
}

/// What most traces, being short and in order, do without.
#[derive(Debug, Default)]
struct More {
    /// Entry `n` is the `seq` of number `(n + 1) * BLOCK` of the run and where its differences go on.
    blocks: Vec<(u64, usize)>,
    /// From which number of the run on another set holds; sorted.
    sets: Vec<(usize, SetHash)>,
    /// `seq`s that did not rise; sorted.
    strays: Vec<(u64, SetHash)>,
    /// Below or at this `seq` what is not found is unknown.
    floor: Option<u64>,
}

/// What the index knows of a `seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    Found(SetHash),
    NotFound,
    /// It may have been there; what would tell was not seen or is forgotten.
    Unknown,
}

impl SeqIndex {
    /// Makes every `seq` up to `seq` unknown unless it is added: the trace's beginning was not seen.
    pub(crate) fn begin_after(&mut self, seq: u64) {
        self.more().floor = Some(seq);
    }

    /// Adds a placement. Returns whether the index had to forget something.
    pub(crate) fn add(&mut self, seq: u64, set: SetHash) -> bool {
        if self.length > 0 && seq <= self.last {
            return self.more().add_stray(seq, set);
        }
        if self.length == 0 {
            self.first = seq;
            self.first_set = set;
        } else {
            reserve_little(&mut self.differences);
            push_integer(&mut self.differences, seq - self.last);
            if self.last_set() != set {
                let number = self.length;
                self.more().sets.push((number, set));
            }
        }
        self.last = seq;
        if self.length > 0 && self.length.is_multiple_of(BLOCK) {
            let offset = self.differences.len();
            self.more().blocks.push((seq, offset));
        }
        self.length += 1;
        self.run_bytes() > MAX_INDEX_BYTES && self.forget_half_of_run()
    }

    /// What is known of `seq`: of the latest placement with it, where several had it.
    pub(crate) fn find(&self, seq: u64) -> Lookup {
        let stray = self.more.as_ref().and_then(|more| more.find_stray(seq));
        if let Some(set) = stray.or_else(|| self.find_in_run(seq)) {
            return Lookup::Found(set);
        }
        match self.more.as_ref().and_then(|more| more.floor) {
            Some(floor) if seq <= floor => Lookup::Unknown,
            _ => Lookup::NotFound,
        }
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    fn find_in_run(&self, seq: u64) -> Option<SetHash> {
        if self.length == 0 || seq < self.first || seq > self.last {
            return None;
        }
        if seq == self.last {
            return Some(self.last_set());
        }
        let blocks = self.more.as_ref().map_or(&[][..], |more| &more.blocks);
        let block = blocks.partition_point(|&(start, _)| start <= seq);
        let (mut current, offset) = match block {
            0 => (self.first, 0),
            _ => blocks[block - 1],
        };
        let mut number = block * BLOCK;
        let mut rest = &self.differences[offset..];
        while current < seq {
            let difference;
            (difference, rest) = split_integer(rest);
            current += difference;
            number += 1;
        }
        (current == seq).then(|| self.set_of(number))
    }

    fn last_set(&self) -> SetHash {
        let last = self.more.as_ref().and_then(|more| more.sets.last());
        last.map_or(self.first_set, |&(_, set)| set)
    }

    fn set_of(&self, number: usize) -> SetHash {
        let sets = self.more.as_ref().map_or(&[][..], |more| &more.sets);
        match sets.partition_point(|&(start, _)| start <= number) {
            0 => self.first_set,
            end => sets[end - 1].1,
        }
    }

    fn run_bytes(&self) -> usize {
        self.differences.len()
            + self.more.as_ref().map_or(0, |more| {
                size_of_val(more.blocks.as_slice()) + size_of_val(more.sets.as_slice())
            })
    }

    /// Forgets the older half of the run, up to the start of a block.
    fn forget_half_of_run(&mut self) -> bool {
        let Some(more) = &mut self.more else {
            return false;
        };
        let half = more.blocks.len() / 2;
        let Some(&(first, offset)) = more.blocks.get(half) else {
            return false;
        };
        let dropped = (half + 1) * BLOCK;
        // Nothing of the run between the floor and `first` is known any more.
        more.raise_floor(first - 1);
        more.blocks.drain(..=half);
        more.blocks
            .iter_mut()
            .for_each(|(_, start)| *start -= offset);
        let passed = more.sets.partition_point(|&(start, _)| start <= dropped);
        if let Some((_, set)) = more.sets.drain(..passed).next_back() {
            self.first_set = set;
        }
        more.sets
            .iter_mut()
            .for_each(|(start, _)| *start -= dropped);
        self.first = first;
        self.length -= dropped;
        self.differences.drain(..offset);
        true
    }
}

impl More {
    fn find_stray(&self, seq: u64) -> Option<SetHash> {
        let end = self.strays.partition_point(|&(stray, _)| stray <= seq);
        let &(stray, set) = self.strays[..end].last()?;
        (stray == seq).then_some(set)
    }

    fn add_stray(&mut self, seq: u64, set: SetHash) -> bool {
        let full = size_of_val(self.strays.as_slice()) >= MAX_INDEX_BYTES;
        if full {
            let half = self.strays.len() / 2;
            self.raise_floor(self.strays[half - 1].0);
            self.strays.drain(..half);
        }
        let at = self.strays.partition_point(|&(stray, _)| stray <= seq);
        self.strays.insert(at, (seq, set));
        full
    }

    fn raise_floor(&mut self, seq: u64) {
        self.floor = Some(self.floor.map_or(seq, |floor| floor.max(seq)));
    }
}

/// Makes room for an integer by a quarter of what is there, so that little of it lies idle.
fn reserve_little(bytes: &mut Vec<u8>) {
    const LONGEST_INTEGER: usize = 10;
    if bytes.capacity() - bytes.len() < LONGEST_INTEGER {
        bytes.reserve_exact(LONGEST_INTEGER + bytes.len() / 4);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rising_seqs_cost_under_two_bytes_each() {
        let mut index = SeqIndex::default();
        for n in 0..100_000 {
            index.add(n * 7, SetHash(1));
        }
        let bytes = index.differences.capacity() + index.more().blocks.capacity() * 16;
        assert!(bytes < 200_000, "{bytes}");
        assert_eq!(index.find(699_993), Lookup::Found(SetHash(1)));
        assert_eq!(index.find(699_992), Lookup::NotFound);
    }

    #[test]
    fn a_full_index_forgets_the_oldest() {
        let mut index = SeqIndex::default();
        let mut n = 0;
        while !index.add(n * 3, SetHash(1 + n / 1000)) {
            n += 1;
        }
        assert_eq!(index.find(0), Lookup::Unknown);
        assert_eq!(index.find(n * 3), Lookup::Found(SetHash(1 + n / 1000)));
        assert_eq!(index.find(n * 3 - 1), Lookup::NotFound);
        assert_eq!(
            index.find(index.first),
            Lookup::Found(SetHash(1 + index.first / 3 / 1000))
        );
        assert!(index.run_bytes() < MAX_INDEX_BYTES * 3 / 4);
        for _ in 0..BLOCK * 3 {
            n += 1;
            index.add(n * 3, SetHash(1 + n / 1000));
            assert_eq!(index.find(n * 3), Lookup::Found(SetHash(1 + n / 1000)));
        }
    }

    #[test]
    fn a_full_list_of_strays_forgets_the_smallest() {
        let mut index = SeqIndex::default();
        index.add(u64::MAX, SetHash::INCOMPLETE);
        let mut n = 1;
        while !index.add(n * 2, SetHash::INCOMPLETE) {
            n += 1;
        }
        assert_eq!(index.find(2), Lookup::Unknown);
        assert_eq!(index.find(n * 2), Lookup::Found(SetHash::INCOMPLETE));
        assert_eq!(index.find(n * 2 + 1), Lookup::NotFound);
    }

    #[test]
    fn an_unseen_beginning_is_unknown() {
        let mut index = SeqIndex::default();
        index.begin_after(9);
        index.add(12, SetHash::INCOMPLETE);
        assert_eq!(index.find(9), Lookup::Unknown);
        assert_eq!(index.find(10), Lookup::NotFound);
        assert_eq!(index.find(12), Lookup::Found(SetHash::INCOMPLETE));
    }

    proptest! {
        #[test]
        fn agrees_with_a_map(entries in prop::collection::vec((0u64..500, 0u64..3), 0..300)) {
            let (mut index, mut map) = (SeqIndex::default(), HashMap::new());
            for (seq, set) in entries {
                index.add(seq, SetHash(set));
                map.insert(seq, set);
            }
            for seq in 0..510 {
                let expected = match map.get(&seq) {
                    Some(&set) => Lookup::Found(SetHash(set)),
                    None => Lookup::NotFound,
                };
                prop_assert_eq!(index.find(seq), expected, "{}", seq);
            }
        }
    }
}
