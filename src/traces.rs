//! Which trace a record belongs to: the open traces, their limits and their ends.
//!
//! A record costs one look-up and touches nothing but its own trace: the order of last use is only
//! made out when a trace has to be given up or has been idle.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::verify::state::TraceState;

/// Longest name under which a trace is kept, in bytes: a longer one is cut and told apart by a
/// hash, as a few hundred bytes a trace are promised.
const MAX_NAME_BYTES: usize = 512;

/// The open traces.
#[derive(Debug)]
pub(crate) struct Traces {
    max_open: NonZeroUsize,
    hasher: RandomState,
    /// Indices into `slots`, found by the trace's name.
    by_name: HashTable<u32>,
    slots: Slots,
    free: Vec<u32>,
    /// One more for each use of a trace.
    clock: u64,
    /// For each open trace the moment at which it was queued, and its index. A trace may have been
    /// used since, and entries of closed traces stay behind; [`Slot::queued`] tells.
    queue: BinaryHeap<Reverse<(u64, u32)>>,
    /// Every trace was closed, and what is left of them counts for nothing.
    is_closed: bool,
}

#[derive(Debug)]
struct Slot {
    trace: Trace,
    hash: u64,
    /// When it was last used, by [`Traces::clock`] and by the time.
    used: u64,
    used_at: Duration,
    /// The moment in its entry of the queue.
    queued: u64,
}

/// One open trace.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) name: Arc<str>,
    pub(crate) state: TraceState,
}

/// What [`Traces::enter`] gives.
#[derive(Debug)]
pub(crate) struct Entered<'t> {
    pub(crate) trace: &'t mut Trace,
    /// Whether it was opened just now.
    pub(crate) is_new: bool,
    /// What was given up to make room for it.
    pub(crate) evicted: Option<Trace>,
}

impl Traces {
    pub(crate) fn new(max_open: NonZeroUsize) -> Self {
        Traces {
            max_open,
            hasher: RandomState::default(),
            by_name: HashTable::new(),
            slots: Slots::default(),
            free: Vec::new(),
            clock: 0,
            queue: BinaryHeap::new(),
            is_closed: false,
        }
    }

    /// How many traces are open.
    pub(crate) fn len(&self) -> usize {
        if self.is_closed {
            0
        } else {
            self.by_name.len()
        }
    }

