//! A writer of one JSON object on one line, in bounded space and without allocations of its own.
//!
//! The object is composed once with all its strings whole, which nearly always fits. If it does
//! not, the writer knows how long each string came out and composes it again, with an allowance
//! for each string that makes the whole fit.

use std::io::Write as _;
use std::time::SystemTime;

use super::{MAX_EVENT_BYTES, time};

/// What a string that was cut ends in.
const CUT_MARK: &str = "…";

/// What an object ends in.
const END: &[u8] = b"}\n";

/// What an object with a cut string ends in.
const TRUNCATED_END: &[u8] = b",\"truncated\":true}\n";

/// Most strings of one event that may be cut; a finding has nine.
const MAX_STRINGS: usize = 12;

/// Appends the object that `compose` writes, and an LF: at most [`MAX_EVENT_BYTES`] together.
///
/// `compose` may be called twice and writes the same members both times. Everything in it but its
/// texts is small: names and words are ours, numbers have twenty digits.
pub(super) fn append_line(out: &mut Vec<u8>, compose: impl Fn(&mut ObjectWriter<'_>)) {
    let start = out.len();
    let texts = compose_within(out, MAX_EVENT_BYTES, &compose);
    let written = out.len() - start;
    if !texts.cut && written + END.len() <= MAX_EVENT_BYTES {
        out.extend_from_slice(END);
        return;
    }
    let fixed = written - texts.total() + TRUNCATED_END.len();
    let allowance = fair_allowance(texts, MAX_EVENT_BYTES.saturating_sub(fixed));
    out.truncate(start);
    compose_within(out, allowance, &compose);
    out.extend_from_slice(TRUNCATED_END);
}

/// Appends the object up to its end, each text cut to `text_bytes`.
fn compose_within(
    out: &mut Vec<u8>,
    text_bytes: usize,
    compose: impl Fn(&mut ObjectWriter<'_>),
) -> Texts {
    out.push(b'{');
    let mut object = ObjectWriter {
        out,
        first: true,
        text_bytes,
        texts: Texts::default(),
    };
    compose(&mut object);
    object.texts
}

/// The largest allowance such that texts cut to it take at most `room` bytes together: short ones
/// stay whole, and what they leave is shared among the long ones.
fn fair_allowance(mut texts: Texts, mut room: usize) -> usize {
    let lengths = &mut texts.lengths[..texts.count];
    lengths.sort_unstable();
    for (index, &length) in lengths.iter().enumerate() {
        let share = room / (lengths.len() - index);
        if length > share {
            return share;
        }
        room -= length;
    }
    room
}

/// How long the texts of an object came out, escaped and without their quotes.
#[derive(Clone, Copy, Default)]
struct Texts {
    lengths: [usize; MAX_STRINGS],
    count: usize,
    /// Whether one of them was cut.
    cut: bool,
}

impl Texts {
    fn push(&mut self, length: usize) {
        self.lengths[self.count] = length;
        self.count += 1;
    }

    fn total(&self) -> usize {
        self.lengths[..self.count].iter().sum()
    }
}

/// Writes the members of an object.
pub(super) struct ObjectWriter<'o> {
    out: &'o mut Vec<u8>,
    /// Whether the next member is the first of its object.
    first: bool,
    /// Most bytes of one text, escaped and without its quotes.
    text_bytes: usize,
    texts: Texts,
}

impl ObjectWriter<'_> {
    /// A string of ours that needs no escapes and is never cut.
    pub(super) fn word(&mut self, name: &'static str, word: &'static str) {
        self.name(name);
        self.out.push(b'"');
        self.out.extend_from_slice(word.as_bytes());
        self.out.push(b'"');
    }

    /// A string that may hold anything, and is cut where the whole would be too long.
    pub(super) fn text(&mut self, name: &'static str, text: &str) {
        self.text_of(name, &[text]);
    }

    /// [`ObjectWriter::text`] of something that may be missing.
    pub(super) fn text_or_null(&mut self, name: &'static str, text: Option<&str>) {
        match text {
            Some(text) => self.text(name, text),
            None => self.null(name),
        }
    }

    /// [`ObjectWriter::text`] of the parts' concatenation.
    pub(super) fn text_of(&mut self, name: &'static str, parts: &[&str]) {
        self.name(name);
        self.out.push(b'"');
        let start = self.out.len();
        for part in parts {
            // Escapes only lengthen: what stands behind this prefix will be cut in any case.
            push_escaped(self.out, prefix(part, self.text_bytes));
        }
        let whole_bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        if whole_bytes.max(self.out.len() - start) > self.text_bytes {
            let room = self.text_bytes.saturating_sub(CUT_MARK.len());
            let kept = last_boundary(&self.out[start..], room);
            self.out.truncate(start + kept);
            self.out.extend_from_slice(CUT_MARK.as_bytes());
            self.texts.cut = true;
        }
        self.texts.push(self.out.len() - start);
        self.out.push(b'"');
    }

    /// An integer.
    pub(super) fn number(&mut self, name: &'static str, number: u64) {
        self.name(name);
        self.print(format_args!("{number}"));
    }

    /// A duration in seconds, to the microsecond.
    pub(super) fn seconds(&mut self, name: &'static str, seconds: f64) {
        self.name(name);
        // JSON has neither NaN nor infinity, and no clock runs for 10^15 seconds.
        let seconds = if seconds.is_finite() {
            seconds.clamp(0.0, 1e15)
        } else {
            0.0
        };
        self.print(format_args!("{seconds:.6}"));
    }

    /// A string of 32 hexadecimal digits.
    pub(super) fn hex(&mut self, name: &'static str, bits: u128) {
        self.name(name);
        self.print(format_args!("\"{bits:032x}\""));
    }

    /// A time in RFC 3339.
    pub(super) fn time(&mut self, name: &'static str, time: SystemTime) {
        self.name(name);
        self.out.push(b'"');
        time::push_rfc3339(self.out, time);
        self.out.push(b'"');
    }

    /// What is not known.
    pub(super) fn null(&mut self, name: &'static str) {
        self.name(name);
        self.out.extend_from_slice(b"null");
    }

    /// An object inside this one.
    pub(super) fn object(&mut self, name: &'static str, compose: impl FnOnce(&mut Self)) {
        self.name(name);
        self.out.push(b'{');
        self.first = true;
        compose(self);
        self.first = false;
        self.out.push(b'}');
    }

    fn name(&mut self, name: &'static str) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn print(&mut self, text: std::fmt::Arguments<'_>) {
        // A `Vec` takes whatever is written to it.
        let _ = self.out.write_fmt(text);
    }
}

