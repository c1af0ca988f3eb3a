//! The reading thread.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
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
use super::identity::identity;
use super::message::{Chunk, Follows, Lent, Message, Opened, SourceId};

/// Blocks that are read ahead of the verifier, which has one more in hand.
const BLOCKS_AHEAD: usize = 2;

/// Starts reading the sources in their order.
pub(crate) fn read_all(origins: Vec<Origin>, archives: Archives, messages: mpsc::Sender<Message>) {
    thread::Builder::new()
        .name("reader".to_owned())
        .spawn(move || {
            let mut reader = Reader::new(archives, 1 + BLOCKS_AHEAD);
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
        send(Message::Opened(Box::new(Opened {
            id,
            source: Source {
                name: Arc::from(&*name),
                origin: identity(&metadata, SystemTime::now()),
                is_resumable: matches!(origin, Origin::File(_)) && metadata.is_file(),
            },
            kind: origin.kind(),
            start: Position::START,
            file: None,
            follows: Follows::Nothing,
        })))?;
        let mut content = Content::new(file, self.archives);
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
