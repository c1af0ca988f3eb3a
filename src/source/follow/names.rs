//! What a scan means: which files are new under a path, which have lost their names, and which
//! generations have come and gone in between.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::arrivals::Arrivals;
use super::file::{Beginning, Followed, last_line_start};
use super::following::{Following, shown};
use super::rotation::{self, open_regular};
use super::scan::{self, Found, Sighting, covers, parent};
use crate::source::identity::{FileId, Generation};
use crate::source::message::{Follows, SourceId};

/// For how long a path that a glob or directory no longer matches is remembered, so that what
/// comes there is known to follow what was there.
const FORGET_AFTER: Duration = Duration::from_secs(600);

/// A path that is or was found.
#[derive(Debug, Default)]
pub(super) struct Name {
    /// What was there at the last scan.
    pub(super) file: Option<FileId>,
    /// The content that was read last under this path.
    pub(super) last: Option<SourceId>,
    /// When its file was born; nothing if there was none yet.
    pub(super) born: Option<u128>,
    pub(super) arrivals: Arrivals,
    /// Where it leads to, if it is a symbolic link.
    target: Option<PathBuf>,
    /// The scan that has found it last.
    scan: u64,
    missing_since: Option<Instant>,
}

/// What is under a path.
#[derive(Debug)]
enum There {
    /// It is followed already, or not to be.
    Known(FileId),
    /// It cannot be opened for now.
    Shut(FileId),
    Opened(FileId, fs::File),
}

impl There {
    fn id(&self) -> FileId {
        match self {
            There::Known(id) | There::Shut(id) | There::Opened(id, _) => *id,
        }
    }
}

impl Following {
    /// Looks at all paths and all files.
    pub(super) fn scan(&mut self, now: Instant) {
        let begun = Instant::now();
        self.scans.wanted = false;
        let mut found = scan::find(&self.inputs, &self.progress);
        if self.watch(&found) {
            // What came before the watch is found now, what comes later is told.
            found = scan::find(&self.inputs, &self.progress);
        }
        self.take_found(&found, now);
        // Links may have led to new places.
        self.scans.wanted |= self.watch(&found);
        self.scans.has_overflowed = false;
        self.scans.has_new_inputs = false;
        self.scans.last = Some((now, begun.elapsed()));
    }

    /// Takes in what was found, which may have changed again since.
    pub(super) fn take_found(&mut self, found: &Found, now: Instant) {
        let is_first = self.scans.count == 0;
        // Whatever was found has been told by now.
        self.take_events();
        self.scans.count += 1;
        self.mark(found);
        if is_first {
            self.resume(found, now);
        } else if self.scans.has_new_inputs {
            self.return_to_left(found, now);
        }
        let mut failing = self.note_failures(found);
        self.take_changes(found, is_first, &mut failing, now);
        self.note_recoveries(failing);
        self.look_at_files(found, now);
        self.await_missing(found);
        self.forget_names(now);
    }

    /// Watches the directories that matter. Returns whether there are new ones.
    fn watch(&mut self, found: &Found) -> bool {
        let Some(watcher) = &mut self.watcher else {
            self.scans.is_blind = true;
            return false;
        };
        let mut directories: BTreeSet<PathBuf> = found.directories.clone();
        directories.extend(self.targets.keys().map(|target| parent(target)));
        let any_new = watcher.set(&directories);
        self.scans.is_blind = directories.iter().any(|path| !watcher.watches(path));
        any_new
    }

    fn mark(&mut self, found: &Found) {
        for sighting in &found.files {
            let name = self.names.entry(sighting.path.clone()).or_default();
            name.scan = self.scans.count;
            name.missing_since = None;
        }
        // Events tell of literal paths also before there is a file.
        for path in &found.missing {
            self.names.entry(path.clone()).or_default();
        }
        if self.scans.has_overflowed {
            self.names
                .values_mut()
                .for_each(|name| name.arrivals.forget());
        }
    }

    /// Takes in what has changed under the paths: first where there was something before, as the
    /// generations of these may be matched under other names too.
    fn take_changes(
        &mut self,
        found: &Found,
        is_first: bool,
        failing: &mut BTreeSet<PathBuf>,
        now: Instant,
    ) {
        let (old, new): (Vec<_>, Vec<_>) = found
            .files
            .iter()
            .filter(|sighting| self.is_news(sighting))
            .partition(|sighting| self.names[&sighting.path].born.is_some());
        for sighting in old {
            self.take_change(&sighting.path, Some(sighting), is_first, failing, now);
        }
        for path in self.vanished() {
            self.take_change(&path, None, is_first, failing, now);
        }
        for sighting in new {
            self.take_change(&sighting.path, Some(sighting), is_first, failing, now);
        }
        if is_first && self.keyed {
            self.put_in_order(found);
        }
    }

