//! Finding the events in the bytes of a source, in either of the two forms that they come in.

use super::sse::Decoder;
use crate::framing::{BOM, Framer, Line};

/// Finds the events in one source: one a line, or server-sent events as an HTTP binding sends them.
///
/// The first line that is not blank decides: a comment (`:`), or a field that server-sent events
/// have (`data`, `event`, `id`, `retry`), with its colon or alone on the line, begins server-sent
/// events; anything else is one event a line, and so is a source that begins with more than
/// 4 KiB of blank lines. One BOM at the very start is not part of either.
///
/// An event is handed out as a [`Line`]. One of several `data` lines has the number and the offset
/// of the first of them, and its bytes are what the lines hold, joined with LF.
///
/// ```
/// use tracecheck::agui::EventFramer;
///
/// let mut framer = EventFramer::new(1 << 20);
/// let mut events = Vec::new();
/// framer.push(b"id: 1\ndata: {\"type\":\ndata: \"RAW\"}\n\n", |event| {
///     events.push((event.number, event.bytes.to_vec()));
/// });
/// assert_eq!(events, [(2, b"{\"type\":\n\"RAW\"}".to_vec())]);
/// ```
#[derive(Debug)]
pub struct EventFramer {
    max_event_bytes: usize,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// What came so far does not show it.
    Unknown(Vec<u8>),
    Lines(Framer),
    ServerSent(Decoder),
}

/// The form of a source, as its first bytes show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recognised {
    Lines,
    ServerSent,
}

/// Most that is looked at to find out; beyond, it is one event a line.
const MAX_UNKNOWN_BYTES: usize = 4096;

impl EventFramer {
    /// A framer at the start of a source, for events of up to `max_event_bytes`.
    #[must_use]
    pub fn new(max_event_bytes: usize) -> Self {
        EventFramer {
            max_event_bytes,
            form: Form::Unknown(Vec::new()),
        }
    }

    /// Takes the next bytes of the source and calls `each` with every event that they complete.
    pub fn push(&mut self, bytes: &[u8], each: impl FnMut(Line<'_>)) {
        let held = match &mut self.form {
            Form::Lines(framer) => return framer.push(bytes, each),
            Form::ServerSent(decoder) => return decoder.push(bytes, each),
            Form::Unknown(held) => held,
        };
        held.extend_from_slice(bytes);
        let recognised = recognise(held).or_else(|| {
            let is_late = held.len() > MAX_UNKNOWN_BYTES;
            is_late.then_some(Recognised::Lines)
        });
        if let Some(recognised) = recognised {
            self.begin(recognised, each);
        }
    }

    /// The source has ended: its last event counts without its end.
    pub fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if matches!(self.form, Form::Unknown(_)) {
            self.begin(Recognised::Lines, &mut each);
        }
        match &mut self.form {
            Form::Lines(framer) => framer.finish(each),
            Form::ServerSent(decoder) => decoder.finish(each),
            Form::Unknown(_) => unreachable!("decided just now"),
        }
    }

