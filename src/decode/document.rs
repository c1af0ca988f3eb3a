//! Reading the members that a document describes: what is there is read, what is malformed is
//! noted with its pointer, and reading goes on (R5, R6).

use std::borrow::Cow;
use std::fmt;
use std::mem;

use super::reader::{JsonStr, Read, Reader, Type};
use crate::finding::Code;
use crate::pointer::Path;
use crate::schema::known::KnownPair;

/// Most faults that are noted of one record, and most findings of a code that the steps add. A
/// record within the size limit could hold millions, each of which would cost hundreds of bytes
/// until it is written; the last one says how many more there were.
pub const MAX_FAULTS: usize = 1000;

/// Longest piece of a trace's text that is quoted in a message, in bytes: about a line of a
/// terminal, and longer than names and predicates are.
const MAX_QUOTED_BYTES: usize = 80;

/// Something that is wrong with a record, before it is known where the record stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) code: Code,
    pub(crate) rule: &'static str,
    pub(crate) pointer: String,
    pub(crate) predicate: Option<String>,
    pub(crate) message: String,
    pub(crate) detail: Option<String>,
}

/// What became of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading<T> {
    /// It is not there, or optional and `null`.
    Absent,
    /// It is there and malformed; a fault stands for it.
    Unreadable,
    /// It could be read.
    Value(T),
}

impl<T> Reading<T> {
    pub(crate) fn value(&self) -> Option<&T> {
        match self {
            Reading::Value(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Reading::Absent)
    }
}

impl<T> Reading<Reading<T>> {
    /// What became of a member inside a member.
    pub(crate) fn flatten(self) -> Reading<T> {
        match self {
            Reading::Absent => Reading::Absent,
            Reading::Unreadable => Reading::Unreadable,
            Reading::Value(inner) => inner,
        }
    }
}

/// A list of which some entries may be malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct List<T> {
    /// The entries that could be read, each with its index.
    pub(crate) entries: Vec<(usize, T)>,
    /// Whether all could.
    pub(crate) whole: bool,
}

impl<T> List<T> {
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, value)| value)
    }
}

/// Whether a document demands a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Missing or `null` is a fault.
    Required,
    /// `null` is read as absent, with an advisory.
    Optional,
    /// Required or optional, as another member decides: [`Document::settle`] is called once the
    /// object has been read.
    Later,
}

/// A member of the object that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<T> {
    pub(crate) reading: Reading<T>,
    occurrences: u32,
    null: bool,
}

impl<T> Member<T> {
    pub(crate) const fn new() -> Self {
        Member {
            reading: Reading::Absent,
            occurrences: 0,
            null: false,
        }
    }

    /// Takes note of the member without its value.
    pub(crate) fn pass(&mut self) {
        self.occurrences += 1;
    }

    /// Whether it came exactly once.
    pub(crate) fn is_single(&self) -> bool {
        self.occurrences == 1
    }

    pub(crate) fn is_missing(&self) -> bool {
        self.occurrences == 0
    }
}

impl<T> Default for Member<T> {
    fn default() -> Self {
        Member::new()
    }
}

/// A document that is being read, and what is wrong with it so far.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub(crate) reader: Reader<'a>,
    pub(crate) faults: Faults,
    /// The documents that the placements before repeated.
    pub(crate) known: Option<&'a KnownPair>,
}

/// The faults of one record, and how they are noted.
#[derive(Debug)]
pub(crate) struct Faults {
    pub(crate) drafts: Vec<Draft>,
    /// How many came after [`MAX_FAULTS`].
    pub(crate) dropped: usize,
    /// The step that a fault found now belongs to.
    pub(crate) rule: &'static str,
    /// Whether members that no document describes are faults.
    pub(crate) strict: bool,
    /// The code of a malformed member, and that of one that no document describes.
    pub(crate) malformed: Code,
    pub(crate) unrecognised: Code,
}

impl Faults {
    pub(crate) fn new(strict: bool) -> Self {
        Faults {
            drafts: Vec::new(),
            dropped: 0,
            rule: "7",
            strict,
            malformed: Code::Structure,
            unrecognised: Code::Structure,
        }
    }

    /// Notes that the member at `at` is malformed.
    #[cold]
    pub(crate) fn structure(&mut self, at: &Path, message: impl fmt::Display, expected: &str) {
        if self.drafts.len() == MAX_FAULTS {
            self.dropped += 1;
            return;
        }
        let detail = (!expected.is_empty()).then(|| format!("expected {expected}"));
        self.note(self.malformed, at, message.to_string(), detail);
    }

    /// Notes that a string is not one of those that are allowed.
    pub(crate) fn wrong_string(&mut self, at: &Path, found: &str, expected: &str) {
        let label = at.label();
        if found.is_empty() {
            self.structure(at, format_args!("{label} is the empty string"), expected);
        } else {
            let found = quoted(found);
            self.structure(at, format_args!("{label} is {found:?}"), expected);
        }
    }

