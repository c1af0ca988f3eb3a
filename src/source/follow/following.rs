//! All followed files, and what is done with them in one turn. It is told the time, does not wait
//! for anything, and leaves what it has to say in an outbox.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::FollowOptions;
use super::blocks::Blocks;
use super::file::{Followed, Read};
use super::lag::Lag;
use super::names::Name;
use super::past::Past;
use super::progress::FollowProgress;
use super::scan::covers;
use super::watch::{Event, Happened, Watcher};
use crate::config::Input;
use crate::emit::sanitise::visible;
use crate::source::identity::FileId;
use crate::source::message::{Message, SavedFile, SourceId};

/// How much of a file is read in a turn, so that a huge backlog keeps no other file waiting.
const TURN_BYTES: usize = 256 << 10;

/// Longest name in a diagnostic; no path can be longer.
const MAX_NAME_CHARS: usize = 4096;

#[derive(Debug)]
pub(super) struct Following {
    pub(super) inputs: Vec<Input>,
    pub(super) from_end: bool,
    pub(super) keyed: bool,
    pub(super) spans_lines: bool,
    /// What is to be gone on with; empty after the first scan.
    pub(super) saved: Vec<SavedFile>,
    pub(super) progress: Arc<FollowProgress>,
    /// What the engine is to be told, in this order. Nothing is read as long as there is any.
    pub(super) outbox: VecDeque<Message>,
    pub(super) watcher: Option<Watcher>,
    /// The contents that are open or wait to be.
    pub(super) files: HashMap<SourceId, Followed>,
    /// The newest content of each file.
    pub(super) by_file: HashMap<FileId, SourceId>,
    /// The paths that are or were found.
    pub(super) names: HashMap<PathBuf, Name>,
    /// Where symbolic links lead to, and from which path.
    pub(super) targets: HashMap<PathBuf, PathBuf>,
    /// Files that are not read.
    pub(super) passed_over: HashMap<FileId, PassedOver>,
    pub(super) past: Past,
    /// What cannot be opened or looked at, which was said.
    pub(super) failing: BTreeSet<PathBuf>,
    pub(super) lacks_descriptors: bool,
    /// How many files may be open.
    pub(super) max_files: usize,
    /// Missing paths of which was said that they are waited for.
    pub(super) awaited: BTreeSet<PathBuf>,
    pub(super) scans: Scans,
    /// Files with something to read or to skip, in turn.
    ready: VecDeque<SourceId>,
    /// Files that wait to be opened, or have lost their names.
    pub(super) restless: BTreeSet<SourceId>,
    /// When one of the restless has to be looked at.
    pub(super) wake_at: Option<Instant>,
    lag: Lag,
    blocks: Blocks,
}

/// Why a file is not read.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassedOver {
    /// The length that it had.
    pub(super) length: u64,
    /// A copy may turn out to be more than that when it grows. Anything else is compressed.
    pub(super) is_copy: bool,
}

/// When the paths were looked at, and when they have to be again.
#[derive(Debug, Default)]
pub(super) struct Scans {
    pub(super) count: u64,
    /// When the last began, and how long it took.
    pub(super) last: Option<(Instant, Duration)>,
    /// Whether something has happened that only a scan can explain.
    pub(super) wanted: bool,
    /// Whether events were lost since the last.
    pub(super) has_overflowed: bool,
    /// Whether some directory is not watched.
    pub(super) is_blind: bool,
    /// Whether the inputs have changed since the last.
    pub(super) has_new_inputs: bool,
    /// Whether this one could not open all files.
    pub(super) lacked_descriptors: bool,
}

/// Between scans without an event. Events are not sent for what other machines write.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);

/// The same where a directory could not be watched.
const BLIND_SCAN_INTERVAL: Duration = Duration::from_millis(250);

/// From one scan to the next that an event asks for, so that a busy directory does not keep the
/// thread from reading.
const MIN_SCAN_INTERVAL: Duration = Duration::from_millis(20);

/// A scan takes at most such a part of the time: of all without an event, and with events.
const MAX_IDLE_SHARE: u32 = 20;
const MAX_BUSY_SHARE: u32 = 5;

impl Scans {
    fn due(&self, now: Instant) -> Instant {
        let Some((last, took)) = self.last.filter(|_| !self.has_new_inputs) else {
            return now;
        };
        let interval = match (self.wanted, self.is_blind) {
            (true, _) => MIN_SCAN_INTERVAL.max(took * MAX_BUSY_SHARE),
            (false, true) => BLIND_SCAN_INTERVAL.max(took * MAX_IDLE_SHARE),
            (false, false) => SCAN_INTERVAL.max(took * MAX_IDLE_SHARE),
        };
        last + interval
    }
}

