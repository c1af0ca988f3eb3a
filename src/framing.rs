//! From bytes to lines: a framer that owns no socket and no file.
//!
//! Bytes go in as they come, in pieces of any size; lines come out with their number and offset.
//! A line longer than the limit is handed out as soon as the limit is passed, and the rest of it
//! is passed over without being kept.

/// Finds the lines (R1) in one source. LF ends a line; one CR before it is not part of it.
#[derive(Debug)]
pub struct Framer {
    max_line_bytes: usize,
    /// The beginning of the line that has not ended, if any of it has been read.
    unfinished: Vec<u8>,
    /// Number and offset of the line that comes next or is unfinished.
    number: u64,
    offset: u64,
    /// How much of an over-long line has been passed over; such a line was handed out already.
    passing: Option<u64>,
}

/// One line of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// 1-based number of the line.
    pub number: u64,
    /// Offset of its first byte in the source.
    pub offset: u64,
    /// The line without its end; where it is too long, its beginning.
    pub bytes: &'a [u8],
    /// Whether the line is longer than the limit.
    pub too_long: bool,
}

/// Where a source is to be read from, and what it takes to go on there as if it had been read up to
/// there just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Position {
    /// 1-based number of the line that comes next.
    pub line: u64,
    /// Offset of its first byte in the source.
    pub offset: u64,
    /// How much of that line was passed over, where it is over-long and was handed out already; 0
    /// otherwise.
    pub passed: u64,
    /// Whether the source holds server-sent events; see
    /// [`EventFramer`](crate::agui::EventFramer).
    pub server_sent: bool,
}

impl Position {
    /// The beginning of a source.
    pub const START: Position = Position {
        line: 1,
        offset: 0,
        passed: 0,
        server_sent: false,
    };

    /// Offset of the first byte that is still needed.
    #[must_use]
    pub fn read_from(&self) -> u64 {
        self.offset + self.passed
    }
}

pub(crate) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A whole text without the one BOM that it may begin with.
pub(crate) fn without_bom(text: &[u8]) -> &[u8] {
    text.strip_prefix(BOM).unwrap_or(text)
}

/// Whether a line is white space as JSON has it, and nothing else (R1).
pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

impl Framer {
    /// A framer at the start of a source, for lines of up to `max_line_bytes` without their end.
    #[must_use]
    pub fn new(max_line_bytes: usize) -> Self {
        Framer {
            max_line_bytes,
            unfinished: Vec::new(),
            number: 1,
            offset: 0,
            passing: None,
        }
    }

