//! A pull reader over one line of JSON: it validates RFC 8259 to the last byte while it hands out
//! members, entries and spans, in one pass and without recursion.
//!
//! It is exact rather than lenient: every text that the grammar accepts is accepted, whatever its
//! numbers, and nothing else is, with the two limits of R4 (depth, lone surrogates). Measured
//! against a tape (simd-json, buffers reused) a pull reader saves building what most records never
//! need, and it neither rewrites the line nor refuses `1e400`. The tests hold it against serde_json.

use std::borrow::Cow;

use super::scan;

/// Deepest nesting that is read; the record itself is level 1 (R4). Deep enough for any record
/// that a person or a program means, and a bound on what one line can make the reader remember.
pub const MAX_DEPTH: usize = 1024;

/// A line is not JSON, or not within the limits of R4: where, and what was expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Byte offset in the line.
    pub at: usize,
    /// What is wrong.
    pub why: Why,
}

/// What makes a line malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The text ends inside a value.
    Ends,
    /// No value begins here.
    Value,
    /// A member name was expected.
    Name,
    /// `:` was expected.
    Colon,
    /// `,` or the end of the object was expected.
    CommaOrBrace,
    /// `,` or the end of the list was expected.
    CommaOrBracket,
    /// Text follows the value.
    Trailing,
    /// A control character inside a string must be escaped.
    Control,
    /// No such escape.
    Escape,
    /// An escape that makes no Unicode scalar value: a lone surrogate.
    Surrogate,
    /// Not the grammar of a number.
    Number,
    /// Not UTF-8.
    Utf8,
    /// Nested deeper than [`MAX_DEPTH`].
    Depth,
    /// JSON, but no object.
    NotAnObject,
}

impl Why {
    /// What is wrong and what was expected, in words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Why::Ends => "the text ends inside a value",
            Why::Value => "expected a JSON value",
            Why::Name => "expected a member name in double quotes",
            Why::Colon => "expected `:` after a member name",
            Why::CommaOrBrace => "expected `,` or `}` after a member",
            Why::CommaOrBracket => "expected `,` or `]` after an entry",
            Why::Trailing => "more text follows the value",
            Why::Control => "a control character in a string must be escaped",
            Why::Escape => "expected one of the escapes \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX",
            Why::Surrogate => "a lone surrogate escape makes no Unicode character",
            Why::Number => "not a JSON number",
            Why::Utf8 => "a byte that is not UTF-8",
            Why::Depth => "nested deeper than 1024 levels",
            Why::NotAnObject => "JSON, but no object",
        }
    }
}

/// The line is malformed; [`Reader::malformed`] tells how. Without content, so that every result
/// of reading stays as small as the value it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// What reading gives: a value, or the end of the line's validity.
pub(crate) type Read<T> = Result<T, Refused>;

/// A string as it stands in the text, between its quotes, known to be valid.
#[derive(Clone, Copy, Debug)]
pub struct JsonStr<'a> {
    raw: &'a str,
    escaped: bool,
}

impl<'a> JsonStr<'a> {
    /// The string `text` itself.
    pub(crate) fn of(text: &'a str) -> Self {
        JsonStr {
            raw: text,
            escaped: false,
        }
    }

    /// The string that it spells.
    #[must_use]
    pub fn decode(self) -> Cow<'a, str> {
        if self.escaped {
            Cow::Owned(scan::unescape(self.raw))
        } else {
            Cow::Borrowed(self.raw)
        }
    }

    /// Its beginning: all of it, or at least `bytes` bytes.
    pub(crate) fn beginning(self, bytes: usize) -> Cow<'a, str> {
        if !self.escaped {
            return Cow::Borrowed(&self.raw[..self.raw.ceil_char_boundary(bytes)]);
        }
        let mut beginning = String::new();
        for c in scan::chars(self.raw) {
            if beginning.len() >= bytes {
                break;
            }
            beginning.push(c);
        }
        Cow::Owned(beginning)
    }

    /// The string, where it is written without escapes.
    #[must_use]
    pub fn plain(self) -> Option<&'a str> {
        (!self.escaped).then_some(self.raw)
    }

    /// How many bytes it takes in the record; what it spells is never longer.
    #[must_use]
    pub fn raw_bytes(self) -> usize {
        self.raw.len()
    }

    /// Whether it spells the empty string.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.raw.is_empty()
    }
}

