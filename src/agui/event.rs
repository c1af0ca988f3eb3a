//! From one event's JSON to the few members that a declaration can be held against.

use std::borrow::Cow;

use super::before::{Before, Member};
use super::integer;
use crate::decode::lookup::child;
use crate::decode::reader::{Read, Reader, Refused, Type};
use crate::decode::{Malformed, Why};

/// What an event says that anybody asks about. A member that is not there, comes twice or is of
/// another type says nothing: it contradicts no declaration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<'a> {
    pub(super) kind: Kind,
    /// The texts of the members, by [`Field`]; of one that comes twice, none. Valid JSON.
    texts: [Option<&'a [u8]>; FIELDS],
    /// A bit for each [`Field`] that came more than once.
    doubled: u16,
}

/// Why a line is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotAnEvent<'a> {
    /// It is no JSON object.
    Json(Malformed),
    /// It has no `type`.
    TypeMissing,
    /// It has more than one `type`.
    TypeDoubled,
    /// Its `type` is no string, but this.
    TypeWrong(&'a [u8]),
}

/// The types of event that a declaration can be held against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    RunStarted,
    RunFinished,
    RunError,
    ToolCallStart,
    ToolCallEnd,
    ToolCallChunk,
    ToolCallResult,
    /// Any other `TOOL_CALL_*`.
    ToolCallOther,
    StateSnapshot,
    StateDelta,
    SubagentStarted,
    ReasoningMessageStart,
    ReasoningMessageContent,
    ReasoningMessageChunk,
    ReasoningEncryptedValue,
    /// Any other `REASONING_*`.
    ReasoningOther,
    /// Anything else, known to the protocol or not.
    #[default]
    Other,
}

impl Kind {
    fn of(name: &str) -> Kind {
        match name {
            "RUN_STARTED" => Kind::RunStarted,
            "RUN_FINISHED" => Kind::RunFinished,
            "RUN_ERROR" => Kind::RunError,
            "TOOL_CALL_START" => Kind::ToolCallStart,
            "TOOL_CALL_END" => Kind::ToolCallEnd,
            "TOOL_CALL_CHUNK" => Kind::ToolCallChunk,
            "TOOL_CALL_RESULT" => Kind::ToolCallResult,
            "STATE_SNAPSHOT" => Kind::StateSnapshot,
            "STATE_DELTA" => Kind::StateDelta,
            "SUBAGENT_STARTED" => Kind::SubagentStarted,
            "REASONING_MESSAGE_START" => Kind::ReasoningMessageStart,
            "REASONING_MESSAGE_CONTENT" => Kind::ReasoningMessageContent,
            "REASONING_MESSAGE_CHUNK" => Kind::ReasoningMessageChunk,
            "REASONING_ENCRYPTED_VALUE" => Kind::ReasoningEncryptedValue,
            _ if name.starts_with("TOOL_CALL_") => Kind::ToolCallOther,
            _ if name.starts_with("REASONING_") => Kind::ReasoningOther,
            _ => Kind::Other,
        }
    }
}

/// The members that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Type,
    RunId,
    ToolCallId,
    ParentMessageId,
    MessageId,
    SubagentRunId,
    Delta,
    Outcome,
    Timestamp,
}

const FIELDS: usize = Field::Timestamp as usize + 1;

impl Field {
    /// By length first: most members of most events are none of these, and soon known for it.
    #[inline]
    fn of(name: &str) -> Option<Field> {
        // Each arm compares with one text of a known length, which takes a word or two.
        let (field, is_it) = match name.len() {
            4 => (Field::Type, name == "type"),
            5 if name.starts_with('d') => (Field::Delta, name == "delta"),
            5 => (Field::RunId, name == "runId"),
            7 => (Field::Outcome, name == "outcome"),
            9 if name.starts_with('m') => (Field::MessageId, name == "messageId"),
            9 => (Field::Timestamp, name == "timestamp"),
            10 => (Field::ToolCallId, name == "toolCallId"),
            13 => (Field::SubagentRunId, name == "subagentRunId"),
            15 => (Field::ParentMessageId, name == "parentMessageId"),
            _ => return None,
        };
        is_it.then_some(field)
    }
}

