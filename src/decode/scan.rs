//! Where strings, numbers and words end: the byte loops under the reader.

use super::reader::{Malformed, Why};
use super::specials::{self, CHUNK};

/// An end, or what is wrong before it.
type Found<T> = Result<T, Malformed>;

/// Finds the closing quote of the string whose first byte is at `start`, and whether it holds an
/// escape. Control characters and bad escapes are refused.
#[inline]
pub(super) fn string_end(bytes: &[u8], start: usize) -> Found<(usize, bool)> {
    let mut escaped = false;
    let mut pos = start;
    loop {
        pos = next_special(bytes, pos);
        match bytes.get(pos) {
            Some(b'"') => return Ok((pos, escaped)),
            Some(b'\\') => {
                escaped = true;
                pos = escape_end(bytes, pos)?;
            }
            Some(_) => {
                return Err(Malformed {
                    at: pos,
                    why: Why::Control,
                });
            }
            None => {
                return Err(Malformed {
                    at: bytes.len(),
                    why: Why::Ends,
                });
            }
        }
    }
}

/// Where the string whose first byte is at `start` ends, if it is short and plain: the case of
/// most names and labels.
#[inline(always)]
pub(super) fn short_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = bytes.get(start..)?;
    let end = match specials::first(rest.first_chunk::<CHUNK>()?) {
        Some(index) => start + index,
        None => start + CHUNK + specials::first(rest[CHUNK..].first_chunk::<CHUNK>()?)?,
    };
    (bytes[end] == b'"').then_some(end)
}

/// Position of the first quote, backslash or control character at or after `pos`; the length of
/// `bytes` where there is none.
#[inline]
fn next_special(bytes: &[u8], mut pos: usize) -> usize {
    while let Some(chunk) = bytes
        .get(pos..)
        .and_then(|rest| rest.first_chunk::<CHUNK>())
    {
        if let Some(index) = specials::first(chunk) {
            return pos + index;
        }
        pos += CHUNK;
    }
    next_special_at_end(bytes, pos)
}

/// The same where less than a chunk is left: the last strings of most lines.
#[inline]
fn next_special_at_end(bytes: &[u8], pos: usize) -> usize {
    let rest = bytes.get(pos..).unwrap_or_default();
    let passed = CHUNK - rest.len();
    match bytes.last_chunk::<CHUNK>() {
        Some(last) if passed < CHUNK => {
            // Zeroes come in behind the text, and are special.
            let shifted = u128::from_le_bytes(*last) >> (8 * passed);
            pos + specials::first(&shifted.to_le_bytes()).unwrap_or(rest.len())
        }
        _ => {
            let special = |&b: &u8| b < 0x20 || b == b'"' || b == b'\\';
            pos + rest.iter().position(special).unwrap_or(rest.len())
        }
    }
}

/// Passes the escape whose backslash is at `pos`.
fn escape_end(bytes: &[u8], pos: usize) -> Found<usize> {
    let refuse = |why| Err(Malformed { at: pos, why });
    let at = |pos: usize, why| Malformed { at: pos, why };
    match bytes.get(pos + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(pos + 2),
        Some(b'u') => {
            let unit = hex4(bytes, pos + 2).ok_or(at(pos, Why::Escape))?;
            match unit {
                0xD800..=0xDBFF => {
                    let low = match bytes.get(pos + 6..pos + 8) {
                        Some(b"\\u") => hex4(bytes, pos + 8),
                        _ => None,
                    };
                    match low {
                        Some(0xDC00..=0xDFFF) => Ok(pos + 12),
                        _ => refuse(Why::Surrogate),
                    }
                }
                0xDC00..=0xDFFF => refuse(Why::Surrogate),
                _ => Ok(pos + 6),
            }
        }
        Some(_) => refuse(Why::Escape),
        None => Err(at(bytes.len(), Why::Ends)),
    }
}

fn hex4(bytes: &[u8], pos: usize) -> Option<u32> {
    let digits = bytes.get(pos..pos + 4)?;
    digits.iter().try_fold(0, |value, &digit| {
        let digit = (digit as char).to_digit(16)?;
        Some(value * 16 + digit)
    })
}

/// The string that `raw` spells; `raw` has been through [`string_end`].
pub(super) fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(start) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..start]);
        let (c, length) = unescape_one(&rest.as_bytes()[start..]);
        out.push(c);
        rest = &rest[start + length..];
    }
    out.push_str(rest);
    out
}

/// Whether `raw` spells `text`. It is read no further than to where the two differ: names of
/// megabytes are compared with thousands of others.
pub(super) fn spells(raw: &str, text: &str) -> bool {
    let (mut raw, mut text) = (raw.as_bytes(), text.as_bytes());
    loop {
        let window = &raw[..raw.len().min(text.len())];
        let plain = memchr::memchr(b'\\', window).unwrap_or(window.len());
        if raw[..plain] != text[..plain] {
            return false;
        }
        (raw, text) = (&raw[plain..], &text[plain..]);
        if raw.first() != Some(&b'\\') {
            return raw.is_empty() && text.is_empty();
        }
        let (c, length) = unescape_one(raw);
        let Some(rest) = text.strip_prefix(c.encode_utf8(&mut [0; 4]).as_bytes()) else {
            return false;
        };
        (raw, text) = (&raw[length..], rest);
    }
}

