//! Going on where another process has stopped, or where this one has left a file that was not wanted
//! for a while.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::time::Instant;

use super::file::{Beginning, Followed};
use super::following::{Following, shown};
use super::rotation::{self, Sibling, fits, is_on_other_device, open_regular};
use super::scan::{Found, Sighting, covers};
use crate::source::identity::FileId;
use crate::source::message::{Message, SavedFile};

/// A content that was read in part.
struct Part {
    saved: SavedFile,
    /// Whether it was this process that read it: then the engine has heard nothing of a line that has
    /// not ended, and the number of the line is not known.
    is_ours: bool,
}

impl Part {
    fn beginning(self, file: &File) -> Beginning {
        match self.is_ours {
            true => Beginning::going_on_at_line(&self.saved, file),
            false => Beginning::Saved(Box::new(self.saved)),
        }
    }
}

impl Following {
    /// Takes up the saved files, wherever they are now.
    pub(super) fn resume(&mut self, found: &Found, now: Instant) {
        let saved = std::mem::take(&mut self.saved);
        self.take_up(saved, false, found, now);
    }

    /// Takes up the files that were left and are wanted again, wherever they are now.
    pub(super) fn return_to_left(&mut self, found: &Found, now: Instant) {
        let left = self.past.take_left(|path| covers(&self.inputs, path));
        self.take_up(left, true, found, now);
    }

    fn take_up(&mut self, mut saved: Vec<SavedFile>, is_ours: bool, found: &Found, now: Instant) {
        saved.sort_by(|a, b| {
            let key = |saved: &SavedFile| saved.generation.file.born_nanos;
            (&a.path, key(a)).cmp(&(&b.path, key(b)))
        });
        let mut by_id: HashMap<FileId, &Sighting> = HashMap::new();
        for sighting in &found.files {
            by_id.entry(sighting.id).or_insert(sighting);
        }
        for saved in saved {
            self.progress.beat();
            self.resume_file(Part { saved, is_ours }, &by_id, now);
        }
    }

    fn resume_file(&mut self, part: Part, by_id: &HashMap<FileId, &Sighting>, now: Instant) {
        let saved = &part.saved;
        let wanted = saved.generation.file;
        let sighting = by_id.get(&wanted).copied().or_else(|| {
            by_id
                .values()
                .copied()
                .find(|sighting| is_on_other_device(sighting.id, wanted))
        });
        if let Some(sighting) = sighting
            && let Ok((file, metadata)) = open_regular(&sighting.path)
            && !self.by_file.contains_key(&sighting.id)
            && FileId::of(&metadata) == sighting.id
        {
            return self.go_on_or_begin(part, file, sighting.id, now);
        }
        if !covers(&self.inputs, &saved.path) {
            return;
        }
        self.note_saved(saved);
        let places = resume_places(saved);
        if let Some(Sibling { path, file, id }) = rotation::find_moved(saved, &places)
            && !self.by_file.contains_key(&id)
        {
            tracing::info!("{}: was moved to {}", shown(&saved.path), shown(&path));
            return self.go_on_or_begin(part, file, id, now);
        }
        let (name, read) = (shown(&saved.path), saved.position.read_from());
        if !self.go_on_in_copy(part, &places, now) {
            tracing::warn!(
                "{name}: the file that was read up to byte {read} is gone; what else it held was never read"
            );
            self.outbox.push_back(Message::Gone(wanted));
        }
    }

    fn go_on_or_begin(&mut self, part: Part, file: File, id: FileId, now: Instant) {
        match fits(&part.saved, &file) {
            true => self.go_on(part, file, id, now),
            false => self.begin_anew(part, file, id, now),
        }
    }

    /// The path has a history, whether or not its file is found.
    fn note_saved(&mut self, saved: &SavedFile) {
        let name = self.names.entry(saved.path.clone()).or_default();
        name.file = Some(saved.generation.file);
        name.born = Some(saved.generation.file.born_nanos);
    }

    fn go_on(&mut self, part: Part, file: File, id: FileId, now: Instant) {
        self.note_saved(&part.saved);
        let path = part.saved.path.clone();
        self.names.entry(path.clone()).or_default().file = Some(id);
        let beginning = part.beginning(&file);
        let file = Followed::new(file, id, path.clone(), beginning, now);
        self.add_under(&path, file, now);
    }

    /// The file holds something else: what was in it may go on in a copy.
    fn begin_anew(&mut self, part: Part, file: File, id: FileId, now: Instant) {
        let saved = part.saved.clone();
        let path = saved.path.clone();
        let places = resume_places(&saved);
        let has_copy = self.go_on_in_copy(part, &places, now);
        self.note_saved(&saved);
        self.names.entry(path.clone()).or_default().file = Some(id);
        let (name, read) = (shown(&path), saved.position.read_from());
        if !has_copy {
            tracing::warn!(
                "{name}: does not hold what was read of it up to byte {read} (truncated or overwritten): read from its beginning"
            );
        }
        let beginning = Beginning::Truncated {
            before: saved.generation,
            old_head: saved.fingerprint.head_hash(),
        };
        let file = Followed::new(file, id, path.clone(), beginning, now);
        self.add_under(&path, file, now);
    }

    fn go_on_in_copy(&mut self, part: Part, places: &[PathBuf], now: Instant) -> bool {
        let saved = &part.saved;
        let is_excluded = |id| id == saved.generation.file || self.by_file.contains_key(&id);
        let position = saved.position.read_from();
        let Some(copy) = rotation::find_copy(places, &saved.fingerprint, position, is_excluded)
        else {
            return false;
        };
        let (name, path) = (shown(&saved.path), shown(&copy.path));
        tracing::info!("{name}: what is left of it is read from its copy {path}");
        self.keep_copy(&copy, now);
        let path = part.saved.path.clone();
        let beginning = part.beginning(&copy.file);
        let mut file = Followed::new(copy.file, copy.id, path.clone(), beginning, now);
        file.is_copy = true;
        self.add_under(&path, file, now);
        true
    }
}

fn resume_places(saved: &SavedFile) -> Vec<PathBuf> {
    let target = std::fs::canonicalize(&saved.path).ok();
    std::iter::once(saved.path.clone()).chain(target).collect()
}
