//! A directory, what follows files in it, and what was heard of them.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tracecheck::event::SourceState;
use tracecheck::framing::Position;

use crate::config::Input;
use crate::source::follow::FollowOptions;
use crate::source::follow::following::Following;
use crate::source::follow::progress::FollowProgress;
use crate::source::follow::watch::Watcher;
use crate::source::message::{Follows, Message, Opened, SavedFile, SourceId};

/// Turns that nothing of a test's size can use up.
const MAX_TURNS: usize = 200_000;

pub(super) struct Harness {
    pub(super) dir: TempDir,
    pub(super) following: Following,
    pub(super) now: Instant,
    pub(super) heard: Vec<Heard>,
    by_id: HashMap<SourceId, usize>,
    pub(super) failures: Vec<String>,
}

/// What was heard of one source.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) name: String,
    pub(super) opened: Opened,
    pub(super) bytes: Vec<u8>,
    pub(super) end: Option<(SourceState, String)>,
}

/// How the files are followed.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) keyed: bool,
    pub(super) from_end: bool,
    pub(super) watched: bool,
}

pub(super) const KEYED: How = How {
    keyed: true,
    from_end: false,
    watched: true,
};
pub(super) const UNKEYED: How = How {
    keyed: false,
    ..KEYED
};
pub(super) const POLLED: How = How {
    watched: false,
    ..KEYED
};

impl Harness {
    pub(super) fn new(inputs: &[&str], how: How) -> Harness {
        Harness::in_dir(tempfile::tempdir().unwrap(), inputs, how, Vec::new())
    }