impl Following {
    pub(super) fn new(
        options: FollowOptions,
        progress: Arc<FollowProgress>,
        watcher: Option<Watcher>,
    ) -> Following {
        Following {
            inputs: options.inputs,
            from_end: options.from_end,
            keyed: options.keyed,
            spans_lines: options.spans_lines,
            saved: options.saved,
            progress,
            outbox: VecDeque::new(),
            watcher,
            files: HashMap::new(),
            by_file: HashMap::new(),
            names: HashMap::new(),
            targets: HashMap::new(),
            passed_over: HashMap::new(),
            past: Past::default(),
            failing: BTreeSet::new(),
            lacks_descriptors: false,
            max_files: usize::MAX,
            awaited: BTreeSet::new(),
            scans: Scans::default(),
            ready: VecDeque::new(),
            restless: BTreeSet::new(),
            wake_at: None,
            lag: Lag::default(),
            blocks: Blocks::new(),
        }
    }

    /// Does what is to be done at `now`, but reads at most once.
    pub(super) fn turn(&mut self, now: Instant) {
        self.progress.beat();
        self.take_events();
        if self.scans.due(now) <= now {
            self.scan(now);
        }
        self.advance(now);
        if self.outbox.is_empty() && self.read_once(now) {
            self.advance(now);
        }
        self.progress
            .set(self.files.len(), self.lag.bytes(), self.lag.since());
    }

