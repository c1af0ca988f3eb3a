//! Declarations (section 3, R9), and whether one satisfies a predicate (section 5, R14).

use std::collections::HashSet;

use super::agent::{AGENT, Agent};
use super::requirements::{Capability, capability, names};
use super::{Predicate, PredicateKind, VERSION, clearance, latency_class, plain, schema_version};
use crate::decode::document::{Document, List, Member, Need, Reading, quotable, quoted};
use crate::decode::reader::{JsonStr, Read};
use crate::pointer::Path;

/// What a declaration is, for messages.
pub(crate) const DECLARATION: &str = "a declaration (an object)";

const CAPABILITIES: &str = "a list of {name, version}";
const CLEARANCES: &str = "a list of clearance identifiers";

/// What an agent declares about itself.
#[derive(Clone, Debug)]
pub(crate) struct Declaration<'a> {
    pub(crate) agent: Reading<Agent<'a>>,
    capabilities: Reading<List<Capability<'a>>>,
    clearances: Reading<List<JsonStr<'a>>>,
    pub(crate) residency: Reading<List<JsonStr<'a>>>,
    tools: Reading<List<JsonStr<'a>>>,
    latency_class: Reading<JsonStr<'a>>,
}

/// Whether a declaration satisfies a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Satisfied,
    Unmet,
    /// Not found, but the member that it would be in could not be read whole.
    Undecided,
}

impl<'a> Declaration<'a> {
    /// Reads a declaration.
    pub(crate) fn read(document: &mut Document<'a>, at: &Path) -> Read<Reading<Self>> {
        let mut members = Members::default();
        let found = document.object(at, DECLARATION, |document, member, at| {
            members.read(document, member, at)
        })?;
        if !found {
            return Ok(Reading::Unreadable);
        }
        document.demand(&at.name("v"), VERSION, &mut members.v);
        document.demand(&at.name("agent"), AGENT, &mut members.agent);
        document.demand(
            &at.name("capabilities"),
            CAPABILITIES,
            &mut members.capabilities,
        );
        document.demand(&at.name("clearances"), CLEARANCES, &mut members.clearances);
        Ok(Reading::Value(Declaration {
            agent: members.agent.reading,
            capabilities: members.capabilities.reading,
            clearances: members.clearances.reading,
            residency: members.residency.reading,
            tools: members.tools.reading,
            latency_class: members.model.reading.flatten(),
        }))
    }

