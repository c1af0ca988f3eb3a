//! The pair that identifies an agent (section 3), and references to one.

use super::NON_EMPTY;
use crate::decode::document::{Document, Member, Need, Reading};
use crate::decode::reader::{JsonStr, Read, Type};
use crate::finding::AgentId;
use crate::pointer::Path;

/// What an agent is, for messages.
pub(crate) const AGENT: &str = "an object with `name` and `namespace`";

/// An agent as a record names it. Either half may be unreadable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent<'a> {
    pub(crate) name: Option<JsonStr<'a>>,
    pub(crate) namespace: Option<JsonStr<'a>>,
}

impl<'a> Agent<'a> {
    /// Reads `{name, namespace}`.
    pub(crate) fn read(document: &mut Document<'a>, at: &Path) -> Read<Reading<Self>> {
        let (mut name, mut namespace) = (Member::new(), Member::new());
        let found = document.object(at, AGENT, |document, member, at| match member {
            "name" => document.member(at, Need::Required, NON_EMPTY, &mut name, |document, at| {
                document.non_empty(at, NON_EMPTY)
            }),
            "namespace" => document.member(
                at,
                Need::Required,
                NON_EMPTY,
                &mut namespace,
                |document, at| document.non_empty(at, NON_EMPTY),
            ),
            _ => document.unknown(at),
        })?;
        if !found {
            return Ok(Reading::Unreadable);
        }
        document.demand(&at.name("name"), NON_EMPTY, &mut name);
        document.demand(&at.name("namespace"), NON_EMPTY, &mut namespace);
        let agent = Agent {
            name: name.reading.value().copied(),
            namespace: namespace.reading.value().copied(),
        };
        Ok(Reading::Value(agent))
    }

    /// An agent that was read before.
    pub(crate) fn of(id: &'a AgentId) -> Self {
        Agent {
            name: Some(JsonStr::of(&id.name)),
            namespace: Some(JsonStr::of(&id.namespace)),
        }
    }

    /// How much text the agent is, at most.
    pub(crate) fn text_bytes(&self) -> usize {
        let bytes = |half: Option<JsonStr<'_>>| half.map_or(0, JsonStr::raw_bytes);
        bytes(self.name) + bytes(self.namespace)
    }

    /// The agent, where both halves could be read.
    pub(crate) fn id(&self) -> Option<AgentId> {
        Some(AgentId {
            name: self.name?.decode().into_owned(),
            namespace: self.namespace?.decode().into_owned(),
        })
    }
}

/// Reads a reference to an agent: its name, or an object with `name` (R8). Such an object may name
/// the whole pair of section 3; the predicate is about the name alone.
pub(crate) fn agent_reference<'a>(
    document: &mut Document<'a>,
    at: &Path,
) -> Read<Reading<JsonStr<'a>>> {
    const REFERENCE: &str = "an agent's name, or an object with `name`";
    if document.reader.peek()? != Type::Object {
        return document.non_empty(at, REFERENCE);
    }
    let mut name = Member::new();
    document.object(at, REFERENCE, |document, member, at| match member {
        "name" => document.member(at, Need::Required, NON_EMPTY, &mut name, |document, at| {
            document.non_empty(at, NON_EMPTY)
        }),
        "namespace" => document.reader.skip().map(drop),
        _ => document.unknown(at),
    })?;
    document.demand(&at.name("name"), NON_EMPTY, &mut name);
    Ok(name.reading)
}
