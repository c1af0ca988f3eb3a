//! Predicates of section 5 and their canonical strings.

use std::borrow::Cow;
use std::fmt;

/// The seven kinds of predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PredicateKind {
    /// `capability:<name>/<version>`
    Capability,
    /// `clearance:<id>`
    Clearance,
    /// `tool:<name>`
    Tool,
    /// `residency:<label>`
    Residency,
    /// `model.latency_class:<class>`
    LatencyClass,
    /// `agentRef:<name>`
    AgentRef,
    /// `anti-affinity:<name>`
    AntiAffinity,
}

impl PredicateKind {
    /// Every kind, in the order of section 5.
    pub const ALL: [PredicateKind; 7] = [
        PredicateKind::Capability,
        PredicateKind::Clearance,
        PredicateKind::Tool,
        PredicateKind::Residency,
        PredicateKind::LatencyClass,
        PredicateKind::AgentRef,
        PredicateKind::AntiAffinity,
    ];

    /// What a canonical string of this kind begins with, colon included.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            PredicateKind::Capability => "capability:",
            PredicateKind::Clearance => "clearance:",
            PredicateKind::Tool => "tool:",
            PredicateKind::Residency => "residency:",
            PredicateKind::LatencyClass => "model.latency_class:",
            PredicateKind::AgentRef => "agentRef:",
            PredicateKind::AntiAffinity => "anti-affinity:",
        }
    }
}

/// One predicate. `Display` gives its canonical string; two predicates are equal exactly when
/// their canonical strings are (a capability's version follows the last `/`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Predicate<'a> {
    /// Which of the seven.
    pub kind: PredicateKind,
    /// What follows the prefix, without a capability's version.
    pub name: Cow<'a, str>,
    /// The major version of a capability; 0 for every other kind.
    pub version: u64,
}

impl<'a> Predicate<'a> {
    /// A predicate of any kind but `capability:`.
    #[must_use]
    pub fn named(kind: PredicateKind, name: Cow<'a, str>) -> Self {
        debug_assert!(kind != PredicateKind::Capability);
        Predicate {
            kind,
            name,
            version: 0,
        }
    }

    /// A `capability:` predicate.
    #[must_use]
    pub fn capability(name: Cow<'a, str>, version: u64) -> Self {
        Predicate {
            kind: PredicateKind::Capability,
            name,
            version,
        }
    }

    /// Reads a canonical string; `None` where it is none, and so equals no predicate.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let kind = PredicateKind::ALL
            .into_iter()
            .find(|kind| text.starts_with(kind.prefix()))?;
        let rest = &text[kind.prefix().len()..];
        if kind != PredicateKind::Capability {
            return Some(Predicate::named(kind, Cow::Borrowed(rest)));
        }
        let (name, version) = rest.rsplit_once('/')?;
        let canonical = version == "0" || version.starts_with(|c: char| matches!(c, '1'..='9'));
        let digits = version.bytes().all(|b| b.is_ascii_digit());
        if !canonical || !digits {
            return None;
        }
        Some(Predicate::capability(
            Cow::Borrowed(name),
            version.parse().ok()?,
        ))
    }

    /// Whether `text` is this predicate's canonical string.
    #[must_use]
    pub fn is_spelt(&self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix(self.kind.prefix()) else {
            return false;
        };
        let Some(rest) = rest.strip_prefix(&*self.name) else {
            return false;
        };
        match self.kind {
            PredicateKind::Capability => Predicate::parse(text).is_some_and(|other| *self == other),
            _ => rest.is_empty(),
        }
    }

    /// The predicate without a borrow of the record.
    #[must_use]
    pub fn into_owned(self) -> Predicate<'static> {
        Predicate {
            kind: self.kind,
            name: Cow::Owned(self.name.into_owned()),
            version: self.version,
        }
    }
}

impl fmt::Display for Predicate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.prefix())?;
        f.write_str(&self.name)?;
        match self.kind {
            PredicateKind::Capability => write!(f, "/{}", self.version),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_strings_read_back() {
        for text in [
            "capability:order.investigate/2",
            "capability:a.b/0",
            "capability:odd/name/18446744073709551615",
            "clearance:orders.read",
            "clearance:",
            "tool:orders.lookup",
            "residency:us-gov",
            "model.latency_class:batch",
            "agentRef:order-analyst",
            "anti-affinity:proposer",
        ] {
            let predicate = Predicate::parse(text).expect(text);
            assert_eq!(predicate.to_string(), text);
            assert!(predicate.is_spelt(text));
            assert!(!predicate.is_spelt(&format!("{text}0")));
        }
    }

    #[test]
    fn other_strings_are_no_predicates() {
        for text in [
            "",
            "capability:a.b",
            "capability:a.b/",
            "capability:a.b/02",
            "capability:a.b/-1",
            "capability:a.b/18446744073709551616",
            "Clearance:a.b",
            "latency_class:batch",
            "tool",
        ] {
            assert_eq!(Predicate::parse(text), None, "{text:?}");
        }
    }
}
