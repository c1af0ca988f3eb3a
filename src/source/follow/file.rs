//! One followed content: an open file, how far it was read, and what is known of its end.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Instant;

use memchr::memchr_iter;
use tracecheck::framing::Position;

use super::compressed::{Content, is_archive_name};
use crate::source::block::Block;
use crate::source::fingerprint::Fingerprint;
use crate::source::identity::{FileId, Generation};
use crate::source::message::{Follows, SavedFile, SourceId};

/// How much is read to count lines or to find a line's end.
const COUNT_BYTES: usize = 1 << 20;

/// As much of a file's beginning as is looked at before it is opened: what [`Fingerprint`] needs.
const HEAD_BYTES: usize = 256;

#[derive(Debug)]
pub(super) struct Followed {
    pub(super) id: SourceId,
    /// The path under which it was first found.
    pub(super) name: PathBuf,
    pub(super) file: File,
    /// Of `file`, which may be a copy of the one that the content was in first.
    pub(super) file_id: FileId,
    pub(super) beginning: Beginning,
    pub(super) stage: Stage,
    /// How far it was read, or is to be skipped before it is opened; `fingerprint` is of what is
    /// before.
    pub(super) position: u64,
    pub(super) fingerprint: Fingerprint,
    /// The size as it was seen last.
    pub(super) size: u64,
    /// When `size` grew last.
    pub(super) grown_at: Instant,
    pub(super) found_at: Instant,
    /// Since when it has been read to its end.
    pub(super) ended_at: Option<Instant>,
    /// Since when none of the followed paths leads to it.
    pub(super) nameless_since: Option<Instant>,
    /// What has to be read before it, and is looked at before each read.
    pub(super) predecessor: Option<SourceId>,
    /// Whether it is the copy of a content that is no longer where it was: it does not grow.
    pub(super) is_copy: bool,
    /// The content that it may be a copy of, as its name says.
    pub(super) original: Option<SourceId>,
    /// When its predecessor was seen to be read to its end first.
    pub(super) predecessor_ended_at: Option<Instant>,
    /// Whether it has no more than the first bytes of what may be compressed content.
    pub(super) is_undecided: bool,
    /// Whether reading failed, which was said.
    pub(super) is_broken: bool,
    pub(super) is_ready: bool,
    /// Whether something may have changed since it was looked at.
    pub(super) is_stirred: bool,
}

/// Where a content comes from; this decides where it is read from and which generation it is.
#[derive(Debug)]
pub(super) enum Beginning {
    /// Nothing of it was read before.
    New(Follows),
    /// It was read up to some position by another process.
    Saved(Box<SavedFile>),
    /// It took the place of another content in the same file.
    Truncated { before: Generation, old_head: u64 },
    /// Lines are counted first, up to `target`, and what is before that is not read.
    Skipping {
        target: u64,
        lines: u64,
        generation: Generation,
        follows: Follows,
    },
}

impl Beginning {
    /// Goes on at `target`, up to where this process has read it before.
    pub(super) fn going_on_at(target: u64, generation: Generation) -> Beginning {
        Beginning::Skipping {
            target,
            lines: 0,
            generation,
            follows: Follows::Itself,
        }
    }

