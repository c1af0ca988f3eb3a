//! The reading thread.

use std::fs::{File, Metadata};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Instant, SystemTime};

use tokio::sync::mpsc;
use tracecheck::Source;
use tracecheck::event::SourceState;
use tracecheck::framing::Position;

use super::Origin;
use super::block::Block;
use super::content::{Archives, Content};
use super::fingerprint::Fingerprint;
use super::identity::{FileId, Generation, identity};
use super::message::{Chunk, Follows, Lent, Message, Opened, SavedFile, SourceId};
use crate::emit::sanitise::visible;

/// Longest name of a source in a diagnostic; no path can be longer.
const MAX_NAME_CHARS: usize = 4096;

/// Blocks that are read ahead of the verifier, which has one more in hand.
const BLOCKS_AHEAD: usize = 2;

/// Starts reading the sources in their order.
///
/// `saved` says where files go on that were read before; none if nobody keeps positions.
pub(crate) fn read_all(
    origins: Vec<Origin>,
    archives: Archives,
    saved: Option<Vec<SavedFile>>,
    messages: mpsc::Sender<Message>,
) {
    thread::Builder::new()
        .name("reader".to_owned())
        .spawn(move || {
            let mut reader = Reader::new(archives, 1 + BLOCKS_AHEAD);
            reader.saved = saved;
            let mut send = |message| messages.blocking_send(message).map_err(|_| Unheard);
            // An error says that nobody listens any more.
            let _ = origins
                .iter()
                .try_for_each(|origin| reader.read(origin, &mut send));
        })
        .expect("a process can start a second thread");
}

/// Reads sources one after the other.
pub(crate) struct Reader {
    archives: Archives,
    saved: Option<Vec<SavedFile>>,
    empty: Receiver<Block>,
    used: Sender<Block>,
}

/// Nobody listens any more.
#[derive(Debug)]
pub(crate) struct Unheard;

impl Reader {
    /// A reader with so many blocks; it waits where all of them are in use.
    pub(crate) fn new(archives: Archives, blocks: usize) -> Reader {
        let (used, empty) = channel();
        (0..blocks).for_each(|_| used.send(Block::new()).expect("the receiver is right here"));
        Reader {
            archives,
            saved: None,
            empty,
            used,
        }
    }

    /// Reads a source to its end, and sends all of it.
    pub(crate) fn read(
        &mut self,
        origin: &Origin,
        send: &mut impl FnMut(Message) -> Result<(), Unheard>,
    ) -> Result<(), Unheard> {
        let name = origin.name();
        let (file, metadata) = match open(origin) {
            Ok(opened) => opened,
            Err(error) => return send(failure(None, name, &error)),
        };
        let id = SourceId::next();
        let start = match self.start(origin, &file, &metadata) {
            Ok(start) => start,
            Err(error) => return send(failure(None, name, &error)),
        };
        let position = start.position();
        send(Message::Opened(Box::new(Opened {
            id,
            source: Source {
                name: Arc::from(&*name),
                origin: start.origin(&metadata),
                is_resumable: start.is_resumable(origin, &metadata, self.saved.is_some()),
            },
            kind: origin.kind(),
            start: position,
            file: start.file,
            follows: start.follows,
        })))?;
        let mut content = match position.read_from() {
            0 => Content::new(file, self.archives),
            _ => Content::plain(file),
        };
        loop {
            let mut block = self.empty.recv().map_err(|_| Unheard)?;
            let filled = content.fill(&mut block);
            let arrived = Instant::now();
            let block = Lent::new(block, self.used.clone());
            match filled {
                Ok(0) => {
                    return send(Message::Ended {
                        id,
                        state: SourceState::Closed,
                        message: "read to its end".to_owned(),
                    });
                }
                Ok(_) => send(Message::Bytes {
                    id,
                    chunk: Chunk::Block(block),
                    read: content.newly_read(),
                    arrived,
                })?,
                Err(error) => return send(failure(Some(id), name, &error)),
            }
        }
    }
}

/// Where a source begins, or goes on.
struct Start {
    file: Option<SavedFile>,
    follows: Follows,
}

impl Start {
    /// Whether what is open in the source may go on in a later run. An archive is read from its start
    /// then, and so its traces are begun anew.
    fn is_resumable(&self, origin: &Origin, metadata: &Metadata, keeps_positions: bool) -> bool {
        match keeps_positions {
            true => self.file.is_some(),
            false => matches!(origin, Origin::File(_)) && metadata.is_file(),
        }
    }

    fn position(&self) -> Position {
        self.file
            .as_ref()
            .map_or(Position::START, |file| file.position)
    }

    fn origin(&self, metadata: &Metadata) -> u128 {
        match &self.file {
            Some(file) => file.generation.origin,
            None => identity(metadata, SystemTime::now()),
        }
    }
}

impl Reader {
    /// Where to begin, with the file put there. Archives are read whole each time.
    fn start(&self, origin: &Origin, mut file: &File, metadata: &Metadata) -> io::Result<Start> {
        let mut start = Start {
            file: None,
            follows: Follows::Nothing,
        };
        if let (Some(saved), Origin::File(path)) = (&self.saved, origin)
            && metadata.is_file()
            && !Content::is_archive(file)?
        {
            (start.file, start.follows) = resume(path, file, metadata, saved)?;
        }
        file.seek(SeekFrom::Start(start.position().read_from()))
            .or_else(|error| match start.file {
                // Streams have no place to go to, and are at their start.
                None => Ok(0),
                Some(_) => Err(error),
            })?;
        Ok(start)
    }
}

/// Where a file goes on, if it still holds what was read of it.
fn resume(
    path: &Path,
    file: &File,
    metadata: &Metadata,
    saved: &[SavedFile],
) -> io::Result<(Option<SavedFile>, Follows)> {
    let id = FileId::of(metadata);
    let known = saved.iter().find(|saved| saved.generation.file == id);
    let first = SavedFile {
        path: path.to_owned(),
        generation: Generation::first(id),
        fingerprint: Fingerprint::default(),
        position: Position::START,
    };
    let Some(known) = known else {
        return Ok((Some(first), Follows::Nothing));
    };
    if known
        .fingerprint
        .matches(file, known.position.read_from())?
    {
        return Ok((Some(known.clone()), Follows::Itself));
    }
    tracing::warn!(
        "{}: it does not hold any more what was read of it; read from its start",
        visible(&path.display().to_string(), MAX_NAME_CHARS)
    );
    let head = Fingerprint::of_head(file)?;
    let generation = known
        .generation
        .after_truncation(known.fingerprint.head_hash(), head.head_hash());
    Ok((
        Some(SavedFile {
            generation,
            ..first
        }),
        Follows::Truncated,
    ))
}

fn failure(id: Option<SourceId>, name: String, error: &io::Error) -> Message {
    Message::Failed {
        id,
        name,
        error: error.to_string(),
        is_final: true,
    }
}

fn open(origin: &Origin) -> io::Result<(File, Metadata)> {
    let file = match origin {
        // Past the buffer of the standard library, which would be one copy more.
        Origin::Stdin => File::from(io::stdin().as_fd().try_clone_to_owned()?),
        Origin::File(path) => File::open(path)?,
    };
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "is a directory",
        ));
    }
    Ok((file, metadata))
}
