//! From bytes to lines: a framer that owns no socket and no file.
//!
//! Bytes go in as they come, in pieces of any size; lines come out with their number and offset.
//! A line longer than the limit is handed out as soon as the limit is passed, and the rest of it
//! is passed over without being kept.
//!
//! At any moment a framer tells its [`Position`], and another one goes on from there with the same
//! lines, numbers and offsets: nothing that it holds need be saved.

use std::mem;

use crate::holes::Holes;

/// Finds the lines (R1) in one source. LF ends a line; one CR before it is not part of it.
#[derive(Debug)]
pub struct Framer {
    max_line_bytes: usize,
    /// The beginning of the line that has not ended, if any of it has been read.
    unfinished: Vec<u8>,
    /// Number and offset of the line that comes next or is unfinished.
    number: u64,
    offset: u64,
    /// How much has come of a line that was handed out before its end, which is passed over.
    passing: Option<u64>,
    holes: Holes,
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
    /// Whether the line is longer than the limit, or was given up ([`Framer::give_up`]).
    pub too_long: bool,
}

/// Where a source is to be read from, and what it takes to go on there as if it had been read up to
/// there just now.
///
/// Of a source whose events are server-sent, `line` and `offset` may be those of another line nearby
/// while an event is passed over: only [`Position::read_from`] and the framer know more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Position {
    /// 1-based number of the line that comes next.
    pub line: u64,
    /// Offset of its first byte in the source.
    pub offset: u64,
    /// How much of that line was passed over, where it was handed out already: as it is over-long, or
    /// as the source seemed to have ended. 0 otherwise.
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
            holes: Holes::default(),
        }
    }

    /// A framer in the midst of a source, of which [`Framer::position`] was asked: what is pushed
    /// first must be the bytes from [`Position::read_from`] on. A BOM is only one at offset 0.
    #[must_use]
    pub fn resume(max_line_bytes: usize, position: Position) -> Self {
        Framer {
            number: position.line,
            offset: position.offset,
            passing: (position.passed > 0).then_some(position.passed),
            ..Framer::new(max_line_bytes)
        }
    }

    /// Passes over NUL bytes before a line's first other byte (R1), the hole that a truncation
    /// leaves in a file. Such a line begins at that other byte. Anywhere else a NUL is what it is.
    #[must_use]
    pub fn skipping_nuls(self) -> Self {
        self.with_holes(Holes::skipped())
    }

    /// How many NUL bytes were passed over since this was asked last. A hole counts, as a whole,
    /// once another byte has come behind it; where a framer is resumed within one, only the rest.
    pub fn take_skipped_nuls(&mut self) -> u64 {
        self.holes.take_ended()
    }

    pub(crate) fn with_holes(self, holes: Holes) -> Self {
        Framer { holes, ..self }
    }

    /// Takes the next bytes of the source and calls `each` with every line that they complete.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        let mut bytes = self.behind_hole(bytes);
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            if let Some(passed) = self.passing.take() {
                self.next_line(passed + end as u64 + 1);
            } else if self.unfinished.is_empty() {
                self.hand_out(line, &mut each);
                self.next_line(end as u64 + 1);
            } else {
                self.complete(line, &mut each);
            }
            bytes = self.behind_hole(rest);
        }
        self.keep(bytes, &mut each);
    }

    /// The source has ended: its last line counts without an LF. Should it grow after all, the rest
    /// of that line is passed over.
    pub fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        let line = mem::take(&mut self.unfinished);
        if !line.is_empty() {
            self.hand_out(&line, &mut each);
            self.passing = Some(line.len() as u64);
        }
    }

    /// Hands out the unfinished line as an over-long one, if there is one, and passes over the rest
    /// of it. From then on nothing is held: where the unfinished lines of many sources take too
    /// much memory, the longest has to go.
    pub fn give_up(&mut self, mut each: impl FnMut(Line<'_>)) {
        let line = mem::take(&mut self.unfinished);
        if !line.is_empty() {
            self.hand_out(&line, &mut |line: Line<'_>| {
                each(Line {
                    too_long: true,
                    ..line
                });
            });
            self.passing = Some(line.len() as u64);
        }
    }

    /// Where the source is to be read from to go on here: the beginning of the unfinished line, or of
    /// the next; within a line that is passed over, the place up to which it has come. Behind a
    /// hole that is passed over, as far as it has come.
    #[must_use]
    pub fn position(&self) -> Position {
        Position {
            line: self.number,
            offset: self.offset,
            passed: self.passing.unwrap_or(0),
            server_sent: false,
        }
    }

    /// What has come of the unfinished line, if it is not passed over.
    #[must_use]
    pub fn unfinished(&self) -> &[u8] {
        &self.unfinished
    }

    /// How many bytes of an unfinished line are held.
    #[must_use]
    pub fn unfinished_bytes(&self) -> usize {
        self.unfinished.len()
    }

    /// How much memory is held for unfinished lines: also after a long one, for the next. Nothing
    /// after [`Framer::give_up`].
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.unfinished.capacity()
    }

    /// What of `bytes` is no hole, where a line should begin.
    #[inline]
    fn behind_hole<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        if !self.holes.are_skipped || self.passing.is_some() || !self.unfinished.is_empty() {
            return bytes;
        }
        let length = self.holes.skip(bytes);
        self.offset += length as u64;
        &bytes[length..]
    }

    /// Ends the unfinished line with `rest`.
    fn complete(&mut self, rest: &[u8], each: &mut impl FnMut(Line<'_>)) {
        let mut line = mem::take(&mut self.unfinished);
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
        let may_be_bom = self.offset == 0 && BOM.starts_with(&self.unfinished);
        if excess > 0 && !is_end && !may_be_bom {
            let line = mem::take(&mut self.unfinished);
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
    use proptest::prelude::*;

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

    fn owned(line: Line<'_>) -> Owned {
        (line.number, line.offset, line.bytes.to_vec(), line.too_long)
    }

    /// What is found where the source is left after each of the pieces and taken up again.
    fn resumed(text: &[u8], cuts: &[usize], framer: impl Fn(Position) -> Framer) -> Vec<Owned> {
        let mut lines = Vec::new();
        let mut current = framer(Position::START);
        let mut from = 0;
        for &cut in cuts {
            current.push(&text[from..cut.max(from)], |line| lines.push(owned(line)));
            let position = current.position();
            from = usize::try_from(position.read_from()).expect("short");
            assert!(from <= cut, "what has not come is not passed");
            current = framer(position);
        }
        current.push(&text[from..], |line| lines.push(owned(line)));
        current.finish(|line| lines.push(owned(line)));
        lines
    }

    /// Texts of what matters to a framer, and places in them, in order.
    fn text_and_cuts() -> impl Strategy<Value = (Vec<u8>, Vec<usize>)> {
        let bytes = prop::sample::select(vec![&b"a"[..], b"b", b"\r", b"\n", b"\r\n", b"\0", BOM]);
        let text = prop::collection::vec(bytes, 0..40).prop_map(|parts| parts.concat());
        text.prop_flat_map(|text| {
            let cuts = prop::collection::vec(0..=text.len(), 0..5).prop_map(|mut cuts| {
                cuts.sort_unstable();
                cuts
            });
            (Just(text), cuts)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_source_is_taken_up_where_it_was_left(
            (text, cuts) in text_and_cuts(),
            max in 0..6_usize,
            skips in any::<bool>(),
        ) {
            let framer = |position| match skips {
                true => Framer::resume(max, position).skipping_nuls(),
                false => Framer::resume(max, position),
            };
            let expected = resumed(&text, &[], framer);
            prop_assert_eq!(resumed(&text, &cuts, framer), expected);
        }
    }

    #[test]
    fn an_unfinished_line_is_read_again_and_a_long_one_passed() {
        let mut framer = Framer::new(3);
        framer.push(b"ab\r\nabc", |_| {});
        let position = |line, offset, passed| Position {
            line,
            offset,
            passed,
            server_sent: false,
        };
        assert_eq!(framer.position(), position(2, 4, 0));
        assert_eq!(framer.unfinished(), b"abc");
        framer.push(b"dx", |line| assert!(line.too_long));
        assert_eq!(framer.position(), position(2, 4, 5));
        assert_eq!(framer.position().read_from(), 9);
        let mut resumed = Framer::resume(3, framer.position());
        let mut lines = Vec::new();
        resumed.push(b"ab\nab", |line| lines.push(owned(line)));
        assert_eq!(lines, []);
        assert_eq!(resumed.position(), position(3, 12, 0));
    }

    #[test]
    fn a_source_that_ended_may_grow() {
        for (text, expected) in [
            ("a\nb", vec![line(3, 5, "d")]),
            ("a\n", vec![line(2, 2, "c"), line(3, 4, "d")]),
        ] {
            let mut framer = Framer::new(9);
            framer.push(text.as_bytes(), |_| {});
            framer.finish(|_| {});
            framer.finish(|_| panic!("a line is handed out once"));
            let mut framer = Framer::resume(9, framer.position());
            let mut lines = Vec::new();
            framer.push(b"c\nd\n", |line| lines.push(owned(line)));
            assert_eq!(lines, expected);
        }
    }

    #[test]
    fn a_line_that_is_given_up_is_passed_over() {
        let mut framer = Framer::new(1000);
        framer.give_up(|_| panic!("there is none"));
        framer.push(b"a\n{\"b", |_| {});
        let mut lines = Vec::new();
        framer.give_up(|line| lines.push(owned(line)));
        framer.give_up(|_| panic!("a line is handed out once"));
        assert_eq!(lines, [(2, 2, b"{\"b".to_vec(), true)]);
        assert_eq!((framer.unfinished_bytes(), framer.held_bytes()), (0, 0));
        assert_eq!((framer.position().offset, framer.position().passed), (2, 3));
        lines.clear();
        framer.push(b"{}\nc\n", |line| lines.push(owned(line)));
        assert_eq!(lines, [line(3, 8, "c")]);
    }

    #[test]
    fn nuls_before_a_line_are_passed_over_and_counted() {
        let mut framer = Framer::new(9).skipping_nuls();
        let mut lines = Vec::new();
        let mut told = Vec::new();
        for piece in [&b"\0\0"[..], b"\0", b"a\0", b"b\n\0\0c\n", b"\0\n", b"\0"] {
            framer.push(piece, |line| lines.push(owned(line)));
            told.push(framer.take_skipped_nuls());
        }
        let expected = [line(1, 3, "a\0b"), line(2, 9, "c"), line(3, 12, "")];
        assert_eq!(lines, expected);
        assert_eq!(told, [0, 0, 3, 2, 1, 0]);
        assert_eq!(framer.position().read_from(), 14);
        framer.finish(|_| panic!("a hole is no line"));
        assert_eq!(whole(b"\0a", 9), [line(1, 0, "\0a")]);
    }

    #[test]
    fn a_large_hole_is_passed_over_and_not_held() {
        let hole = vec![0; 1 << 20];
        let mut framer = Framer::new(1 << 24).skipping_nuls();
        for _ in 0..256 {
            framer.push(&hole, |_| panic!("a hole is no line"));
        }
        assert_eq!(
            (framer.held_bytes(), framer.position().offset),
            (0, 256 << 20)
        );
        framer.push(b"a\n", |found| {
            assert_eq!(owned(found), line(1, 256 << 20, "a"))
        });
        assert_eq!(framer.take_skipped_nuls(), 256 << 20);
    }
}