    pub(super) fn in_dir(
        dir: TempDir,
        inputs: &[&str],
        how: How,
        saved: Vec<SavedFile>,
    ) -> Harness {
        let options = FollowOptions {
            inputs: of(dir.path(), inputs),
            from_end: how.from_end,
            keyed: how.keyed,
            spans_lines: false,
            saved,
        };
        let watcher = Watcher::new().filter(|_| how.watched);
        let progress = Arc::new(FollowProgress::new());
        Harness {
            following: Following::new(options, progress, watcher),
            dir,
            now: Instant::now(),
            heard: Vec::new(),
            by_id: HashMap::new(),
            failures: Vec::new(),
        }
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).unwrap();
    }

    pub(super) fn append(&self, name: &str, text: &str) {
        append(&self.at(name), text);
    }

    pub(super) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.at(from), self.at(to)).unwrap();
    }

    /// Waits until the clock that gives files their time of birth has gone on.
    pub(super) fn tick(&self) {
        let born = || {
            let file = tempfile::tempfile_in(self.dir.path()).unwrap();
            file.metadata().unwrap().created().unwrap()
        };
        let before = born();
        while born() == before {
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    pub(super) fn remove(&self, name: &str) {
        fs::remove_file(self.at(name)).unwrap();
    }

    pub(super) fn set_inputs(&mut self, inputs: &[&str]) {
        let inputs = of(self.dir.path(), inputs);
        self.following.set_inputs(inputs);
    }

    /// Takes turns at this moment until there is nothing to do, without a scan that is not due.
    pub(super) fn turn(&mut self) {
        for _ in 0..MAX_TURNS {
            self.following.turn(self.now);
            let is_idle = !self.following.is_busy() && self.following.outbox.is_empty();
            self.hear();
            if is_idle {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    /// Looks at everything now.
    pub(super) fn look(&mut self) {
        self.following.want_scan();
        self.turn();
    }

    /// Lets time go by in small steps.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = self
                .following
                .due(self.now)
                .max(self.now + Duration::from_millis(1))
                .min(end);
            self.turn();
        }
    }

    /// Lets so much time go by that everything that will end has ended.
    pub(super) fn settle(&mut self) {
        self.pass(Duration::from_secs(6));
    }

    /// What a checkpoint would hold: of each open source, up to its last complete line.
    pub(super) fn saved(&self) -> Vec<SavedFile> {
        let open = self.heard.iter().filter(|heard| heard.end.is_none());
        open.map(Heard::saved).collect()
    }

    /// Starts again in the same directory.
    pub(super) fn restart(self, inputs: &[&str], how: How) -> Harness {
        let saved = self.saved();
        Harness::in_dir(self.dir, inputs, how, saved)
    }

    /// Name, content and end of each source.
    pub(super) fn story(&self) -> Vec<(&str, &str, Option<SourceState>)> {
        self.heard
            .iter()
            .map(|heard| {
                let end = heard.end.as_ref().map(|(state, _)| *state);
                (&*heard.name, heard.text(), end)
            })
            .collect()
    }

    pub(super) fn follows(&self) -> Vec<Follows> {
        self.heard
            .iter()
            .map(|heard| heard.opened.follows)
            .collect()
    }

    /// All contents of sources of this name, in the order of their opening.
    pub(super) fn text(&self, name: &str) -> String {
        let of_name = self.heard.iter().filter(|heard| heard.name == name);
        of_name.map(Heard::text).collect()
    }

    fn hear(&mut self) {
        while let Some(message) = self.following.outbox.pop_front() {
            match message {
                Message::Opened(opened) => {
                    self.by_id.insert(opened.id, self.heard.len());
                    let name = Path::new(&*opened.source.name);
                    let name = name.strip_prefix(self.dir.path()).unwrap_or(name);
                    self.heard.push(Heard {
                        name: name.to_str().unwrap().to_owned(),
                        opened: *opened,
                        bytes: Vec::new(),
                        end: None,
                    });
                }
                Message::Bytes {
                    id, chunk, read, ..
                } => {
                    assert_eq!(chunk.bytes().len() as u64, read);
                    let heard = self.open(id);
                    heard.bytes.extend_from_slice(chunk.bytes());
                }
                Message::Ended { id, state, message } => {
                    self.open(id).end = Some((state, message));
                }
                Message::Failed {
                    id,
                    error,
                    is_final,
                    ..
                } => {
                    assert_eq!(id.is_some(), is_final);
                    self.failures.push(error);
                }
                Message::Gone(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn open(&mut self, id: SourceId) -> &mut Heard {
        let heard = &mut self.heard[self.by_id[&id]];
        assert!(heard.end.is_none(), "{heard:?}");
        heard
    }
}

impl Heard {
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    pub(super) fn message(&self) -> &str {
        self.end.as_ref().map_or("", |(_, message)| message)
    }

    fn saved(&self) -> SavedFile {
        let start = self.opened.file.clone().unwrap();
        assert_eq!(start.position, self.opened.start);
        let end = memchr::memrchr(b'\n', &self.bytes).map_or(0, |at| at + 1);
        let lines = memchr::memchr_iter(b'\n', &self.bytes[..end]).count();
        let mut fingerprint = start.fingerprint;
        fingerprint.push(&self.bytes[..end]);
        SavedFile {
            fingerprint,
            position: Position {
                line: start.position.line + lines as u64,
                offset: start.position.offset + end as u64,
                ..Position::START
            },
            ..start
        }
    }
}

pub(super) fn append(path: &Path, text: &str) {
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn of(dir: &Path, inputs: &[&str]) -> Vec<Input> {
    inputs
        .iter()
        .map(|name| Input::Path(dir.join(name)))
        .collect()
}

/// What is warned of in this thread as long as the guard lives.
pub(super) fn warnings() -> (tracing::subscriber::DefaultGuard, Warnings) {
    let warnings = Warnings::default();
    let writer = warnings.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    (tracing::subscriber::set_default(subscriber), warnings)
}

#[derive(Clone, Default)]
pub(super) struct Warnings(Arc<std::sync::Mutex<Vec<u8>>>);

impl Warnings {
    pub(super) fn taken(&self) -> String {
        let mut bytes = self.0.lock().unwrap();
        String::from_utf8(std::mem::take(&mut bytes)).unwrap()
    }
}

impl Write for Warnings {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
