//! Which trace a record belongs to: the open traces, their limits and their ends.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;

use crate::verify::state::TraceState;

/// Longest name under which a trace is kept, in bytes: a longer one is cut and told apart by a
/// hash, as a few hundred bytes a trace are promised.
const MAX_NAME_BYTES: usize = 512;

/// The open traces, least recently used first.
#[derive(Debug)]
pub(crate) struct Traces {
    max_open: NonZeroUsize,
    by_name: HashMap<Arc<str>, u32, RandomState>,
    /// Boxed so that growing the table moves no states.
    slots: Vec<Option<Box<Slot>>>,
    free: Vec<u32>,
    /// Both ends of the list of open traces by last use; [`NONE`] where it is empty.
    oldest: u32,
    newest: u32,
}

#[derive(Debug)]
struct Slot {
    trace: Trace,
    last_used: Duration,
    older: u32,
    newer: u32,
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

const NONE: u32 = u32::MAX;

impl Traces {
    pub(crate) fn new(max_open: NonZeroUsize) -> Self {
        Traces {
            max_open,
            by_name: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
        }
    }

    /// How many traces are open.
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// The trace of that name, opened if it was not, and from now on the most recently used. With
    /// it the trace that was given up to make room, if one was.
    pub(crate) fn enter(&mut self, name: &str, now: Duration) -> Entered<'_> {
        let name = kept_name(name);
        let (index, is_new, evicted) = match self.by_name.get(&*name) {
            Some(&index) => (index, false, None),
            None => {
                let (index, evicted) = self.open(&name);
                (index, true, evicted)
            }
        };
        if index != self.newest {
            self.unlink(index);
            self.link_newest(index);
        }
        let slot = self.slot(index);
        slot.last_used = now;
        Entered {
            trace: &mut slot.trace,
            is_new,
            evicted,
        }
    }

    fn open(&mut self, name: &str) -> (u32, Option<Trace>) {
        let is_full = self.len() >= self.max_open.get();
        let evicted = is_full.then(|| self.remove_at(self.oldest));
        let name: Arc<str> = Arc::from(name);
        let trace = Trace {
            name: Arc::clone(&name),
            state: TraceState::default(),
        };
        let last_used = Duration::ZERO;
        let slot = Some(Box::new(Slot {
            trace,
            last_used,
            older: NONE,
            newer: NONE,
        }));
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 traces are open")
            }
        };
        self.link_newest(index);
        self.by_name.insert(name, index);
        (index, evicted)
    }

    /// Closes the trace of that name.
    pub(crate) fn close(&mut self, name: &str) -> Option<Trace> {
        let &index = self.by_name.get(&*kept_name(name))?;
        Some(self.remove_at(index))
    }

    /// Closes the least recently used trace if it was last used at or before `time`.
    pub(crate) fn close_unused_since(&mut self, time: Duration) -> Option<Trace> {
        let oldest = self.slots.get(self.oldest as usize)?.as_ref()?;
        (oldest.last_used <= time).then(|| self.remove_at(self.oldest))
    }

    /// Closes the least recently used trace.
    pub(crate) fn close_oldest(&mut self) -> Option<Trace> {
        (self.oldest != NONE).then(|| self.remove_at(self.oldest))
    }

    fn slot(&mut self, index: u32) -> &mut Slot {
        self.slots[index as usize]
            .as_mut()
            .expect("an open trace has a slot")
    }

    fn remove_at(&mut self, index: u32) -> Trace {
        self.unlink(index);
        let slot = self.slots[index as usize]
            .take()
            .expect("an open trace has a slot");
        self.free.push(index);
        self.by_name.remove(&slot.trace.name);
        slot.trace
    }

    fn unlink(&mut self, index: u32) {
        let (older, newer) = (self.slot(index).older, self.slot(index).newer);
        match older {
            NONE => self.oldest = newer,
            _ => self.slot(older).newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.slot(newer).older = older,
        }
    }

    fn link_newest(&mut self, index: u32) {
        let older = self.newest;
        let slot = self.slot(index);
        (slot.older, slot.newer) = (older, NONE);
        match older {
            NONE => self.oldest = index,
            _ => self.slot(older).newer = index,
        }
        self.newest = index;
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
    fn long_names_are_cut_and_stay_apart() {
        let (a, b) = ("é".repeat(400) + "a", "é".repeat(400) + "b");
        let mut traces = traces(3, &[&a, &b]);
        assert_ne!(kept_name(&a), kept_name(&b));
        assert!(kept_name(&a).len() <= MAX_NAME_BYTES);
        assert!(traces.enter(&a, NOW).trace.name.starts_with("éé"));
        assert!(!traces.enter(&a, NOW).is_new);
    }
}
