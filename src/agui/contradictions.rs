//! The table of contradictions: which declared field is contradicted by what. Whatever is not in
//! it, every omitted field and every `true`, is contradicted by nothing.

use super::capabilities::Capabilities;
use super::event::Kind;

/// A declared field and what contradicts it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contradiction {
    pub(super) group: &'static str,
    pub(super) field: &'static str,
    /// What must not be seen in a run.
    pub(super) by: Fact,
    /// What is declared, in words.
    pub(super) says: &'static str,
}

/// The rows, each with the value of the field that can be contradicted: `false`, or a limit.
pub(super) const TABLE: [Contradiction; 12] = [
    row("tools", "supported", Fact::ToolCall, "no tool is called"),
    row(
        "tools",
        "parallelCalls",
        Fact::ParallelCall,
        "one tool call is under way at a time",
    ),
    row(
        "state",
        "snapshots",
        Fact::StateSnapshot,
        "no snapshots of the state are sent",
    ),
    row(
        "state",
        "deltas",
        Fact::StateDelta,
        "no changes of the state are sent",
    ),
    row(
        "multiAgent",
        "supported",
        Fact::Subagent,
        "no other agents take part",
    ),
    row(
        "multiAgent",
        "delegation",
        Fact::Subagent,
        "nothing is delegated to subagents",
    ),
    row(
        "reasoning",
        "supported",
        Fact::Reasoning,
        "no reasoning is shown",
    ),
    row(
        "reasoning",
        "streaming",
        Fact::ReasoningInPieces,
        "reasoning comes in one piece a message",
    ),
    row(
        "reasoning",
        "encrypted",
        Fact::EncryptedReasoning,
        "no reasoning is encrypted",
    ),
    row(
        "humanInTheLoop",
        "supported",
        Fact::Interrupt,
        "no run waits for people",
    ),
    row(
        "humanInTheLoop",
        "interrupts",
        Fact::Interrupt,
        "no run is interrupted",
    ),
    row(
        "execution",
        "maxExecutionTime",
        Fact::Overtime,
        "no run takes longer",
    ),
];

/// What can be seen in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// Any `TOOL_CALL_*`.
    ToolCall,
    /// A tool call opened while another of the run is open, or with the `parentMessageId` of one
    /// that has no result yet.
    ParallelCall,
    /// A `STATE_SNAPSHOT`.
    StateSnapshot,
    /// A `STATE_DELTA`.
    StateDelta,
    /// A `SUBAGENT_STARTED`.
    Subagent,
    /// Any `REASONING_*`.
    Reasoning,
    /// A second piece of one reasoning message.
    ReasoningInPieces,
    /// A `REASONING_ENCRYPTED_VALUE`.
    EncryptedReasoning,
    /// A `RUN_FINISHED` whose outcome is an interrupt.
    Interrupt,
    /// A run that ends later after its start than declared.
    Overtime,
}

impl Kind {
    /// The facts that an event's type alone shows. The others take other members, or what came
    /// before: see [`super::run`].
    pub(super) const fn facts(self) -> Facts {
        match self {
            Kind::ToolCallStart
            | Kind::ToolCallEnd
            | Kind::ToolCallChunk
            | Kind::ToolCallResult
            | Kind::ToolCallOther => Facts::of(Fact::ToolCall),
            Kind::StateSnapshot => Facts::of(Fact::StateSnapshot),
            Kind::StateDelta => Facts::of(Fact::StateDelta),
            Kind::SubagentStarted => Facts::of(Fact::Subagent),
            Kind::ReasoningMessageStart
            | Kind::ReasoningMessageContent
            | Kind::ReasoningMessageChunk
            | Kind::ReasoningOther => Facts::of(Fact::Reasoning),
            Kind::ReasoningEncryptedValue => {
                Facts::of(Fact::Reasoning).and(Facts::of(Fact::EncryptedReasoning))
            }
            Kind::RunStarted | Kind::RunFinished | Kind::RunError | Kind::Other => Facts::NONE,
        }
    }
}

