//! Finding the events in the bytes of a source, in either of the two forms that they come in.

use super::sse::Decoder;
use crate::framing::{BOM, Framer, Line, Position};
use crate::holes::Holes;

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
    Unknown(Beginning),
    Lines(Framer),
    ServerSent(Decoder),
}

/// What has come of a source before its form shows.
#[derive(Debug, Default)]
struct Beginning {
    /// Where `held` begins: at 0, or behind a hole.
    offset: u64,
    held: Vec<u8>,
    holes: Holes,
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
            form: Form::Unknown(Beginning::default()),
        }
    }

    /// A framer in the midst of a source, of which [`EventFramer::position`] was asked: what is
    /// pushed first must be the bytes from [`Position::read_from`] on.
    #[must_use]
    pub fn resume(max_event_bytes: usize, position: Position) -> Self {
        let is_first_line = position.line == Position::START.line && position.passed == 0;
        let form = if position.server_sent {
            Form::ServerSent(Decoder::resume(max_event_bytes, position))
        } else if is_first_line {
            // Read again, the line shows the form that it showed before, if it did.
            Form::Unknown(Beginning {
                offset: position.offset,
                ..Beginning::default()
            })
        } else {
            Form::Lines(Framer::resume(max_event_bytes, position))
        };
        EventFramer {
            max_event_bytes,
            form,
        }
    }

    /// Passes over NUL bytes before a line's first other byte, as [`Framer::skipping_nuls`] does.
    #[must_use]
    pub fn skipping_nuls(self) -> Self {
        let holes = Holes::skipped();
        let form = match self.form {
            Form::Unknown(beginning) => Form::Unknown(Beginning { holes, ..beginning }),
            Form::Lines(framer) => Form::Lines(framer.with_holes(holes)),
            Form::ServerSent(decoder) => Form::ServerSent(decoder.with_holes(holes)),
        };
        EventFramer { form, ..self }
    }

    /// How many NUL bytes were passed over; see [`Framer::take_skipped_nuls`].
    pub fn take_skipped_nuls(&mut self) -> u64 {
        match &mut self.form {
            Form::Unknown(beginning) => beginning.holes.take_ended(),
            Form::Lines(framer) => framer.take_skipped_nuls(),
            Form::ServerSent(decoder) => decoder.take_skipped_nuls(),
        }
    }

    /// Takes the next bytes of the source and calls `each` with every event that they complete.
    pub fn push(&mut self, bytes: &[u8], each: impl FnMut(Line<'_>)) {
        let beginning = match &mut self.form {
            Form::Lines(framer) => return framer.push(bytes, each),
            Form::ServerSent(decoder) => return decoder.push(bytes, each),
            Form::Unknown(beginning) => beginning,
        };
        beginning.push(bytes);
        let held = &beginning.held;
        // However the bytes are cut, the same of them decide.
        let decisive = &held[..held.len().min(MAX_UNKNOWN_BYTES)];
        let recognised = recognise(decisive).or_else(|| {
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

    /// Hands out the unfinished event as an over-long one, if any of it has come, and passes over the
    /// rest of it. From then on nothing is held but what may show the form of the source.
    pub fn give_up(&mut self, each: impl FnMut(Line<'_>)) {
        match &mut self.form {
            Form::Unknown(_) => {}
            Form::Lines(framer) => framer.give_up(each),
            Form::ServerSent(decoder) => decoder.give_up(each),
        }
    }

    /// Where the source is to be read from to go on here: the beginning of the unfinished event, or
    /// of the next line; within an event that is passed over, the place up to which it has come.
    #[must_use]
    pub fn position(&self) -> Position {
        match &self.form {
            Form::Unknown(beginning) => Position {
                offset: beginning.offset,
                ..Position::START
            },
            Form::Lines(framer) => framer.position(),
            Form::ServerSent(decoder) => decoder.position(),
        }
    }

    /// How many bytes of an unfinished event are held.
    #[must_use]
    pub fn unfinished_bytes(&self) -> usize {
        match &self.form {
            Form::Unknown(beginning) => beginning.held.len(),
            Form::Lines(framer) => framer.unfinished_bytes(),
            Form::ServerSent(decoder) => decoder.unfinished_bytes(),
        }
    }

    /// How much memory is held for unfinished events: also after a long one, for the next. Next to
    /// nothing after [`EventFramer::give_up`].
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        match &self.form {
            Form::Unknown(beginning) => beginning.held.capacity(),
            Form::Lines(framer) => framer.held_bytes(),
            Form::ServerSent(decoder) => decoder.held_bytes(),
        }
    }

    /// Goes on in the form that was recognised, with what was held back.
    fn begin(&mut self, recognised: Recognised, each: impl FnMut(Line<'_>)) {
        let max = self.max_event_bytes;
        let beginning = match &mut self.form {
            Form::Unknown(beginning) => std::mem::take(beginning),
            _ => return,
        };
        let Beginning {
            offset,
            held,
            holes,
        } = beginning;
        match recognised {
            Recognised::Lines => {
                let start = Position {
                    offset,
                    ..Position::START
                };
                let mut framer = Framer::resume(max, start).with_holes(holes);
                framer.push(&held, each);
                self.form = Form::Lines(framer);
            }
            Recognised::ServerSent => {
                let skipped = bom_bytes(&held);
                let mut decoder = Decoder::new(max, offset + skipped as u64).with_holes(holes);
                decoder.push(&held[skipped..], each);
                self.form = Form::ServerSent(decoder);
            }
        }
    }
}

impl Beginning {
    fn push(&mut self, mut bytes: &[u8]) {
        if self.held.is_empty() {
            let hole = self.holes.skip(bytes);
            self.offset += hole as u64;
            bytes = &bytes[hole..];
        }
        self.held.extend_from_slice(bytes);
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
    use proptest::prelude::*;

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
        let text = [&blank[..], b"data: 1\n\n"].concat();
        assert_eq!(events(&[&text]), events(&[&blank, b"data: 1\n\n"]));
    }

    type Owned = (u64, u64, Vec<u8>, bool);

    fn owned(event: Line<'_>) -> Owned {
        (
            event.number,
            event.offset,
            event.bytes.to_vec(),
            event.too_long,
        )
    }

    /// What is found where the source is left after each of the pieces and taken up again, once
    /// with the unfinished event given up.
    fn resumed(
        text: &[u8],
        cuts: &[usize],
        given_up: Option<usize>,
        framer: impl Fn(Position) -> EventFramer,
    ) -> Vec<Owned> {
        let mut events = Vec::new();
        let mut current = framer(Position::START);
        let mut from = 0;
        let mut cuts = cuts.to_vec();
        cuts.extend(given_up);
        cuts.sort_unstable();
        for cut in cuts {
            current.push(&text[from..cut], |event| events.push(owned(event)));
            if given_up == Some(cut) {
                current.give_up(|event| events.push(owned(event)));
            }
            let position = current.position();
            from = usize::try_from(position.read_from()).expect("short");
            assert!(from <= cut, "what has not come is not passed");
            current = framer(position);
        }
        current.push(&text[from..], |event| events.push(owned(event)));
        current.finish(|event| events.push(owned(event)));
        events
    }

    /// The same without being taken up: what must be found.
    fn whole(text: &[u8], given_up: Option<usize>, mut framer: EventFramer) -> Vec<Owned> {
        let mut events = Vec::new();
        let (first, second) = text.split_at(given_up.unwrap_or(0));
        framer.push(first, |event| events.push(owned(event)));
        if given_up.is_some() {
            framer.give_up(|event| events.push(owned(event)));
        }
        framer.push(second, |event| events.push(owned(event)));
        framer.finish(|event| events.push(owned(event)));
        events
    }

    fn text_and_cuts() -> impl Strategy<Value = (Vec<u8>, Vec<usize>, Option<usize>)> {
        let parts = prop::sample::select(vec![
            &b"data:"[..],
            b"data: a",
            b"data",
            b"dat",
            b"id: 1",
            b":",
            b"\r",
            b"\n",
            b"\r\n",
            b"\n\n",
            b"\r\n\r\n",
            b"\0",
            b"{}",
            b" ",
            BOM,
        ]);
        let text = prop::collection::vec(parts, 0..30).prop_map(|parts| parts.concat());
        text.prop_flat_map(|text| {
            let cuts = prop::collection::vec(0..=text.len(), 0..5);
            let given_up = prop::option::of(0..=text.len());
            (Just(text), cuts, given_up)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_source_is_taken_up_where_it_was_left(
            (text, cuts, given_up) in text_and_cuts(),
            begins_with_data in any::<bool>(),
            max in 3..9_usize,
            skips in any::<bool>(),
        ) {
            let text = if begins_with_data { [b"data: 0", &*text].concat() } else { text };
            let framer = |position| {
                let framer = EventFramer::resume(max, position);
                if skips { framer.skipping_nuls() } else { framer }
            };
            let expected = whole(&text, given_up, framer(Position::START));
            prop_assert_eq!(resumed(&text, &cuts, given_up, framer), expected);
        }
    }

    #[test]
    fn an_event_of_several_lines_is_read_again_whole() {
        let mut framer = EventFramer::new(64);
        framer.push(b"id: 1\r\ndata: a\r\n: c\r\ndata: b\r", |_| {});
        let position = framer.position();
        assert_eq!((position.line, position.read_from()), (2, 7));
        assert!(position.server_sent);
        framer.push(b"\n\r\n: keep", |_| {});
        assert_eq!(
            (framer.position().line, framer.position().read_from()),
            (6, 32)
        );
    }

    #[test]
    fn an_event_that_is_given_up_is_passed_over_to_its_end() {
        let mut framer = EventFramer::new(64);
        framer.push(b"data: {\ndata: ", |_| {});
        let mut events = Vec::new();
        framer.give_up(|event| events.push(owned(event)));
        framer.give_up(|_| panic!("an event is handed out once"));
        assert_eq!(events, [(1, 0, b"{\n".to_vec(), true)]);
        assert_eq!((framer.unfinished_bytes(), framer.held_bytes()), (0, 0));
        let mut framer = EventFramer::resume(64, framer.position());
        events.clear();
        framer.push(b"x\ndata: y\n\ndata: z\n\n", |event| {
            events.push(owned(event))
        });
        assert_eq!(events, [(5, 25, b"z".to_vec(), false)]);
    }

    #[test]
    fn holes_are_passed_over_in_both_forms() {
        for (text, expected) in [
            ("\0\0{}\n\0{}\n", vec![(1, 2), (2, 6)]),
            ("\0\0data: 1\n\n\0data: 2\n\n", vec![(1, 2), (3, 12)]),
        ] {
            let mut framer = EventFramer::new(64).skipping_nuls();
            let mut places = Vec::new();
            framer.push(text.as_bytes(), |event| {
                places.push((event.number, event.offset))
            });
            assert_eq!(places, expected);
            assert_eq!(framer.take_skipped_nuls(), 3);
            assert_eq!(framer.take_skipped_nuls(), 0);
        }
    }
}
