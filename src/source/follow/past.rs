//! Files that were let go: one may come back under a followed path, and is not read twice.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};

use tracecheck::framing::Position;

use super::file::{Beginning, Followed};
use super::rotation::fits;
use crate::source::fingerprint::Fingerprint;
use crate::source::identity::{FileId, Generation};
use crate::source::message::SavedFile;

/// How many files are remembered that were read to their end. Few rotations keep as many, and each
/// takes some 600 bytes.
const MAX_ENDED: usize = 1000;

/// How many files are remembered that were left as they were no longer wanted. That many are rarely
/// followed at once.
const MAX_LEFT: usize = 50_000;

#[derive(Debug, Default)]
pub(super) struct Past {
    ended: Files,
    left: Files,
}

/// Files that are remembered, as far as there are not too many.
#[derive(Debug, Default)]
struct Files {
    /// Each with its place in the order.
    files: HashMap<FileId, (u64, Remembered)>,
    /// The oldest first.
    order: BTreeMap<u64, FileId>,
    next: u64,
}

#[derive(Debug)]
struct Remembered {
    name: PathBuf,
    generation: Generation,
    position: u64,
    fingerprint: Fingerprint,
}

impl Past {
    /// Remembers a file that was read to its end.
    pub(super) fn remember_ended(&mut self, file: &Followed) {
        self.ended.add(file, MAX_ENDED);
    }

    /// Remembers a file that nobody wants to be read any further, for now.
    pub(super) fn remember_left(&mut self, file: &Followed) {
        self.left.add(file, MAX_LEFT);
    }

    pub(super) fn contains(&self, id: FileId) -> bool {
        self.ended.files.contains_key(&id) || self.left.files.contains_key(&id)
    }

    /// How a file that has come back is to be read on; `None` if nobody remembers it.
    pub(super) fn beginning(&mut self, id: FileId, file: &File) -> Option<Beginning> {
        if let Some(left) = self.left.remove(id) {
            return Some(left.beginning(file, true));
        }
        Some(self.ended.remove(id)?.beginning(file, false))
    }

    /// Forgets the files that were left under paths that are wanted again, and gives them. Their
    /// positions know no lines.
    pub(super) fn take_left(&mut self, is_wanted: impl Fn(&Path) -> bool) -> Vec<SavedFile> {
        let wanted: Vec<FileId> = self
            .left
            .files
            .iter()
            .filter_map(|(id, (_, left))| is_wanted(&left.name).then_some(*id))
            .collect();
        let left = wanted.into_iter().filter_map(|id| self.left.remove(id));
        left.map(Remembered::into_saved).collect()
    }
}

impl Files {
    fn add(&mut self, file: &Followed, max: usize) {
        let remembered = Remembered {
            name: file.name.clone(),
            generation: file.generation(),
            position: file.position,
            fingerprint: file.fingerprint.clone(),
        };
        self.remove(file.file_id);
        self.files.insert(file.file_id, (self.next, remembered));
        self.order.insert(self.next, file.file_id);
        self.next += 1;
        while self.order.len() > max {
            if let Some((_, oldest)) = self.order.pop_first() {
                self.files.remove(&oldest);
            }
        }
    }

    fn remove(&mut self, id: FileId) -> Option<Remembered> {
        let (place, remembered) = self.files.remove(&id)?;
        self.order.remove(&place);
        Some(remembered)
    }
}

impl Remembered {
    /// `was_left` says that a line which had not ended when it was read last is still to be verified.
    fn beginning(self, file: &File, was_left: bool) -> Beginning {
        let saved = self.into_saved();
        match (fits(&saved, file), was_left) {
            (true, true) => Beginning::going_on_at_line(&saved, file),
            (true, false) => Beginning::going_on_at(saved.position.offset, saved.generation),
            (false, _) => Beginning::Truncated {
                before: saved.generation,
                old_head: saved.fingerprint.head_hash(),
            },
        }
    }

    fn into_saved(self) -> SavedFile {
        SavedFile {
            path: self.name,
            generation: self.generation,
            fingerprint: self.fingerprint,
            position: Position {
                offset: self.position,
                ..Position::START
            },
        }
    }
}
