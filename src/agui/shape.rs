//! The shape of an `AgentCapabilities` declaration (protocol 1.0): one table, and how a document is
//! held against it.

use super::integer;
use crate::decode::document::{Document, Member as Slot, Need, Reading};
use crate::decode::reader::{Read, Type};
use crate::pointer::Path;

/// Every group and every field. All are optional but the required members of a record.
pub(super) const AGENT_CAPABILITIES: &[Member] = &[
    group(
        "identity",
        &[
            string("name"),
            string("type"),
            string("description"),
            string("version"),
            string("provider"),
            string("documentationUrl"),
            open("metadata"),
        ],
    ),
    group(
        "transport",
        &[
            boolean("streaming"),
            boolean("websocket"),
            boolean("httpBinary"),
            boolean("pushNotifications"),
            boolean("resumable"),
        ],
    ),
    group(
        "tools",
        &[
            boolean("supported"),
            boolean("parallelCalls"),
            boolean("clientProvided"),
            list("items", &Shape::Object(TOOL)),
        ],
    ),
    group(
        "output",
        &[
            boolean("structuredOutput"),
            list("supportedMimeTypes", &Shape::String),
        ],
    ),
    group(
        "state",
        &[
            boolean("snapshots"),
            boolean("deltas"),
            boolean("memory"),
            boolean("persistentState"),
        ],
    ),
    group(
        "multiAgent",
        &[
            boolean("supported"),
            boolean("delegation"),
            boolean("handoffs"),
            list("subagents", &Shape::Object(SUBAGENT_INFO)),
        ],
    ),
    group(
        "reasoning",
        &[
            boolean("supported"),
            boolean("streaming"),
            boolean("encrypted"),
        ],
    ),
    group(
        "multimodal",
        &[
            group(
                "input",
                &[
                    boolean("image"),
                    boolean("audio"),
                    boolean("video"),
                    boolean("pdf"),
                    boolean("file"),
                ],
            ),
            group("output", &[boolean("image"), boolean("audio")]),
        ],
    ),
    group(
        "execution",
        &[
            boolean("codeExecution"),
            boolean("sandboxed"),
            count("maxIterations"),
            count("maxExecutionTime"),
        ],
    ),
    group(
        "humanInTheLoop",
        &[
            boolean("supported"),
            boolean("approvals"),
            boolean("interventions"),
            boolean("feedback"),
            boolean("interrupts"),
            boolean("approveWithEdits"),
        ],
    ),
    open("custom"),
];

/// An entry of `tools.items`.
const TOOL: &[Member] = &[
    required(string("name")),
    required(string("description")),
    anything("parameters"),
    open("metadata"),
];

/// An entry of `multiAgent.subagents`.
const SUBAGENT_INFO: &[Member] = &[required(string("name")), string("description")];

/// A described member of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) is_required: bool,
}

/// What a value has to be. `null` is never right.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Boolean,
    /// A number whose value is an integer, from 0 to 2^53-1.
    Count,
    String,
    /// Any value but null; what is inside it is nobody's business.
    Anything,
    /// An object with any members.
    Open,
    /// An object with these members; others are unrecognised.
    Object(&'static [Member]),
    List(&'static Shape),
}

impl Shape {
    /// What belongs here, for messages.
    const fn described(&self) -> &'static str {
        match self {
            Shape::Boolean => "true or false",
            Shape::Count => "a number whose value is an integer from 0 to 9007199254740991",
            Shape::String => "a string",
            Shape::Anything => "any value but null",
            Shape::Open | Shape::Object(_) => "an object",
            Shape::List(_) => "a list",
        }
    }
}

const fn optional(name: &'static str, shape: Shape) -> Member {
    Member {
        name,
        shape,
        is_required: false,
    }
}

const fn required(member: Member) -> Member {
    Member {
        is_required: true,
        ..member
    }
}

const fn boolean(name: &'static str) -> Member {
    optional(name, Shape::Boolean)
}

const fn count(name: &'static str) -> Member {
    optional(name, Shape::Count)
}

const fn string(name: &'static str) -> Member {
    optional(name, Shape::String)
}

const fn anything(name: &'static str) -> Member {
    optional(name, Shape::Anything)
}

const fn open(name: &'static str) -> Member {
    optional(name, Shape::Open)
}

const fn group(name: &'static str, fields: &'static [Member]) -> Member {
    optional(name, Shape::Object(fields))
}

const fn list(name: &'static str, entry: &'static Shape) -> Member {
    optional(name, Shape::List(entry))
}

/// Reads the next value as a declaration, noting what is wrong with it.
pub(super) fn read_declaration(document: &mut Document<'_>) -> Read<()> {
    read(document, &Path::ROOT, &Shape::Object(AGENT_CAPABILITIES)).map(drop)
}

/// Reads the next value and notes it where it is not of that shape. No deeper than the table is.
fn read(document: &mut Document<'_>, at: &Path, shape: &Shape) -> Read<Reading<()>> {
    let expected = shape.described();
    let found = document.reader.peek()?;
    match (shape, found) {
        (Shape::Object(members), Type::Object) => {
            read_object(document, at, members)?;
            Ok(Reading::Value(()))
        }
        (Shape::List(entry), Type::List) => {
            read_list(document, at, entry)?;
            Ok(Reading::Value(()))
        }
        (Shape::Count, Type::Number) => read_count(document, at),
        (Shape::Boolean, Type::Bool)
        | (Shape::String, Type::String)
        | (Shape::Open, Type::Object)
        | (Shape::Anything, Type::Bool | Type::Number | Type::String | Type::List | Type::Object) =>
        {
            document.reader.skip()?;
            Ok(Reading::Value(()))
        }
        _ => document.wrong_type(at, expected),
    }
}