    /// The name of the agent that declares this: the chosen agent, where it could be read.
    pub(crate) fn agent_name(&self) -> Option<JsonStr<'a>> {
        self.agent.value()?.name
    }

    /// Whether this satisfies `predicate`. Reads only the member that the predicate names.
    pub(crate) fn judge(&self, predicate: &Predicate<'_>) -> Verdict {
        self.judge_with(predicate, None)
    }

    /// The same where [`Declaration::index`] was made, which pays for many predicates.
    pub(crate) fn judge_with(
        &self,
        predicate: &Predicate<'_>,
        index: Option<&HashSet<Predicate<'_>>>,
    ) -> Verdict {
        let name: &str = &predicate.name;
        let indexed = index.map(|index| index.contains(predicate));
        let named = |list| holds(list, indexed, |held: &JsonStr<'_>| *held == *name);
        match predicate.kind {
            PredicateKind::Capability => holds(&self.capabilities, indexed, |&(n, v)| {
                v == predicate.version && n == *name
            }),
            PredicateKind::Clearance => named(&self.clearances),
            PredicateKind::Tool => named(&self.tools),
            PredicateKind::Residency => named(&self.residency),
            PredicateKind::LatencyClass => match &self.latency_class {
                Reading::Absent => Verdict::Unmet,
                Reading::Unreadable => Verdict::Undecided,
                Reading::Value(class) => verdict(*class == *name),
            },
            PredicateKind::AgentRef => self.judge_agent(|agent| agent == *name),
            PredicateKind::AntiAffinity => self.judge_agent(|agent| agent != *name),
        }
    }

    /// Every predicate that an entry of a list here satisfies.
    pub(crate) fn index(&self) -> HashSet<Predicate<'a>> {
        let named = |kind, list: &Reading<List<JsonStr<'a>>>| {
            let names = list
                .value()
                .map(|list| list.values().copied().collect::<Vec<_>>());
            let names = names.unwrap_or_default().into_iter();
            names.map(move |name| Predicate::named(kind, name.decode()))
        };
        let capabilities = self.capabilities.value().into_iter().flat_map(List::values);
        capabilities
            .map(|&(name, version)| Predicate::capability(name.decode(), version))
            .chain(named(PredicateKind::Clearance, &self.clearances))
            .chain(named(PredicateKind::Tool, &self.tools))
            .chain(named(PredicateKind::Residency, &self.residency))
            .collect()
    }

    fn judge_agent(&self, satisfied: impl Fn(JsonStr<'a>) -> bool) -> Verdict {
        match self.agent_name() {
            Some(agent) => verdict(satisfied(agent)),
            None => Verdict::Undecided,
        }
    }

    /// What the declaration has in the place that `predicate` reads, in words.
    pub(crate) fn holdings(&self, predicate: &Predicate<'_>) -> String {
        match predicate.kind {
            PredicateKind::Capability => self.capabilities_held(&predicate.name),
            PredicateKind::Clearance => list_held("clearances", &self.clearances),
            PredicateKind::Tool => list_held("tools", &self.tools),
            PredicateKind::Residency => list_held("residency", &self.residency),
            PredicateKind::LatencyClass => {
                let class = self.latency_class.value().copied();
                value_held("model.latency_class", class)
            }
            PredicateKind::AgentRef | PredicateKind::AntiAffinity => {
                value_held("agent.name", self.agent_name())
            }
        }
    }

    /// Versions of the capability in question, or else every capability.
    fn capabilities_held(&self, name: &str) -> String {
        let all = || self.capabilities.value().into_iter().flat_map(List::values);
        let same = || all().filter(|(n, _)| *n == *name);
        let count = same().count();
        if count > 0 {
            let versions = same().map(|(_, version)| version.to_string());
            let versions = first_listed(versions, count);
            return format!("the declaration has it at version {versions}");
        }
        let names = all().map(|&(n, v)| format!("{}/{v}", quotable(n)));
        let count = self.capabilities.value().map_or(0, |l| l.entries.len());
        format!(
            "the declaration's `capabilities`: {}",
            first_listed(names, count)
        )
    }
}

fn list_held(member: &str, reading: &Reading<List<JsonStr<'_>>>) -> String {
    let Reading::Value(list) = reading else {
        return format!("the declaration has no `{member}`");
    };
    let held = list.values().map(|&held| quotable(held));
    format!(
        "the declaration's `{member}`: {}",
        first_listed(held, list.entries.len())
    )
}

fn value_held(member: &str, value: Option<JsonStr<'_>>) -> String {
    match value {
        Some(value) => format!(
            "the declaration's `{member}` is `{}`",
            quoted(&quotable(value))
        ),
        None => format!("the declaration has no `{member}`"),
    }
}

/// Up to ten of `items`, and how many more there are. One whose ends would not be seen is put in
/// quotes.
pub(crate) fn listed<T: AsRef<str>>(items: &[T]) -> String {
    first_listed(items.iter(), items.len())
}