    fn is_news(&self, sighting: &Sighting) -> bool {
        let name = &self.names[&sighting.path];
        name.file != Some(sighting.id)
            || !name.arrivals.is_idle()
            || !self.by_file.contains_key(&sighting.id)
    }

    /// Paths where a file was, or events tell of one.
    fn vanished(&self) -> Vec<PathBuf> {
        let count = self.scans.count;
        let is_gone =
            |name: &Name| name.scan != count && (name.file.is_some() || !name.arrivals.is_idle());
        let gone = self.names.iter().filter(|(_, name)| is_gone(name));
        let mut paths: Vec<_> = gone.map(|(path, _)| path.clone()).collect();
        paths.sort();
        paths
    }

    fn take_change(
        &mut self,
        path: &Path,
        sighting: Option<&Sighting>,
        is_first: bool,
        failing: &mut BTreeSet<PathBuf>,
        now: Instant,
    ) {
        let there = match sighting.map(|sighting| self.take_hold(sighting, failing)) {
            // It is gone again; the next scan tells what is there instead.
            Some(None) => return self.scans.wanted = true,
            there => there.flatten(),
        };
        let file = there.as_ref().map(There::id);
        let name = &self.names[path];
        let has_changed = name.file != file;
        let may_hide = is_first || name.arrivals.may_hide_others(file.is_some());
        let others = match may_hide && has_changed {
            true => self.take_generations_between(path, file, now),
            false => 0,
        };
        if let Some(there) = there {
            self.take_file(path, there, has_changed, is_first, now);
        }
        let name = self.names.get_mut(path).expect("it was there just now");
        name.file = file;
        if file.is_none() {
            name.missing_since.get_or_insert(now);
        }
        let lost = name.arrivals.settle(others, file.is_some(), has_changed);
        if lost > 0 {
            let path = shown(path);
            tracing::warn!(
                "{path}: {lost} files were there and were gone before they could be opened; what they held was never read"
            );
            self.scans.wanted |= !name.arrivals.is_idle();
        }
        // Whether something was lost is known after one more look.
        self.scans.wanted |= !self.names[path].arrivals.is_idle();
    }