    /// Goes on with the line that had not ended where this process has left the file.
    pub(super) fn going_on_at_line(left: &SavedFile, file: &File) -> Beginning {
        let position = left.position.read_from();
        // What cannot be read now is told when it is skipped.
        let target = last_line_start(file, position).unwrap_or(position);
        Beginning::going_on_at(target, left.generation)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The engine has not heard of it.
    Waiting,
    Open(Generation),
}

/// What a look before opening has shown.
#[derive(Debug)]
pub(super) enum Look {
    /// It can be opened.
    Opens(Opening),
    /// Something has to come first.
    Waits,
    Compressed(&'static str),
}

/// What the engine is to be told of a content that can be opened.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) generation: Generation,
    pub(super) follows: Follows,
    pub(super) start: Position,
}

/// What a read has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    Bytes(usize),
    End,
    /// What was read before is no longer there.
    Overwritten,
    /// It turned out to be compressed.
    Compressed(&'static str),
}

impl Followed {
    pub(super) fn new(
        file: File,
        file_id: FileId,
        name: PathBuf,
        beginning: Beginning,
        now: Instant,
    ) -> Followed {
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        let (position, fingerprint) = match &beginning {
            Beginning::Saved(saved) => (saved.position.read_from(), saved.fingerprint.clone()),
            _ => (0, Fingerprint::default()),
        };
        Followed {
            id: SourceId::next(),
            name,
            file,
            file_id,
            beginning,
            stage: Stage::Waiting,
            position,
            fingerprint,
            size,
            grown_at: now,
            found_at: now,
            ended_at: None,
            nameless_since: None,
            predecessor: None,
            is_copy: false,
            original: None,
            predecessor_ended_at: None,
            is_undecided: false,
            is_broken: false,
            is_ready: false,
            is_stirred: true,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.stage != Stage::Waiting
    }

    /// Whether a part of it has to be skipped before it can be opened.
    pub(super) fn is_skipping(&self) -> bool {
        match self.beginning {
            Beginning::Skipping { target, .. } => !self.is_open() && self.position < target,
            _ => false,
        }
    }

    /// The generation, as far as it is known before it is opened.
    pub(super) fn generation(&self) -> Generation {
        match (self.stage, &self.beginning) {
            (Stage::Open(generation), _) => generation,
            (_, Beginning::Saved(saved)) => saved.generation,
            (_, Beginning::Truncated { before, .. }) => *before,
            (_, Beginning::Skipping { generation, .. }) => *generation,
            _ => Generation::first(self.file_id),
        }
    }

    /// How much is known to be unread.
    pub(super) fn unread(&self) -> u64 {
        self.size.saturating_sub(self.position)
    }

    /// Whether the last line that was read has not ended.
    pub(super) fn is_within_line(&self) -> bool {
        self.fingerprint
            .tail()
            .last()
            .is_some_and(|byte| *byte != b'\n')
    }

    /// How long the file is now; as long as before if it cannot be told.
    pub(super) fn length(&self) -> u64 {
        self.file
            .metadata()
            .map_or(self.size, |metadata| metadata.len())
    }

    /// Whether what was read is still there.
    pub(super) fn holds_what_was_read(&self) -> io::Result<bool> {
        self.fingerprint.matches(&self.file, self.position)
    }

    /// Looks whether it can be opened. `is_last_chance` says that nothing more is waited for.
    pub(super) fn look(&self, is_last_chance: bool) -> io::Result<Look> {
        match &self.beginning {
            Beginning::Saved(saved) => Ok(Look::Opens(Opening {
                generation: saved.generation,
                follows: Follows::Itself,
                start: saved.position,
            })),
            Beginning::Skipping { target, .. } if self.position < *target => Ok(Look::Waits),
            Beginning::Skipping {
                target,
                lines,
                generation,
                follows,
            } => Ok(Look::Opens(Opening {
                generation: *generation,
                follows: *follows,
                start: Position {
                    line: lines + 1,
                    offset: *target,
                    ..Position::START
                },
            })),
            Beginning::New(follows) => {
                let head = self.head()?;
                self.look_at(&head, is_last_chance, |_| {
                    let is_archive_to_be = head.is_empty() && is_archive_name(&self.name);
                    let generation = Generation::first(self.file_id);
                    (!is_archive_to_be || is_last_chance).then_some((generation, *follows))
                })
            }
            Beginning::Truncated { before, old_head } => {
                let head = self.head()?;
                self.look_at(&head, is_last_chance, |new| {
                    let is_enough = new.has_head() || is_last_chance && !head.is_empty();
                    let generation = before.after_truncation(*old_head, new.head_hash());
                    is_enough.then_some((generation, Follows::Truncated))
                })
            }
        }
    }

    fn look_at(
        &self,
        head: &[u8],
        is_last_chance: bool,
        decide: impl FnOnce(&Fingerprint) -> Option<(Generation, Follows)>,
    ) -> io::Result<Look> {
        match Content::of(head) {
            Content::Compressed(format) => return Ok(Look::Compressed(format)),
            Content::Undecided if !is_last_chance => return Ok(Look::Waits),
            Content::Undecided | Content::Plain => {}
        }
        let mut fingerprint = Fingerprint::default();
        fingerprint.push(head);
        Ok(
            decide(&fingerprint).map_or(Look::Waits, |(generation, follows)| {
                Look::Opens(Opening {
                    generation,
                    follows,
                    start: Position::START,
                })
            }),
        )
    }

    /// Reads on.
    pub(super) fn read(&mut self, block: &mut Block, max_bytes: usize) -> io::Result<Read> {
        let tail = self.fingerprint.tail();
        match block.fill_at(&self.file, self.position, tail, max_bytes)? {
            None => Ok(Read::Overwritten),
            Some(0) => Ok(Read::End),
            Some(length) => {
                if self.position == 0 {
                    let content = Content::of(block.bytes());
                    // In a file that has lost its name they are what they are.
                    self.is_undecided =
                        content == Content::Undecided && self.nameless_since.is_none();
                    if let Content::Compressed(format) = content {
                        return Ok(Read::Compressed(format));
                    }
                    if self.is_undecided {
                        return Ok(Read::End);
                    }
                }
                self.fingerprint.push(block.bytes());
                self.position += length as u64;
                Ok(Read::Bytes(length))
            }
        }
    }

    /// Skips and counts some of what is to be skipped.
    pub(super) fn skip(&mut self, block: &mut Block) -> io::Result<Read> {
        let Beginning::Skipping { target, lines, .. } = &mut self.beginning else {
            return Ok(Read::End);
        };
        let rest = usize::try_from(*target - self.position).unwrap_or(usize::MAX);
        let tail = self.fingerprint.tail();
        match block.fill_at(&self.file, self.position, tail, rest.min(COUNT_BYTES))? {
            None | Some(0) => Ok(Read::Overwritten),
            Some(length) => {
                *lines += memchr_iter(b'\n', block.bytes()).count() as u64;
                self.fingerprint.push(block.bytes());
                self.position += length as u64;
                Ok(Read::Bytes(length))
            }
        }
    }

    /// Takes in how long the file is. Returns how many bytes, known to be unread, were cut off.
    pub(super) fn note_length(&mut self, length: u64, now: Instant) -> u64 {
        if length > self.size {
            self.grown_at = now;
            self.ended_at = None;
        }
        let end = length.max(self.position);
        let cut = self.size.saturating_sub(end);
        self.size = end;
        cut
    }

    /// The first bytes.
    pub(super) fn head(&self) -> io::Result<Vec<u8>> {
        let mut head = vec![0; HEAD_BYTES];
        let length = loop {
            match self.file.read_at(&mut head, 0) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                length => break length?,
            }
        };
        head.truncate(length);
        Ok(head)
    }
}

/// Where the last line that has not ended begins in the first `length` bytes of a file.
pub(super) fn last_line_start(file: &File, length: u64) -> io::Result<u64> {
    let mut buffer = vec![0; COUNT_BYTES];
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(COUNT_BYTES as u64);
        let piece = &mut buffer[..(end - start) as usize];
        file.read_exact_at(piece, start)?;
        if let Some(at) = memchr::memrchr(b'\n', piece) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_the_last_line_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let long = "x".repeat(2 * COUNT_BYTES);
        for (content, start) in [
            (String::new(), 0),
            ("abc".to_owned(), 0),
            ("a\nb".to_owned(), 2),
            ("a\nb\n".to_owned(), 4),
            (format!("a\n{long}"), 2),
            (long.clone(), 0),
        ] {
            std::fs::write(&path, &content).unwrap();
            let file = File::open(&path).unwrap();
            assert_eq!(last_line_start(&file, content.len() as u64).unwrap(), start);
        }
    }
}