    /// The trace of that name, opened if it was not, and from now on the most recently used. With
    /// it the trace that was given up to make room, if one was.
    pub(crate) fn enter(&mut self, name: &str, now: Duration) -> Entered<'_> {
        if self.is_closed {
            *self = Traces::new(self.max_open);
        }
        let name = kept_name(name);
        let hash = self.hasher.hash_one(&*name);
        self.clock += 1;
        let (index, is_new, evicted) = match self.find(&name, hash) {
            Some(index) => (index, false, None),
            None => {
                let is_full = self.len() >= self.max_open.get();
                let evicted = if is_full { self.close_oldest() } else { None };
                (self.open(&name, hash), true, evicted)
            }
        };
        let slot = self.slots.get_mut(index);
        (slot.used, slot.used_at) = (self.clock, now);
        Entered {
            trace: &mut slot.trace,
            is_new,
            evicted,
        }
    }

    /// Closes the trace of that name.
    pub(crate) fn close(&mut self, name: &str) -> Option<Trace> {
        let name = kept_name(name);
        let index = self.find(&name, self.hasher.hash_one(&*name))?;
        Some(self.remove(index))
    }

    /// Closes the least recently used trace if it was last used at or before `time`.
    pub(crate) fn close_unused_since(&mut self, time: Duration) -> Option<Trace> {
        let oldest = self.oldest()?;
        (self.slots.get(oldest)?.used_at <= time).then(|| self.remove(oldest))
    }

    /// Closes the least recently used trace.
    pub(crate) fn close_oldest(&mut self) -> Option<Trace> {
        let oldest = self.oldest()?;
        Some(self.remove(oldest))
    }

    /// Closes every trace, and gives those that `wanted` says, least recently used first.
    ///
    /// The states of the others are freed only when another trace is opened: a process that ends
    /// here need not spend the time.
    pub(crate) fn close_all(
        &mut self,
        wanted: impl Fn(&TraceState) -> bool,
        mut each: impl FnMut(Trace),
    ) {
        for index in self.by_use(wanted) {
            each(self.slots.take(index).trace);
        }
        self.is_closed = true;
    }

    /// Gives the traces that `wanted` says, least recently used first.
    pub(crate) fn visit(
        &mut self,
        wanted: impl Fn(&TraceState) -> bool,
        mut each: impl FnMut(&mut Trace),
    ) {
        for index in self.by_use(wanted) {
            each(&mut self.slots.get_mut(index).trace);
        }
    }

    /// The trace of that name, if it is open. It counts as used no later than before.
    pub(crate) fn find_open(&mut self, name: &str) -> Option<&mut Trace> {
        let name = kept_name(name);
        let index = self.find(&name, self.hasher.hash_one(&*name))?;
        Some(&mut self.slots.get_mut(index).trace)
    }

    /// Sets how many traces may be open. What is open beyond that stays so until
    /// [`Traces::close_excess`] takes it.
    pub(crate) fn set_max_open(&mut self, max_open: NonZeroUsize) {
        self.max_open = max_open;
    }

    /// Closes the least recently used trace if more are open than may be.
    pub(crate) fn close_excess(&mut self) -> Option<Trace> {
        match self.len() > self.max_open.get() {
            true => self.close_oldest(),
            false => None,
        }
    }

    /// The open traces that `wanted` says, each with the time when it was last used, least recently
    /// used first.
    #[cfg(feature = "serde")]
    pub(crate) fn iter_by_use(
        &self,
        wanted: impl Fn(&TraceState) -> bool,
    ) -> impl Iterator<Item = (&Trace, Duration)> {
        let slots = self.by_use(wanted).into_iter();
        let slots = slots.filter_map(|index| self.slots.get(index));
        slots.map(|slot| (&slot.trace, slot.used_at))
    }

    /// Opens a trace as it was when it was last used, at that time. It is the most recently used
    /// from now on. More may then be open than may be, until [`Traces::close_excess`].
    #[cfg(feature = "serde")]
    pub(crate) fn restore(&mut self, name: &str, state: TraceState, used_at: Duration) {
        let max_open = std::mem::replace(&mut self.max_open, NonZeroUsize::MAX);
        self.enter(name, used_at).trace.state = state;
        self.max_open = max_open;
    }

    /// The open traces that `wanted` says, least recently used first.
    fn by_use(&self, wanted: impl Fn(&TraceState) -> bool) -> Vec<u32> {
        let mut found: Vec<(u64, u32)> = Vec::new();
        if !self.is_closed {
            let slots = self.slots.iter();
            let wanted = slots.filter(|(_, slot)| wanted(&slot.trace.state));
            found.extend(wanted.map(|(index, slot)| (slot.used, index)));
        }
        found.sort_unstable();
        found.into_iter().map(|(_, index)| index).collect()
    }

    fn find(&self, name: &str, hash: u64) -> Option<u32> {
        if self.is_closed {
            return None;
        }
        let is_it = |&index: &u32| {
            let slot = self.slots.get(index);
            slot.is_some_and(|slot| slot.hash == hash && *slot.trace.name == *name)
        };
        self.by_name.find(hash, is_it).copied()
    }

    fn open(&mut self, name: &str, hash: u64) -> u32 {
        let trace = Trace {
            name: Arc::from(name),
            state: TraceState::default(),
        };
        let (used, queued) = (self.clock, self.clock);
        let slot = Slot {
            trace,
            hash,
            used,
            used_at: Duration::ZERO,
            queued,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.slots.put(index, slot);
                index
            }
            None => self.slots.push(slot),
        };
        let slots = &self.slots;
        let hash_of = |&index: &u32| slots.get(index).map_or(0, |slot| slot.hash);
        self.by_name.insert_unique(hash, index, hash_of);
        self.queue.push(Reverse((queued, index)));
        self.drop_dead_entries();
        index
    }

    /// The least recently used trace. Entries that the queue is wrong about are put right.
    fn oldest(&mut self) -> Option<u32> {
        if self.is_closed {
            return None;
        }
        loop {
            let &Reverse((queued, index)) = self.queue.peek()?;
            let slot = self
                .slots
                .find_mut(index)
                .filter(|slot| slot.queued == queued);
            match slot {
                Some(slot) if slot.used == queued => return Some(index),
                Some(slot) => {
                    slot.queued = slot.used;
                    let entry = Reverse((slot.used, index));
                    *self.queue.peek_mut().expect("peeked at just now") = entry;
                }
                None => drop(self.queue.pop()),
            }
        }
    }

    fn remove(&mut self, index: u32) -> Trace {
        let slot = self.slots.take(index);
        let entry = self.by_name.find_entry(slot.hash, |&other| other == index);
        entry.expect("an open trace is in the table").remove();
        self.free.push(index);
        slot.trace
    }

    /// Keeps the entries of closed traces from outnumbering the others.
    fn drop_dead_entries(&mut self) {
        const FEW: usize = 64;
        if self.queue.len() > 2 * self.len() + FEW {
            let slots = &self.slots;
            self.queue.retain(|&Reverse((queued, index))| {
                slots.get(index).is_some_and(|slot| slot.queued == queued)
            });
        }
    }
}