    /// Notes that the schema knows no such member; once, however often it is there.
    #[cold]
    pub(crate) fn unknown(&mut self, at: &Path, detail: &str) {
        let pointer = at.render();
        if self.drafts.len() < MAX_FAULTS && self.drafts.iter().any(|d| d.pointer == pointer) {
            return;
        }
        let message = format!("{} is no member that the schema defines", at.label());
        self.note(self.unrecognised, at, message, Some(detail.to_owned()));
    }

    /// Notes that a required member is not there.
    pub(crate) fn missing(&mut self, at: &Path, expected: &str) {
        self.structure(at, format_args!("{} is missing", at.label()), expected);
    }

    /// Takes the faults of a part that was read on its own.
    pub(crate) fn append(&mut self, other: &mut Faults) {
        self.drafts.append(&mut other.drafts);
        self.dropped += mem::take(&mut other.dropped);
    }

    #[cold]
    fn note(&mut self, code: Code, at: &Path, message: String, detail: Option<String>) {
        if self.drafts.len() == MAX_FAULTS {
            self.dropped += 1;
            return;
        }
        let (pointer, rule) = (at.render(), self.rule);
        self.drafts.push(Draft {
            code,
            rule,
            pointer,
            predicate: None,
            message,
            detail,
        });
    }
}

impl<'a> Document<'a> {
    /// Reads a member with `read`, unless it is `null` or occurs again.
    pub(crate) fn member<T>(
        &mut self,
        at: &Path,
        need: Need,
        expected: &str,
        member: &mut Member<T>,
        read: impl FnOnce(&mut Self, &Path) -> Read<Reading<T>>,
    ) -> Read<()> {
        member.occurrences += 1;
        if member.occurrences > 1 {
            if member.occurrences == 2 {
                self.doubled(at);
            }
            member.reading = Reading::Unreadable;
            return self.reader.skip().map(drop);
        }
        member.null = self.reader.peek()? == Type::Null;
        if !member.null {
            member.reading = read(self, at)?;
            return Ok(());
        }
        self.reader.skip()?;
        if need != Need::Later {
            self.settle_null(at, need, expected, member);
        }
        Ok(())
    }

    fn settle_null<T>(&mut self, at: &Path, need: Need, expected: &str, member: &mut Member<T>) {
        if need == Need::Required {
            self.faults
                .structure(at, format_args!("{} is null", at.label()), expected);
            member.reading = Reading::Unreadable;
        } else {
            let message = format!("{} is null and was read as absent", at.label());
            let detail = "leave an optional member out instead".to_owned();
            self.faults.note(Code::Null, at, message, Some(detail));
        }
    }

    /// Decides on a member that was read with [`Need::Later`], now that the need is known.
    pub(crate) fn settle<T>(
        &mut self,
        at: &Path,
        need: Need,
        expected: &str,
        member: &mut Member<T>,
    ) {
        if member.null && member.occurrences == 1 {
            self.settle_null(at, need, expected, member);
        } else if need == Need::Required {
            self.demand(at, expected, member);
        }
    }

    /// Notes a required member that never came, and makes it unreadable.
    pub(crate) fn demand<T>(&mut self, at: &Path, expected: &str, member: &mut Member<T>) {
        if member.is_missing() {
            self.faults.missing(at, expected);
            member.reading = Reading::Unreadable;
        }
    }

    /// Notes a member that occurs twice. That says all there is to say of the member itself;
    /// what is wrong inside its first value stands.
    #[cold]
    pub(crate) fn doubled(&mut self, at: &Path) {
        // Where nothing more is noted nothing is replaced: a hostile record doubles a million.
        if self.faults.drafts.len() < MAX_FAULTS {
            let pointer = at.render();
            self.faults.drafts.retain(|draft| draft.pointer != pointer);
        }
        let message = format!("{} occurs twice in its object", at.label());
        self.faults.structure(
            at,
            message,
            "it once; two readers could disagree about which one counts",
        );
    }

    /// Passes a member that the document does not describe.
    pub(crate) fn unknown(&mut self, at: &Path) -> Read<()> {
        if self.faults.strict {
            self.faults
                .unknown(at, "a reader that is not strict ignores it");
        }
        self.reader.skip().map(drop)
    }