impl<'a> Event<'a> {
    /// An event of which nothing has been read.
    pub(super) const fn unread() -> Self {
        Event {
            kind: Kind::Other,
            texts: [None; FIELDS],
            doubled: 0,
        }
    }

    /// Reads one event: all of it is held against RFC 8259, and the members that matter are kept.
    /// In place, since an event is larger than what most of its bytes are. What it has in common
    /// with the one `before` is not read again. `None` where it is no event; [`why_no_event`] tells
    /// why.
    #[inline]
    pub(super) fn read(&mut self, line: &'a [u8], before: &mut Before) -> Option<()> {
        let shared = before.shared(line);
        let offset = shared.map_or(0, |index| before.member(index).colon_end);
        let read = self.read_from(line, offset, shared, before);
        match read {
            Some(()) => before.finish(line, self.kind, offset),
            None => before.forget(),
        }
        read
    }

    /// Reads from `offset`, where the value of the last member that is shared begins.
    #[inline]
    fn read_from(
        &mut self,
        line: &'a [u8],
        offset: usize,
        shared: Option<usize>,
        before: &mut Before,
    ) -> Option<()> {
        let mut reader = Reader::at(line, offset)?;
        let is_object = self.read_members(&mut reader, line, shared, before);
        let text = self.texts[Field::Type as usize].filter(|_| is_object == Ok(true))?;
        let is_shared = text.as_ptr_range().end <= line[offset..].as_ptr();
        self.kind = match is_shared {
            true => before.kind,
            false => Kind::of(&string(text)?),
        };
        Some(())
    }

    /// The event's type, as it is called.
    pub(super) fn type_name(&self) -> Cow<'a, str> {
        self.string(Field::Type).unwrap_or_default()
    }

    pub(super) fn run_id(&self) -> Option<Cow<'a, str>> {
        self.string(Field::RunId)
    }

    pub(super) fn tool_call_id(&self) -> Option<Cow<'a, str>> {
        self.string(Field::ToolCallId)
    }

    pub(super) fn parent_message_id(&self) -> Option<Cow<'a, str>> {
        self.string(Field::ParentMessageId)
    }

    pub(super) fn message_id(&self) -> Option<Cow<'a, str>> {
        self.string(Field::MessageId)
    }

    pub(super) fn subagent_run_id(&self) -> Option<Cow<'a, str>> {
        self.string(Field::SubagentRunId)
    }

    /// Whether there is a `delta`, if only an empty one.
    pub(super) fn has_delta(&self) -> bool {
        self.string(Field::Delta).is_some()
    }

    /// Milliseconds since 1970, where they are an integer.
    pub(super) fn timestamp(&self) -> Option<i64> {
        let text = self.texts[Field::Timestamp as usize]?;
        let is_number = matches!(text[0], b'-' | b'0'..=b'9');
        is_number
            .then(|| integer::exact(std::str::from_utf8(text).ok()?))
            .flatten()
    }

    /// Whether `outcome.type` is `interrupt`.
    pub(super) fn is_interrupt(&self) -> bool {
        let outcome = self.texts[Field::Outcome as usize].filter(|text| text[0] == b'{');
        let outcome = outcome.and_then(|text| std::str::from_utf8(text).ok());
        let Some((Some(text), 1)) = outcome.map(|outcome| child(outcome, "type")) else {
            return false;
        };
        string(text.as_bytes()).is_some_and(|name| name == "interrupt")
    }

    fn string(&self, field: Field) -> Option<Cow<'a, str>> {
        string(self.texts[field as usize]?)
    }

    /// Reads the members of the object that the line is; `false` where it is another value. The
    /// reader is at the value of the last member that is shared, where any is.
    #[inline]
    fn read_members(
        &mut self,
        reader: &mut Reader<'a>,
        line: &'a [u8],
        shared: Option<usize>,
        before: &mut Before,
    ) -> Read<bool> {
        let mut index = 0;
        match shared {
            None if reader.peek()? == Type::Object => reader.begin_object()?,
            None => {
                reader.skip()?;
                return reader.end().map(|()| false);
            }
            Some(last) => {
                for known in 0..last {
                    let Member { field, value, .. } = before.member(known);
                    self.keep(field, &line[value.0..value.1]);
                }
                let Member {
                    field, colon_end, ..
                } = before.member(last);
                reader.resume_in_object();
                let value = reader.skip()?.len();
                let end = reader.position();
                self.keep(field, &line[end - value..end]);
                let value = (end - value, end);
                before.remember(
                    last,
                    Member {
                        field,
                        colon_end,
                        value,
                    },
                );
                index = last + 1;
            }
        }
        while let Some(name) = reader.next_name(index == 0)? {
            let field = match name.plain() {
                Some(plain) => Field::of(plain),
                None => Field::of(&name.decode()),
            };
            let colon_end = reader.position();
            let value = reader.skip()?.len();
            let end = reader.position();
            self.keep(field, &line[end - value..end]);
            let value = (end - value, end);
            before.remember(
                index,
                Member {
                    field,
                    colon_end,
                    value,
                },
            );
            index += 1;
        }
        reader.end().map(|()| true)
    }

    #[inline]
    fn keep(&mut self, field: Option<Field>, value: &'a [u8]) {
        let Some(field) = field else {
            return;
        };
        let text = &mut self.texts[field as usize];
        if text.is_some() || self.doubled & bit(field) != 0 {
            self.doubled |= bit(field);
            *text = None;
        } else {
            *text = Some(value);
        }
    }
}