impl PartialEq<str> for JsonStr<'_> {
    #[inline]
    fn eq(&self, other: &str) -> bool {
        if self.escaped {
            scan::spells(self.raw, other)
        } else {
            self.raw == other
        }
    }
}

impl PartialEq for JsonStr<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self.plain(), other.plain()) {
            (Some(_), Some(_)) => {}
            (Some(text), None) => return *other == *text,
            (None, Some(text)) => return *self == *text,
            (None, None) => return scan::chars(self.raw).eq(scan::chars(other.raw)),
        }
        // Names in a list are mostly of a kind and differ at their ends.
        let (left, right) = (self.raw.as_bytes(), other.raw.as_bytes());
        left.len() == right.len() && left.last() == right.last() && left == right
    }
}

/// The type of the value that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Null,
    Bool,
    Number,
    String,
    List,
    Object,
}

impl Type {
    /// With its article, for messages.
    pub(crate) const fn described(self) -> &'static str {
        match self {
            Type::Null => "null",
            Type::Bool => "a boolean",
            Type::Number => "a number",
            Type::String => "a string",
            Type::List => "a list",
            Type::Object => "an object",
        }
    }
}

/// Reads one JSON text. `pos` never goes back; everything before it is valid.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    pos: usize,
    depth: usize,
    /// What was refused; meaningful once something was.
    malformed: Malformed,
}

impl<'a> Reader<'a> {
    /// A reader at the start of a line.
    pub(crate) fn new(line: &'a [u8]) -> Result<Self, Malformed> {
        match simdutf8::basic::from_utf8(line) {
            Ok(text) => Ok(Reader::over(text, 0)),
            Err(_) => Err(Malformed {
                at: first_invalid(line),
                why: Why::Utf8,
            }),
        }
    }

    /// A reader at a place in a line, at whose beginning the line is valid so far. `None` where the
    /// line is not UTF-8.
    #[inline]
    pub(crate) fn at(line: &'a [u8], pos: usize) -> Option<Self> {
        // The whole of it: of a short piece every byte would be looked at alone.
        let text = simdutf8::basic::from_utf8(line).ok()?;
        Some(Reader {
            pos,
            ..Reader::over(text, 0)
        })
    }

    /// A reader over a value that another reader has passed, at that value's depth.
    #[inline]
    pub(crate) fn over(text: &'a str, depth: usize) -> Self {
        let malformed = Malformed {
            at: 0,
            why: Why::Value,
        };
        Reader {
            text,
            pos: 0,
            depth,
            malformed,
        }
    }

    /// What was refused.
    pub(crate) fn malformed(&self) -> Malformed {
        self.malformed
    }

    /// How many containers are open here.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The type of the next value, judged by its first byte.
    #[inline]
    pub(crate) fn peek(&mut self) -> Read<Type> {
        match self.next_byte()? {
            b'"' => Ok(Type::String),
            b'{' => Ok(Type::Object),
            b'[' => Ok(Type::List),
            b'-' | b'0'..=b'9' => Ok(Type::Number),
            b't' | b'f' => Ok(Type::Bool),
            b'n' => Ok(Type::Null),
            _ => self.refuse(Why::Value),
        }
    }

