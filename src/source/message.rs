//! What the sources tell the engine, in one channel: whatever reads the world sends these and knows
//! nothing else of it.
//!
//! Of each source come, in this order: [`Message::Opened`], any number of [`Message::Bytes`], and one
//! of [`Message::Ended`] and [`Message::Failed`]. Whoever reads holds a sender of the channel for as
//! long as something may come from it: where the last one is gone, everything was read.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Instant;

use tracecheck::Source;
use tracecheck::event::SourceState;
use tracecheck::framing::Position;

use super::block::Block;
use super::fingerprint::Fingerprint;
use super::identity::{FileId, Generation};

/// Tells a source from all others that the process opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SourceId(u64);

impl SourceId {
    /// One that no source has yet.
    pub(crate) fn next() -> SourceId {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        SourceId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Where a source's bytes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SourceKind {
    /// A regular file, or what else is opened by a path.
    File,
    /// Standard input.
    Stdin,
    /// A TCP connection.
    Tcp,
    /// A connection on a Unix socket.
    Unix,
}

impl SourceKind {
    pub(crate) const ALL: [SourceKind; 4] = [
        SourceKind::File,
        SourceKind::Stdin,
        SourceKind::Tcp,
        SourceKind::Unix,
    ];

    /// The kind as metrics call it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            SourceKind::File => "file",
            SourceKind::Stdin => "stdin",
            SourceKind::Tcp => "tcp",
            SourceKind::Unix => "unix",
        }
    }
}

/// A source whose bytes are to come.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) id: SourceId,
    pub(crate) source: Source,
    pub(crate) kind: SourceKind,
    /// Where its first bytes stand in it.
    pub(crate) start: Position,
    /// What a checkpoint needs to find the file again; none of what cannot be read twice.
    pub(crate) file: Option<SavedFile>,
    pub(crate) follows: Follows,
}

/// What came before a source under the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    /// Nothing, as far as anybody knows.
    Nothing,
    /// Its own beginning, before the process was started.
    Itself,
    /// Another file, which was moved away or deleted.
    Rotated,
    /// What was in the same file before it was truncated or overwritten.
    Truncated,
}

/// A followed file as a checkpoint keeps it: how to find it again, and where to go on.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct SavedFile {
    /// The path as given or matched.
    pub(crate) path: PathBuf,
    pub(crate) generation: Generation,
    /// Of the bytes before [`Position::read_from`].
    pub(crate) fingerprint: Fingerprint,
    pub(crate) position: Position,
}

/// What the engine hears.
#[derive(Debug)]
pub(crate) enum Message {
    /// A source was opened; what follows under its id is its content.
    Opened(Box<Opened>),
    /// The next bytes of the source, decompressed if it is an archive.
    Bytes {
        id: SourceId,
        chunk: Chunk,
        /// How many bytes had to be read for them.
        read: u64,
        /// When the last of them was read.
        arrived: Instant,
    },
    /// The source ended in good order: its last line counts without an LF. `state` and `message`
    /// are what is told of it.
    Ended {
        id: SourceId,
        state: SourceState,
        message: String,
    },
    /// The source could not be opened (then without an id), or not be read any further.
    Failed {
        id: Option<SourceId>,
        name: String,
        error: String,
        /// Whether it counts for the exit status: of a file that is waited for it does not.
        is_final: bool,
    },
    /// A saved file that is nowhere to be found any more.
    Gone(FileId),
    /// Time goes on. Comes several times a second where traces are followed.
    Tick,
    /// Somebody wants the configuration to be read again.
    Reload,
    /// Somebody wants the run to end.
    Stop,
}

/// Bytes on their way to the engine.
#[derive(Debug)]
pub(crate) enum Chunk {
    /// A large buffer that is used again and again.
    Block(Lent),
    /// A small one.
    Bytes(Vec<u8>),
}

impl Chunk {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Chunk::Block(lent) => lent.block.as_ref().map_or(&[], Block::bytes),
            Chunk::Bytes(bytes) => bytes,
        }
    }
}

/// A block that goes back to its reader when it is dropped.
#[derive(Debug)]
pub(crate) struct Lent {
    block: Option<Block>,
    home: Sender<Block>,
}

impl Lent {
    pub(crate) fn new(block: Block, home: Sender<Block>) -> Self {
        Lent {
            block: Some(block),
            home,
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            // The reader may be gone, and then needs no more blocks.
            let _ = self.home.send(block);
        }
    }
}