    /// Passes a value of the wrong type and notes it.
    pub(crate) fn wrong_type<T>(&mut self, at: &Path, expected: &str) -> Read<Reading<T>> {
        let found = self.reader.peek()?;
        let text = self.reader.skip()?;
        let (label, described) = (at.label(), found.described());
        match found {
            Type::Bool => self
                .faults
                .structure(at, format_args!("{label} is {text}"), expected),
            Type::Number | Type::String => {
                let found = quoted(text);
                let message = format_args!("{label} is {described}, {found}");
                self.faults.structure(at, message, expected);
            }
            _ => self
                .faults
                .structure(at, format_args!("{label} is {described}"), expected),
        }
        Ok(Reading::Unreadable)
    }

    /// Reads an object's members with `member`; `false` where it is no object.
    pub(crate) fn object(
        &mut self,
        at: &Path,
        expected: &str,
        mut member: impl FnMut(&mut Self, &str, &Path) -> Read<()>,
    ) -> Read<bool> {
        if self.reader.peek()? != Type::Object {
            return self.wrong_type::<()>(at, expected).map(|_| false);
        }
        self.members(|document, name| match name.plain() {
            Some(name) => member(document, name, &at.name(name)),
            None => {
                let name = name.decode();
                member(document, &name, &at.name(&name))
            }
        })?;
        Ok(true)
    }

    /// Reads the members of the object that is next, their names as they are written.
    pub(crate) fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, JsonStr<'a>) -> Read<()>,
    ) -> Read<()> {
        self.reader.begin_object()?;
        let mut first = true;
        while let Some(name) = self.reader.next_name(first)? {
            member(self, name)?;
            first = false;
        }
        Ok(())
    }

    /// Reads a list's entries with `entry`, but for those that `plain` can read: the ones that are
    /// written as most are, and in which nothing is wrong (see [`Reader::attempt`]).
    pub(crate) fn list<T>(
        &mut self,
        at: &Path,
        expected: &str,
        plain: impl Fn(&mut Reader<'a>) -> Option<T>,
        mut entry: impl FnMut(&mut Self, &Path) -> Read<Reading<T>>,
    ) -> Read<Reading<List<T>>> {
        if self.reader.peek()? != Type::List {
            return self.wrong_type(at, expected);
        }
        let mut list = List {
            entries: Vec::new(),
            whole: true,
        };
        self.reader.begin_list()?;
        let mut index = 0;
        while self.reader.next_entry(index == 0)? {
            if let Some(value) = self.reader.attempt(&plain) {
                list.entries.push((index, value));
            } else {
                match entry(self, &at.index(index))? {
                    Reading::Value(value) => list.entries.push((index, value)),
                    _ => list.whole = false,
                }
            }
            index += 1;
        }
        Ok(Reading::Value(list))
    }

    /// Reads any string.
    pub(crate) fn string(&mut self, at: &Path, expected: &str) -> Read<Reading<JsonStr<'a>>> {
        match self.reader.peek()? {
            Type::String => Ok(Reading::Value(self.reader.string()?)),
            _ => self.wrong_type(at, expected),
        }
    }

    /// Reads a string that may not be empty.
    pub(crate) fn non_empty(&mut self, at: &Path, expected: &str) -> Read<Reading<JsonStr<'a>>> {
        let reading = self.string(at, expected)?;
        if reading.value().is_some_and(|string| string.is_empty()) {
            self.faults.structure(
                at,
                format_args!("{} is the empty string", at.label()),
                expected,
            );
            return Ok(Reading::Unreadable);
        }
        Ok(reading)
    }

    /// Reads an integer literal from 0 to 2^64-1; `-0` is 0 (R2).
    pub(crate) fn integer(&mut self, at: &Path) -> Read<Reading<u64>> {
        if self.reader.peek()? != Type::Number {
            return self.wrong_type(at, INTEGER);
        }
        let text = self.reader.skip()?;
        match text.parse() {
            Ok(value) => Ok(Reading::Value(value)),
            Err(_) if text == "-0" => Ok(Reading::Value(0)),
            Err(_) => {
                let (label, found) = (at.label(), quoted(text));
                self.faults
                    .structure(at, format_args!("{label} is {found}"), INTEGER);
                Ok(Reading::Unreadable)
            }
        }
    }
}

/// What a `seq` or a version is.
pub(crate) const INTEGER: &str =
    "an integer from 0 to 18446744073709551615, written without a fraction or an exponent";

/// A piece of the trace's text, cut to what fits in a message.
pub(crate) fn quoted(text: &str) -> Cow<'_, str> {
    cut(text, MAX_QUOTED_BYTES)
}

/// As much of a string as [`quoted`] needs to see: a hostile record quotes its megabytes a thousand
/// times.
pub(crate) fn quotable(string: JsonStr<'_>) -> Cow<'_, str> {
    string.beginning(MAX_QUOTED_BYTES + 1)
}

/// `text`, or as much of it as fits in `max_bytes` with `…` behind it.
pub(crate) fn cut(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(max_bytes);
    Cow::Owned(format!("{}…", &text[..end]))
}