/// The slots of open traces, in chunks, so that growing moves none of them.
#[derive(Debug, Default)]
struct Slots(Vec<Vec<Option<Slot>>>);

impl Slots {
    const CHUNK: usize = 256;

    fn push(&mut self, slot: Slot) -> u32 {
        if self.0.last().is_none_or(|chunk| chunk.len() == Self::CHUNK) {
            self.0.push(Vec::with_capacity(Self::CHUNK));
        }
        let chunks = self.0.len();
        let chunk = self.0.last_mut().expect("pushed just now");
        chunk.push(Some(slot));
        let index = (chunks - 1) * Self::CHUNK + chunk.len() - 1;
        u32::try_from(index).expect("fewer than 2^32 traces are open")
    }

    fn put(&mut self, index: u32, slot: Slot) {
        let index = index as usize;
        self.0[index / Self::CHUNK][index % Self::CHUNK] = Some(slot);
    }

    fn get(&self, index: u32) -> Option<&Slot> {
        let index = index as usize;
        self.0[index / Self::CHUNK][index % Self::CHUNK].as_ref()
    }

    fn find_mut(&mut self, index: u32) -> Option<&mut Slot> {
        let index = index as usize;
        self.0[index / Self::CHUNK][index % Self::CHUNK].as_mut()
    }

    fn get_mut(&mut self, index: u32) -> &mut Slot {
        self.find_mut(index).expect("an open trace has a slot")
    }

    fn take(&mut self, index: u32) -> Slot {
        let index = index as usize;
        let slot = self.0[index / Self::CHUNK][index % Self::CHUNK].take();
        slot.expect("an open trace has a slot")
    }

    fn iter(&self) -> impl Iterator<Item = (u32, &Slot)> {
        let slots = self.0.iter().flatten();
        (0..)
            .zip(slots)
            .filter_map(|(index, slot)| Some((index, slot.as_ref()?)))
    }
}