/// The same of `count` items, of which no more are made than are shown.
fn first_listed<T: AsRef<str>>(items: impl Iterator<Item = T>, count: usize) -> String {
    const SHOWN: usize = 10;
    if count == 0 {
        return "none".to_owned();
    }
    let is_plain = |text: &str| {
        !text.is_empty() && !text.contains([',', ';']) && !text.contains(char::is_whitespace)
    };
    let shown: Vec<_> = items
        .take(SHOWN)
        .map(|item| match quoted(item.as_ref()) {
            text if is_plain(&text) => text.into_owned(),
            text => format!("{text:?}"),
        })
        .collect();
    match count - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn verdict(satisfied: bool) -> Verdict {
    if satisfied {
        Verdict::Satisfied
    } else {
        Verdict::Unmet
    }
}

fn holds<T>(
    reading: &Reading<List<T>>,
    indexed: Option<bool>,
    is_it: impl Fn(&T) -> bool,
) -> Verdict {
    match reading {
        Reading::Absent => Verdict::Unmet,
        Reading::Unreadable => Verdict::Undecided,
        Reading::Value(list) => {
            if indexed.unwrap_or_else(|| list.values().any(is_it)) {
                Verdict::Satisfied
            } else if list.whole {
                Verdict::Unmet
            } else {
                Verdict::Undecided
            }
        }
    }
}

#[derive(Default)]
struct Members<'a> {
    v: Member<()>,
    agent: Member<Agent<'a>>,
    capabilities: Member<List<Capability<'a>>>,
    clearances: Member<List<JsonStr<'a>>>,
    residency: Member<List<JsonStr<'a>>>,
    tools: Member<List<JsonStr<'a>>>,
    model: Member<Reading<JsonStr<'a>>>,
}

impl<'a> Members<'a> {
    fn read(&mut self, document: &mut Document<'a>, member: &str, at: &Path) -> Read<()> {
        use Need::{Optional, Required};
        match member {
            "v" => document.member(at, Required, VERSION, &mut self.v, schema_version),
            "agent" => document.member(at, Required, AGENT, &mut self.agent, Agent::read),
            "capabilities" => {
                let slot = &mut self.capabilities;
                document.member(at, Required, CAPABILITIES, slot, |document, at| {
                    document.list(at, CAPABILITIES, plain::capability, |document, at| {
                        capability(document, at, true)
                    })
                })
            }
            "clearances" => {
                let slot = &mut self.clearances;
                document.member(at, Required, CLEARANCES, slot, |document, at| {
                    document.list(at, CLEARANCES, plain::identifier, clearance)
                })
            }
            "residency" => {
                document.member(at, Optional, "", &mut self.residency, |document, at| {
                    document.list(at, "a list of residency labels", plain::name, names)
                })
            }
            "tools" => document.member(at, Optional, "", &mut self.tools, |document, at| {
                document.list(at, "a list of tool names", plain::name, names)
            }),
            "model" => document.member(at, Optional, "", &mut self.model, model),
            _ => document.unknown(at),
        }
    }
}

/// Reads `{latency_class, cost_ceiling_usd}`.
fn model<'a>(document: &mut Document<'a>, at: &Path) -> Read<Reading<Reading<JsonStr<'a>>>> {
    let (mut class, mut ceiling) = (Member::new(), Member::new());
    let expected = "an object with `latency_class` and `cost_ceiling_usd`";
    let found = document.object(at, expected, |document, member, at| match member {
        "latency_class" => document.member(at, Need::Optional, "", &mut class, latency_class),
        "cost_ceiling_usd" => document.member(at, Need::Optional, "", &mut ceiling, decimal),
        _ => document.unknown(at),
    })?;
    Ok(if found {
        Reading::Value(class.reading)
    } else {
        Reading::Unreadable
    })
}

/// Reads a decimal string: `[0-9]+(\.[0-9]+)?`.
fn decimal(document: &mut Document<'_>, at: &Path) -> Read<Reading<()>> {
    const DECIMAL: &str = "a decimal string such as \"0.75\", without sign or exponent";
    let Reading::Value(string) = document.string(at, DECIMAL)? else {
        return Ok(Reading::Unreadable);
    };
    let text = string.decode();
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
    if digits(whole) && digits(fraction) {
        return Ok(Reading::Value(()));
    }
    document.faults.wrong_string(at, &text, DECIMAL);
    Ok(Reading::Unreadable)
}
