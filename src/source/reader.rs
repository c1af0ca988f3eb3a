//! The reading thread.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::thread;
use std::time::SystemTime;

use tracecheck::Source;

use super::Origin;
use super::block::Block;
use super::content::{Archives, Content};
use super::identity::identity;

/// Blocks that are read ahead of the verifier, which has one more in hand.
const BLOCKS_AHEAD: usize = 2;

/// What a run hears, from the reading thread and from the signals' one.
#[derive(Debug)]
pub(crate) enum Message {
    /// A source was opened; what follows is its content.
    Opened(Source),
    /// The next bytes of the source, decompressed if it is an archive.
    Bytes {
        block: Block,
        /// How many bytes had to be read for them.
        read: u64,
    },
    /// The source ended in good order.
    Ended,
    /// The source could not be opened, or not be read any further.
    Failed { name: String, error: String },
    /// Every source was read.
    Done,
    /// Somebody wants the run to end.
    Stop,
}

/// Starts reading the sources in their order. Gives the way back for blocks that were used.
pub(crate) fn read_all(
    origins: Vec<Origin>,
    archives: Archives,
    messages: SyncSender<Message>,
) -> Sender<Block> {
    let (used, empty) = channel();
    let back = used.clone();
    (0..=BLOCKS_AHEAD).for_each(|_| used.send(Block::new()).expect("the receiver is right here"));
    thread::Builder::new()
        .name("reader".to_owned())
        .spawn(move || {
            let reader = Reader {
                archives,
                messages,
                empty,
                used: back,
            };
            // An error says that nobody listens any more.
            let _ = origins.iter().try_for_each(|origin| reader.read(origin));
            let _ = reader.messages.send(Message::Done);
        })
        .expect("a process can start a second thread");
    used
}

struct Reader {
    archives: Archives,
    messages: SyncSender<Message>,
    empty: Receiver<Block>,
    used: Sender<Block>,
}

/// Nobody listens any more.
struct Unheard;

impl Reader {
    fn read(&self, origin: &Origin) -> Result<(), Unheard> {
        let name = origin.name();
        let (file, metadata) = match open(origin) {
            Ok(opened) => opened,
            Err(error) => {
                return self.send(Message::Failed {
                    name,
                    error: error.to_string(),
                });
            }
        };
        let origin = identity(&metadata, SystemTime::now());
        self.send(Message::Opened(Source {
            name: Arc::from(&*name),
            origin,
        }))?;
        let mut content = Content::new(file, self.archives);
        loop {
            let mut block = self.empty.recv().map_err(|_| Unheard)?;
            let message = match content.fill(&mut block) {
                Ok(length) if length > 0 => {
                    let read = content.newly_read();
                    self.send(Message::Bytes { block, read })?;
                    continue;
                }
                Ok(_) => Message::Ended,
                Err(error) => Message::Failed {
                    name,
                    error: error.to_string(),
                },
            };
            // Nobody else would bring this one back.
            self.used.send(block).map_err(|_| Unheard)?;
            return self.send(message);
        }
    }

    fn send(&self, message: Message) -> Result<(), Unheard> {
        self.messages.send(message).map_err(|_| Unheard)
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