/// The name under which a trace is kept.
pub(crate) fn kept_name(name: &str) -> std::borrow::Cow<'_, str> {
    if name.len() <= MAX_NAME_BYTES {
        return name.into();
    }
    let hash = xxhash_rust::xxh3::xxh3_128(name.as_bytes());
    let end = name.floor_char_boundary(MAX_NAME_BYTES - 40);
    format!("{}…#{hash:032x}", &name[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn traces(max_open: usize, names: &[&str]) -> Traces {
        let mut traces = Traces::new(NonZeroUsize::new(max_open).unwrap());
        names
            .iter()
            .for_each(|name| assert!(traces.enter(name, NOW).evicted.is_none()));
        traces
    }

    fn name(trace: Option<Trace>) -> Option<String> {
        trace.map(|trace| trace.name.to_string())
    }

    #[test]
    fn the_least_recently_used_is_given_up() {
        let mut traces = traces(3, &["a", "b", "c"]);
        assert!(!traces.enter("a", NOW).is_new);
        assert_eq!(name(traces.enter("d", NOW).evicted).as_deref(), Some("b"));
        assert!(traces.close("b").is_none());
        assert_eq!(name(traces.enter("e", NOW).evicted).as_deref(), Some("c"));
        assert_eq!(traces.len(), 3);
        let rest: Vec<_> = std::iter::from_fn(|| name(traces.close_oldest())).collect();
        assert_eq!(rest, ["a", "d", "e"]);
        assert_eq!(traces.len(), 0);
    }

    #[test]
    fn closing_frees_the_place_wherever_it_is() {
        for closed in ["a", "b", "c"] {
            let mut traces = traces(3, &["a", "b", "c"]);
            assert_eq!(name(traces.close(closed)).as_deref(), Some(closed));
            assert_eq!(name(traces.close(closed)), None);
            assert!(traces.enter("d", NOW).is_new);
            let rest: Vec<_> = std::iter::from_fn(|| name(traces.close_oldest())).collect();
            let expected: Vec<_> = ["a", "b", "c", "d"]
                .into_iter()
                .filter(|n| *n != closed)
                .collect();
            assert_eq!(rest, expected);
        }
    }

    #[test]
    fn idle_traces_are_closed_oldest_first() {
        let mut traces = traces(3, &["a", "b"]);
        let second = Duration::from_secs(1);
        assert!(!traces.enter("a", second).is_new);
        assert_eq!(name(traces.close_unused_since(NOW)).as_deref(), Some("b"));
        assert_eq!(name(traces.close_unused_since(NOW)), None);
        assert_eq!(
            name(traces.close_unused_since(second)).as_deref(),
            Some("a")
        );
    }

    #[test]
    fn all_are_closed_and_the_wanted_ones_given() {
        let mut traces = traces(3, &["a", "b", "c"]);
        traces.enter("b", NOW).trace.state.records = 1;
        traces.enter("a", NOW).trace.state.records = 1;
        let mut given = Vec::new();
        traces.close_all(
            |state| state.records == 1,
            |trace| given.push(trace.name.to_string()),
        );
        assert_eq!(given, ["b", "a"]);
        assert_eq!((traces.len(), name(traces.close("c"))), (0, None));
        assert_eq!(name(traces.close_oldest()), None);
        assert!(traces.enter("c", NOW).is_new);
        assert_eq!(traces.len(), 1);
    }

    #[test]
    fn the_queue_stays_as_small_as_what_is_open() {
        let mut traces = traces(3, &["stays"]);
        for number in 0..10_000 {
            let name = number.to_string();
            traces.enter(&name, NOW);
            assert!(traces.close(&name).is_some());
        }
        assert!(traces.queue.len() < 200, "{}", traces.queue.len());
        assert_eq!(name(traces.close_oldest()).as_deref(), Some("stays"));
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let (a, b) = ("é".repeat(400) + "a", "é".repeat(400) + "b");
        let mut traces = traces(3, &[&a, &b]);
        assert_ne!(kept_name(&a), kept_name(&b));
        assert!(kept_name(&a).len() <= MAX_NAME_BYTES);
        assert!(traces.enter(&a, NOW).trace.name.starts_with("éé"));
        assert!(!traces.enter(&a, NOW).is_new);
    }
}