    /// Opens what was seen under a path, unless that is done already. Another file may be there by
    /// now: then it is that one, and the one that was seen is a generation before it. `None` if
    /// there is none.
    fn take_hold(&mut self, sighting: &Sighting, failing: &mut BTreeSet<PathBuf>) -> Option<There> {
        if self.by_file.contains_key(&sighting.id) || self.is_passed_over(sighting) {
            return Some(There::Known(sighting.id));
        }
        if self.files.len() >= self.max_files {
            self.note_no_descriptors(&sighting.path, "too many files");
            return Some(There::Shut(sighting.id));
        }
        match open_regular(&sighting.path) {
            Ok((file, metadata)) => Some(There::Opened(FileId::of(&metadata), file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                self.note_unopened(&sighting.path, &error, failing);
                Some(There::Shut(sighting.id))
            }
        }
    }

    /// Whether the file that was seen is not to be read; what has changed since that was decided is
    /// looked at anew.
    fn is_passed_over(&mut self, sighting: &Sighting) -> bool {
        let Some(passed) = self.passed_over.get_mut(&sighting.id) else {
            return false;
        };
        let is_same = match passed.is_copy {
            true => passed.length == sighting.length,
            false => passed.length <= sighting.length,
        };
        passed.length = sighting.length;
        if !is_same {
            self.passed_over.remove(&sighting.id);
        }
        is_same
    }

    /// Takes up the files that were under the path between the last that is known and the one that
    /// is there now.
    fn take_generations_between(&mut self, path: &Path, file: Option<FileId>, now: Instant) -> u32 {
        let name = &self.names[path];
        let Some(after) = name.born.filter(|born| *born > 0) else {
            return 0;
        };
        // Without events a file of the same moment is rather one that has always been beside it.
        let after = after + u128::from(!name.arrivals.are_told());
        let until = file.map_or(u128::MAX, |file| file.born_nanos);
        let is_known = |id| {
            Some(id) == file
                || self.by_file.contains_key(&id)
                || self.passed_over.contains_key(&id)
                || self.past.contains(id)
        };
        let places = self.places(path);
        let siblings = rotation::generations(&places, after..=until, is_known);
        let count = siblings.len() as u32;
        for sibling in siblings {
            tracing::debug!("{}: goes on in {}", shown(path), shown(&sibling.path));
            let beginning = Beginning::New(Follows::Rotated);
            let file = Followed::new(sibling.file, sibling.id, path.to_owned(), beginning, now);
            self.add_under(path, file, now);
        }
        count
    }

    /// Where copies and former generations of a path may be: beside it, and beside what it leads to.
    pub(super) fn places(&self, path: &Path) -> Vec<PathBuf> {
        let target = self.names.get(path).and_then(|name| name.target.clone());
        std::iter::once(path.to_owned()).chain(target).collect()
    }

    /// Takes up the file that is under a path now, unless that is done already.
    fn take_file(
        &mut self,
        path: &Path,
        there: There,
        has_changed: bool,
        is_first: bool,
        now: Instant,
    ) {
        if has_changed {
            self.note_target(path);
        }
        let file = there.id();
        match (self.by_file.get(&file).copied(), there) {
            (Some(known), _) => self.note_last(path, file, known),
            (None, There::Opened(id, file)) => self.take_new(path, file, id, is_first, now),
            (None, There::Known(_) | There::Shut(_)) => {}
        }
    }

    fn take_new(&mut self, path: &Path, file: fs::File, id: FileId, is_first: bool, now: Instant) {
        let has_history = self.names[path].born.is_some();
        let follows = match has_history {
            true => Follows::Rotated,
            false => Follows::Nothing,
        };
        let beginning = match self.past.beginning(id, &file) {
            Some(beginning) => beginning,
            None if is_first && self.from_end && !has_history => from_end(&file, id),
            None => Beginning::New(follows),
        };
        let mut file = Followed::new(file, id, path.to_owned(), beginning, now);
        if !is_first && matches!(file.beginning, Beginning::New(_)) {
            file.original = self.original(path);
        }
        self.add_under(path, file, now);
    }

    /// Takes up a content as the latest under a path.
    pub(super) fn add_under(&mut self, path: &Path, mut file: Followed, now: Instant) {
        let name = self.names.entry(path.to_owned()).or_default();
        file.predecessor = name.last;
        let (file_id, id, is_copy) = (file.file_id, file.id, file.is_copy);
        name.last = Some(id);
        self.add(file, now);
        if !is_copy {
            self.note_last(path, file_id, id);
        }
    }

    fn note_last(&mut self, path: &Path, file: FileId, id: SourceId) {
        let name = self.names.entry(path.to_owned()).or_default();
        name.last = Some(id);
        name.born = Some(file.born_nanos);
    }

    /// Notes where a link leads to, as events come from there.
    fn note_target(&mut self, path: &Path) {
        let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
        let target = match is_link {
            true => fs::canonicalize(path).ok(),
            false => None,
        };
        let name = self.names.entry(path.to_owned()).or_default();
        if let Some(old) = name.target.take() {
            self.targets.remove(&old);
        }
        if let Some(target) = &target {
            self.targets.insert(target.clone(), path.to_owned());
        }
        name.target = target;
    }

    fn await_missing(&mut self, found: &Found) {
        for path in &found.missing {
            let was_there = self.names.get(path).is_some_and(|name| name.born.is_some());
            if !was_there && self.awaited.insert(path.clone()) {
                let name = shown(path);
                // A pattern may well match nothing yet; a path may be misspelt.
                match path.to_string_lossy().contains(['*', '?', '[']) {
                    true => tracing::info!("{name}: nothing there yet; waiting for it"),
                    false => tracing::warn!("{name}: nothing there yet; waiting for it"),
                }
            }
        }
    }

    fn forget_names(&mut self, now: Instant) {
        let is_old = |name: &Name| {
            name.missing_since
                .is_some_and(|since| now.saturating_duration_since(since) >= FORGET_AFTER)
        };
        let (inputs, has_new_inputs) = (&self.inputs, self.scans.has_new_inputs);
        let is_given = |path: &Path| {
            inputs
                .iter()
                .any(|input| matches!(input, crate::config::Input::Path(given) if given == path))
        };
        let targets = &mut self.targets;
        self.names.retain(|path, name| {
            let is_remembered = is_given(path) || !is_old(name);
            let is_kept = is_remembered && (!has_new_inputs || covers(inputs, path));
            if !is_kept && let Some(target) = &name.target {
                targets.remove(target);
            }
            is_kept
        });
    }
}

/// Begins behind the last line of a file that has ended.
fn from_end(file: &fs::File, id: FileId) -> Beginning {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    // What cannot be read now is read from the beginning when it can.
    let target = last_line_start(file, length).unwrap_or(0);
    Beginning::Skipping {
        target,
        lines: 0,
        generation: Generation::first(id),
        follows: Follows::Nothing,
    }
}
