//! Text of a trace, made harmless for a terminal.
//!
//! Messages, names and values come from whoever wrote the trace. Shown as they are, they could
//! move the cursor, recolour or rewrite lines, hide characters, or turn the direction of the text
//! around. JSON output escapes for itself; text for people goes through here.

use std::fmt::{self, Write as _};

/// `text` with everything that does not simply show written visibly (`\n`, `\u{1b}`), and cut to
/// `max_chars` with `…` in place of the rest.
///
/// An escape counts as the one character that it stands for, so that no escape is cut in two. A
/// backslash stays as it is: what is shown is mostly JSON, whose escapes a reader wants to see as
/// they were written.
pub(crate) fn visible(text: &str, max_chars: usize) -> Visible<'_> {
    Visible { text, max_chars }
}

/// See [`visible`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visible<'a> {
    text: &'a str,
    max_chars: usize,
}

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut plain = self.text;
        let mut at = 0;
        for (count, (index, c)) in self.text.char_indices().enumerate() {
            if count == self.max_chars {
                f.write_str(&self.text[at..index])?;
                return f.write_char('…');
            }
            if is_hostile(c) {
                f.write_str(&self.text[at..index])?;
                write_escape(f, c)?;
                at = index + c.len_utf8();
                plain = &self.text[at..];
            }
        }
        f.write_str(plain)
    }
}

/// Whether a character acts on a terminal, or shows as nothing, or changes how others show.
///
/// Emoji joined by U+200D fall apart into their parts; that is the price of seeing a joiner that
/// somebody put into a name. Variation selectors up to U+FE0F stay: they only choose between two
/// looks of the character before them.
fn is_hostile(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' // C0, DEL, C1
        | '\u{ad}' // soft hyphen
        | '\u{34f}' // combining grapheme joiner
        | '\u{61c}' // Arabic letter mark
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' // Hangul fillers
        | '\u{17b4}' | '\u{17b5}' // Khmer inherent vowels
        | '\u{180b}'..='\u{180f}' // Mongolian selectors and vowel separator
        | '\u{200b}'..='\u{200f}' // zero width, direction marks
        | '\u{2028}'..='\u{202e}' // line and paragraph separators, bidirectional overrides
        | '\u{2060}'..='\u{206f}' // word joiner, invisible operators, bidirectional isolates
        | '\u{feff}' // byte order mark
        | '\u{fff0}'..='\u{fffb}' // interlinear annotations
        | '\u{1d173}'..='\u{1d17a}' // musical format controls
        | '\u{e0000}'..='\u{e0fff}' // tags, further variation selectors
        | '\u{fdd0}'..='\u{fdef}') // noncharacters
        || c as u32 & 0xfffe == 0xfffe // the last two of each plane: noncharacters too
}

fn write_escape(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    match c {
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        other => write!(f, "\\u{{{:x}}}", other as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_stays() {
        for text in [
            "",
            "refunds.issue",
            "a \\n b \\u001b \"quoted\" `ticked`",
            "Zażółć gęślą jaźń, 漢字, עברית, العربية, हिन्दी",
            "🦀 ✔\u{fe0f} e\u{301}",
            "\u{a0}\u{2007}\u{3000}",
        ] {
            assert_eq!(visible(text, 100).to_string(), text);
        }
    }

    #[test]
    fn what_acts_or_hides_is_escaped() {
        for (text, shown) in [
            ("a\nb\r\n\tc", "a\\nb\\r\\n\\tc"),
            (
                "\u{1b}[2J\u{1b}]0;title\u{7}",
                "\\u{1b}[2J\\u{1b}]0;title\\u{7}",
            ),
            ("\0\u{8}\u{1f}\u{7f}", "\\u{0}\\u{8}\\u{1f}\\u{7f}"),
            (
                "\u{80}\u{85}\u{9b}31m\u{9f}",
                "\\u{80}\\u{85}\\u{9b}31m\\u{9f}",
            ),
            (
                "user\u{202e}txt.exe\u{202c}",
                "user\\u{202e}txt.exe\\u{202c}",
            ),
            (
                "\u{2066}a\u{2069}\u{200e}\u{200f}\u{61c}",
                "\\u{2066}a\\u{2069}\\u{200e}\\u{200f}\\u{61c}",
            ),
            (
                "ad\u{200b}min\u{200c}\u{200d}",
                "ad\\u{200b}min\\u{200c}\\u{200d}",
            ),
            (
                "\u{feff}\u{2060}\u{ad}\u{3164}",
                "\\u{feff}\\u{2060}\\u{ad}\\u{3164}",
            ),
            ("one\u{2028}two\u{2029}", "one\\u{2028}two\\u{2029}"),
            (
                "\u{e0041}\u{e0100}\u{fff9}",
                "\\u{e0041}\\u{e0100}\\u{fff9}",
            ),
            (
                "\u{fdd0}\u{ffff}\u{1fffe}\u{10ffff}",
                "\\u{fdd0}\\u{ffff}\\u{1fffe}\\u{10ffff}",
            ),
        ] {
            assert_eq!(visible(text, 100).to_string(), shown);
        }
    }

    #[test]
    fn no_control_survives() {
        for c in (0..=0x10ffff).filter_map(char::from_u32) {
            let text = visible(c.encode_utf8(&mut [0; 4]), 1).to_string();
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        for (text, max_chars, shown) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "abc…"),
            ("éàü🦀", 3, "éàü…"),
            ("\n\n\n\n", 3, "\\n\\n\\n…"),
            ("a\nb\nc", 4, "a\\nb\\n…"),
            ("a", 0, "…"),
            ("", 0, ""),
        ] {
            assert_eq!(visible(text, max_chars).to_string(), shown);
        }
    }
}
