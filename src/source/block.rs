//! A buffer that the kernel can fill at full speed.

use std::io::{self, Read};

/// How much is read at once: enough that system calls do not count, little enough to stay in the
/// cache until it is verified.
const BLOCK_BYTES: usize = 1 << 20;

const PAGE_BYTES: usize = 4096;

/// A buffer that begins at a page. Copying into memory a few bytes past a page's start, where
/// large allocations begin, was measured to be several times slower.
#[derive(Debug)]
pub(crate) struct Block {
    storage: Vec<u8>,
    start: usize,
    filled: usize,
}

impl Block {
    pub(crate) fn new() -> Self {
        let storage = vec![0; BLOCK_BYTES + PAGE_BYTES];
        let start = storage.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        Block {
            storage,
            start,
            filled: 0,
        }
    }

    /// Reads once from `source`; what was in the block before is gone.
    pub(crate) fn fill(&mut self, source: &mut impl Read) -> io::Result<usize> {
        self.refill(self.filled, source)
    }

    /// Drops the first `used` bytes and reads once behind the rest, which must not fill the block.
    pub(super) fn refill(&mut self, used: usize, source: &mut impl Read) -> io::Result<usize> {
        let filled = self.start..self.start + self.filled;
        self.storage
            .copy_within(filled.start + used..filled.end, self.start);
        self.filled -= used;
        let room = &mut self.storage[self.start + self.filled..self.start + BLOCK_BYTES];
        debug_assert!(!room.is_empty());
        loop {
            match source.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(length) => {
                    self.filled += length;
                    return Ok(length);
                }
            }
        }
    }

    /// What was read and not dropped.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.filled]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_at_a_page_and_holds_what_was_read() {
        let mut block = Block::new();
        let mut source: &[u8] = b"abc";
        assert_eq!(block.fill(&mut source).unwrap(), 3);
        assert_eq!(block.bytes(), b"abc");
        assert_eq!(block.bytes().as_ptr().align_offset(PAGE_BYTES), 0);
        assert_eq!(block.fill(&mut source).unwrap(), 0);
        assert_eq!(block.bytes(), b"");
    }

    #[test]
    fn keeps_what_was_not_used() {
        let mut block = Block::new();
        block.fill(&mut &b"abc"[..]).unwrap();
        assert_eq!(block.refill(2, &mut &b"def"[..]).unwrap(), 3);
        assert_eq!(block.bytes(), b"cdef");
        assert_eq!(block.refill(0, &mut &b""[..]).unwrap(), 0);
        assert_eq!(block.bytes(), b"cdef");
    }
}