    /// Whether there is something to read at once.
    pub(super) fn is_busy(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When the next turn is due, if nothing happens before.
    pub(super) fn due(&self, now: Instant) -> Instant {
        let scan = self.scans.due(now);
        self.wake_at.map_or(scan, |wake| wake.min(scan))
    }

    /// Follows other inputs from now on.
    pub(super) fn set_inputs(&mut self, inputs: Vec<Input>) {
        self.inputs = inputs;
        self.scans.has_new_inputs = true;
        self.awaited.clear();
    }

    /// Scans in the next turn.
    pub(super) fn want_scan(&mut self) {
        self.scans.last = None;
    }

    /// Takes in what the kernel says.
    pub(super) fn take_events(&mut self) {
        let Some(mut watcher) = self.watcher.take() else {
            return;
        };
        // Whether the last file that was moved away, in the move of this number, was a followed one.
        let mut moved = (0, false);
        watcher.take(|event| match event {
            Event::Overflow => {
                self.scans.wanted = true;
                self.scans.has_overflowed = true;
            }
            Event::Directory => self.scans.wanted = true,
            Event::Name {
                paths,
                name,
                happened,
            } => {
                if let Happened::MovedAway(number) = happened {
                    let is_ours = paths.iter().any(|path| self.is_ours(&path.join(name)));
                    moved = (number, is_ours);
                }
                let is_known =
                    matches!(happened, Happened::MovedHere(number) if moved == (number, true));
                let mut is_named = false;
                for path in paths {
                    is_named |= self.note(&path.join(name), happened, is_known);
                }
                match happened {
                    Happened::Content | Happened::Closed if is_named => {}
                    // It may be the new name of a file that was moved away.
                    Happened::Content | Happened::Closed => self.stir_nameless(),
                    Happened::Attributes if is_named && self.failing.is_empty() => {}
                    _ => self.scans.wanted = true,
                }
            }
        });
        self.watcher = Some(watcher);
    }

    /// Notes what happened to a path. Returns whether it is a followed one.
    fn note(&mut self, path: &Path, happened: Happened, is_known: bool) -> bool {
        let path = self.targets.get(path).map_or(path, PathBuf::as_path);
        let Some(name) = self.names.get_mut(path) else {
            return false;
        };
        name.arrivals.note(happened, is_known);
        if let Some(id) = name.file.and_then(|file| self.by_file.get(&file).copied()) {
            self.stir(id);
        }
        true
    }

    fn is_ours(&self, path: &Path) -> bool {
        self.names.contains_key(path) || covers(&self.inputs, path)
    }

    fn stir_nameless(&mut self) {
        let nameless: Vec<_> = self.restless.iter().copied().collect();
        nameless.into_iter().for_each(|id| self.stir(id));
    }

    /// Has the file looked at soon.
    pub(super) fn stir(&mut self, id: SourceId) {
        let Some(file) = self.files.get_mut(&id) else {
            return;
        };
        file.is_stirred = true;
        if file.is_open() || file.is_skipping() {
            self.make_ready(id);
        }
    }

    pub(super) fn make_ready(&mut self, id: SourceId) {
        if let Some(file) = self.files.get_mut(&id)
            && !file.is_ready
        {
            file.is_ready = true;
            self.ready.push_back(id);
        }
    }

    /// Reads once, from the file whose turn it is. Returns whether there was one.
    fn read_once(&mut self, now: Instant) -> bool {
        let Some(id) = self.next_ready() else {
            return false;
        };
        if !self.files[&id].is_open() {
            self.skip_some(id, now);
            return true;
        }
        // What is in it by now was written before whatever comes to its predecessors after the look
        // at them: no line overtakes one that was written before it in an older file.
        let mut limit = TURN_BYTES;
        if self.files[&id].predecessor.is_some() {
            let file = &self.files[&id];
            let unread = file.length().saturating_sub(file.position);
            limit = limit.min(usize::try_from(unread).unwrap_or(limit));
            if let Some(earlier) = self.unread_predecessor(id, now) {
                self.make_ready(id);
                self.read_some(earlier, TURN_BYTES, now);
                return true;
            }
        }
        self.read_some(id, limit, now);
        true
    }

    fn next_ready(&mut self) -> Option<SourceId> {
        while let Some(id) = self.ready.pop_front() {
            if let Some(file) = self.files.get_mut(&id) {
                file.is_ready = false;
                return Some(id);
            }
        }
        None
    }

    /// The oldest of the contents before this one that has something to read.
    fn unread_predecessor(&mut self, id: SourceId, now: Instant) -> Option<SourceId> {
        self.drop_predecessor(id, now);
        let mut earliest = None;
        let mut at = self.files[&id].predecessor;
        while let Some(file) = at.and_then(|id| self.files.get(&id)) {
            if file.is_open() && !file.is_broken && file.length() > file.position {
                earliest = Some(file.id);
            }
            at = file.predecessor;
        }
        earliest
    }

    fn read_some(&mut self, id: SourceId, max_bytes: usize, now: Instant) {
        let mut block = self.blocks.take();
        let file = self.files.get_mut(&id).expect("what is read is there");
        let read = file.read(&mut block, max_bytes);
        match read {
            Ok(Read::Bytes(length)) => {
                file.is_broken = false;
                if file.position >= file.size {
                    file.note_length(file.position, now);
                }
                let chunk = self.blocks.chunk(block);
                self.outbox.push_back(Message::Bytes {
                    id,
                    chunk,
                    read: length as u64,
                    arrived: Instant::now(),
                });
                match length < max_bytes {
                    true => self.note_end(id, now),
                    false => self.make_ready(id),
                }
                self.note_lag(id, now);
                return;
            }
            Ok(Read::End) => {
                file.is_broken = false;
                self.note_end(id, now);
                self.note_lag(id, now);
            }
            Ok(Read::Overwritten) => self.overwritten(id, now),
            Ok(Read::Compressed(format)) => self.refuse_compressed(id, format),
            Err(error) => self.note_broken(id, &error),
        }
        self.blocks.keep(block);
    }

    fn note_end(&mut self, id: SourceId, now: Instant) {
        let file = self.files.get_mut(&id).expect("what is read is there");
        file.ended_at.get_or_insert(now);
        let length = file.length();
        if length >= file.position {
            let cut = file.note_length(length, now);
            // It has grown since.
            let has_more = length > file.position && !file.is_undecided;
            if cut > 0 {
                let name = shown(&file.name);
                tracing::warn!("{name}: {cut} bytes were cut off before they were read");
            }
            if has_more {
                self.make_ready(id);
            }
        } else {
            self.make_ready(id);
        }
    }

    fn skip_some(&mut self, id: SourceId, now: Instant) {
        let mut block = self.blocks.take();
        let file = self.files.get_mut(&id).expect("what is skipped is there");
        match file.skip(&mut block) {
            Ok(Read::Bytes(_)) if file.is_skipping() => self.make_ready(id),
            // It can be opened now.
            Ok(Read::Bytes(_)) => file.is_stirred = true,
            Ok(Read::Overwritten) => self.overwritten(id, now),
            Ok(Read::End | Read::Compressed(_)) => {}
            Err(error) => self.note_broken(id, &error),
        }
        self.blocks.keep(block);
    }

    /// Takes in how far a file is behind.
    pub(super) fn note_lag(&mut self, id: SourceId, now: Instant) {
        let unread = self.files.get(&id).map_or(0, Followed::unread);
        self.lag.set(id, unread, now);
    }

    pub(super) fn forget_lag(&mut self, id: SourceId) {
        self.lag.forget(id);
    }
}

/// A path in a diagnostic.
pub(super) fn shown(path: &Path) -> String {
    visible(&path.display().to_string(), MAX_NAME_CHARS).to_string()
}