/// The longest beginning of `text` of at most `max_bytes`.
fn prefix(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let mut end = max_bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let mut copied = 0;
    for (at, c) in text.char_indices() {
        if needs_escape(c) {
            out.extend_from_slice(&text.as_bytes()[copied..at]);
            push_escape(out, c);
            copied = at + c.len_utf8();
        }
    }
    out.extend_from_slice(&text.as_bytes()[copied..]);
}

/// What JSON demands, and what the [module above](super) promises beyond it. All of it lies in the
/// basic plane, so that one `\uXXXX` is always enough.
fn needs_escape(c: char) -> bool {
    matches!(c,
        '"' | '\\'
        | '\0'..='\u{1f}'
        | '\u{7f}'..='\u{9f}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}')
}

fn push_escape(out: &mut Vec<u8>, c: char) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match c {
        '"' | '\\' => c as u8,
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        _ => {
            let digit = |shift: u32| HEX[(c as usize >> shift) & 0xf];
            out.extend_from_slice(b"\\u");
            out.extend_from_slice(&[digit(12), digit(8), digit(4), digit(0)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Length of the longest beginning of escaped text, of at most `max_bytes`, that ends neither
/// inside an escape nor inside a character.
fn last_boundary(escaped: &[u8], max_bytes: usize) -> usize {
    let mut end = 0;
    while let Some(&byte) = escaped.get(end) {
        let unit_bytes = match byte {
            b'\\' if escaped.get(end + 1) == Some(&b'u') => 6,
            b'\\' => 2,
            0x00..=0x7f => 1,
            0x80..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xff => 4,
        };
        if end + unit_bytes > max_bytes {
            break;
        }
        end += unit_bytes;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(compose: impl Fn(&mut ObjectWriter<'_>)) -> String {
        let mut out = b"before\n".to_vec();
        append_line(&mut out, compose);
        let text = String::from_utf8(out).expect("UTF-8");
        text.strip_prefix("before\n").expect("kept").to_owned()
    }

    #[test]
    fn members_are_separated_at_every_level() {
        let text = line(|object| {
            object.object("empty", |_| {});
            object.word("word", "w");
            object.object("map", |map| {
                map.number("a", 0);
                map.number("b", u64::MAX);
            });
            object.null("none");
        });
        assert_eq!(
            text,
            "{\"empty\":{},\"word\":\"w\",\"map\":{\"a\":0,\"b\":18446744073709551615},\
             \"none\":null}\n"
        );
    }

    #[test]
    fn strings_are_escaped() {
        for (text, escaped) in [
            ("plain, ünïcödé 🦀", "plain, ünïcödé 🦀"),
            ("\"\\/", "\\\"\\\\/"),
            (
                "\n\r\t\0\u{8}\u{c}\u{1b}[31m",
                "\\n\\r\\t\\u0000\\u0008\\u000c\\u001b[31m",
            ),
            ("a\u{7f}\u{85}\u{9b}\u{a0}", "a\\u007f\\u0085\\u009b\u{a0}"),
            (
                "\u{2027}\u{2028}\u{2029}\u{202e}\u{202f}",
                "\u{2027}\\u2028\\u2029\\u202e\u{202f}",
            ),
            (
                "\u{61c}\u{200f}\u{2066}\u{2069}",
                "\\u061c\\u200f\\u2066\\u2069",
            ),
        ] {
            let expected = format!("{{\"t\":\"{escaped}\"}}\n");
            assert_eq!(line(|object| object.text("t", text)), expected);
        }
    }

    #[test]
    fn seconds_are_always_numbers() {
        for (seconds, text) in [
            (0.0204171, "0.020417"),
            (-1.0, "0.000000"),
            (f64::NAN, "0.000000"),
            (f64::INFINITY, "0.000000"),
            (f64::MAX, "1000000000000000.000000"),
        ] {
            let expected = format!("{{\"s\":{text}}}\n");
            assert_eq!(line(|object| object.seconds("s", seconds)), expected);
        }
    }

    #[test]
    fn the_limit_is_met_to_the_byte() {
        // {"t":"..."} and the LF.
        let room = MAX_EVENT_BYTES - 9;
        let whole = "x".repeat(room);
        assert_eq!(
            line(|object| object.text("t", &whole)).len(),
            MAX_EVENT_BYTES
        );
        let longer = "x".repeat(room + 1);
        let text = line(|object| object.text("t", &longer));
        assert_eq!(text.len(), MAX_EVENT_BYTES);
        assert!(
            text.ends_with("xx…\",\"truncated\":true}\n"),
            "{}",
            &text[text.len() - 40..]
        );
    }

    #[test]
    fn cuts_fall_between_characters_and_escapes() {
        for unit in ["\0", "\"", "é", "€", "🦀", "a\u{2028}"] {
            for lead in 0..7 {
                let long = "x".repeat(lead) + &unit.repeat(MAX_EVENT_BYTES);
                let text = line(|object| object.text("t", &long));
                assert!(text.len() <= MAX_EVENT_BYTES);
                assert!(text.len() > MAX_EVENT_BYTES - 8, "{unit:?}: {}", text.len());
                let value: serde_json::Value = serde_json::from_str(&text).expect("valid");
                let cut = value["t"].as_str().expect("a string").strip_suffix('…');
                assert!(long.starts_with(cut.expect("marked")));
            }
        }
    }

    #[test]
    fn long_texts_share_what_short_ones_leave() {
        let (short, long) = ("s".repeat(100), "l".repeat(100_000));
        let text = line(|object| {
            object.text("a", &long);
            object.text("b", &short);
            object.text_of("c", &[&short, &long, &short]);
        });
        let value: serde_json::Value = serde_json::from_str(&text).expect("valid");
        let length = |name: &str| value[name].as_str().expect("a string").len();
        assert_eq!(value["b"].as_str(), Some(&*short));
        assert_eq!(length("a"), length("c"));
        assert!(text.len() > MAX_EVENT_BYTES - 8);
    }
}
