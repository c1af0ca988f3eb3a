//! Requirements (section 4, R8) and the predicate set derived from them (section 5, R10).

use super::agent::agent_reference;
use super::{
    NON_EMPTY, Predicate, PredicateKind, clearance, identifier, latency_class, plain,
    schema_version,
};
use crate::decode::document::{Document, INTEGER, List, Member, Need, Reading};
use crate::decode::reader::{JsonStr, Read};
use crate::pointer::Path;

/// What requirements are, for messages.
pub(crate) const REQUIREMENTS: &str = "a requirements document (an object)";

/// A required or declared capability: its name and major version.
pub(crate) type Capability<'a> = (JsonStr<'a>, u64);

/// What a task requires.
#[derive(Clone, Debug)]
pub(crate) struct Requirements<'a> {
    /// One for each entry that could be read, repeats included.
    pub(crate) asked: Vec<Asked<'a>>,
    /// Whether every entry could be read, and so the set is all that was asked for.
    pub(crate) complete: bool,
}

/// A predicate and the entry that asks for it.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) predicate: Predicate<'a>,
    /// Index of the entry in its list; 0 where the member is no list.
    index: usize,
}

impl Asked<'_> {
    /// The same without a borrow of the record.
    pub(crate) fn to_static(&self) -> Asked<'static> {
        Asked {
            predicate: self.predicate.clone().into_owned(),
            index: self.index,
        }
    }

    /// Pointer of the entry below the requirements at `at`.
    pub(crate) fn pointer(&self, at: &Path) -> String {
        let member = match self.predicate.kind {
            PredicateKind::Capability => "capabilities",
            PredicateKind::Clearance => "clearances",
            PredicateKind::Tool => "tools",
            PredicateKind::AntiAffinity => "exclude",
            PredicateKind::Residency => return at.name("residency").render(),
            PredicateKind::LatencyClass => return at.name("model").name("latency_class").render(),
            PredicateKind::AgentRef => return at.name("agentRef").render(),
        };
        at.name(member).index(self.index).render()
    }
}

impl<'a> Requirements<'a> {
    /// What a task that states none requires.
    pub(crate) const fn none() -> Self {
        Requirements {
            asked: Vec::new(),
            complete: true,
        }
    }

    /// Reads a requirements document.
    pub(crate) fn read(document: &mut Document<'a>, at: &Path) -> Read<Reading<Self>> {
        let mut members = Members::default();
        let found = document.object(at, REQUIREMENTS, |document, member, at| {
            members.read(document, member, at)
        })?;
        Ok(if found {
            Reading::Value(members.requirements())
        } else {
            Reading::Unreadable
        })
    }
}

/// The members of a requirements document. A member's value is `None` where it states nothing.
#[derive(Default)]
struct Members<'a> {
    v: Member<()>,
    capabilities: Member<List<Capability<'a>>>,
    clearances: Member<List<JsonStr<'a>>>,
    tools: Member<List<JsonStr<'a>>>,
    residency: Member<JsonStr<'a>>,
    model: Member<Reading<JsonStr<'a>>>,
    session: Member<JsonStr<'a>>,
    agent_ref: Member<JsonStr<'a>>,
    exclude: Member<List<JsonStr<'a>>>,
}

impl<'a> Members<'a> {
    fn read(&mut self, document: &mut Document<'a>, member: &str, at: &Path) -> Read<()> {
        const OPTIONAL: Need = Need::Optional;
        match member {
            "v" => document.member(at, OPTIONAL, "", &mut self.v, schema_version),
            "capabilities" => {
                document.member(at, OPTIONAL, "", &mut self.capabilities, |document, at| {
                    let expected = "a list of {name, version}";
                    document.list(at, expected, plain::capability, |document, at| {
                        capability(document, at, false)
                    })
                })
            }
            "clearances" => {
                document.member(at, OPTIONAL, "", &mut self.clearances, |document, at| {
                    document.list(
                        at,
                        "a list of clearance identifiers",
                        plain::identifier,
                        clearance,
                    )
                })
            }
            "tools" => document.member(at, OPTIONAL, "", &mut self.tools, |document, at| {
                document.list(at, "a list of tool names", plain::name, names)
            }),
            "residency" => {
                document.member(at, OPTIONAL, "", &mut self.residency, |document, at| {
                    document.non_empty(at, "one residency label, a non-empty string")
                })
            }
            "model" => document.member(at, OPTIONAL, "", &mut self.model, model),
            "session" => document.member(at, OPTIONAL, "", &mut self.session, |document, at| {
                document.string(at, "a string")
            }),
            "agentRef" => document.member(at, OPTIONAL, "", &mut self.agent_ref, agent_reference),
            "exclude" => document.member(at, OPTIONAL, "", &mut self.exclude, |document, at| {
                document.list(at, "a list of agents' names", plain::name, agent_reference)
            }),
            _ => document.unknown(at),
        }
    }

