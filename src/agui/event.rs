//! From one event's JSON to the few members that a declaration can be held against.

use std::borrow::Cow;

use super::integer;
use crate::decode::lookup::child;
use crate::decode::reader::{Read, Reader, Refused, Type};
use crate::decode::{Malformed, Why};

/// What an event says that anybody asks about. A member that is not there, comes twice or is of
/// another type says nothing: it contradicts no declaration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<'a> {
    pub(super) kind: Kind,
    /// The texts of the members, by [`Field`]; of one that comes twice, none.
    texts: [Option<&'a str>; FIELDS],
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
    TypeWrong(&'a str),
}

/// The types of event that a declaration can be held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
enum Field {
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
        let (field, expected): (Field, &str) = match name.len() {
            4 => (Field::Type, "type"),
            5 if name.starts_with('d') => (Field::Delta, "delta"),
            5 => (Field::RunId, "runId"),
            7 => (Field::Outcome, "outcome"),
            9 if name.starts_with('m') => (Field::MessageId, "messageId"),
            9 => (Field::Timestamp, "timestamp"),
            10 => (Field::ToolCallId, "toolCallId"),
            13 => (Field::SubagentRunId, "subagentRunId"),
            15 => (Field::ParentMessageId, "parentMessageId"),
            _ => return None,
        };
        (name == expected).then_some(field)
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
    /// In place, since an event is larger than what most of its bytes are.
    #[inline]
    pub(super) fn read(&mut self, text: &'a [u8]) -> Result<(), NotAnEvent<'a>> {
        let mut reader = Reader::new(text).map_err(NotAnEvent::Json)?;
        match self.read_members(&mut reader) {
            Ok(true) => {}
            Ok(false) => return Err(no_object(text)),
            Err(Refused) => return Err(NotAnEvent::Json(reader.malformed())),
        }
        let Some(text) = self.texts[Field::Type as usize] else {
            return Err(match self.doubled & bit(Field::Type) {
                0 => NotAnEvent::TypeMissing,
                _ => NotAnEvent::TypeDoubled,
            });
        };
        let name = string(text).ok_or(NotAnEvent::TypeWrong(text))?;
        self.kind = Kind::of(&name);
        Ok(())
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
        let is_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        is_number.then(|| integer::exact(text)).flatten()
    }

    /// Whether `outcome.type` is `interrupt`.
    pub(super) fn is_interrupt(&self) -> bool {
        let outcome = self.texts[Field::Outcome as usize].filter(|text| text.starts_with('{'));
        let Some((Some(text), 1)) = outcome.map(|outcome| child(outcome, "type")) else {
            return false;
        };
        string(text).is_some_and(|name| name == "interrupt")
    }

    fn string(&self, field: Field) -> Option<Cow<'a, str>> {
        string(self.texts[field as usize]?)
    }

    /// Reads the members of the object that the text is; `false` where it is another value.
    #[inline]
    fn read_members(&mut self, reader: &mut Reader<'a>) -> Read<bool> {
        if reader.peek()? != Type::Object {
            reader.skip()?;
            return reader.end().map(|()| false);
        }
        reader.begin_object()?;
        let mut first = true;
        while let Some(name) = reader.next_name(first)? {
            let field = match name.plain() {
                Some(plain) => Field::of(plain),
                None => Field::of(&name.decode()),
            };
            let value = reader.skip()?;
            if let Some(field) = field {
                self.keep(field, value);
            }
            first = false;
        }
        reader.end().map(|()| true)
    }

    #[inline]
    fn keep(&mut self, field: Field, value: &'a str) {
        let text = &mut self.texts[field as usize];
        if text.is_some() || self.doubled & bit(field) != 0 {
            self.doubled |= bit(field);
            *text = None;
        } else {
            *text = Some(value);
        }
    }
}

#[cold]
fn no_object<'a>(text: &[u8]) -> NotAnEvent<'a> {
    NotAnEvent::Json(Malformed {
        at: text.len() - text.trim_ascii_start().len(),
        why: Why::NotAnObject,
    })
}

const fn bit(field: Field) -> u16 {
    1 << field as u16
}

/// The string that a value's text spells, if it is one.
#[inline]
fn string(text: &str) -> Option<Cow<'_, str>> {
    if !text.starts_with('"') {
        return None;
    }
    let inner = &text[1..text.len() - 1];
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
        event.read(text).map(|()| event)
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
            (r#"{"type":null}"#, NotAnEvent::TypeWrong("null")),
            (
                r#"{"type":{"type":"A"}}"#,
                NotAnEvent::TypeWrong(r#"{"type":"A"}"#),
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
}
