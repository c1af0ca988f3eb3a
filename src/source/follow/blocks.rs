//! Buffers that go to the engine and come back.

use std::sync::mpsc::{Receiver, Sender, channel};

use crate::source::block::Block;
use crate::source::message::{Chunk, Lent};

/// Up to this, what was read is copied, and the block can be used again at once.
const SMALL_BYTES: usize = 16 << 10;

/// Blocks to read into. There are never more than what the channel to the engine holds and two,
/// as nothing is read before it has taken the last.
#[derive(Debug)]
pub(super) struct Blocks {
    spare: Option<Block>,
    used: Sender<Block>,
    empty: Receiver<Block>,
}

impl Blocks {
    pub(super) fn new() -> Blocks {
        let (used, empty) = channel();
        Blocks {
            spare: None,
            used,
            empty,
        }
    }

    pub(super) fn take(&mut self) -> Block {
        let spare = self.spare.take();
        spare.unwrap_or_else(|| self.empty.try_recv().unwrap_or_else(|_| Block::new()))
    }

    pub(super) fn keep(&mut self, block: Block) {
        self.spare = Some(block);
    }

    /// What was read, on its way to the engine.
    pub(super) fn chunk(&mut self, block: Block) -> Chunk {
        match block.bytes().len() <= SMALL_BYTES {
            true => {
                let bytes = block.bytes().to_vec();
                self.keep(block);
                Chunk::Bytes(bytes)
            }
            false => Chunk::Block(Lent::new(block, self.used.clone())),
        }
    }
}
