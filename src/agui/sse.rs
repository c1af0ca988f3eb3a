//! Server-sent events: a decoder that owns no socket. Bytes go in as they come, in pieces of any
//! size; the data of events come out, each with its place.
//!
//! A line ends with LF, CR LF or CR. `data` lines make up an event, joined with LF where there are
//! several, and a blank line ends it. One space behind the colon is not part of the data. Comments
//! (`:`), `event`, `id`, `retry` and other fields are passed over: an event's `type` is in its data.
//! What is there of an event when its source ends counts, as the last line of other sources does
//! without its end; a browser would drop it.

use crate::framing::{Line, Position};
use crate::holes::Holes;

/// Finds the events in one source.
#[derive(Debug)]
pub(super) struct Decoder {
    max_event_bytes: usize,
    /// Number and offset of the line that comes next or is unfinished.
    line_number: u64,
    line_offset: u64,
    /// How many bytes have come.
    bytes: u64,
    /// Whether the last byte was a CR: an LF now belongs to it.
    after_cr: bool,
    /// What the unfinished line is.
    line: LineKind,
    /// The data of the unfinished event, up to the limit.
    data: Vec<u8>,
    is_too_long: bool,
    /// Number and offset of the first `data` line of the unfinished event, if it has one.
    begun: Option<(u64, u64)>,
    /// Whether the event was handed out before its end, and the rest of it is passed over.
    passing: bool,
    holes: Holes,
}

/// [`Position::passed`] within an event that is passed over: whether what is read next begins a line,
/// or belongs to one that has begun and may be anything. An event that is passed over has more bytes
/// than these, so the offset before them is in the source.
const PASSED_TO_A_LINE: u64 = 1;
const PASSED_INTO_A_LINE: u64 = 2;

/// What a line is, as far as its first bytes show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    /// These bytes, of which there are so many, may still become any field.
    Unknown([u8; FIELD.len()], usize),
    /// The value of a `data` field, which has begun if the space before it has been passed.
    Data { begun: bool },
    /// Anything else.
    Other,
}

const FIELD: &[u8; 5] = b"data:";

const EMPTY: LineKind = LineKind::Unknown([0; FIELD.len()], 0);

impl Decoder {
    /// A decoder whose source begins with `skipped` bytes that are no part of any line, for events
    /// with up to `max_event_bytes` of data.
    pub(super) fn new(max_event_bytes: usize, skipped: u64) -> Self {
        Decoder {
            max_event_bytes,
            line_number: 1,
            line_offset: skipped,
            bytes: skipped,
            after_cr: false,
            line: EMPTY,
            data: Vec::new(),
            is_too_long: false,
            begun: None,
            passing: false,
            holes: Holes::default(),
        }
    }

    /// A decoder in the midst of a source, of which [`Decoder::position`] was asked.
    pub(super) fn resume(max_event_bytes: usize, position: Position) -> Self {
        let line = match position.passed {
            PASSED_INTO_A_LINE => LineKind::Other,
            _ => EMPTY,
        };
        Decoder {
            line_number: position.line,
            line_offset: position.read_from(),
            bytes: position.read_from(),
            line,
            passing: position.passed > 0,
            ..Decoder::new(max_event_bytes, 0)
        }
    }

    pub(super) fn with_holes(self, holes: Holes) -> Self {
        Decoder { holes, ..self }
    }

    pub(super) fn take_skipped_nuls(&mut self) -> u64 {
        self.holes.take_ended()
    }