/// Why a line is no event. It is read again for that.
#[cold]
pub(super) fn why_no_event(line: &[u8]) -> NotAnEvent<'_> {
    let mut reader = match Reader::new(line) {
        Ok(reader) => reader,
        Err(malformed) => return NotAnEvent::Json(malformed),
    };
    let mut event = Event::unread();
    match event.read_members(&mut reader, line, None, &mut Before::default()) {
        Err(Refused) => NotAnEvent::Json(reader.malformed()),
        Ok(false) => NotAnEvent::Json(Malformed {
            at: line.len() - line.trim_ascii_start().len(),
            why: Why::NotAnObject,
        }),
        Ok(true) => match event.texts[Field::Type as usize] {
            Some(text) => NotAnEvent::TypeWrong(text),
            None if event.doubled & bit(Field::Type) != 0 => NotAnEvent::TypeDoubled,
            None => NotAnEvent::TypeMissing,
        },
    }
}

const fn bit(field: Field) -> u16 {
    1 << field as u16
}

/// The string that a value's text spells, if it is one.
#[inline]
fn string(text: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(text).ok()?;
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    Reader::over(text, 0)
        .string()
        .ok()
        .map(|name| name.decode())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<Event<'_>, NotAnEvent<'_>> {
        let mut event = Event::unread();
        let read = event.read(text, &mut Before::default());
        read.map(|()| event).ok_or_else(|| why_no_event(text))
    }

    fn event(text: &str) -> Event<'_> {
        read(text.as_bytes()).expect("an event")
    }

    #[test]
    fn types_are_known_however_they_are_spelt() {
        for (text, kind) in [
            (r#"{"type":"RUN_STARTED"}"#, Kind::RunStarted),
            (
                r#" { "x" : [] , "\u0074ype" : "\u0052UN_ERROR" } "#,
                Kind::RunError,
            ),
            (r#"{"type":"TOOL_CALL_ARGS"}"#, Kind::ToolCallOther),
            (r#"{"type":"TOOL_CALL"}"#, Kind::Other),
            (r#"{"type":"REASONING_START"}"#, Kind::ReasoningOther),
            (r#"{"type":"run_started"}"#, Kind::Other),
            (r#"{"type":""}"#, Kind::Other),
        ] {
            assert_eq!(event(text).kind, kind, "{text}");
        }
    }

    #[test]
    fn what_is_no_event_is_told_apart() {
        for (text, expected) in [
            (r#"{"typ":"RUN_STARTED"}"#, NotAnEvent::TypeMissing),
            (r#"{"type":"A","type":"A"}"#, NotAnEvent::TypeDoubled),
            (
                r#"{"type":"A","type":1,"type":"B"}"#,
                NotAnEvent::TypeDoubled,
            ),
            (r#"{"type":null}"#, NotAnEvent::TypeWrong(b"null")),
            (
                r#"{"type":{"type":"A"}}"#,
                NotAnEvent::TypeWrong(br#"{"type":"A"}"#),
            ),
        ] {
            assert_eq!(read(text.as_bytes()).expect_err(text), expected);
        }
        for text in [
            "",
            "[]",
            "[DONE]",
            "1 ",
            "{\"type\":\"A\"",
            "{\"type\":\"A\"}x",
            "{\"type\":\"\\ud800\"}",
        ] {
            let error = read(text.as_bytes()).expect_err(text);
            assert!(matches!(error, NotAnEvent::Json(_)), "{text}");
        }
    }

    #[test]
    fn members_say_nothing_where_they_are_doubled_or_of_another_type() {
        let whole = event(
            r#"{"toolCallId":"a\u0062","type":"X","timestamp":1.5e3,"delta":"","runId":"r"}"#,
        );
        assert_eq!(whole.tool_call_id().as_deref(), Some("ab"));
        assert_eq!((whole.timestamp(), whole.has_delta()), (Some(1500), true));
        let other = event(
            r#"{"type":"X","toolCallId":"a","toolCallId":"a","timestamp":"1","delta":null,"runId":[]}"#,
        );
        assert_eq!((other.tool_call_id(), other.run_id()), (None, None));
        assert_eq!((other.timestamp(), other.has_delta()), (None, false));
        assert_eq!(event(r#"{"type":"X","timestamp":1.5}"#).timestamp(), None);
    }

    #[test]
    fn interrupts_are_outcomes_of_that_type() {
        for (outcome, expected) in [
            (r#"{"type":"interrupt","interrupts":[]}"#, true),
            (r#"{"\u0074ype":"interr\u0075pt"}"#, true),
            (r#"{"type":"success"}"#, false),
            (r#"{"type":"interrupt","type":"interrupt"}"#, false),
            (r#""interrupt""#, false),
            (r#"[{"type":"interrupt"}]"#, false),
            ("null", false),
        ] {
            let text = format!(r#"{{"type":"RUN_FINISHED","outcome":{outcome}}}"#);
            assert_eq!(event(&text).is_interrupt(), expected, "{outcome}");
        }
    }

    /// Whatever came before, an event is read as if nothing had.
    #[test]
    fn what_came_before_changes_nothing() {
        let parts: [&[&str]; 4] = [
            &[
                "{",
                " {",
                "{\"a\":1,",
                "{\"timestamp\":17,",
                "{\"timestamp\":170,",
                "[",
            ],
            &[
                "\"type\":\"TEXT_MESSAGE_CONTENT\"",
                "\"type\":\"TOOL_CALL_START\"",
                "\"type\":\"TOOL_CALL_\\u0053TART\"",
                "\"type\" :\"TOOL_CALL_START\"",
                "\"type\":7",
                "\"typ\":\"x\"",
                "\"type\":\"A\",\"type\":\"B\"",
            ],
            &[
                ",\"messageId\":\"m\"",
                ",\"messageId\":\"m1\"",
                ",\"messageId\":{\"type\":\"x\"}",
                ",\"toolCallId\":\"é\",\"toolCallId\":1",
                "",
                ",",
                ",\"x\":[1,{}]",
            ],
            &[
                ",\"delta\":\"d\"}",
                ",\"delta\":\"de\"}",
                ",\"delta\":null}",
                ",\"delta\":\"\\ud800\"}",
                ",\"delta\":\"d\",\"type\":\"RUN_ERROR\"}",
                "}",
                "} x",
                "",
            ],
        ];
        let mut state = 7_u32;
        let mut pick = |from: &[&'static str]| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            from[(state >> 16) as usize % from.len()]
        };
        let long = format!("{{\"x\":\"{}\",", "y".repeat(600));
        let mut before = Before::default();
        for round in 0..200_000 {
            let mut line: String = parts.iter().map(|part| pick(part)).collect();
            if round % 50 == 0 {
                line = line.replacen('{', &long, 1);
            }
            let line = line.as_bytes();
            let mut event = Event::unread();
            let found = event.read(line, &mut before).map(|()| event);
            let alone = read(line).ok();
            assert_eq!(
                found.map(|e| (e.kind, e.texts, e.doubled)),
                alone.map(|e| (e.kind, e.texts, e.doubled)),
                "{}",
                String::from_utf8_lossy(line)
            );
        }
    }
}