    /// Goes on in the form that was recognised, with what was held back.
    fn begin(&mut self, recognised: Recognised, each: impl FnMut(Line<'_>)) {
        let max = self.max_event_bytes;
        let held = match &mut self.form {
            Form::Unknown(held) => std::mem::take(held),
            _ => return,
        };
        match recognised {
            Recognised::Lines => {
                let mut framer = Framer::new(max);
                framer.push(&held, each);
                self.form = Form::Lines(framer);
            }
            Recognised::ServerSent => {
                let skipped = bom_bytes(&held);
                let mut decoder = Decoder::new(max, skipped);
                decoder.push(&held[skipped..], each);
                self.form = Form::ServerSent(decoder);
            }
        }
    }
}

fn bom_bytes(text: &[u8]) -> usize {
    match text.starts_with(BOM) {
        true => BOM.len(),
        false => 0,
    }
}

/// The form of a source that begins with `start`, once that shows it.
fn recognise(start: &[u8]) -> Option<Recognised> {
    const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];
    if start.len() < BOM.len() && BOM.starts_with(start) {
        return None;
    }
    let text = &start[bom_bytes(start)..];
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let first = text.iter().position(|byte| !blank(byte))?;
    let is_indented = first > 0 && matches!(text[first - 1], b' ' | b'\t');
    let line = &text[first..];
    if is_indented {
        return Some(Recognised::Lines);
    }
    if line[0] == b':' {
        return Some(Recognised::ServerSent);
    }
    let mut recognised = Some(Recognised::Lines);
    for field in FIELDS {
        match line.strip_prefix(field).map(<[u8]>::first) {
            Some(Some(b':' | b'\r' | b'\n')) => return Some(Recognised::ServerSent),
            // The field's name, of which the end may still come.
            Some(None) => recognised = None,
            None if field.starts_with(line) => recognised = None,
            Some(Some(_)) | None => {}
        }
    }
    recognised
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_shows_the_form() {
        use Recognised::{Lines, ServerSent};
        for (start, expected) in [
            ("{", Some(Lines)),
            ("\u{feff} \r\n {\"type\":1}", Some(Lines)),
            ("data: {}", Some(ServerSent)),
            ("\u{feff}\n\ndata:{}", Some(ServerSent)),
            (":", Some(ServerSent)),
            ("retry: 1", Some(ServerSent)),
            ("id\n", Some(ServerSent)),
            ("event\r", Some(ServerSent)),
            ("database: x", Some(Lines)),
            ("idea", Some(Lines)),
            (" data: {}", Some(Lines)),
            ("Data: {}", Some(Lines)),
            ("x", Some(Lines)),
            ("", None),
            ("\r\n \t", None),
            ("d", None),
            ("data", None),
            ("retr", None),
        ] {
            assert_eq!(recognise(start.as_bytes()), expected, "{start:?}");
        }
        assert_eq!(recognise(b"\xEF\xBB"), None);
        assert_eq!(recognise(b"\xEF\xBB{"), Some(Lines));
    }

    fn events(pieces: &[&[u8]]) -> Vec<(u64, u64, Vec<u8>)> {
        let mut framer = EventFramer::new(64);
        let mut events = Vec::new();
        let mut each = |event: Line<'_>| {
            events.push((event.number, event.offset, event.bytes.to_vec()));
        };
        pieces
            .iter()
            .for_each(|piece| framer.push(piece, &mut each));
        framer.finish(&mut each);
        events
    }

    #[test]
    fn what_was_held_back_counts_whatever_the_cut() {
        for text in [
            "\u{feff}\r\n\r\n{\"a\":1}\n{\"b\":2}",
            "\u{feff}\r\n\rdata: {\"a\":1}\n\nid: 7\ndata: {\ndata: }\n\n",
            "data",
            "\u{feff}",
            "\n \n",
            "event: x\r\ndata: 1\r\n\r\n",
        ] {
            let text = text.as_bytes();
            let expected = events(&[text]);
            let bytewise: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(events(&bytewise), expected, "byte by byte");
            for cut in 0..=text.len() {
                let pieces = [&text[..cut], &text[cut..]];
                assert_eq!(events(&pieces), expected, "cut at {cut}");
            }
        }
        let sse = events(&["\u{feff}\r\n\rdata: {}\n\n".as_bytes()]);
        assert_eq!(sse, [(3, 6, b"{}".to_vec())]);
        assert_eq!(events(&[b"{}\n{}"])[1], (2, 3, b"{}".to_vec()));
    }

    #[test]
    fn blank_lines_are_not_held_for_ever() {
        let blank = b"\n".repeat(MAX_UNKNOWN_BYTES + 1);
        let mut framer = EventFramer::new(64);
        framer.push(&blank, |_| {});
        assert!(matches!(framer.form, Form::Lines(_)));
    }
}