/// The characters that `raw` spells; `raw` has been through [`string_end`].
pub(super) fn chars(raw: &str) -> impl Iterator<Item = char> {
    let mut rest = raw;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let (c, length) = match first {
            '\\' => unescape_one(rest.as_bytes()),
            plain => (plain, plain.len_utf8()),
        };
        rest = &rest[length..];
        Some(c)
    })
}

/// The character of the valid escape that `bytes` begins with, and the escape's length.
fn unescape_one(bytes: &[u8]) -> (char, usize) {
    let simple = match bytes[1] {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unescape_unit(bytes),
        same => same as char,
    };
    (simple, 2)
}

fn unescape_unit(bytes: &[u8]) -> (char, usize) {
    let valid = "the scanner passed this escape";
    let unit = hex4(bytes, 2).expect(valid);
    if (0xD800..0xDC00).contains(&unit) {
        let low = hex4(bytes, 8).expect(valid);
        let scalar = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        (char::from_u32(scalar).expect(valid), 12)
    } else {
        (char::from_u32(unit).expect(valid), 6)
    }
}

/// Passes the number that begins at `start` with `-` or a digit.
#[inline]
pub(super) fn number_end(bytes: &[u8], start: usize) -> Found<usize> {
    let digits_end = |mut pos: usize| {
        while bytes.get(pos).is_some_and(u8::is_ascii_digit) {
            pos += 1;
        }
        pos
    };
    let at_least_one = |pos: usize| match digits_end(pos) {
        end if end > pos => Ok(end),
        _ => Err(Malformed {
            at: pos,
            why: Why::Number,
        }),
    };
    let mut pos = start + usize::from(bytes[start] == b'-');
    pos = match bytes.get(pos) {
        Some(b'0') => pos + 1,
        _ => at_least_one(pos)?,
    };
    if bytes.get(pos) == Some(&b'.') {
        pos = at_least_one(pos + 1)?;
    }
    if matches!(bytes.get(pos), Some(b'e' | b'E')) {
        let signed = matches!(bytes.get(pos + 1), Some(b'+' | b'-'));
        pos = at_least_one(pos + 1 + usize::from(signed))?;
    }
    Ok(pos)
}

/// Passes `word`, which must stand at `pos`.
#[inline]
pub(super) fn word_end(bytes: &[u8], pos: usize, word: &[u8]) -> Found<usize> {
    match bytes.get(pos..pos + word.len()) {
        Some(found) if found == word => Ok(pos + word.len()),
        _ => Err(Malformed {
            at: pos,
            why: Why::Value,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specials_are_found_at_every_distance() {
        for special in (0..0x20).chain([b'"', b'\\']) {
            for distance in 0..50 {
                let mut bytes = vec![b'a'; 64];
                bytes[distance] = special;
                assert_eq!(next_special(&bytes, 0), distance, "{special:#x}");
                assert_eq!(next_special(&bytes[..distance], 0), distance);
            }
        }
    }

    #[test]
    fn nothing_else_is_special() {
        for byte in (0x20..=0xff).filter(|b| !matches!(b, b'"' | b'\\')) {
            assert_eq!(next_special(&[byte; 19], 0), 19, "{byte:#x}");
        }
    }

    #[test]
    fn a_special_behind_any_byte_is_found() {
        for before in (0x20..=0xff).filter(|b| !matches!(b, b'"' | b'\\')) {
            for special in [0, 0x1f, b'"', b'\\'] {
                let bytes = [
                    before, before, special, before, before, before, before, before,
                ];
                assert_eq!(next_special(&bytes, 0), 2, "{before:#x} {special:#x}");
            }
        }
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(unescape(r#"a\"\\\/\b\f\n\r\tz"#), "a\"\\/\u{8}\u{c}\n\r\tz");
        assert_eq!(unescape(r"\u00e9\uD83D\uDE00\u0000"), "é😀\0");
        assert_eq!(unescape("plain é"), "plain é");
    }

    #[test]
    fn what_is_spelt_is_told_without_undoing_it() {
        let raws = [
            "",
            "a",
            "ab",
            "b",
            r"\u0061",
            r"\u0061b",
            r"a\u0062",
            r"\n",
            r"\u000a",
            r"\\",
            r"\\n",
            "é",
            r"\u00e9",
            r"\u00E9a",
            "😀",
            r"\uD83D\uDE00",
            r"\ud83d\ude00a",
            "😀a",
            r"\u0000",
        ];
        for left in raws {
            assert_eq!(chars(left).collect::<String>(), unescape(left));
            for right in raws {
                let text = unescape(right);
                let expected = unescape(left) == text;
                assert_eq!(spells(left, &text), expected, "{left} {right}");
                assert_eq!(chars(left).eq(chars(right)), expected, "{left} {right}");
            }
        }
    }
}
