//! A scan's look at the files themselves: which have lost their names, have grown, or hold something
//! else.

use std::collections::HashMap;
use std::time::Instant;

use super::following::Following;
use super::scan::{Found, covers};
use crate::source::identity::FileId;
use crate::source::message::SourceId;

impl Following {
    /// Looks at every file: whether it still has a name, has grown, or holds something else.
    pub(super) fn look_at_files(&mut self, found: &Found, now: Instant) {
        let named: HashMap<FileId, u64> = found
            .files
            .iter()
            .map(|sighting| (sighting.id, sighting.length))
            .collect();
        let mut ids: Vec<_> = self.files.keys().copied().collect();
        ids.sort();
        for id in ids {
            self.progress.beat();
            self.look_at_file(id, &named, now);
        }
    }

    fn look_at_file(&mut self, id: SourceId, named: &HashMap<FileId, u64>, now: Instant) {
        let Some(file) = self.files.get_mut(&id) else {
            // It turned out to be the copy of one before it.
            return;
        };
        if file.is_copy {
            return;
        }
        let length = match named.get(&file.file_id) {
            Some(length) => {
                file.nameless_since = None;
                *length
            }
            None => {
                file.nameless_since.get_or_insert(now);
                self.restless.insert(id);
                file.length()
            }
        };
        let is_unwanted = file.nameless_since.is_some()
            && self.scans.has_new_inputs
            && !covers(&self.inputs, &file.name);
        if is_unwanted {
            return self.leave(id);
        }
        self.look_at_content(id, length, now);
    }

    fn look_at_content(&mut self, id: SourceId, length: u64, now: Instant) {
        let file = self.files.get_mut(&id).expect("the caller has it");
        file.is_stirred = true;
        if !file.is_open() {
            file.note_length(length, now);
            if file.is_skipping() {
                self.make_ready(id);
            }
        } else if length != file.position || file.is_broken {
            if length > file.size {
                file.note_length(length, now);
            }
            self.make_ready(id);
        } else if !file.holds_what_was_read().unwrap_or(true) {
            self.overwritten(id, now);
        }
        self.note_lag(id, now);
    }
}