    /// Takes the next bytes of the source and calls `each` with every line that they complete.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if let Some(passed) = self.passing.take() {
                self.next_line(passed + end as u64 + 1);
            } else if self.unfinished.is_empty() {
                self.hand_out(line, &mut each);
                self.next_line(end as u64 + 1);
            } else {
                self.complete(line, &mut each);
            }
        }
        self.keep(bytes, &mut each);
    }

    /// The source has ended: its last line counts without an LF.
    pub fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if self.passing.take().is_none() && !self.unfinished.is_empty() {
            self.complete(&[], &mut each);
        }
    }

    /// How many bytes of an unfinished line are held.
    #[must_use]
    pub fn unfinished_bytes(&self) -> usize {
        self.unfinished.len()
    }

    /// Ends the unfinished line with `rest`.
    fn complete(&mut self, rest: &[u8], each: &mut impl FnMut(Line<'_>)) {
        let mut line = std::mem::take(&mut self.unfinished);
        let room = self.most_kept() - line.len();
        line.extend_from_slice(&rest[..rest.len().min(room)]);
        let length = line.len() + rest.len() - rest.len().min(room);
        self.hand_out(&line, each);
        self.next_line(length as u64 + 1);
        line.clear();
        // Long lines are rare; what one needed is not held for good.
        line.shrink_to(KEPT_CAPACITY);
        self.unfinished = line;
    }

    /// Keeps the beginning of a line that has not ended.
    fn keep(&mut self, bytes: &[u8], each: &mut impl FnMut(Line<'_>)) {
        if let Some(passed) = &mut self.passing {
            *passed += bytes.len() as u64;
            return;
        }
        let held = self.unfinished.len();
        let kept = bytes.len().min(self.most_kept() - held);
        self.reserve(kept);
        self.unfinished.extend_from_slice(&bytes[..kept]);
        let limit = self.max_line_bytes + bom_bytes(self.offset, &self.unfinished);
        let excess = self.unfinished.len().saturating_sub(limit);
        let is_end = excess == 1 && self.unfinished.last() == Some(&b'\r') && kept == bytes.len();
        if excess > 0 && !is_end {
            let line = std::mem::take(&mut self.unfinished);
            self.hand_out(&line, each);
            self.passing = Some(held as u64 + bytes.len() as u64);
        }
    }

    /// Most that is needed of a line: what the limit allows, a BOM before it, a byte that may turn
    /// out to be the CR of its end, and one more to see that it is too long.
    fn most_kept(&self) -> usize {
        BOM.len() + self.max_line_bytes + 2
    }

    /// Grows the buffer by doubling, but not beyond what a line may need.
    fn reserve(&mut self, additional: usize) {
        let needed = self.unfinished.len() + additional;
        if needed > self.unfinished.capacity() {
            let doubled = (2 * self.unfinished.capacity()).min(self.most_kept());
            self.unfinished
                .reserve_exact(needed.max(doubled) - self.unfinished.len());
        }
    }

    fn hand_out(&self, line: &[u8], each: &mut impl FnMut(Line<'_>)) {
        let line = &line[bom_bytes(self.offset, line)..];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let too_long = line.len() > self.max_line_bytes;
        let bytes = &line[..line.len().min(self.max_line_bytes)];
        each(Line {
            number: self.number,
            offset: self.offset,
            bytes,
            too_long,
        });
    }

    fn next_line(&mut self, length: u64) {
        self.number += 1;
        self.offset += length;
    }
}

/// Capacity for an unfinished line that is kept for the next one.
const KEPT_CAPACITY: usize = 1 << 20;

/// How much of a line is the BOM at the very start of a source.
fn bom_bytes(offset: u64, line: &[u8]) -> usize {
    if offset == 0 && line.starts_with(BOM) {
        BOM.len()
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Owned = (u64, u64, Vec<u8>, bool);

    fn lines(pieces: &[&[u8]], max: usize) -> Vec<Owned> {
        let mut framer = Framer::new(max);
        let mut lines = Vec::new();
        let mut each = |line: Line<'_>| {
            lines.push((line.number, line.offset, line.bytes.to_vec(), line.too_long))
        };
        pieces
            .iter()
            .for_each(|piece| framer.push(piece, &mut each));
        framer.finish(&mut each);
        lines
    }

    fn whole(text: &[u8], max: usize) -> Vec<Owned> {
        lines(&[text], max)
    }

    fn line(number: u64, offset: u64, text: &str) -> Owned {
        (number, offset, text.as_bytes().to_vec(), false)
    }

    #[test]
    fn lines_have_numbers_and_offsets() {
        let expected = [
            line(1, 0, "ab"),
            line(2, 3, ""),
            line(3, 4, "c"),
            line(4, 7, "d"),
        ];
        assert_eq!(whole(b"ab\n\nc\r\nd", 9), expected);
        assert_eq!(whole(b"", 9), []);
        assert_eq!(whole(b"\n", 9), [line(1, 0, "")]);
        assert_eq!(whole(b"a\n", 9), [line(1, 0, "a")]);
    }

    #[test]
    fn one_bom_at_the_very_start_is_skipped() {
        assert_eq!(whole(b"\xEF\xBB\xBFab\n", 2), [line(1, 0, "ab")]);
        assert_eq!(whole(b"\xEF\xBB\xBF", 2), [line(1, 0, "")]);
        assert_eq!(
            whole(b"a\n\xEF\xBB\xBFb", 9),
            [line(1, 0, "a"), line(2, 2, "\u{feff}b")]
        );
        assert_eq!(
            whole(b"\xEF\xBB\xBF\xEF\xBB\xBFb", 9),
            [line(1, 0, "\u{feff}b")]
        );
    }

    #[test]
    fn the_limit_is_kept_before_the_line_ends() {
        let long = |number, offset| (number, offset, b"abc".to_vec(), true);
        assert_eq!(
            whole(b"abc\nabcd\nabc\r\nabc", 3),
            [
                line(1, 0, "abc"),
                long(2, 4),
                line(3, 9, "abc"),
                line(4, 14, "abc")
            ]
        );
        let mut framer = Framer::new(3);
        let mut handed_out = 0;
        framer.push(b"abcd", |line| {
            assert!(line.too_long);
            handed_out += 1;
        });
        assert_eq!((handed_out, framer.unfinished_bytes()), (1, 0));
        framer.push(&[b'x'; 1000], |_| panic!("a line is handed out once"));
        framer.push(b"\nok\n", |line| {
            assert_eq!(
                line,
                Line {
                    number: 2,
                    offset: 1005,
                    bytes: b"ok",
                    too_long: false
                }
            )
        });
    }

    #[test]
    fn every_way_to_cut_gives_the_same_lines() {
        for text in [
            &b"\xEF\xBB\xBFabc\r\nabcd\r\n\r\nab\r\r\nabcde\nabc\r"[..],
            b"abcdefghi\r\n\nabc\nabcd",
            b"abc\r\nabc\r",
            b"\xEF\xBB\xBFabcd",
            b"abc\rd\n\r\r\r\r\r\n",
        ] {
            let expected = whole(text, 3);
            let bytewise: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(lines(&bytewise, 3), expected, "byte by byte");
            for first in 0..=text.len() {
                for second in first..=text.len() {
                    let pieces = [&text[..first], &text[first..second], &text[second..]];
                    assert_eq!(lines(&pieces, 3), expected, "cut at {first} and {second}");
                }
            }
        }
    }
}
