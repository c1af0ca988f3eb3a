//! What becomes of a content that was overwritten: what is left of it may be in a copy, and what
//! took its place is another content.

use std::fs::File;
use std::time::Instant;

use tracecheck::event::SourceState;

use super::file::{Beginning, Followed};
use super::following::{Following, shown};
use super::rotation::{self, Sibling};
use super::scan::covers;
use crate::source::identity::{FileId, Generation};
use crate::source::message::{Follows, Message, SourceId};

impl Following {
    /// What was read of a file is no longer in it: what is there now is another content.
    pub(super) fn overwritten(&mut self, id: SourceId, now: Instant) {
        let Some(old) = self.files.get(&id) else {
            return;
        };
        if old.is_copy {
            return self.end_with_loss(id, "truncated, and its copy was overwritten");
        }
        let was_open = old.is_open();
        let copy = match was_open {
            true => self.find_copy(id),
            false => None,
        };
        let unread = self.files[&id].unread();
        let Some(old) = self.remove_file(id) else {
            return;
        };
        let old_head = old.fingerprint.head_hash();
        let beginning = match old.beginning {
            Beginning::Skipping {
                follows: Follows::Nothing,
                ..
            } if !was_open => Beginning::New(Follows::Nothing),
            _ => Beginning::Truncated {
                before: old.generation(),
                old_head,
            },
        };
        let name = old.name.clone();
        let nameless_since = old.nameless_since;
        let (live, live_id, predecessor) = match copy {
            Some(copy) => self.go_on_in(old, copy, now),
            None => {
                if was_open {
                    self.tell_overwritten(&old, unread);
                }
                (old.file, old.file_id, old.predecessor)
            }
        };
        let mut new = Followed::new(live, live_id, name.clone(), beginning, now);
        new.predecessor = predecessor;
        new.nameless_since = nameless_since;
        if let Some(name) = self.names.get_mut(&name)
            && name.last == Some(id)
        {
            name.last = Some(new.id);
        }
        self.add(new, now);
    }

    fn tell_overwritten(&mut self, old: &Followed, unread: u64) {
        let message = match unread {
            0 => "truncated or overwritten; read from its beginning".to_owned(),
            _ => format!(
                "truncated or overwritten: {unread} bytes that had been written were never read"
            ),
        };
        if unread > 0 {
            tracing::warn!("{}: {message}", shown(&old.name));
        }
        self.outbox.push_back(Message::Ended {
            id: old.id,
            state: SourceState::Truncated,
            message,
        });
    }

    /// Reads what is left of a content from its copy. Returns the file that it was in.
    fn go_on_in(
        &mut self,
        mut old: Followed,
        copy: Sibling,
        now: Instant,
    ) -> (File, FileId, Option<SourceId>) {
        tracing::debug!("{}: goes on in {}", shown(&old.name), shown(&copy.path));
        // It may have been found as a file of its own already.
        if let Some(waiting) = self.by_file.get(&copy.id).copied() {
            self.remove_file(waiting);
        }
        self.keep_copy(&copy, now);
        let id = old.id;
        let live = std::mem::replace(&mut old.file, copy.file);
        let live_id = std::mem::replace(&mut old.file_id, copy.id);
        old.is_copy = true;
        old.is_ready = false;
        old.ended_at = None;
        old.nameless_since = Some(now);
        old.size = old.position;
        old.note_length(old.length(), now);
        self.add(old, now);
        self.make_ready(id);
        (live, live_id, Some(id))
    }

    fn find_copy(&self, id: SourceId) -> Option<Sibling> {
        let file = &self.files[&id];
        let is_excluded = |other| {
            let known = self.by_file.get(&other).and_then(|id| self.files.get(id));
            other == file.file_id || known.is_some_and(Followed::is_open)
        };
        rotation::find_copy(
            &self.places(&file.name),
            &file.fingerprint,
            file.position,
            is_excluded,
        )
    }

    /// A copy is read for its original. If it is matched too, it is followed from its end, so that
    /// it is known as read also after a restart.
    pub(super) fn keep_copy(&mut self, copy: &Sibling, now: Instant) {
        let file = match covers(&self.inputs, &copy.path) {
            true => copy.file.try_clone(),
            false => return self.pass_over(copy.id, &copy.file, true),
        };
        let (Ok(file), Ok(metadata)) = (file, copy.file.metadata()) else {
            return self.pass_over(copy.id, &copy.file, true);
        };
        self.passed_over.remove(&copy.id);
        let beginning = Beginning::Skipping {
            target: metadata.len(),
            lines: 0,
            generation: Generation::first(copy.id),
            follows: Follows::Nothing,
        };
        let file = Followed::new(file, copy.id, copy.path.clone(), beginning, now);
        self.add_under(&copy.path, file, now);
    }

    pub(super) fn end_with_loss(&mut self, id: SourceId, reason: &str) {
        let Some(file) = self.files.get(&id) else {
            return;
        };
        let unread = file.unread();
        let name = shown(&file.name);
        let message = format!("{reason}: {unread} bytes that had been written were never read");
        tracing::warn!("{name}: {message}");
        self.end(id, SourceState::Truncated, message);
    }
}
