//! What tells whether a file still holds what was read of it, without reading it again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// How many of the first bytes of a file are looked at, or its first line where that is shorter.
const MAX_HEAD_BYTES: usize = 256;

/// How many of the last bytes before a position are kept. Records differ in their `seq`, and most
/// fit in this whole; nothing is lost if two of different generations do not.
const MAX_TAIL_BYTES: usize = 256;

/// The beginning of a file and the bytes before a position in it.
///
/// An offset alone says nothing: a file that was truncated and has grown again, or another one on
/// the same inode, may be just as long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Fingerprint {
    /// Of the beginning of a file.
    pub(crate) fn of_head(file: &File) -> io::Result<Fingerprint> {
        let mut head = [0; MAX_HEAD_BYTES];
        let mut length = 0;
        while length < head.len() {
            match file.read_at(&mut head[length..], length as u64)? {
                0 => break,
                more => length += more,
            }
        }
        let mut fingerprint = Fingerprint::default();
        fingerprint.push(&head[..length]);
        Ok(fingerprint)
    }

    /// Moves the position behind `bytes`.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if !self.has_head() {
            let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
            let room = MAX_HEAD_BYTES - self.head.len();
            self.head.extend_from_slice(&bytes[..end.min(room)]);
        }
        if bytes.len() >= MAX_TAIL_BYTES {
            self.tail.clear();
        }
        self.tail
            .extend_from_slice(&bytes[bytes.len().saturating_sub(MAX_TAIL_BYTES)..]);
        self.tail
            .drain(..self.tail.len().saturating_sub(MAX_TAIL_BYTES));
    }

    /// Whether the first line, or as much of it as counts, has come.
    pub(crate) fn has_head(&self) -> bool {
        self.head.len() == MAX_HEAD_BYTES || self.head.last() == Some(&b'\n')
    }

    /// The last bytes before the position: all of them, where they are few.
    pub(crate) fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// Identifies the beginning of the file.
    pub(crate) fn head_hash(&self) -> u64 {
        xxh3_64(&self.head)
    }

    /// Whether the file has these bytes at its beginning and before `position`.
    ///
    /// # Errors
    ///
    /// If the file cannot be read; that it is too short is no error.
    pub(crate) fn matches(&self, file: &File, position: u64) -> io::Result<bool> {
        Ok(self.head_matches(file)? && self.tail_matches(file, position)?)
    }

    /// Whether the file begins with these bytes.
    pub(crate) fn head_matches(&self, file: &File) -> io::Result<bool> {
        holds(file, 0, &self.head)
    }

    /// Whether the file has these bytes before `position`.
    pub(crate) fn tail_matches(&self, file: &File, position: u64) -> io::Result<bool> {
        match position.checked_sub(self.tail.len() as u64) {
            Some(start) => holds(file, start, &self.tail),
            None => Ok(false),
        }
    }
}

fn holds(file: &File, offset: u64, expected: &[u8]) -> io::Result<bool> {
    let mut found = [0; MAX_HEAD_BYTES];
    const { assert!(MAX_TAIL_BYTES <= MAX_HEAD_BYTES) };
    let found = &mut found[..expected.len()];
    match file.read_exact_at(found, offset) {
        Ok(()) => Ok(found == expected),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pieces: &[&[u8]]) -> Fingerprint {
        let mut fingerprint = Fingerprint::default();
        pieces.iter().for_each(|piece| fingerprint.push(piece));
        fingerprint
    }

    #[test]
    fn every_way_to_cut_gives_the_same() {
        let long = vec![b'x'; 1000];
        for text in [&b"one\ntwo\nthree"[..], b"\n", &long] {
            let whole = of(&[text]);
            let bytewise: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(of(&bytewise), whole);
            for cut in 0..=text.len() {
                assert_eq!(of(&[&text[..cut], &text[cut..]]), whole, "{cut}");
            }
        }
        assert!(of(&[b"one\ntw"]).has_head());
        assert!(!of(&[b"one"]).has_head());
        assert!(of(&[&long]).has_head());
    }

    #[test]
    fn tells_whether_a_file_holds_what_was_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let read = of(&[b"one\n", b"two\n"]);
        for (content, matches) in [
            (&b"one\ntwo\nthree\n"[..], true),
            (b"one\ntwo\n", true),
            (b"one\ntwo", false),
            (b"", false),
            (b"0ne\ntwo\nthree\n", false),
            (b"one\n\n\n\n\ntwo\n", false),
        ] {
            std::fs::write(&path, content).unwrap();
            let file = File::open(&path).unwrap();
            assert_eq!(read.matches(&file, 8).unwrap(), matches, "{content:?}");
        }
        let file = File::open(&path).unwrap();
        assert!(Fingerprint::default().matches(&file, 0).unwrap());
    }
}
