//! From the bytes of one line to a record: what can be read of it, and what is malformed.
//!
//! A record is read in one pass. Only where `content` comes before `kind` it is passed first and
//! read afterwards, once it is known whether anybody reads it.

pub(crate) mod document;
pub(crate) mod lookup;
pub(crate) mod reader;
mod scan;
mod specials;
mod trace_key;

use std::mem;

use document::{Document, Draft, Faults, Member, Need, Reading};
use reader::{Read, Reader, Refused, Type};

pub use document::MAX_FAULTS;
pub use reader::{JsonStr, MAX_DEPTH, Malformed, Why};

use crate::pointer::{JsonPointer, Path};
use crate::schema::agent::{AGENT, Agent};
use crate::schema::known::KnownPair;
use crate::schema::requirements::Requirements;
use crate::schema::scheduling::{SCHEDULING, Scheduling};

/// The kinds of record that the verifier reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Submitted,
    Admitted,
    Bound,
    Rejected,
    Other,
}

impl Kind {
    fn of(name: JsonStr<'_>) -> Kind {
        const KINDS: [(&str, Kind); 4] = [
            ("task.submitted", Kind::Submitted),
            ("task.admitted", Kind::Admitted),
            ("task.bound", Kind::Bound),
            ("task.rejected", Kind::Rejected),
        ];
        let known = KINDS.into_iter().find(|(known, _)| name == **known);
        known.map_or(Kind::Other, |(_, kind)| kind)
    }
}

/// One record of a trace.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    pub(crate) seq: Option<u64>,
    /// The kind's name, where it could be read.
    pub(crate) kind: Option<JsonStr<'a>>,
    /// The trace's name, where a key was asked for and could be read.
    pub(crate) key: Option<std::borrow::Cow<'a, str>>,
    pub(crate) body: Body<'a>,
    pub(crate) faults: Vec<Draft>,
    /// How many faults there were beyond [`MAX_FAULTS`].
    pub(crate) dropped_faults: usize,
}

/// What a record of one of the four kinds says.
#[derive(Debug)]
pub(crate) enum Body<'a> {
    /// Of another kind, or its kind could not be read.
    Other,
    /// The requirements, empty where there are none.
    Submitted(Reading<Requirements<'a>>),
    /// The agent that the task was admitted to.
    Admitted(Reading<Agent<'a>>),
    Bound(Placement<'a>),
    /// The text of `reason`, where there is one that could be read.
    Rejected(Option<&'a str>),
}

/// What a `task.bound` says.
#[derive(Debug)]
pub(crate) struct Placement<'a> {
    pub(crate) scheduling: Reading<Box<Scheduling<'a>>>,
    pub(crate) resumed: Resumed<'a>,
}

/// What `content.resumed` says. It is judged by R16 alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumed<'a> {
    Missing,
    Doubled,
    True,
    /// The text of any other value.
    Other(&'a str),
}

/// Reads one line. `trace_key` says which member names the trace, `known` which documents the
/// placements before repeated.
///
/// # Errors
///
/// The line is not valid JSON, no object, or nested too deeply (R4).
pub(crate) fn record<'a>(
    line: &'a [u8],
    trace_key: Option<&JsonPointer>,
    known: Option<&'a KnownPair>,
) -> Result<Record<'a>, Malformed> {
    let mut document = Document {
        reader: Reader::new(line)?,
        faults: Faults::new(false),
        known,
    };
    match read_record(&mut document, trace_key) {
        Ok(Some(mut record)) => {
            record.dropped_faults = document.faults.dropped;
            record.faults = document.faults.drafts;
            Ok(record)
        }
        Ok(None) => {
            let at = line.len() - line.trim_ascii_start().len();
            Err(Malformed {
                at,
                why: Why::NotAnObject,
            })
        }
        Err(Refused) => Err(document.reader.malformed()),
    }
}

/// Whether a line can be read as a record, whatever is wrong inside it. For `benches/micro.rs`,
/// which could not tell reading from judging without it, and for nobody else.
#[doc(hidden)]
#[must_use]
pub fn reads(line: &[u8]) -> bool {
    // All of the record is made, although nobody looks at it.
    std::hint::black_box(record(line, None, None)).is_ok()
}

/// Reads a record, all but its faults; `None` where the line is no object.
fn read_record<'a>(
    document: &mut Document<'a>,
    trace_key: Option<&JsonPointer>,
) -> Read<Option<Record<'a>>> {
    if document.reader.peek()? != Type::Object {
        document.reader.skip()?;
        document.reader.end()?;
        return Ok(None);
    }
    let mut members = Members::new();
    let key_name = trace_key.map(|pointer| pointer.tokens()[0].as_str());
    document.members(|document, name| members.read(document, name, key_name))?;
    document.reader.end()?;
    members.finish(document, trace_key).map(Some)
}

