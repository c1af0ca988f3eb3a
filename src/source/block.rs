//! A buffer that the kernel can fill at full speed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// How much is read at once: enough that system calls do not count, little enough to stay in the
/// cache until it is verified.
const BLOCK_BYTES: usize = 1 << 20;

const PAGE_BYTES: usize = 4096;

/// A buffer that begins at a page. Copying into memory a few bytes past a page's start, where
/// large allocations begin, was measured to be several times slower. Before it is room for one more
/// page, so that what comes behind a few known bytes of a file still begins there.
#[derive(Debug)]
pub(crate) struct Block {
    storage: Vec<u8>,
    start: usize,
    filled: usize,
}

impl Block {
    pub(crate) fn new() -> Self {
        let storage = vec![0; BLOCK_BYTES + 2 * PAGE_BYTES];
        let start = PAGE_BYTES + storage.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
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

    /// Reads once what `file` holds at `offset`, at most `max_bytes`, if `before` stands right before
    /// it; what was in the block before is gone. `None` if something else stands there.
    ///
    /// One system call does both, so that the file is hardly overwritten in between.
    pub(super) fn fill_at(
        &mut self,
        file: &File,
        offset: u64,
        before: &[u8],
        max_bytes: usize,
    ) -> io::Result<Option<usize>> {
        debug_assert!(before.len() <= PAGE_BYTES);
        self.filled = 0;
        let Some(mut at) = offset.checked_sub(before.len() as u64) else {
            return Ok(None);
        };
        let mut from = self.start - before.len();
        let to = self.start + max_bytes.min(BLOCK_BYTES);
        loop {
            let length = match file.read_at(&mut self.storage[from..to], at) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                length => length?,
            };
            from += length;
            at += length as u64;
            if length == 0 || from >= self.start {
                break;
            }
        }
        let holds =
            from >= self.start && self.storage[self.start - before.len()..self.start] == *before;
        if !holds {
            return Ok(None);
        }
        self.filled = from - self.start;
        Ok(Some(self.filled))
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

    #[test]
    fn reads_what_comes_behind_known_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "abcdef").unwrap();
        let file = File::open(&path).unwrap();
        let mut block = Block::new();
        for (offset, before, max_bytes, content) in [
            (0, "", 100, Some("abcdef")),
            (2, "ab", 3, Some("cde")),
            (6, "def", 100, Some("")),
            (6, "", 100, Some("")),
            (2, "xb", 100, None),
            (7, "f", 100, None),
            (1, "ab", 100, None),
        ] {
            let filled = block.fill_at(&file, offset, before.as_bytes(), max_bytes);
            assert_eq!(filled.unwrap(), content.map(str::len), "{offset} {before}");
            assert_eq!(block.bytes(), content.unwrap_or_default().as_bytes());
        }
        block.fill_at(&file, 2, b"ab", 3).unwrap();
        assert_eq!(block.bytes().as_ptr().align_offset(PAGE_BYTES), 0);
    }
}
