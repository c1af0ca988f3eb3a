//! One run: what of its events contradicts what is declared.

use std::collections::HashMap;
use std::sync::Arc;

use super::contradictions::{Fact, Facts, Held};
use super::event::{Event, Kind};
use super::memory::{Id, Recent};
use crate::finding::Counts;

/// A run that has begun and not ended.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Run {
    /// What findings call it.
    pub(super) name: Arc<str>,
    /// Whether its source cannot be read again.
    #[cfg_attr(
        not(feature = "serde"),
        expect(dead_code, reason = "only who saves asks")
    )]
    pub(super) from_stream: bool,
    pub(super) events: u64,
    pub(super) counts: Counts,
    /// The facts that would contradict what is declared and have not been seen yet.
    wanted: Facts,
    /// The `timestamp` of `RUN_STARTED`.
    started_ms: Option<i64>,
    calls: Calls,
    messages: Messages,
}

/// Something that was seen in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) fact: Fact,
    /// What else it takes to see it, where the event alone does not show it.
    pub(super) detail: Option<String>,
}

impl Run {
    pub(super) fn new(name: Arc<str>, from_stream: bool, held: &Held) -> Self {
        Run {
            name,
            from_stream,
            events: 0,
            counts: Counts::default(),
            wanted: held.facts,
            started_ms: None,
            calls: Calls::default(),
            messages: Messages::default(),
        }
    }

    /// Holds the run to what is declared now, and no longer to what else was declared when it began.
    #[cfg(feature = "serde")]
    pub(super) fn hold_to(&mut self, held: &Held) {
        self.wanted = self.wanted.within(held.facts);
    }

    /// What an event shows for the first time in this run that contradicts what is declared.
    #[inline]
    pub(super) fn see(&mut self, event: &Event<'_>, line: u64, held: &Held) -> Vec<Sighting> {
        self.events += 1;
        if self.wanted.is_empty() {
            return Vec::new();
        }
        let mut sightings = Vec::new();
        let plain = event.kind.facts().within(self.wanted);
        if !plain.is_empty() {
            sightings.extend(
                PLAIN
                    .iter()
                    .filter(|&&fact| plain.has(fact))
                    .map(|&fact| Sighting { fact, detail: None }),
            );
        }
        self.look_closer(event, line, held, &mut sightings);
        for sighting in &sightings {
            self.wanted = self.wanted.without(Facts::of(sighting.fact));
        }
        sightings
    }

    /// The facts that take more than the event's type.
    fn look_closer(
        &mut self,
        event: &Event<'_>,
        line: u64,
        held: &Held,
        sightings: &mut Vec<Sighting>,
    ) {
        let mut found = |fact, detail| sightings.push(Sighting { fact, detail });
        match event.kind {
            Kind::ToolCallStart
            | Kind::ToolCallEnd
            | Kind::ToolCallChunk
            | Kind::ToolCallResult
                if self.wanted.has(Fact::ParallelCall) =>
            {
                if let Some(detail) = self.calls.see(event, line) {
                    found(Fact::ParallelCall, Some(detail));
                    self.calls = Calls::default();
                }
            }
            Kind::ReasoningMessageStart
            | Kind::ReasoningMessageContent
            | Kind::ReasoningMessageChunk
                if self.wanted.has(Fact::ReasoningInPieces) =>
            {
                if let Some(first) = self.messages.see(event, line) {
                    let detail = format!("the message's first piece is on line {first}");
                    found(Fact::ReasoningInPieces, Some(detail));
                    self.messages = Messages::default();
                }
            }
            Kind::RunStarted => self.started_ms = event.timestamp(),
            Kind::RunFinished | Kind::RunError => {
                if self.wanted.has(Fact::Interrupt)
                    && event.kind == Kind::RunFinished
                    && event.is_interrupt()
                {
                    found(Fact::Interrupt, None);
                }
                if let Some(took) = self.overtime(event, held) {
                    let detail = format!("the run took {took} ms by its events' timestamps");
                    found(Fact::Overtime, Some(detail));
                }
            }
            _ => {}
        }
    }

    /// How long the run took, where that is more than was declared.
    fn overtime(&self, end: &Event<'_>, held: &Held) -> Option<u64> {
        // Both are within 2^53 of zero, so the difference is exact.
        let took = end.timestamp()? - self.started_ms?;
        let took = u64::try_from(took).ok()?;
        (took > held.max_execution_ms?).then_some(took)
    }
}