/// A set of facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Facts(u16);

impl Facts {
    pub(super) const NONE: Facts = Facts(0);

    pub(super) const fn of(fact: Fact) -> Facts {
        Facts(1 << fact as u16)
    }

    pub(super) const fn and(self, other: Facts) -> Facts {
        Facts(self.0 | other.0)
    }

    pub(super) const fn within(self, other: Facts) -> Facts {
        Facts(self.0 & other.0)
    }

    pub(super) const fn without(self, other: Facts) -> Facts {
        Facts(self.0 & !other.0)
    }

    pub(super) const fn has(self, fact: Fact) -> bool {
        self.0 & Facts::of(fact).0 != 0
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What of a declaration can be contradicted.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// Rows of [`TABLE`] that are declared so, each with the field's text.
    declared: Vec<(&'static Contradiction, String)>,
    /// The facts that contradict one of them.
    pub(super) facts: Facts,
    /// `execution.maxExecutionTime`, in milliseconds.
    pub(super) max_execution_ms: Option<u64>,
}

impl Held {
    pub(super) fn new(capabilities: &Capabilities) -> Self {
        let max_execution_ms = capabilities.execution().max_execution_time();
        let mut held = Held {
            max_execution_ms,
            ..Held::default()
        };
        for row in &TABLE {
            let Some(text) = capabilities.field(row.group, row.field) else {
                continue;
            };
            if text == "false" || row.by == Fact::Overtime {
                held.declared.push((row, text.to_owned()));
                held.facts = held.facts.and(Facts::of(row.by));
            }
        }
        held
    }

    /// The declared rows that any of `facts` contradicts, with the text of their fields.
    pub(super) fn contradicted(
        &self,
        facts: Facts,
    ) -> impl Iterator<Item = (&'static Contradiction, &str)> {
        self.declared
            .iter()
            .filter(move |(row, _)| facts.has(row.by))
            .map(|(row, text)| (*row, &**text))
    }
}

impl Contradiction {
    /// JSON Pointer of the field.
    pub(super) fn pointer(&self) -> String {
        format!("/{}/{}", self.group, self.field)
    }
}

const fn row(
    group: &'static str,
    field: &'static str,
    by: Fact,
    says: &'static str,
) -> Contradiction {
    Contradiction {
        group,
        field,
        by,
        says,
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::{AGENT_CAPABILITIES, Shape};
    use super::*;
    use crate::documents::NamedText;

    #[test]
    fn rows_are_fields_of_the_shape() {
        for row in &TABLE {
            let group = AGENT_CAPABILITIES.iter().find(|m| m.name == row.group);
            let Some(Shape::Object(fields)) = group.map(|group| group.shape) else {
                panic!("{} is a group", row.group);
            };
            let field = fields.iter().find(|field| field.name == row.field);
            let shape = field.map(|field| field.shape);
            match row.by {
                Fact::Overtime => assert!(matches!(shape, Some(Shape::Count))),
                _ => assert!(matches!(shape, Some(Shape::Boolean)), "{}", row.pointer()),
            }
        }
    }

    #[test]
    fn only_what_is_declared_false_or_limited_is_held() {
        let held = |text: &str| {
            let document = NamedText {
                name: "d",
                text: text.as_bytes(),
            };
            Held::new(&Capabilities::read(document).expect("well-formed"))
        };
        assert!(held("{}").facts.is_empty());
        assert!(
            held(r#"{"tools":{"supported":true,"clientProvided":false}}"#)
                .facts
                .is_empty()
        );
        let some = held(
            r#"{"multiAgent":{"supported":false,"delegation":false},"execution":{"maxExecutionTime":0}}"#,
        );
        let rows: Vec<_> = some
            .contradicted(Facts::of(Fact::Subagent))
            .map(|(row, text)| (row.field, text))
            .collect();
        assert_eq!(rows, [("supported", "false"), ("delegation", "false")]);
        assert_eq!(some.max_execution_ms, Some(0));
        assert!(some.facts.has(Fact::Overtime));
    }
}
