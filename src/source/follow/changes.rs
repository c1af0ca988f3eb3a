//! How contents begin and end: when one may be opened, and when one that has lost its names is let
//! go.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracecheck::Source;
use tracecheck::event::SourceState;

use super::file::{Followed, Look, Opening, Stage};
use super::following::{Following, PassedOver, shown};
use crate::source::identity::FileId;
use crate::source::message::{Message, Opened, SavedFile, SourceId, SourceKind};

/// For how long a file that has lost its names has to stay read to its end before it is let go. A
/// writer may go on in it until it is told to open the new one.
const GRACE: Duration = Duration::from_secs(2);

/// For how long the same has to hold before the next file is begun, where the whole file is one
/// trace.
const LINGER: Duration = Duration::from_millis(500);

/// The longest that a file is waited for which has been read to its end, but grows again and again.
const MAX_LINGER: Duration = Duration::from_secs(10);

/// Compressed files and copies that are remembered, even though no path leads to them.
const MAX_PASSED_OVER: usize = 10_000;

/// Whether a content may be opened.
enum Gate {
    Open,
    OpensAt(Instant),
    Shut,
}

impl Following {
    /// Opens what can be opened and lets go what is done with.
    pub(super) fn advance(&mut self, now: Instant) {
        self.wake_at = None;
        let restless: Vec<_> = self.restless.iter().copied().collect();
        for id in restless {
            match self.files.get(&id).map(Followed::is_open) {
                None => {
                    self.restless.remove(&id);
                }
                Some(false) => self.try_open(id, now),
                Some(true) => self.try_end(id, now),
            }
        }
    }

    /// Takes up a content that the engine is to hear of.
    pub(super) fn add(&mut self, file: Followed, now: Instant) {
        let id = file.id;
        if !file.is_copy {
            self.by_file.insert(file.file_id, id);
        }
        self.restless.insert(id);
        let is_skipping = file.is_skipping();
        self.files.insert(id, file);
        if is_skipping {
            self.make_ready(id);
        }
        self.note_lag(id, now);
    }

    pub(super) fn wake(&mut self, at: Instant) {
        self.wake_at = Some(self.wake_at.map_or(at, |wake| wake.min(at)));
    }

    fn try_open(&mut self, id: SourceId, now: Instant) {
        match self.gate(id, now) {
            Gate::Open => {}
            Gate::OpensAt(at) => return self.wake(at),
            Gate::Shut => return,
        }
        let file = self.files.get_mut(&id).expect("the caller has it");
        let nameless_since = file.nameless_since;
        let is_timed = nameless_since.is_some() || file.original.is_some();
        if !std::mem::take(&mut file.is_stirred) && !is_timed {
            return;
        }
        if file.original.is_some() && self.is_kept_from_opening(id, now) {
            return;
        }
        let file = &self.files[&id];
        match file.look(nameless_since.is_some()) {
            Ok(Look::Opens(opening)) => self.open(id, opening),
            Ok(Look::Compressed(format)) => self.refuse_compressed(id, format),
            Ok(Look::Waits) => match nameless_since {
                Some(since) if now >= since + GRACE && !file.is_skipping() => {
                    self.remove_file(id);
                }
                Some(since) => {
                    self.wake(since + GRACE);
                    self.note_unopened_end(id, now);
                }
                None => self.note_unopened_end(id, now),
            },
            Err(error) => self.note_broken(id, &error),
        }
    }

    /// There is nothing to open yet, and nothing that the next file would have to wait for.
    fn note_unopened_end(&mut self, id: SourceId, now: Instant) {
        if let Some(file) = self.files.get_mut(&id)
            && !file.is_skipping()
        {
            file.ended_at.get_or_insert(now);
        }
    }

    fn gate(&mut self, id: SourceId, now: Instant) -> Gate {
        let file = &self.files[&id];
        let Some(before) = file.predecessor.and_then(|before| self.files.get(&before)) else {
            return Gate::Open;
        };
        if before.is_copy {
            return Gate::Shut;
        }
        if before.is_broken {
            return Gate::Open;
        }
        let waited_since = file.predecessor_ended_at;
        if waited_since.is_some_and(|since| now >= since + MAX_LINGER) {
            return Gate::Open;
        }
        if before.ended_at.is_none() {
            return Gate::Shut;
        }
        // The end of a line that has not ended may be all that follows.
        let is_within_line = match before.is_open() {
            true => before.is_within_line(),
            false => before.unread() > 0,
        };
        let wait = match (is_within_line || self.spans_lines, self.keyed) {
            (true, _) => GRACE,
            (false, true) => Duration::ZERO,
            (false, false) => LINGER,
        };
        let at = file.found_at.max(before.grown_at) + wait;
        let file = self.files.get_mut(&id).expect("it was there just now");
        file.predecessor_ended_at.get_or_insert(now);
        match now >= at {
            true => Gate::Open,
            false => Gate::OpensAt(at),
        }
    }

