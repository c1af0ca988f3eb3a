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
    /// The texts of the members, by [`Field`].
    texts: [Option<&'a str>; FIELDS],
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
    #[inline]
    fn of(name: &str) -> Option<Field> {
        Some(match name {
            "type" => Field::Type,
            "runId" => Field::RunId,
            "toolCallId" => Field::ToolCallId,
            "parentMessageId" => Field::ParentMessageId,
            "messageId" => Field::MessageId,
            "subagentRunId" => Field::SubagentRunId,
            "delta" => Field::Delta,
            "outcome" => Field::Outcome,
            "timestamp" => Field::Timestamp,
            _ => return None,
        })
    }
}

/// Reads one event: all of it is held against RFC 8259, and the members that matter are kept.
pub(super) fn read(text: &[u8]) -> Result<Event<'_>, NotAnEvent<'_>> {
    let Members { texts, doubled } = Members::read(text).map_err(NotAnEvent::Json)?;
    if doubled & bit(Field::Type) != 0 {
        return Err(NotAnEvent::TypeDoubled);
    }
    let event = Event {
        kind: Kind::Other,
        texts,
    };
    match texts[Field::Type as usize] {
        None => Err(NotAnEvent::TypeMissing),
        Some(text) => match string(text) {
            None => Err(NotAnEvent::TypeWrong(text)),
            Some(name) => Ok(Event {
                kind: Kind::of(&name),
                ..event
            }),
        },
    }
}

impl<'a> Event<'a> {
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
}

/// The members of an event that are read: of one that comes twice, nothing.
struct Members<'a> {
    texts: [Option<&'a str>; FIELDS],
    /// A bit for each [`Field`] that came more than once.
    doubled: u16,
}

const fn bit(field: Field) -> u16 {
    1 << field as u16
}

impl<'a> Members<'a> {
    fn read(text: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(text)?;
        match Members::of(&mut reader) {
            Ok(Some(members)) => Ok(members),
            Ok(None) => Err(Malformed {
                at: text.len() - text.trim_ascii_start().len(),
                why: Why::NotAnObject,
            }),
            Err(Refused) => Err(reader.malformed()),
        }
    }

    /// The members of the object that the text is; `None` where it is another value.
    fn of(reader: &mut Reader<'a>) -> Read<Option<Self>> {
        if reader.peek()? != Type::Object {
            reader.skip()?;
            return reader.end().map(|()| None);
        }
        let mut members = Members {
            texts: [None; FIELDS],
            doubled: 0,
        };
        reader.begin_object()?;
        let mut first = true;
        while let Some(name) = reader.next_name(first)? {
            let value = reader.skip()?;
            let field = match name.plain() {
                Some(plain) => Field::of(plain),
                None => Field::of(&name.decode()),
            };
            if let Some(field) = field {
                members.keep(field, value);
            }
            first = false;
        }
        reader.end().map(|()| Some(members))
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