    fn requirements(self) -> Requirements<'a> {
        let mut set = Requirements::none();
        set.ask_each(self.capabilities.reading, |(name, version)| {
            Predicate::capability(name.decode(), version)
        });
        let named = |kind| move |name: JsonStr<'a>| Predicate::named(kind, name.decode());
        set.ask_each(self.clearances.reading, named(PredicateKind::Clearance));
        set.ask_each(self.tools.reading, named(PredicateKind::Tool));
        set.ask(self.residency.reading, PredicateKind::Residency);
        set.ask(self.model.reading.flatten(), PredicateKind::LatencyClass);
        set.ask(self.agent_ref.reading, PredicateKind::AgentRef);
        set.ask_each(self.exclude.reading, named(PredicateKind::AntiAffinity));
        set
    }
}

impl<'a> Requirements<'a> {
    fn ask_each<T>(&mut self, reading: Reading<List<T>>, predicate: impl Fn(T) -> Predicate<'a>) {
        match reading {
            Reading::Absent => {}
            Reading::Unreadable => self.complete = false,
            Reading::Value(list) => {
                self.complete &= list.whole;
                let entries = list.entries.into_iter();
                self.asked.extend(entries.map(|(index, entry)| Asked {
                    predicate: predicate(entry),
                    index,
                }));
            }
        }
    }

    fn ask(&mut self, reading: Reading<JsonStr<'a>>, kind: PredicateKind) {
        match reading {
            Reading::Absent => {}
            Reading::Unreadable => self.complete = false,
            Reading::Value(name) => {
                self.asked.push(Asked {
                    predicate: Predicate::named(kind, name.decode()),
                    index: 0,
                });
            }
        }
    }
}

/// Reads `{name, version}`, and what else a declaration's capability may carry.
pub(super) fn capability<'a>(
    document: &mut Document<'a>,
    at: &Path,
    declared: bool,
) -> Read<Reading<Capability<'a>>> {
    let (mut name, mut version, mut description) = (Member::new(), Member::new(), Member::new());
    let expected = "an object with `name` and `version`";
    let found = document.object(at, expected, |document, member, at| match member {
        "name" => document.member(at, Need::Required, NAME, &mut name, |document, at| {
            identifier(document, at, NAME)
        }),
        "version" => document.member(at, Need::Required, INTEGER, &mut version, Document::integer),
        "description" if declared => {
            document.member(at, Need::Optional, "", &mut description, |document, at| {
                document.string(at, "a string")
            })
        }
        "inputs" | "outputs" | "evaluation" if declared => document.reader.skip().map(drop),
        _ => document.unknown(at),
    })?;
    if !found {
        return Ok(Reading::Unreadable);
    }
    document.demand(&at.name("name"), NAME, &mut name);
    document.demand(&at.name("version"), INTEGER, &mut version);
    Ok(match (name.reading, version.reading) {
        (Reading::Value(name), Reading::Value(version)) => Reading::Value((name, version)),
        _ => Reading::Unreadable,
    })
}

const NAME: &str =
    "a capability name such as order.investigate, matching [a-z0-9]+(\\.[a-z0-9-]+)+";

/// Reads a name or label that is no identifier.
pub(super) fn names<'a>(document: &mut Document<'a>, at: &Path) -> Read<Reading<JsonStr<'a>>> {
    document.non_empty(at, NON_EMPTY)
}

/// Reads `{latency_class}`.
fn model<'a>(document: &mut Document<'a>, at: &Path) -> Read<Reading<Reading<JsonStr<'a>>>> {
    let mut class = Member::new();
    let expected = "an object with `latency_class`";
    let found = document.object(at, expected, |document, member, at| match member {
        "latency_class" => document.member(at, Need::Optional, "", &mut class, latency_class),
        _ => document.unknown(at),
    })?;
    Ok(if found {
        Reading::Value(class.reading)
    } else {
        Reading::Unreadable
    })
}