fn read_object(document: &mut Document<'_>, at: &Path, members: &'static [Member]) -> Read<()> {
    let mut slots = vec![Slot::<()>::new(); members.len()];
    document.object(at, "", |document, name, at| {
        let Some(index) = members.iter().position(|member| member.name == name) else {
            return unrecognised(document, at, name, members);
        };
        let shape = &members[index].shape;
        // Required only says that null is a fault; whether the member must be there comes below.
        let expected = shape.described();
        document.member(
            at,
            Need::Required,
            expected,
            &mut slots[index],
            |document, at| read(document, at, shape),
        )
    })?;
    for (member, slot) in members.iter().zip(&mut slots) {
        if member.is_required {
            document.demand(&at.name(member.name), member.shape.described(), slot);
        }
    }
    Ok(())
}

fn read_list(document: &mut Document<'_>, at: &Path, entry: &Shape) -> Read<()> {
    document.reader.begin_list()?;
    let mut index = 0;
    while document.reader.next_entry(index == 0)? {
        read(document, &at.index(index), entry)?;
        index += 1;
    }
    Ok(())
}

fn read_count(document: &mut Document<'_>, at: &Path) -> Read<Reading<()>> {
    let mut ahead = document.reader.clone();
    if integer::exact(ahead.skip()?).is_some_and(|value| value >= 0) {
        document.reader = ahead;
        return Ok(Reading::Value(()));
    }
    document.wrong_type(at, Shape::Count.described())
}

/// Passes a member that is not described; noted where strict, with the name that was meant.
fn unrecognised(
    document: &mut Document<'_>,
    at: &Path,
    name: &str,
    members: &[Member],
) -> Read<()> {
    if document.faults.strict {
        document.faults.unknown(at, &hint(name, members));
    }
    document.reader.skip().map(drop)
}

/// Members of an A3 declaration that say what it is.
const A3_MEMBERS: [&str; 2] = ["clearances", "v"];

fn hint(name: &str, members: &[Member]) -> String {
    let is_root = std::ptr::eq(members, AGENT_CAPABILITIES);
    if is_root && A3_MEMBERS.contains(&name) {
        return format!(
            "A3 declarations have `{name}`, and `tracecheck check declaration` checks those"
        );
    }
    match nearest(name, members) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "a consumer ignores it, and the closed schema rejects it".to_owned(),
    }
}

/// Below this, a name is no misspelling of another.
const LEAST_LIKENESS: f64 = 0.85;

/// The described member that was meant, most likely.
fn nearest(name: &str, members: &[Member]) -> Option<&'static str> {
    // Longer than any described name with a slip of the pen in it; likeness takes time.
    const MAX_NAME_BYTES: usize = 40;
    if name.len() > MAX_NAME_BYTES {
        return None;
    }
    let plain = |name: &str| name.to_lowercase().replace(['_', '-', ' '], "");
    let name = plain(name);
    members
        .iter()
        .map(|member| {
            (
                strsim::jaro_winkler(&name, &plain(member.name)),
                member.name,
            )
        })
        .filter(|&(likeness, _)| likeness >= LEAST_LIKENESS)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// Whether a document's own members are those of an A3 declaration and none of this table's.
pub(super) fn has_members_of_a3_only(document: &mut Document<'_>) -> Read<bool> {
    let (mut a3, mut ours) = (false, false);
    document.object(&Path::ROOT, "", |document, name, _| {
        a3 |= A3_MEMBERS.contains(&name);
        ours |= AGENT_CAPABILITIES.iter().any(|member| member.name == name);
        document.reader.skip().map(drop)
    })?;
    Ok(a3 && !ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_find_the_one_that_was_meant() {
        let members = |group: &str| match AGENT_CAPABILITIES.iter().find(|m| m.name == group) {
            Some(Member {
                shape: Shape::Object(members),
                ..
            }) => *members,
            _ => panic!("{group} is a group"),
        };
        for (group, name, meant) in [
            ("multiAgent", "subAgents", Some("subagents")),
            ("multiAgent", "sub_agents", Some("subagents")),
            ("tools", "parallel_calls", Some("parallelCalls")),
            ("tools", "support", Some("supported")),
            ("execution", "maxExecutionTimeMs", Some("maxExecutionTime")),
            ("reasoning", "colour", None),
            ("tools", "", None),
        ] {
            assert_eq!(nearest(name, members(group)), meant, "{group}.{name}");
        }
        let root = |name| nearest(name, AGENT_CAPABILITIES);
        assert_eq!(root("human_in_the_loop"), Some("humanInTheLoop"));
        assert_eq!(root("multiagent"), Some("multiAgent"));
        assert_eq!(root("metadata"), None);
        assert_eq!(root(&"tools".repeat(1000)), None);
    }

    #[test]
    fn names_are_described_once() {
        fn walk(members: &[Member]) -> usize {
            let mut names: Vec<_> = members.iter().map(|member| member.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), members.len());
            let inside = |member: &Member| match &member.shape {
                Shape::Object(members) | Shape::List(Shape::Object(members)) => walk(members),
                _ => 0,
            };
            members.len() + members.iter().map(inside).sum::<usize>()
        }
        // 11 at the top, 48 fields, 6 members of records.
        assert_eq!(walk(AGENT_CAPABILITIES), 65);
    }
}