    /// Takes the next bytes of the source and calls `each` with every event that they complete.
    pub(super) fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            if bytes[0] == b'\n' {
                self.bytes += 1;
                self.line_offset = self.bytes;
                bytes = &bytes[1..];
            }
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            self.take(&bytes[..end]);
            let is_crlf = bytes[end..].starts_with(b"\r\n");
            self.after_cr = bytes[end..] == *b"\r";
            let length = end + 1 + usize::from(is_crlf);
            self.bytes += length as u64;
            bytes = &bytes[length..];
            self.end_line(&mut each);
        }
        self.take(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// The source has ended: what is there of its last event counts. Should it grow after all, the
    /// rest of that event is passed over.
    pub(super) fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if matches!(self.line, LineKind::Unknown(start, 4) if start.starts_with(b"data")) {
            self.begin_data(false);
        }
        self.hand_out_early(&mut each);
    }

    /// Hands out the unfinished event as an over-long one, if any of its data has come, and passes
    /// over the rest of it.
    pub(super) fn give_up(&mut self, mut each: impl FnMut(Line<'_>)) {
        self.is_too_long = true;
        self.hand_out_early(&mut each);
    }

    /// Where the source is to be read from to go on here: the first `data` line of the unfinished
    /// event, so that it is read again as a whole; the unfinished line or the next, if what has come
    /// of the event means nothing.
    pub(super) fn position(&self) -> Position {
        // A CR is read again, as the end of an empty line: it tells what an LF behind it belongs to.
        let read_from = self.bytes - u64::from(self.after_cr);
        let is_within_line = self.line != EMPTY || self.after_cr;
        let before = u64::from(self.after_cr);
        let (line, offset, passed) = match self.begun {
            Some((line, offset)) => (line, offset, 0),
            None if self.passing && is_within_line => {
                let passed = PASSED_INTO_A_LINE;
                (self.line_number - before, read_from - passed, passed)
            }
            None if self.passing => {
                let passed = PASSED_TO_A_LINE;
                (self.line_number, read_from - passed, passed)
            }
            None => (self.line_number - before, self.line_offset - before, 0),
        };
        Position {
            line,
            offset,
            passed,
            server_sent: true,
        }
    }

    pub(super) fn unfinished_bytes(&self) -> usize {
        self.data.len()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.data.capacity()
    }

    /// Hands out the unfinished event, passes over the rest of it and holds nothing.
    fn hand_out_early(&mut self, each: &mut impl FnMut(Line<'_>)) {
        self.passing |= self.begun.is_some();
        self.hand_out(each);
        self.data = Vec::new();
        if matches!(self.line, LineKind::Data { .. }) {
            self.line = LineKind::Other;
        }
    }

    /// Takes the next bytes of a line.
    #[inline]
    fn take(&mut self, mut piece: &[u8]) {
        if self.holes.are_skipped && self.line == EMPTY {
            let hole = self.holes.skip(piece);
            self.line_offset += hole as u64;
            piece = &piece[hole..];
        }
        match &mut self.line {
            LineKind::Other => {}
            LineKind::Data { begun } => {
                let begun = std::mem::replace(begun, *begun || !piece.is_empty());
                let value = if begun { piece } else { without_space(piece) };
                self.keep(value);
            }
            LineKind::Unknown(_, 0) if piece.starts_with(FIELD) => {
                let value = &piece[FIELD.len()..];
                self.begin_data(!value.is_empty());
                self.keep(without_space(value));
            }
            LineKind::Unknown(start, length) => {
                let taken = piece.len().min(FIELD.len() - *length);
                start[*length..*length + taken].copy_from_slice(&piece[..taken]);
                *length += taken;
                if !FIELD.starts_with(&start[..*length]) {
                    self.line = LineKind::Other;
                } else if *length == FIELD.len() {
                    self.begin_data(false);
                    self.take(&piece[taken..]);
                }
            }
        }
    }

    /// A `data` line has begun.
    fn begin_data(&mut self, begun: bool) {
        if self.passing {
            self.line = LineKind::Other;
            return;
        }
        self.line = LineKind::Data { begun };
        match self.begun {
            None => self.begun = Some((self.line_number, self.line_offset)),
            Some(_) => self.keep(b"\n"),
        }
    }

    fn keep(&mut self, data: &[u8]) {
        if self.passing {
            return;
        }
        let room = self.max_event_bytes - self.data.len();
        self.data.extend_from_slice(&data[..data.len().min(room)]);
        self.is_too_long |= data.len() > room;
    }

    fn end_line(&mut self, each: &mut impl FnMut(Line<'_>)) {
        match std::mem::replace(&mut self.line, EMPTY) {
            LineKind::Unknown(_, 0) => self.end_event(each),
            // The name of a field without a colon: its value is empty.
            LineKind::Unknown(start, 4) if start.starts_with(b"data") => {
                self.begin_data(false);
                self.line = EMPTY;
            }
            _ => {}
        }
        self.line_number += 1;
        self.line_offset = self.bytes;
    }

    fn end_event(&mut self, each: &mut impl FnMut(Line<'_>)) {
        self.hand_out(each);
        self.passing = false;
    }

    fn hand_out(&mut self, each: &mut impl FnMut(Line<'_>)) {
        if let Some((number, offset)) = self.begun.take() {
            each(Line {
                number,
                offset,
                bytes: &self.data,
                too_long: self.is_too_long,
            });
        }
        self.is_too_long = false;
        self.data.clear();
        // Long events are rare; what one needed is not held for good.
        self.data.shrink_to(KEPT_CAPACITY);
    }
}

/// Capacity for an event's data that is kept for the next one.
const KEPT_CAPACITY: usize = 1 << 20;

fn without_space(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Owned = (u64, u64, String, bool);

    fn events(pieces: &[&[u8]], max: usize) -> Vec<Owned> {
        let mut decoder = Decoder::new(max, 0);
        let mut events = Vec::new();
        let mut each = |event: Line<'_>| {
            let text = String::from_utf8(event.bytes.to_vec()).expect("UTF-8");
            events.push((event.number, event.offset, text, event.too_long));
        };
        pieces
            .iter()
            .for_each(|piece| decoder.push(piece, &mut each));
        decoder.finish(&mut each);
        events
    }

    fn event(number: u64, offset: u64, text: &str) -> Owned {
        (number, offset, text.to_owned(), false)
    }

    #[test]
    fn data_make_events_and_blank_lines_end_them() {
        for (text, expected) in [
            ("data: a\n\n", vec![event(1, 0, "a")]),
            (
                "data:a\n\ndata:  b\n\n",
                vec![event(1, 0, "a"), event(3, 8, " b")],
            ),
            ("data: a\ndata\ndata: b\n\n", vec![event(1, 0, "a\n\nb")]),
            ("data\n\n", vec![event(1, 0, "")]),
            ("\n\n: comment\n\nevent: x\nid: 1\nretry: 9\n\n", vec![]),
            ("event: x\ndata: a\nid: 2\n\n", vec![event(2, 9, "a")]),
            ("data: a\n:\ndata:b\n\n", vec![event(1, 0, "a\nb")]),
            ("dat: a\ndatas: b\nData: c\n data: d\n\n", vec![]),
            (
                "data: a\n\n\n\ndata: b\n\n",
                vec![event(1, 0, "a"), event(5, 11, "b")],
            ),
            ("data: a", vec![event(1, 0, "a")]),
            ("data: a\n", vec![event(1, 0, "a")]),
            ("data: a\n\ndata", vec![event(1, 0, "a"), event(3, 9, "")]),
            ("", vec![]),
        ] {
            assert_eq!(events(&[text.as_bytes()], 99), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_end_in_three_ways() {
        let expected = [event(1, 0, "a\nb"), event(4, 17, "c")];
        assert_eq!(events(&[b"data: a\rdata: b\r\rdata: c\r\r"], 99), expected);
        let expected = [event(1, 0, "a\nb"), event(4, 20, "c")];
        assert_eq!(
            events(&[b"data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n"], 99),
            expected
        );
        assert_eq!(
            events(&[b"data: a\r\n\rdata: b\n\r\n"], 99),
            [event(1, 0, "a"), event(3, 10, "b")]
        );
    }

    #[test]
    fn the_limit_holds_for_an_event_as_a_whole() {
        let long = |number, offset, text: &str| (number, offset, text.to_owned(), true);
        assert_eq!(
            events(
                &[b"data:abc\n\ndata:abcd\n\ndata:a\ndata:b\n\ndata:a\ndata:bc\n\ndata:x\n\n"],
                3
            ),
            [
                event(1, 0, "abc"),
                long(3, 10, "abc"),
                event(5, 21, "a\nb"),
                long(8, 36, "a\nb"),
                event(11, 52, "x")
            ]
        );
        let mut decoder = Decoder::new(3, 0);
        for _ in 0..1000 {
            decoder.push(b"data:aaaaaaaaa", |_| panic!("nothing has ended"));
            decoder.push(b"\n:aaaaaaaaaaaa", |_| panic!("nothing has ended"));
        }
        assert!(decoder.data.len() <= 3);
    }

    #[test]
    fn every_way_to_cut_gives_the_same_events() {
        for text in [
            &b"data: a\r\ndata: bcd\r\n\r\n: x\rdata\r\r\ndata:  e\n\nid: 1\ndata:f"[..],
            b"data:\n\ndata: \n\ndata:  \r\rdata",
            b"\r\n\r\ndata: abcdefgh\n\n\r\r\n\n",
        ] {
            let expected = events(&[text], 4);
            let bytewise: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(events(&bytewise, 4), expected, "byte by byte");
            for first in 0..=text.len() {
                for second in first..=text.len() {
                    let pieces = [&text[..first], &text[first..second], &text[second..]];
                    assert_eq!(events(&pieces, 4), expected, "cut at {first} and {second}");
                }
            }
        }
    }
}