    /// Reads a string.
    #[inline]
    pub(crate) fn string(&mut self) -> Read<JsonStr<'a>> {
        match self.next_byte()? {
            b'"' => self.string_here(),
            _ => self.refuse(Why::Value),
        }
    }

    /// Passes any value and gives its text.
    #[inline]
    pub(crate) fn skip(&mut self) -> Read<&'a str> {
        let first = self.next_byte()?;
        let start = self.pos;
        match first {
            b'{' | b'[' => self.pass_container(first)?,
            other => self.pass_scalar(other)?,
        }
        Ok(&self.text[start..self.pos])
    }

    /// Reads with `read`; where that gives nothing, nothing has been read.
    ///
    /// For the shapes that most values have, which then cost a fraction of the general way. `read`
    /// must give nothing wherever the general way would find something to say, and may pass no
    /// value that is not valid to its last byte. It opens no level of its own: whoever calls this
    /// is far from [`MAX_DEPTH`].
    #[inline(always)]
    pub(crate) fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = self.pos;
        let value = read(self);
        if value.is_none() {
            self.pos = before;
        }
        value
    }

    /// Passes the next value if it is byte for byte `text`: a whole object or list that a reader
    /// has passed before at this depth.
    pub(crate) fn pass_if(&mut self, text: &str) -> bool {
        let is_it =
            self.next_byte().is_ok() && self.bytes()[self.pos..].starts_with(text.as_bytes());
        self.pos += if is_it { text.len() } else { 0 };
        is_it
    }

    /// Where the next value begins, for [`Reader::text_since`].
    pub(crate) fn mark_value(&mut self) -> Read<usize> {
        self.next_byte()?;
        Ok(self.pos)
    }

    /// The text from there up to here.
    pub(crate) fn text_since(&self, start: usize) -> &'a str {
        &self.text[start..self.pos]
    }

    /// Passes a punctuation mark.
    #[inline(always)]
    pub(crate) fn mark(&mut self, mark: u8) -> Option<()> {
        let found = self.next_byte() == Ok(mark);
        self.pos += usize::from(found);
        found.then_some(())
    }

    /// Passes a member's name, written without escapes, and its colon.
    #[inline(always)]
    pub(crate) fn name(&mut self, name: &str) -> Option<()> {
        self.mark(b'"')?;
        let rest = self
            .bytes()
            .get(self.pos..)?
            .strip_prefix(name.as_bytes())?;
        if rest.first() != Some(&b'"') {
            return None;
        }
        self.pos += name.len() + 1;
        self.mark(b':')
    }

    /// Reads a short string that is written without escapes.
    #[inline(always)]
    pub(crate) fn plain_string(&mut self) -> Option<JsonStr<'a>> {
        self.mark(b'"')?;
        let start = self.pos;
        let end = scan::short_string_end(self.bytes(), start)?;
        self.pos = end + 1;
        Some(JsonStr {
            raw: &self.text[start..end],
            escaped: false,
        })
    }

    /// Reads an integer of up to 18 digits, if a member or list ends right behind it.
    #[inline(always)]
    pub(crate) fn plain_integer(&mut self) -> Option<u64> {
        const MOST_DIGITS: usize = 18;
        let first = self.next_byte().ok()?;
        let mut value = 0;
        let start = self.pos;
        while let Some(digit @ b'0'..=b'9') = self.bytes().get(self.pos) {
            value = value * 10 + u64::from(digit - b'0');
            self.pos += 1;
            if self.pos - start > MOST_DIGITS {
                return None;
            }
        }
        let is_number = self.pos > start && (first != b'0' || self.pos == start + 1);
        let ends = matches!(self.bytes().get(self.pos), Some(b',' | b'}' | b']' | b' '));
        (is_number && ends).then_some(value)
    }

    /// Enters the object that is next; its members are then read with [`Reader::next_name`].
    #[inline]
    pub(crate) fn begin_object(&mut self) -> Read<()> {
        self.open()
    }

    /// The name of the next member, whose value must then be read; `None` once the object has
    /// ended. `first` tells whether no member of it has been read yet.
    #[inline(always)]
    pub(crate) fn next_name(&mut self, first: bool) -> Read<Option<JsonStr<'a>>> {
        match self.next_byte()? {
            b'}' => {
                self.close();
                Ok(None)
            }
            b',' if !first => {
                self.pos += 1;
                self.name_and_colon().map(Some)
            }
            _ if first => self.name_and_colon().map(Some),
            _ => self.refuse(Why::CommaOrBrace),
        }
    }

    /// Enters the list that is next; its entries are then read with [`Reader::next_entry`].
    #[inline]
    pub(crate) fn begin_list(&mut self) -> Read<()> {
        self.open()
    }

    /// Whether another entry follows, which must then be read. `first` tells whether none has been
    /// read yet.
    #[inline]
    pub(crate) fn next_entry(&mut self, first: bool) -> Read<bool> {
        match self.next_byte()? {
            b']' => {
                self.close();
                Ok(false)
            }
            b',' if !first => {
                self.pos += 1;
                Ok(true)
            }
            _ if first => Ok(true),
            _ => self.refuse(Why::CommaOrBracket),
        }
    }

    /// Goes on inside of an object at the top, where a member's value is next.
    pub(crate) fn resume_in_object(&mut self) {
        self.depth += 1;
    }

    /// How much of the text has been read.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.pos
    }

    /// Checks that nothing but white space is left.
    pub(crate) fn end(&mut self) -> Read<()> {
        match self.next_byte() {
            Err(_) => Ok(()),
            Ok(_) => self.refuse(Why::Trailing),
        }
    }

    #[inline(always)]
    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    #[cold]
    fn refuse<T>(&mut self, why: Why) -> Read<T> {
        self.refuse_at(Malformed { at: self.pos, why })
    }

    #[cold]
    fn refuse_at<T>(&mut self, malformed: Malformed) -> Read<T> {
        self.malformed = malformed;
        Err(Refused)
    }

    /// The next byte that is no white space; `pos` is there then.
    #[inline(always)]
    fn next_byte(&mut self) -> Read<u8> {
        match self.bytes().get(self.pos) {
            Some(&byte) if byte > b' ' => Ok(byte),
            _ => self.byte_after_white_space(),
        }
    }

    fn byte_after_white_space(&mut self) -> Read<u8> {
        while let Some(&byte) = self.bytes().get(self.pos) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Ok(byte);
            }
            self.pos += 1;
        }
        self.refuse(Why::Ends)
    }

    #[inline]
    fn open(&mut self) -> Read<()> {
        self.next_byte()?;
        if self.depth == MAX_DEPTH {
            return self.refuse(Why::Depth);
        }
        self.depth += 1;
        self.pos += 1;
        Ok(())
    }

    #[inline]
    fn close(&mut self) {
        self.depth -= 1;
        self.pos += 1;
    }

    #[inline(always)]
    fn name_and_colon(&mut self) -> Read<JsonStr<'a>> {
        if self.next_byte()? != b'"' {
            return self.refuse(Why::Name);
        }
        let name = self.string_here()?;
        if self.next_byte()? != b':' {
            return self.refuse(Why::Colon);
        }
        self.pos += 1;
        Ok(name)
    }

    /// Reads the string whose opening quote is at `pos`.
    #[inline(always)]
    fn string_here(&mut self) -> Read<JsonStr<'a>> {
        let start = self.pos + 1;
        let (end, escaped) = match scan::short_string_end(self.bytes(), start) {
            Some(end) => (end, false),
            None => self.long_string_end(start)?,
        };
        self.pos = end + 1;
        Ok(JsonStr {
            raw: &self.text[start..end],
            escaped,
        })
    }

    /// Gives what fits into two registers; a whole string goes through memory.
    #[inline(never)]
    fn long_string_end(&mut self, start: usize) -> Read<(usize, bool)> {
        match scan::string_end(self.bytes(), start) {
            Ok(found) => Ok(found),
            Err(malformed) => self.refuse_at(malformed),
        }
    }

    #[inline(always)]
    fn pass_scalar(&mut self, first: u8) -> Read<()> {
        let end = match first {
            b'"' => return self.string_here().map(drop),
            b'-' | b'0'..=b'9' => scan::number_end(self.bytes(), self.pos),
            b't' => scan::word_end(self.bytes(), self.pos, b"true"),
            b'f' => scan::word_end(self.bytes(), self.pos, b"false"),
            b'n' => scan::word_end(self.bytes(), self.pos, b"null"),
            _ => return self.refuse(Why::Value),
        };
        match end {
            Ok(end) => {
                self.pos = end;
                Ok(())
            }
            Err(malformed) => self.refuse_at(malformed),
        }
    }

    /// Passes the container that begins at `pos`. What is open is kept as one bit a level.
    #[inline(never)]
    fn pass_container(&mut self, first: u8) -> Read<()> {
        let base = self.depth;
        let mut levels = Levels::default();
        let mut first = first;
        // Whether the innermost open container is an object.
        let mut object = false;
        loop {
            // A value begins at `pos` with `first`.
            if first == b'{' || first == b'[' {
                levels.set(self.depth, object);
                object = first == b'{';
                self.open()?;
                let next = self.next_byte()?;
                if next != if object { b'}' } else { b']' } {
                    first = self.first_of_value(object)?;
                    continue;
                }
                self.close();
                object = levels.get(self.depth);
            } else {
                self.pass_scalar(first)?;
            }
            // A value has ended; so may the containers around it.
            loop {
                if self.depth == base {
                    return Ok(());
                }
                match self.next_byte()? {
                    b',' => break,
                    b'}' if object => self.close(),
                    b']' if !object => self.close(),
                    _ if object => return self.refuse(Why::CommaOrBrace),
                    _ => return self.refuse(Why::CommaOrBracket),
                }
                object = levels.get(self.depth);
            }
            self.pos += 1;
            first = self.first_of_value(object)?;
        }
    }

    /// The first byte of the next value, behind its name in an object.
    #[inline(always)]
    fn first_of_value(&mut self, object: bool) -> Read<u8> {
        if object {
            self.name_and_colon()?;
        }
        self.next_byte()
    }
}