/// The members of a record.
struct Members<'a> {
    seq: Member<u64>,
    kind: Member<JsonStr<'a>>,
    content: Content<'a>,
    /// How often `content` came.
    contents: u32,
    /// The text of the member that the trace's name is in, and how often it came.
    key: Option<&'a str>,
    keys: u32,
    /// The faults of the first `content`, of which nothing counts if nobody reads it.
    content_faults: Faults,
}

/// The first `content` of a record.
enum Content<'a> {
    /// Its text: nobody read it yet.
    Passed(&'a str),
    Read(Option<Body<'a>>),
}

const KIND: &str = "the record's kind, a non-empty string";
const CONTENT: &str = "an object";
const ROOT: Path<'static> = Path::ROOT;

impl<'a> Members<'a> {
    fn new() -> Self {
        Members {
            seq: Member::new(),
            kind: Member::new(),
            content: Content::Passed(""),
            contents: 0,
            key: None,
            keys: 0,
            content_faults: Faults::new(false),
        }
    }

    fn read(
        &mut self,
        document: &mut Document<'a>,
        name: JsonStr<'a>,
        key_name: Option<&str>,
    ) -> Read<()> {
        let is_key = key_name.is_some_and(|key| name == *key);
        let before = is_key.then(|| document.reader.clone());
        if name == *"seq" {
            let at = ROOT.name("seq");
            let integer = Document::integer;
            document.member(
                &at,
                Need::Required,
                document::INTEGER,
                &mut self.seq,
                integer,
            )?;
        } else if name == *"kind" {
            let at = ROOT.name("kind");
            document.member(&at, Need::Required, KIND, &mut self.kind, |document, at| {
                document.non_empty(at, KIND)
            })?;
        } else if name == *"content" {
            self.read_content(document)?;
        } else {
            document.reader.skip()?;
        }
        if let Some(mut reader) = before {
            self.keys += 1;
            self.key = Some(reader.skip()?);
        }
        Ok(())
    }

    fn kind(&self) -> Kind {
        self.kind
            .reading
            .value()
            .copied()
            .map_or(Kind::Other, Kind::of)
    }

    /// Reads the first `content` where it is known to be read by somebody, and passes any other.
    fn read_content(&mut self, document: &mut Document<'a>) -> Read<()> {
        self.contents += 1;
        let kind = self.kind();
        if self.contents > 1 {
            document.reader.skip()?;
        } else if kind == Kind::Other {
            self.content = Content::Passed(document.reader.skip()?);
        } else {
            mem::swap(&mut document.faults, &mut self.content_faults);
            self.content = Content::Read(content(document, kind)?);
            mem::swap(&mut document.faults, &mut self.content_faults);
        }
        Ok(())
    }

    fn finish(
        mut self,
        document: &mut Document<'a>,
        trace_key: Option<&JsonPointer>,
    ) -> Read<Record<'a>> {
        document.demand(&ROOT.name("seq"), document::INTEGER, &mut self.seq);
        document.demand(&ROOT.name("kind"), KIND, &mut self.kind);
        let body = self.body(document)?;
        let key = trace_key.and_then(|pointer| {
            trace_key::trace_name(pointer, self.key, self.keys, &mut document.faults)
        });
        Ok(Record {
            body,
            seq: self.seq.reading.value().copied(),
            kind: self.kind.reading.value().copied(),
            key,
            faults: Vec::new(),
            dropped_faults: 0,
        })
    }

    fn body(&mut self, document: &mut Document<'a>) -> Read<Body<'a>> {
        let kind = self.kind();
        let at = ROOT.name("content");
        if kind == Kind::Other {
            // What was read on the word of a `kind` that came again counts for nothing.
            return Ok(Body::Other);
        }
        document.faults.append(&mut self.content_faults);
        if self.contents == 0 {
            document.faults.missing(&at, CONTENT);
            return Ok(unreadable(kind));
        }
        let read = match mem::replace(&mut self.content, Content::Read(None)) {
            Content::Read(body) => body,
            Content::Passed(text) => {
                document.reader = Reader::over(text, 1);
                content(document, kind)?
            }
        };
        if self.contents > 1 {
            document.doubled(&at);
            return Ok(unreadable(kind));
        }
        Ok(read.unwrap_or_else(|| unreadable(kind)))
    }
}

/// The body of a record whose `content` could not be read.
fn unreadable<'a>(kind: Kind) -> Body<'a> {
    match kind {
        Kind::Submitted => Body::Submitted(Reading::Unreadable),
        Kind::Admitted => Body::Admitted(Reading::Unreadable),
        Kind::Bound => Body::Bound(Placement {
            scheduling: Reading::Unreadable,
            resumed: Resumed::Missing,
        }),
        Kind::Rejected => Body::Rejected(None),
        Kind::Other => Body::Other,
    }
}

/// Reads the `content` of a record of that kind; `None` where it is no object.
fn content<'a>(document: &mut Document<'a>, kind: Kind) -> Read<Option<Body<'a>>> {
    let at = &ROOT.name("content");
    match document.reader.peek()? {
        Type::Object => {}
        Type::Null => {
            document.reader.skip()?;
            document.faults.structure(at, "`content` is null", CONTENT);
            return Ok(None);
        }
        _ => return document.wrong_type::<()>(at, CONTENT).map(|_| None),
    }
    let body = match kind {
        Kind::Submitted => Body::Submitted(submitted(document, at)?),
        Kind::Admitted => Body::Admitted(admitted(document, at)?),
        Kind::Bound => Body::Bound(bound(document, at)?),
        Kind::Rejected => Body::Rejected(rejected(document, at)?),
        Kind::Other => unreachable!("the content of other kinds is passed"),
    };
    Ok(Some(body))
}

