//! Files that were let go: one may come back under a followed path, and is not read twice.

use std::collections::{HashMap, VecDeque};

use super::file::{Beginning, Followed};
use crate::source::fingerprint::Fingerprint;
use crate::source::identity::{FileId, Generation};
use crate::source::message::Follows;

/// How many files are remembered. Few rotations keep as many, and each takes some 600 bytes.
const MAX_FILES: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Past {
    files: HashMap<FileId, Remembered>,
    /// The oldest first; each file once.
    order: VecDeque<FileId>,
}

#[derive(Debug)]
struct Remembered {
    generation: Generation,
    position: u64,
    fingerprint: Fingerprint,
}

impl Past {
    /// Remembers how far a file was read.
    pub(super) fn remember(&mut self, file: &Followed) {
        let remembered = Remembered {
            generation: file.generation(),
            position: file.position,
            fingerprint: file.fingerprint.clone(),
        };
        if self.files.insert(file.file_id, remembered).is_none() {
            self.order.push_back(file.file_id);
        }
        while self.order.len() > MAX_FILES {
            if let Some(oldest) = self.order.pop_front() {
                self.files.remove(&oldest);
            }
        }
    }

    pub(super) fn contains(&self, id: FileId) -> bool {
        self.files.contains_key(&id)
    }

    /// How a file that has come back is to be read on; `None` if nobody remembers it.
    pub(super) fn beginning(&mut self, id: FileId, file: &std::fs::File) -> Option<Beginning> {
        let remembered = self.files.remove(&id)?;
        self.order.retain(|other| *other != id);
        let Remembered {
            generation,
            position,
            fingerprint,
        } = remembered;
        let is_long_enough = file
            .metadata()
            .is_ok_and(|metadata| metadata.len() >= position);
        let fits = is_long_enough && fingerprint.matches(file, position).unwrap_or(false);
        Some(match fits {
            true => Beginning::Skipping {
                target: position,
                lines: 0,
                generation,
                follows: Follows::Itself,
            },
            false => Beginning::Truncated {
                before: generation,
                old_head: fingerprint.head_hash(),
            },
        })
    }
}