    fn open(&mut self, id: SourceId, opening: Opening) {
        let Opening {
            generation,
            follows,
            start,
        } = opening;
        let file = self.files.get_mut(&id).expect("the caller has it");
        file.stage = Stage::Open(generation);
        file.ended_at = None;
        debug_assert_eq!(file.position, start.read_from());
        self.outbox.push_back(Message::Opened(Box::new(Opened {
            id,
            source: Source {
                name: Arc::from(file.name.display().to_string()),
                origin: generation.origin,
                is_resumable: true,
            },
            kind: SourceKind::File,
            start,
            file: Some(SavedFile {
                path: file.name.clone(),
                generation,
                fingerprint: file.fingerprint.clone(),
                position: start,
            }),
            follows,
        })));
        if file.nameless_since.is_none() && !file.is_copy {
            self.restless.remove(&id);
        }
        self.make_ready(id);
    }

    fn try_end(&mut self, id: SourceId, now: Instant) {
        let file = &self.files[&id];
        if file.is_copy {
            if file.is_broken {
                self.end_with_loss(id, "its copy could not be read");
            } else if file.ended_at.is_some() {
                let message = "truncated; what was left of it was read from its copy";
                self.end(id, SourceState::Truncated, message.to_owned());
            }
            return;
        }
        let Some(since) = file.nameless_since else {
            self.restless.remove(&id);
            return;
        };
        let ended = match (file.ended_at, file.is_broken) {
            (_, true) => since,
            (Some(ended), _) => ended,
            (None, _) => return,
        };
        let at = since.max(ended) + GRACE;
        if now < at {
            return self.wake(at);
        }
        if file.is_broken {
            return self.give_up(id);
        }
        if file.length() != file.position && !file.is_undecided {
            self.make_ready(id);
            return;
        }
        let name = self.names.get(&file.name);
        let has_successor = name.and_then(|name| name.file).is_some();
        let (state, message) = match has_successor {
            true => (
                SourceState::Rotated,
                "another file has its name; read to its end",
            ),
            false => (SourceState::Removed, "its name is gone; read to its end"),
        };
        self.end(id, state, message.to_owned());
    }

    /// Ends a file that cannot be read and cannot be found again.
    fn give_up(&mut self, id: SourceId) {
        let Some(file) = self.remove_file(id) else {
            return;
        };
        self.outbox.push_back(Message::Failed {
            id: Some(id),
            name: file.name.display().to_string(),
            error: "its name is gone, and the rest of it could not be read".to_owned(),
            is_final: true,
        });
    }

    /// Lets a file go.
    pub(super) fn end(&mut self, id: SourceId, state: SourceState, message: String) {
        let Some(file) = self.remove_file(id) else {
            return;
        };
        if !file.is_open() {
            return;
        }
        if !file.is_copy {
            self.past.remember_ended(&file);
        }
        self.outbox.push_back(Message::Ended { id, state, message });
    }

    /// Leaves a file that is not wanted any more, and goes on with it if it is wanted again.
    pub(super) fn leave(&mut self, id: SourceId) {
        let Some(file) = self.remove_file(id) else {
            return;
        };
        if !file.is_open() {
            return;
        }
        self.past.remember_left(&file);
        self.outbox.push_back(Message::Ended {
            id,
            state: SourceState::Closed,
            message: "no longer followed".to_owned(),
        });
    }

    pub(super) fn remove_file(&mut self, id: SourceId) -> Option<Followed> {
        let file = self.files.remove(&id)?;
        if self.by_file.get(&file.file_id) == Some(&id) {
            self.by_file.remove(&file.file_id);
        }
        self.restless.remove(&id);
        self.forget_lag(id);
        Some(file)
    }

    /// Does not read a file, however often it is found.
    pub(super) fn pass_over(&mut self, id: FileId, file: &File, is_copy: bool) {
        if self.passed_over.len() >= MAX_PASSED_OVER {
            self.passed_over.clear();
        }
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        self.passed_over.insert(id, PassedOver { length, is_copy });
    }

    pub(super) fn pass_over_copy(&mut self, id: SourceId) {
        if let Some(file) = self.remove_file(id) {
            self.pass_over(file.file_id, &file.file, true);
        }
    }

    pub(super) fn refuse_compressed(&mut self, id: SourceId, format: &str) {
        let Some(file) = self.remove_file(id) else {
            return;
        };
        self.pass_over(file.file_id, &file.file, false);
        let message = format!("holds {format} data, which is not followed");
        tracing::warn!("{}: {message}", shown(&file.name));
        if file.is_open() {
            self.outbox.push_back(Message::Ended {
                id,
                state: SourceState::Closed,
                message,
            });
        }
    }

    /// Reading failed; it is tried again with each scan.
    pub(super) fn note_broken(&mut self, id: SourceId, error: &io::Error) {
        let file = self.files.get_mut(&id).expect("what was read is there");
        if !std::mem::replace(&mut file.is_broken, true) {
            let name = file.name.clone();
            self.tell_failure(&name, format!("cannot be read at the moment: {error}"));
        }
    }

    /// The order of a file and the one before it matters no longer once that has been at rest.
    pub(super) fn drop_predecessor(&mut self, id: SourceId, now: Instant) {
        let file = &self.files[&id];
        let Some(before) = file.predecessor.map(|before| self.files.get(&before)) else {
            return;
        };
        let is_at_rest = before.is_none_or(|before| {
            before.ended_at.is_some() && now >= file.found_at.max(before.grown_at) + GRACE
        });
        if is_at_rest && let Some(file) = self.files.get_mut(&id) {
            file.predecessor = None;
        }
    }
}