fn submitted<'a>(document: &mut Document<'a>, at: &Path) -> Read<Reading<Requirements<'a>>> {
    let mut requirements = Member::new();
    document.object(at, CONTENT, |document, member, at| match member {
        "requirements" => document.member(
            at,
            Need::Optional,
            "",
            &mut requirements,
            Requirements::read,
        ),
        _ => document.reader.skip().map(drop),
    })?;
    Ok(match requirements.reading {
        Reading::Absent => Reading::Value(Requirements::none()),
        read => read,
    })
}

fn admitted<'a>(document: &mut Document<'a>, at: &Path) -> Read<Reading<Agent<'a>>> {
    let mut agent = Member::new();
    document.object(at, CONTENT, |document, member, at| match member {
        "agent" => document.member(at, Need::Required, AGENT, &mut agent, Agent::read),
        _ => document.reader.skip().map(drop),
    })?;
    document.demand(&at.name("agent"), AGENT, &mut agent);
    Ok(agent.reading)
}

fn bound<'a>(document: &mut Document<'a>, at: &Path) -> Read<Placement<'a>> {
    let mut scheduling = Member::new();
    let mut resumed = Resumed::Missing;
    document.object(at, CONTENT, |document, member, at| match member {
        "scheduling" => {
            document.faults.rule = "7.2";
            let slot = &mut scheduling;
            document.member(at, Need::Required, SCHEDULING, slot, Scheduling::read)?;
            document.faults.rule = "7";
            Ok(())
        }
        "resumed" => {
            let text = document.reader.skip()?;
            resumed = match resumed {
                Resumed::Missing if text == "true" => Resumed::True,
                Resumed::Missing => Resumed::Other(text),
                _ => Resumed::Doubled,
            };
            Ok(())
        }
        _ => document.reader.skip().map(drop),
    })?;
    document.faults.rule = "7.2";
    document.demand(&at.name("scheduling"), SCHEDULING, &mut scheduling);
    document.faults.rule = "7";
    Ok(Placement {
        scheduling: scheduling.reading,
        resumed,
    })
}

fn rejected<'a>(document: &mut Document<'a>, at: &Path) -> Read<Option<&'a str>> {
    let mut reason = Member::new();
    document.object(at, CONTENT, |document, member, at| match member {
        "reason" => document.member(at, Need::Optional, "", &mut reason, |document, _| {
            document.reader.skip().map(Reading::Value)
        }),
        _ => document.reader.skip().map(drop),
    })?;
    Ok(reason.reading.value().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointers(text: &str) -> Vec<String> {
        let record = record(text.as_bytes(), None, None).expect("an object");
        let mut pointers: Vec<_> = record.faults.into_iter().map(|f| f.pointer).collect();
        pointers.sort();
        pointers
    }

    #[test]
    fn content_read_on_the_word_of_a_doubled_kind_takes_no_other_fault_along() {
        let content = r#""kind":"task.bound","content":{"scheduling":7}"#;
        for text in [
            format!(r#"{{"seq":"x",{content},"seq":1,"kind":"note"}}"#),
            format!(r#"{{"seq":1,"seq":1,{content},"kind":"note"}}"#),
            format!(r#"{{{content},"kind":"note","seq":1,"seq":1}}"#),
        ] {
            assert_eq!(pointers(&text), ["/kind", "/seq"], "{text}");
        }
        let text = format!(r#"{{"seq":"x",{content},"seq":1}}"#);
        assert_eq!(pointers(&text), ["/content/scheduling", "/seq"]);
    }
}