/// For each depth below a container, whether the container there is an object; one bit each.
#[derive(Default)]
struct Levels {
    shallow: u64,
    /// Allocated where nesting goes deeper than 64.
    deep: Option<Box<[u64; MAX_DEPTH / 64 + 1]>>,
}

impl Levels {
    #[inline]
    fn set(&mut self, depth: usize, object: bool) {
        let (word, bit) = self.word(depth);
        *word = *word & !(1 << bit) | (u64::from(object) << bit);
    }

    #[inline]
    fn get(&mut self, depth: usize) -> bool {
        let (word, bit) = self.word(depth);
        *word >> bit & 1 == 1
    }

    #[inline]
    fn word(&mut self, depth: usize) -> (&mut u64, usize) {
        match depth / 64 {
            0 => (&mut self.shallow, depth),
            index => (&mut self.deep.get_or_insert_default()[index], depth % 64),
        }
    }
}

#[cold]
fn first_invalid(line: &[u8]) -> usize {
    std::str::from_utf8(line).map_or_else(|error| error.valid_up_to(), |_| line.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8]) -> Result<(), Malformed> {
        let mut reader = Reader::new(text)?;
        let result = reader.skip().and_then(|_| reader.end());
        result.map_err(|Refused| reader.malformed())
    }

    fn why(text: &[u8]) -> (usize, Why) {
        let Err(Malformed { at, why }) = check(text) else {
            panic!("accepted {:?}", String::from_utf8_lossy(text));
        };
        (at, why)
    }

    #[test]
    fn valid_texts_are_accepted() {
        for text in [
            "0",
            "-0",
            "1e400",
            "-12.50E+07",
            "123456789012345678901234567890",
            "true",
            " \t\r\nnull ",
            r#""""#,
            r#""a\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00""#,
            "[]",
            "{}",
            "[ ]",
            "{ }",
            r#"[1,[2,[3]],{"a":{"b":[]}},"x"]"#,
            "{\"a\":1 , \"a\":2}",
            "\"\u{7f}\u{2028}é😀\"",
        ] {
            assert_eq!(check(text.as_bytes()), Ok(()), "{text}");
        }
    }

    #[test]
    fn faults_are_named_where_they_are() {
        for (text, at, reason) in [
            ("", 0, Why::Ends),
            ("[1", 2, Why::Ends),
            ("{\"a\"", 4, Why::Ends),
            ("\"a", 2, Why::Ends),
            ("[1,]", 3, Why::Value),
            ("[,1]", 1, Why::Value),
            ("{,}", 1, Why::Name),
            ("{\"a\":1,}", 7, Why::Name),
            ("{a:1}", 1, Why::Name),
            ("{\"a\" 1}", 5, Why::Colon),
            ("{\"a\":1 \"b\":2}", 7, Why::CommaOrBrace),
            ("{\"a\":1]", 6, Why::CommaOrBrace),
            ("[1}", 2, Why::CommaOrBracket),
            ("[1 2]", 3, Why::CommaOrBracket),
            ("1 2", 2, Why::Trailing),
            ("{}}", 2, Why::Trailing),
            ("\"a\tb\"", 2, Why::Control),
            ("\"a\\x\"", 2, Why::Escape),
            ("\"\\u12g4\"", 1, Why::Escape),
            ("\"\\ud800\"", 1, Why::Surrogate),
            ("\"\\udc00\"", 1, Why::Surrogate),
            ("\"\\ud800\\u0041\"", 1, Why::Surrogate),
            ("01", 1, Why::Trailing),
            ("[01]", 2, Why::CommaOrBracket),
            ("-", 1, Why::Number),
            ("1.", 2, Why::Number),
            ("1e", 2, Why::Number),
            ("+1", 0, Why::Value),
            (".5", 0, Why::Value),
            ("tru", 0, Why::Value),
            ("True", 0, Why::Value),
            ("NaN", 0, Why::Value),
            ("\u{feff}{}", 0, Why::Value),
            ("\0{}", 0, Why::Value),
            ("{}\0", 2, Why::Trailing),
        ] {
            assert_eq!(why(text.as_bytes()), (at, reason), "{text:?}");
        }
        assert_eq!(why(b"\"ab\xff\""), (3, Why::Utf8));
    }

    #[test]
    fn depth_is_limited_and_costs_no_stack() {
        let nested = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
        assert_eq!(check(&nested(MAX_DEPTH)), Ok(()));
        assert_eq!(why(&nested(MAX_DEPTH + 1)), (MAX_DEPTH, Why::Depth));
        assert_eq!(why(&vec![b'['; 100_000]), (MAX_DEPTH, Why::Depth));
        let objects = [
            b"{\"a\":".repeat(MAX_DEPTH),
            b"0".to_vec(),
            vec![b'}'; MAX_DEPTH],
        ]
        .concat();
        assert_eq!(check(&objects), Ok(()));
    }

    #[test]
    fn members_and_entries_are_handed_out() {
        let mut reader = Reader::new(br#" {"a": [1, "x\u0041"], "\u0062" : {"c":null}} "#).unwrap();
        let mut seen = Vec::new();
        reader.begin_object().unwrap();
        while let Some(name) = reader.next_name(seen.is_empty()).unwrap() {
            let name = name.decode().into_owned();
            if name == "a" {
                reader.begin_list().unwrap();
                while reader.next_entry(seen.is_empty()).unwrap() {
                    seen.push(format!("a/{}={}", seen.len(), reader.skip().unwrap()));
                }
            } else {
                seen.push(format!("{name}={}", reader.skip().unwrap()));
            }
        }
        reader.end().unwrap();
        assert_eq!(seen, ["a/0=1", "a/1=\"x\\u0041\"", "b={\"c\":null}"]);
    }
}