/// The facts that an event's type shows by itself.
const PLAIN: [Fact; 6] = [
    Fact::ToolCall,
    Fact::StateSnapshot,
    Fact::StateDelta,
    Fact::Subagent,
    Fact::Reasoning,
    Fact::EncryptedReasoning,
];

/// The tool calls of a run in which none has run beside another so far: so at most one is open, and
/// at most one of each parent message has no result yet.
#[derive(Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Calls {
    /// The call between its start and its end.
    open: Option<Begun>,
    /// Every call that is remembered, with its parent message.
    seen: Recent<Option<Id>>,
    /// The calls without a result, by their parent message; all of them are in `seen`.
    unanswered: HashMap<Id, Begun>,
    /// Whether a call was forgotten. From then on nobody knows whether the `toolCallId` of a chunk
    /// is new, and chunks are passed over.
    has_forgotten: bool,
}

/// A tool call, and the line that it began on.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Begun {
    call: Id,
    line: u64,
}

impl Calls {
    /// Takes note of an event; gives what makes it the beginning of a parallel call, if it is one.
    fn see(&mut self, event: &Event<'_>, line: u64) -> Option<String> {
        let call = Id::of(&event.tool_call_id()?);
        let begun = Begun { call, line };
        match event.kind {
            Kind::ToolCallStart => {
                let clash = self.begin(begun, event);
                self.open = Some(begun);
                clash
            }
            // A chunk that brings a new call opens and ends it.
            Kind::ToolCallChunk if !self.has_forgotten && self.seen.get(call).is_none() => {
                self.begin(begun, event)
            }
            Kind::ToolCallEnd => {
                self.open = self.open.filter(|open| open.call != call);
                None
            }
            Kind::ToolCallResult => {
                self.answer(call);
                None
            }
            _ => None,
        }
    }

    fn begin(&mut self, begun: Begun, event: &Event<'_>) -> Option<String> {
        let parent = event.parent_message_id().map(|parent| Id::of(&parent));
        let is_other = |other: &&Begun| other.call != begun.call;
        if let Some(other) = self.open.as_ref().filter(is_other) {
            return Some(format!(
                "the tool call of line {} is still open",
                other.line
            ));
        }
        let sibling = parent.and_then(|parent| self.unanswered.get(&parent));
        if let Some(other) = sibling.filter(is_other) {
            return Some(format!(
                "the tool call of line {} belongs to the same message and has no result yet",
                other.line
            ));
        }
        self.remember(begun, parent);
        None
    }

    fn remember(&mut self, begun: Begun, parent: Option<Id>) {
        self.answer(begun.call);
        if let Some((forgotten, parent)) = self.seen.insert(begun.call, parent) {
            self.has_forgotten = true;
            self.settle(forgotten, parent);
        }
        if let Some(parent) = parent {
            self.unanswered.insert(parent, begun);
        }
    }

    /// A call has its result.
    fn answer(&mut self, call: Id) {
        let parent = self.seen.get(call).copied().flatten();
        self.settle(call, parent);
    }

    /// A call no longer waits for its result.
    fn settle(&mut self, call: Id, parent: Option<Id>) {
        if let Some(parent) = parent
            && self
                .unanswered
                .get(&parent)
                .is_some_and(|begun| begun.call == call)
        {
            self.unanswered.remove(&parent);
        }
    }
}

/// The reasoning messages of a run in which each came in one piece so far.
#[derive(Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Messages {
    /// The messages that have a piece, with the line that it is on.
    begun: Recent<u64>,
    /// The message that came last, and the subagent run that it came from.
    last: Option<(Id, Option<Id>)>,
}

impl Messages {
    /// Takes note of an event; gives the line of the first piece if this is the second.
    fn see(&mut self, event: &Event<'_>, line: u64) -> Option<u64> {
        let subagent = event.subagent_run_id().map(|id| Id::of(&id));
        let message = match event.message_id() {
            Some(id) => Id::of(&id),
            // A chunk without a message continues the last one, unless another subagent sent that.
            None => self
                .last
                .filter(|&(_, from)| event.kind == Kind::ReasoningMessageChunk && from == subagent)
                .map(|(message, _)| message)?,
        };
        self.last = Some((message, subagent));
        let is_piece = match event.kind {
            Kind::ReasoningMessageContent => true,
            Kind::ReasoningMessageChunk => event.has_delta(),
            _ => false,
        };
        if !is_piece {
            return None;
        }
        let first = self.begun.get(message).copied();
        if first.is_none() {
            self.begun.insert(message, line);
        }
        first
    }
}
