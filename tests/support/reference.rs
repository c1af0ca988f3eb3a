//! A second verifier, written from the rules alone, to compare verdicts with in tests.
//!
//! It holds everything in memory, parses a line once per nesting level and compiles nothing clever: each rule of
//! `verification.md` is a small function under its number. It covers one whole, unkeyed, one-shot trace with the
//! default limits.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

const MAX_RECORD_BYTES: usize = 16 * 1024 * 1024;
const MAX_DEPTH: usize = 1024;
const SCHEDULING: &str = "/content/scheduling";

/// One error or advisory, reduced to what two verifiers must agree on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Verdict {
    /// 1-based.
    pub(crate) line: u64,
    pub(crate) seq: Option<u64>,
    pub(crate) code: String,
    pub(crate) pointer: String,
    pub(crate) predicate: Option<String>,
}

/// All errors and advisories of one whole trace, sorted.
pub(crate) fn verify(trace: &[u8]) -> Vec<Verdict> {
    let body = trace.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(trace);
    let mut state = Trace::default();
    for (line, number) in body.split(|byte| *byte == b'\n').zip(1..) {
        state.line(number, line);
    }
    state.end()
}

/// Whether a line is a JSON object that R4 accepts, whatever its members.
pub(crate) fn accepts(line: &[u8]) -> bool {
    parse_record(line).is_some()
}

// ---- R1, R4: from bytes to a tree ----

/// Unlike `serde_json::Value`, this keeps doubled members and the literal text of numbers.
#[derive(Debug)]
enum Node {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Node>),
    Object(Members),
}

type Members = Vec<(String, Node)>;

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| b" \t\r".contains(byte))
}

// R4
fn parse_record(line: &[u8]) -> Option<Members> {
    if line.len() > MAX_RECORD_BYTES || depth(line) > MAX_DEPTH {
        return None;
    }
    let text = std::str::from_utf8(line).ok()?;
    match parse(serde_json::from_str(text).ok()?)? {
        Node::Object(members) => Some(members),
        _ => None,
    }
}

/// The deepest nesting outside of strings; a guess where the line is no JSON, and then it does not matter.
fn depth(line: &[u8]) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => open += 1,
            b'}' | b']' if !in_string => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

/// Raw values keep number literals whole, and no member name of a record can be taken for one of serde_json's own
/// (as `$serde_json::private::Number` is with arbitrary precision). Every string is decoded, so every lone surrogate
/// is found.
fn parse(raw: &RawValue) -> Option<Node> {
    let text = raw.get();
    Some(match text.as_bytes()[0] {
        b'n' => Node::Null,
        b't' => Node::Bool(true),
        b'f' => Node::Bool(false),
        b'"' => Node::Text(serde_json::from_str(text).ok()?),
        b'[' => Node::List(parse_list(text)?),
        b'{' => Node::Object(parse_object(text)?),
        _ => Node::Number(text.to_owned()),
    })
}

// Loops and no iterator chains here: a thousand levels of those overflow a test thread's stack.
fn parse_list(text: &str) -> Option<Vec<Node>> {
    let raw: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let mut entries = Vec::new();
    for entry in raw {
        entries.push(parse(entry)?);
    }
    Some(entries)
}

fn parse_object(text: &str) -> Option<Members> {
    let RawMembers(raw) = serde_json::from_str(text).ok()?;
    let mut members = Vec::new();
    for (name, value) in raw {
        members.push((name, parse(value)?));
    }
    Some(members)
}

struct RawMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for RawMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawMembersVisitor)
    }
}

struct RawMembersVisitor;

impl<'de> Visitor<'de> for RawMembersVisitor {
    type Value = RawMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(RawMembers(members))
    }
}

// ---- R5: reading members ----

/// What one record gave.
#[derive(Debug, Default)]
struct Report {
    line: u64,
    seq: Option<u64>,
    verdicts: Vec<Verdict>,
}

impl Report {
    fn add(&mut self, code: &str, pointer: &str, predicate: Option<&str>) {
        self.verdicts.push(Verdict {
            line: self.line,
            seq: self.seq,
            code: code.to_owned(),
            pointer: pointer.to_owned(),
            predicate: predicate.map(str::to_owned),
        });
    }

    fn finding(&mut self, code: &str, pointer: &str) {
        self.add(code, pointer, None);
    }

    fn malformed(&mut self, pointer: &str) {
        self.add("E_STRUCTURE", pointer, None);
    }

    fn unexplained(&mut self, pointer: &str) {
        self.add("E_EXPLANATION", pointer, None);
    }
}

/// A member as far as it could be read.
#[derive(Debug, Default)]
enum Got<T> {
    /// Left out, or optional and `null`.
    #[default]
    Absent,
    /// Malformed, doubled, or required and missing; an `E_STRUCTURE` stands for it.
    Unreadable,
    Good(T),
}

impl<T> Got<T> {
    fn good(&self) -> Option<&T> {
        match self {
            Got::Good(value) => Some(value),
            _ => None,
        }
    }

    fn is_absent(&self) -> bool {
        matches!(self, Got::Absent)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Need {
    Required,
    Optional,
}
use Need::{Optional, Required};

/// Reads a value at a pointer: `None` where it is unreadable, after reporting why.
type Reader<T> = fn(&mut Report, &Node, &str) -> Option<T>;

fn occurrences<'a>(members: &'a Members, name: &str) -> Vec<&'a Node> {
    let same = members.iter().filter(|(other, _)| other == name);
    same.map(|(_, value)| value).collect()
}

// R5
fn member<T>(
    report: &mut Report,
    members: &Members,
    at: &str,
    name: &str,
    need: Need,
    read: Reader<T>,
) -> Got<T> {
    let pointer = format!("{at}/{name}");
    match occurrences(members, name)[..] {
        [] if need == Optional => Got::Absent,
        [Node::Null] if need == Optional => {
            report.finding("W_NULL", &pointer);
            Got::Absent
        }
        [] => {
            report.malformed(&pointer);
            Got::Unreadable
        }
        [only] => match read(report, only, &pointer) {
            Some(value) => Got::Good(value),
            None => Got::Unreadable,
        },
        [first, ..] => {
            // Neither value is used, but what is wrong inside the first one is still said.
            read(report, first, &pointer);
            report.malformed(&pointer);
            Got::Unreadable
        }
    }
}

fn object<'a>(report: &mut Report, node: &'a Node, at: &str) -> Option<&'a Members> {
    match node {
        Node::Object(members) => Some(members),
        _ => {
            report.malformed(at);
            None
        }
    }
}

/// One slot an entry, so that an unreadable one keeps its place.
type Entries<T> = Vec<Option<T>>;

fn list<T>(report: &mut Report, node: &Node, at: &str, read: Reader<T>) -> Option<Entries<T>> {
    let Node::List(nodes) = node else {
        report.malformed(at);
        return None;
    };
    let numbered = nodes.iter().enumerate();
    Some(
        numbered
            .map(|(index, node)| read(report, node, &format!("{at}/{index}")))
            .collect(),
    )
}

fn text(report: &mut Report, node: &Node, at: &str) -> Option<String> {
    match node {
        Node::Text(text) => Some(text.clone()),
        _ => {
            report.malformed(at);
            None
        }
    }
}

fn filled(report: &mut Report, node: &Node, at: &str) -> Option<String> {
    let text = text(report, node, at)?;
    if text.is_empty() {
        report.malformed(at);
        return None;
    }
    Some(text)
}

/// A string that breaks its grammar is reported and still counts as what it says.
fn text_that(report: &mut Report, node: &Node, at: &str, grammar: &Regex) -> Option<String> {
    let text = text(report, node, at)?;
    if !grammar.is_match(&text) {
        report.malformed(at);
    }
    Some(text)
}

// R2, R7: an integer literal from 0 to 2^64-1.
fn natural(report: &mut Report, node: &Node, at: &str) -> Option<u64> {
    let value = match node {
        Node::Number(literal) if literal == "-0" => Some(0),
        Node::Number(literal) => literal.parse().ok(),
        _ => None,
    };
    if value.is_none() {
        report.malformed(at);
    }
    value
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant of this file")
}

// ---- R7 to R9: documents ----

const IDENTIFIER: &str = r"[a-z0-9]+(\.[a-z0-9-]+)+";

// R7
fn identifier(report: &mut Report, node: &Node, at: &str) -> Option<String> {
    static GRAMMAR: LazyLock<Regex> = LazyLock::new(|| pattern(&format!(r"\A{IDENTIFIER}\z")));
    text_that(report, node, at, &GRAMMAR)
}

// R7
fn schema_version(report: &mut Report, node: &Node, at: &str) -> Option<String> {
    static GRAMMAR: LazyLock<Regex> = LazyLock::new(|| pattern(r"\A1(\.[0-9]+)*\z"));
    text_that(report, node, at, &GRAMMAR)
}

// R8
fn latency_class(report: &mut Report, node: &Node, at: &str) -> Option<String> {
    static GRAMMAR: LazyLock<Regex> = LazyLock::new(|| pattern(r"\A(interactive|batch)\z"));
    text_that(report, node, at, &GRAMMAR)
}

// R9
fn decimal(report: &mut Report, node: &Node, at: &str) -> Option<String> {
    static GRAMMAR: LazyLock<Regex> = LazyLock::new(|| pattern(r"\A[0-9]+(\.[0-9]+)?\z"));
    text_that(report, node, at, &GRAMMAR)
}

type Capability = (String, u64);

// R8
fn required_capability(report: &mut Report, node: &Node, at: &str) -> Option<Capability> {
    let members = object(report, node, at)?;
    let name = member(report, members, at, "name", Required, identifier);
    let version = member(report, members, at, "version", Required, natural);
    Some((name.good()?.clone(), *version.good()?))
}

// R9
fn declared_capability(report: &mut Report, node: &Node, at: &str) -> Option<Capability> {
    let capability = required_capability(report, node, at);
    if let Node::Object(members) = node {
        member(report, members, at, "description", Optional, text);
    }
    capability
}

fn capabilities_required(
    report: &mut Report,
    node: &Node,
    at: &str,
) -> Option<Entries<Capability>> {
    list(report, node, at, required_capability)
}

fn capabilities_declared(
    report: &mut Report,
    node: &Node,
    at: &str,
) -> Option<Entries<Capability>> {
    list(report, node, at, declared_capability)
}

fn identifiers(report: &mut Report, node: &Node, at: &str) -> Option<Entries<String>> {
    list(report, node, at, identifier)
}

fn texts(report: &mut Report, node: &Node, at: &str) -> Option<Entries<String>> {
    list(report, node, at, text)
}

fn filled_texts(report: &mut Report, node: &Node, at: &str) -> Option<Entries<String>> {
    list(report, node, at, filled)
}

// R8: an agent's name, or an object that has it.
fn agent_reference(report: &mut Report, node: &Node, at: &str) -> Option<String> {
    let Node::Object(members) = node else {
        return filled(report, node, at);
    };
    match member(report, members, at, "name", Required, filled) {
        Got::Good(name) => Some(name),
        _ => None,
    }
}

fn agent_references(report: &mut Report, node: &Node, at: &str) -> Option<Entries<String>> {
    list(report, node, at, agent_reference)
}

// R8
fn required_model(report: &mut Report, node: &Node, at: &str) -> Option<Got<String>> {
    let members = object(report, node, at)?;
    Some(member(
        report,
        members,
        at,
        "latency_class",
        Optional,
        latency_class,
    ))
}

// R9
fn declared_model(report: &mut Report, node: &Node, at: &str) -> Option<Got<String>> {
    let latency = required_model(report, node, at)?;
    if let Node::Object(members) = node {
        member(report, members, at, "cost_ceiling_usd", Optional, decimal);
    }
    Some(latency)
}

#[derive(Debug, PartialEq)]
struct Agent {
    name: Option<String>,
    namespace: Option<String>,
}

// R9
fn agent(report: &mut Report, node: &Node, at: &str) -> Option<Agent> {
    let members = object(report, node, at)?;
    let name = member(report, members, at, "name", Required, filled);
    let namespace = member(report, members, at, "namespace", Required, filled);
    Some(Agent {
        name: name.good().cloned(),
        namespace: namespace.good().cloned(),
    })
}

#[derive(Debug)]
struct Declaration {
    agent: Got<Agent>,
    capabilities: Got<Entries<Capability>>,
    clearances: Got<Entries<String>>,
    residency: Got<Entries<String>>,
    tools: Got<Entries<String>>,
    model: Got<Got<String>>,
}

impl Declaration {
    fn name(&self) -> Option<&String> {
        self.agent.good()?.name.as_ref()
    }
}

// R9
fn declaration(report: &mut Report, node: &Node, at: &str) -> Option<Declaration> {
    let members = object(report, node, at)?;
    member(report, members, at, "v", Required, schema_version);
    Some(Declaration {
        agent: member(report, members, at, "agent", Required, agent),
        capabilities: member(
            report,
            members,
            at,
            "capabilities",
            Required,
            capabilities_declared,
        ),
        clearances: member(report, members, at, "clearances", Required, identifiers),
        residency: member(report, members, at, "residency", Optional, filled_texts),
        tools: member(report, members, at, "tools", Optional, filled_texts),
        model: member(report, members, at, "model", Optional, declared_model),
    })
}

// ---- R10: predicate sets ----

#[derive(Debug)]
enum Predicate {
    Capability(Capability),
    Clearance(String),
    Tool(String),
    Residency(String),
    Latency(String),
    AgentRef(String),
    AntiAffinity(String),
}

impl Predicate {
    fn canonical(&self) -> String {
        match self {
            Predicate::Capability((name, version)) => format!("capability:{name}/{version}"),
            Predicate::Clearance(id) => format!("clearance:{id}"),
            Predicate::Tool(name) => format!("tool:{name}"),
            Predicate::Residency(label) => format!("residency:{label}"),
            Predicate::Latency(class) => format!("model.latency_class:{class}"),
            Predicate::AgentRef(name) => format!("agentRef:{name}"),
            Predicate::AntiAffinity(name) => format!("anti-affinity:{name}"),
        }
    }

    fn unmet_code(&self) -> &'static str {
        match self {
            Predicate::Capability(_) => "E_CAPABILITY_UNMET",
            Predicate::Clearance(_) => "E_CLEARANCE_UNMET",
            Predicate::Tool(_) => "E_TOOL_UNMET",
            Predicate::Residency(_) => "E_RESIDENCY_UNMET",
            Predicate::Latency(_) => "E_MODEL_UNMET",
            Predicate::AgentRef(_) => "E_AGENTREF_UNMET",
            Predicate::AntiAffinity(_) => "E_ANTIAFFINITY_UNMET",
        }
    }
}

/// The predicates of a requirements document, each with the pointer of the entry that asks for it.
#[derive(Debug, Default)]
struct Requirements {
    asks: Vec<(Predicate, String)>,
    incomplete: bool,
}

type PredicateSet = BTreeSet<String>;

impl Requirements {
    /// `None` where the set is incomplete.
    fn set(&self) -> Option<PredicateSet> {
        let canonical = self.asks.iter().map(|(predicate, _)| predicate.canonical());
        (!self.incomplete).then(|| canonical.collect())
    }

    fn ask(&mut self, value: Got<String>, pointer: String, make: fn(String) -> Predicate) {
        match value {
            Got::Absent => {}
            Got::Unreadable => self.incomplete = true,
            Got::Good(value) => self.asks.push((make(value), pointer)),
        }
    }

    fn ask_each<T>(&mut self, entries: Got<Entries<T>>, pointer: &str, make: fn(T) -> Predicate) {
        self.incomplete |= matches!(entries, Got::Unreadable);
        let Got::Good(entries) = entries else { return };
        for (index, entry) in entries.into_iter().enumerate() {
            match entry {
                Some(value) => self.asks.push((make(value), format!("{pointer}/{index}"))),
                None => self.incomplete = true,
            }
        }
    }
}

// R8, R10
fn requirements(report: &mut Report, node: &Node, at: &str) -> Option<Requirements> {
    let members = object(report, node, at)?;
    let mut found = Requirements::default();
    member(report, members, at, "v", Optional, schema_version);
    member(report, members, at, "session", Optional, text);
    let entries = member(
        report,
        members,
        at,
        "capabilities",
        Optional,
        capabilities_required,
    );
    found.ask_each(
        entries,
        &format!("{at}/capabilities"),
        Predicate::Capability,
    );
    let entries = member(report, members, at, "clearances", Optional, identifiers);
    found.ask_each(entries, &format!("{at}/clearances"), Predicate::Clearance);
    let entries = member(report, members, at, "tools", Optional, filled_texts);
    found.ask_each(entries, &format!("{at}/tools"), Predicate::Tool);
    let label = member(report, members, at, "residency", Optional, filled);
    found.ask(label, format!("{at}/residency"), Predicate::Residency);
    let latency = match member(report, members, at, "model", Optional, required_model) {
        Got::Good(latency) => latency,
        Got::Absent => Got::Absent,
        Got::Unreadable => Got::Unreadable,
    };
    found.ask(
        latency,
        format!("{at}/model/latency_class"),
        Predicate::Latency,
    );
    let name = member(report, members, at, "agentRef", Optional, agent_reference);
    found.ask(name, format!("{at}/agentRef"), Predicate::AgentRef);
    let entries = member(report, members, at, "exclude", Optional, agent_references);
    found.ask_each(entries, &format!("{at}/exclude"), Predicate::AntiAffinity);
    Some(found)
}

// ---- R11: the scheduling object ----

#[derive(Debug)]
struct Failed {
    candidate: Option<String>,
    predicate: Option<String>,
}

fn failed(report: &mut Report, node: &Node, at: &str) -> Option<Failed> {
    let members = object(report, node, at)?;
    let candidate = member(report, members, at, "candidate", Required, filled);
    let predicate = member(report, members, at, "predicate", Required, filled);
    Some(Failed {
        candidate: candidate.good().cloned(),
        predicate: predicate.good().cloned(),
    })
}

fn failures(report: &mut Report, node: &Node, at: &str) -> Option<Entries<Failed>> {
    list(report, node, at, failed)
}

fn scored_names(report: &mut Report, node: &Node, at: &str) -> Option<BTreeSet<String>> {
    let members = object(report, node, at)?;
    Some(members.iter().map(|(name, _)| name.clone()).collect())
}

#[derive(Debug)]
struct Explanation {
    candidates: Got<Entries<String>>,
    passed: Got<Entries<String>>,
    failed: Got<Entries<Failed>>,
    scores: Got<BTreeSet<String>>,
}

impl Explanation {
    fn all_present(&self) -> bool {
        let absent = self.candidates.is_absent()
            || self.passed.is_absent()
            || self.failed.is_absent()
            || self.scores.is_absent();
        !absent
    }

    /// R11: all four lists are there and well formed, whatever they say.
    fn is_full(&self) -> bool {
        let failed_whole = |entry: &Option<Failed>| {
            matches!(
                entry,
                Some(Failed {
                    candidate: Some(_),
                    predicate: Some(_)
                })
            )
        };
        whole(&self.candidates)
            && whole(&self.passed)
            && matches!(&self.failed, Got::Good(entries) if entries.iter().all(failed_whole))
            && self.scores.good().is_some()
    }

    fn failed_entries(&self) -> impl Iterator<Item = (usize, &Failed)> {
        let entries = self.failed.good().into_iter().flatten().enumerate();
        entries.filter_map(|(index, entry)| Some((index, entry.as_ref()?)))
    }
}

fn whole<T>(entries: &Got<Entries<T>>) -> bool {
    matches!(entries, Got::Good(entries) if entries.iter().all(Option::is_some))
}

/// Whether `recorded_in.kind` is as it must be; `None` where it is doubled and so was reported already.
#[derive(Debug)]
struct RecordedIn {
    kind_is_bound: Option<bool>,
    seq: Got<u64>,
}

fn recorded_in(report: &mut Report, node: &Node, at: &str) -> Option<RecordedIn> {
    let members = object(report, node, at)?;
    let kind_is_bound = match occurrences(members, "kind")[..] {
        [Node::Text(kind)] => Some(kind == "task.bound"),
        [] | [_] => Some(false),
        _ => {
            report.malformed(&format!("{at}/kind"));
            None
        }
    };
    Some(RecordedIn {
        kind_is_bound,
        seq: member(report, members, at, "seq", Optional, natural),
    })
}

#[derive(Debug)]
struct Scheduling {
    requirements: Got<Requirements>,
    declaration: Got<Declaration>,
    recorded_in: Got<RecordedIn>,
    explanation: Explanation,
    route: Got<String>,
}

impl Scheduling {
    /// P, or `None` where it is incomplete or unreadable.
    fn set(&self) -> Option<PredicateSet> {
        self.requirements.good()?.set()
    }

    fn chosen(&self) -> Option<&String> {
        self.declaration.good()?.name()
    }
}

// R11
fn scheduling(report: &mut Report, node: &Node, at: &str) -> Option<Scheduling> {
    let members = object(report, node, at)?;
    let recorded_in = member(report, members, at, "recorded_in", Optional, recorded_in);
    let need = if recorded_in.is_absent() {
        Required
    } else {
        Optional
    };
    Some(Scheduling {
        requirements: member(report, members, at, "requirements", Required, requirements),
        declaration: member(report, members, at, "declaration", Required, declaration),
        recorded_in,
        explanation: Explanation {
            candidates: member(report, members, at, "candidates", need, filled_texts),
            passed: member(report, members, at, "filters_passed", need, texts),
            failed: member(report, members, at, "filters_failed", need, failures),
            scores: member(report, members, at, "scores", need, scored_names),
        },
        route: member(report, members, at, "route", Optional, text),
    })
}

// ---- The contents of the four kinds ----

fn submitted(report: &mut Report, node: &Node, at: &str) -> Option<Got<Requirements>> {
    let members = object(report, node, at)?;
    Some(member(
        report,
        members,
        at,
        "requirements",
        Optional,
        requirements,
    ))
}

fn admitted(report: &mut Report, node: &Node, at: &str) -> Option<Got<Agent>> {
    let members = object(report, node, at)?;
    Some(member(report, members, at, "agent", Required, agent))
}

struct Bound {
    scheduling: Got<Scheduling>,
    resumed: bool,
}

fn bound(report: &mut Report, node: &Node, at: &str) -> Option<Bound> {
    let members = object(report, node, at)?;
    Some(Bound {
        scheduling: member(report, members, at, "scheduling", Required, scheduling),
        resumed: matches!(occurrences(members, "resumed")[..], [Node::Bool(true)]),
    })
}

/// Every text in the reason.
fn rejected(report: &mut Report, node: &Node, at: &str) -> Option<Got<Vec<String>>> {
    let members = object(report, node, at)?;
    Some(member(
        report,
        members,
        at,
        "reason",
        Optional,
        reason_texts,
    ))
}

fn reason_texts(_: &mut Report, node: &Node, _: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    gather_texts(node, &mut found);
    Some(found)
}

fn gather_texts(node: &Node, found: &mut Vec<String>) {
    match node {
        Node::Text(text) => found.push(text.clone()),
        Node::List(nodes) => {
            for node in nodes {
                gather_texts(node, found);
            }
        }
        Node::Object(members) => {
            for (name, value) in members {
                found.push(name.clone());
                gather_texts(value, found);
            }
        }
        Node::Null | Node::Bool(_) | Node::Number(_) => {}
    }
}

// ---- The trace ----

/// An earlier placement with a full explanation.
#[derive(Debug)]
struct Full {
    seq: Option<u64>,
    set: Option<PredicateSet>,
}

#[derive(Debug, Default)]
struct Trace {
    verdicts: Vec<Verdict>,
    greatest_seq: Option<u64>,
    gap_reported: bool,
    /// Of the latest `task.submitted`; absent until one comes.
    asked: Got<Requirements>,
    /// Of the latest `task.admitted`; absent until one comes.
    admitted: Got<Agent>,
    full: Vec<Full>,
    /// Line and `seq` of each placement that refers to a full explanation still to come.
    waiting: Vec<(u64, Option<u64>)>,
}

impl Trace {
    // R1, R4
    fn line(&mut self, number: u64, line: &[u8]) {
        if is_blank(line) && line.len() <= MAX_RECORD_BYTES {
            return;
        }
        let mut report = Report {
            line: number,
            ..Report::default()
        };
        match parse_record(line) {
            Some(members) => self.record(&mut report, &members),
            None => report.malformed(""),
        }
        self.verdicts.append(&mut report.verdicts);
    }

    // R2
    fn record(&mut self, report: &mut Report, members: &Members) {
        let seq = member(report, members, "", "seq", Required, natural);
        report.seq = seq.good().copied();
        self.order(report);
        let kind = member(report, members, "", "kind", Required, filled);
        match kind.good().map(String::as_str) {
            Some("task.submitted") => self.on_submitted(report, members),
            Some("task.admitted") => self.on_admitted(report, members),
            Some("task.bound") => self.on_bound(report, members),
            Some("task.rejected") => on_rejected(report, members),
            _ => {}
        }
    }

    // R3, W_SEQ_GAP
    fn order(&mut self, report: &mut Report) {
        let Some(seq) = report.seq else { return };
        if let Some(greatest) = self.greatest_seq {
            if seq <= greatest {
                report.malformed("/seq");
            } else if seq - greatest > 1 && !self.gap_reported {
                self.gap_reported = true;
                report.finding("W_SEQ_GAP", "/seq");
            }
        }
        self.greatest_seq = self.greatest_seq.max(Some(seq));
    }

    fn on_submitted(&mut self, report: &mut Report, members: &Members) {
        let content = member(report, members, "", "content", Required, submitted);
        let asked = match content {
            Got::Good(Got::Good(requirements)) => Got::Good(requirements),
            Got::Good(Got::Absent) => Got::Good(Requirements::default()),
            _ => Got::Unreadable,
        };
        let before = self.asked.good().and_then(Requirements::set);
        let now = asked.good().and_then(Requirements::set);
        if before.is_some() && now.is_some() && before != now {
            report.finding("W_RESUBMITTED", "/content/requirements");
        }
        self.asked = asked;
    }

    fn on_admitted(&mut self, report: &mut Report, members: &Members) {
        let content = member(report, members, "", "content", Required, admitted);
        let agent = match content {
            Got::Good(Got::Good(agent)) => Got::Good(agent),
            _ => Got::Unreadable,
        };
        if let (Got::Good(before), Got::Good(now)) = (&self.admitted, &agent) {
            let readable = |agent: &Agent| agent.name.is_some() && agent.namespace.is_some();
            if readable(before) && readable(now) && before != now {
                report.finding("W_RESUBMITTED", "/content/agent");
            }
        }
        self.admitted = agent;
    }

    fn on_bound(&mut self, report: &mut Report, members: &Members) {
        let content = member(report, members, "", "content", Required, bound);
        let Got::Good(Bound {
            scheduling: Got::Good(placement),
            resumed,
        }) = content
        else {
            return;
        };
        self.scope(report, &placement);
        self.consistency(report, &placement);
        satisfaction(report, &placement);
        if placement.recorded_in.is_absent() || placement.explanation.all_present() {
            explanation(report, &placement);
            failed_predicates(report, &placement);
        }
        if let Got::Good(reference) = &placement.recorded_in {
            self.resumption(report, &placement, reference, resumed);
        }
        if placement.explanation.is_full() {
            candidates(report, &placement);
            self.full.push(Full {
                seq: report.seq,
                set: placement.set(),
            });
            self.waiting.clear();
        }
    }

    // R12
    fn scope(&self, report: &mut Report, placement: &Scheduling) {
        let Some(Declaration {
            agent: Got::Good(declared),
            ..
        }) = placement.declaration.good()
        else {
            return;
        };
        let differ = |a: &Option<String>, b: &Option<String>| a.is_some() && b.is_some() && a != b;
        let mismatch = match &self.admitted {
            Got::Absent => true,
            Got::Unreadable => false,
            Got::Good(admitted) => {
                differ(&admitted.name, &declared.name)
                    || differ(&admitted.namespace, &declared.namespace)
            }
        };
        if mismatch {
            let pointer = format!("{SCHEDULING}/declaration/agent");
            report.finding("E_DECLARATION_SCOPE", &pointer);
        }
    }

    // R13
    fn consistency(&self, report: &mut Report, placement: &Scheduling) {
        let asked = match &self.asked {
            Got::Absent => Some(PredicateSet::new()),
            Got::Unreadable => None,
            Got::Good(requirements) => requirements.set(),
        };
        let (Some(asked), Some(matched)) = (asked, placement.set()) else {
            return;
        };
        // An unreadable route may name a rule, so additions cannot be held against it.
        let may_add = match &placement.route {
            Got::Absent => false,
            Got::Unreadable => true,
            Got::Good(route) => !route.is_empty(),
        };
        if !asked.is_subset(&matched) || (!may_add && asked != matched) {
            let pointer = format!("{SCHEDULING}/requirements");
            report.finding("E_REQUIREMENTS_MISMATCH", &pointer);
        }
    }

    // R16
    fn resumption(
        &mut self,
        report: &mut Report,
        placement: &Scheduling,
        reference: &RecordedIn,
        resumed: bool,
    ) {
        if !resumed {
            report.unexplained("/content/resumed");
        }
        if reference.kind_is_bound == Some(false) {
            report.unexplained(&format!("{SCHEDULING}/recorded_in/kind"));
        }
        match reference.seq {
            Got::Unreadable => {}
            Got::Good(seq) => self.stated_reference(report, placement, seq),
            Got::Absent => self.open_reference(report, placement),
        }
    }

    // R16, W_RESUMED_REQUIREMENTS
    fn stated_reference(&self, report: &mut Report, placement: &Scheduling, seq: u64) {
        let named = self.full.iter().rfind(|full| full.seq == Some(seq));
        let wrong = match named {
            Some(_) => report.seq.is_some_and(|own| seq >= own),
            None => self.full.iter().all(|full| full.seq.is_some()),
        };
        if wrong {
            report.unexplained(&format!("{SCHEDULING}/recorded_in/seq"));
        }
        let then = named.and_then(|full| full.set.as_ref());
        if let (Some(then), Some(now)) = (then, placement.set())
            && *then != now
        {
            let pointer = format!("{SCHEDULING}/requirements");
            report.finding("W_RESUMED_REQUIREMENTS", &pointer);
        }
    }

    // R16, W_REFERENCE_PENDING
    fn open_reference(&mut self, report: &mut Report, placement: &Scheduling) {
        if self.full.is_empty() && !placement.explanation.is_full() {
            let pointer = format!("{SCHEDULING}/recorded_in");
            report.finding("W_REFERENCE_PENDING", &pointer);
            self.waiting.push((report.line, report.seq));
        }
    }

    // R16: the end of the trace decides what still waits.
    fn end(mut self) -> Vec<Verdict> {
        for (line, seq) in self.waiting {
            let mut report = Report {
                line,
                seq,
                ..Report::default()
            };
            report.unexplained(&format!("{SCHEDULING}/recorded_in"));
            self.verdicts.append(&mut report.verdicts);
        }
        self.verdicts.sort();
        // A member that is malformed in two ways is one malformed member.
        self.verdicts.dedup();
        self.verdicts
    }
}

// ---- R14: satisfaction ----

fn satisfaction(report: &mut Report, placement: &Scheduling) {
    let Got::Good(requirements) = &placement.requirements else {
        return;
    };
    let Got::Good(declaration) = &placement.declaration else {
        return;
    };
    let mut seen = PredicateSet::new();
    for (predicate, pointer) in &requirements.asks {
        let canonical = predicate.canonical();
        let first = seen.insert(canonical.clone());
        if first && satisfied(predicate, declaration) == Some(false) {
            report.add(predicate.unmet_code(), pointer, Some(&canonical));
        }
    }
}

/// `None` where the member that the predicate reads could not be read whole and what was read does not hold it.
fn satisfied(predicate: &Predicate, declaration: &Declaration) -> Option<bool> {
    match predicate {
        Predicate::Capability(capability) => holds(&declaration.capabilities, capability),
        Predicate::Clearance(id) => holds(&declaration.clearances, id),
        Predicate::Tool(name) => holds(&declaration.tools, name),
        Predicate::Residency(label) => holds(&declaration.residency, label),
        Predicate::Latency(class) => match &declaration.model {
            Got::Absent | Got::Good(Got::Absent) => Some(false),
            Got::Unreadable | Got::Good(Got::Unreadable) => None,
            Got::Good(Got::Good(declared)) => Some(declared == class),
        },
        Predicate::AgentRef(name) => declaration.name().map(|chosen| chosen == name),
        Predicate::AntiAffinity(name) => declaration.name().map(|chosen| chosen != name),
    }
}

fn holds<T: PartialEq>(entries: &Got<Entries<T>>, wanted: &T) -> Option<bool> {
    match entries {
        Got::Absent => Some(false),
        Got::Unreadable => None,
        Got::Good(known) if known.iter().flatten().any(|entry| entry == wanted) => Some(true),
        Got::Good(_) => whole(entries).then_some(false),
    }
}

// ---- R15: explanation ----

fn explanation(report: &mut Report, placement: &Scheduling) {
    let lists = &placement.explanation;
    if let (true, Some(matched)) = (whole(&lists.passed), placement.set()) {
        let entries = lists.passed.good().into_iter().flatten().flatten();
        if entries.cloned().collect::<PredicateSet>() != matched {
            report.unexplained(&format!("{SCHEDULING}/filters_passed"));
        }
    }
    let Some(chosen) = placement.chosen() else {
        return;
    };
    for (index, entry) in lists.failed_entries() {
        if entry.candidate.as_ref() == Some(chosen) {
            report.unexplained(&format!("{SCHEDULING}/filters_failed/{index}"));
        }
    }
    if matches!(&lists.scores, Got::Good(names) if !names.contains(chosen)) {
        report.unexplained(&format!("{SCHEDULING}/scores"));
    }
}

// W_FAILED_PREDICATE
fn failed_predicates(report: &mut Report, placement: &Scheduling) {
    let Some(matched) = placement.set() else {
        return;
    };
    let mut seen = PredicateSet::new();
    for (index, entry) in placement.explanation.failed_entries() {
        let Some(predicate) = &entry.predicate else {
            continue;
        };
        if seen.insert(predicate.clone()) && !matched.contains(predicate) {
            let pointer = format!("{SCHEDULING}/filters_failed/{index}/predicate");
            report.add("W_FAILED_PREDICATE", &pointer, Some(predicate));
        }
    }
}

// W_CANDIDATES, of a full explanation only
fn candidates(report: &mut Report, placement: &Scheduling) {
    let lists = &placement.explanation;
    let (Some(chosen), Got::Good(scored)) = (placement.chosen(), &lists.scores) else {
        return;
    };
    let entries = lists.candidates.good().into_iter().flatten().flatten();
    let considered: BTreeSet<String> = entries.cloned().collect();
    let failed: BTreeSet<String> = lists
        .failed_entries()
        .filter_map(|(_, entry)| entry.candidate.clone())
        .collect();
    let all_considered = considered.contains(chosen)
        && considered.is_superset(&failed)
        && considered.is_superset(scored);
    let each_once = considered
        .iter()
        .all(|name| failed.contains(name) != scored.contains(name));
    if !(all_considered && each_once) {
        report.finding("W_CANDIDATES", &format!("{SCHEDULING}/candidates"));
    }
}

// ---- R17: rejection ----

fn on_rejected(report: &mut Report, members: &Members) {
    let content = member(report, members, "", "content", Required, rejected);
    let Got::Good(Got::Good(texts)) = content else {
        return;
    };
    let claimed = texts.iter().any(|text| claims_none_eligible(text));
    let explained = texts.iter().any(|text| holds_predicate(text));
    if claimed && !explained {
        report.finding("E_REJECTION_REASON", "/content/reason");
    }
}

fn holds_predicate(text: &str) -> bool {
    static PREDICATE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(&format!(
            r#"(^|[^A-Za-z0-9_])(capability:{IDENTIFIER}/[0-9]+($|[^\p{{L}}\p{{N}}_])|clearance:{IDENTIFIER}|(tool|residency|model\.latency_class|agentRef|anti-affinity):[^\s,;:)\]}}"'`])"#
        ))
    });
    PREDICATE.is_match(text)
}

fn claims_none_eligible(text: &str) -> bool {
    static CLAIMS: LazyLock<Vec<Regex>> = LazyLock::new(claim_patterns);
    let clauses = clauses(text);
    CLAIMS
        .iter()
        .any(|claim| clauses.iter().any(|clause| claim.is_match(clause)))
}

/// The clauses of a text, folded to words with one space before and one behind each.
fn clauses(text: &str) -> Vec<String> {
    let spaced = split_humps(text).replace(['\'', '\u{2019}'], "");
    let raw = cut(&spaced);
    raw.iter().map(|clause| fold(clause)).collect()
}

/// `NoEligibleAgent` reads as three words.
fn split_humps(text: &str) -> String {
    let mut spaced = String::new();
    let mut before_hump = false;
    for char in text.chars() {
        if before_hump && char.is_uppercase() {
            spaced.push(' ');
        }
        spaced.push(char);
        before_hump = char.is_lowercase() || char.is_ascii_digit();
    }
    spaced
}

fn cut(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let space_at = |index: usize| chars.get(index).is_some_and(|char| char.is_whitespace());
    let mut clauses = vec![String::new()];
    for (index, char) in chars.iter().enumerate() {
        let ends = match char {
            '-' => index > 0 && space_at(index - 1) && space_at(index + 1),
            '.' => index + 1 == chars.len() || space_at(index + 1),
            _ => ";:,!?()[]{}\"\n\r\u{2013}\u{2014}".contains(*char),
        };
        if ends {
            clauses.push(String::new());
        } else if let Some(clause) = clauses.last_mut() {
            clause.push(*char);
        }
    }
    // A full stop before the end of its clause ends nothing more; `available..` has two.
    clauses
        .iter()
        .map(|clause| clause.trim_end_matches('.').to_owned())
        .collect()
}

fn fold(clause: &str) -> String {
    let lower = clause.replace(['_', '-'], " ").to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    format!(" {} ", words.join(" "))
}

/// The table of R17 as regexes over a folded clause: every word stands with its space before it, and a pattern that
/// does not end at the clause's end ends at a space.
fn claim_patterns() -> Vec<Regex> {
    let word = |alternatives: &str| format!("(?: (?:{alternatives}))");
    let no = word("no|zero|0");
    let ag = word("agents?|candidates?");
    let be = word("is|are|was|were");
    let w = word("[^ ]+");
    let fit = word(
        "eligible|available|suitable|matching|qualified|qualifying|capable|compatible|feasible",
    );
    let does = word(
        "meets?|met|match|matches|matched|satisfy|satisfies|satisfied|pass|passes|passed|holds?|has|have|declares?|declared",
    );
    let obj = word(
        "requirements?|predicates?|filters?|constraints?|capability|capabilities|clearances?|tools?|residency|grants?",
    );
    let n = word("[0-9]+");
    let the = word("the");
    let currently = word("currently");
    let qualify = word("qualify|qualifies|qualified");
    let left = word("found|registered|left|remaining");
    let aim = word("for|that|which|with|to|matching");
    let cannot = word("could not|couldnt|cannot|can not|cant|unable to|failed to");
    let dropped = word("filtered|filtered out|excluded|failed|rejected");
    let none_of =
        format!("(?: (?:0|zero)(?: ?/ ?[0-9]+|(?: of| out of){the}?{n})| none of{the}?{n}?)");
    [
        format!("{no}{w}?{fit}{w}?{ag} "),
        format!("{no}{fit} (?:placement|target|executor)s? "),
        format!("{no}{ag}{w}{{0,4}}{be}{currently}?{fit} "),
        format!("{no}{ag}{currently}?(?:{fit}|{qualify}| exists?) "),
        format!("{no}{ag}{currently}?{does}(?: $|{w}{{0,3}}{obj} )"),
        format!("{no}{ag}{be}?{left}(?: $|{aim} )"),
        format!("^{no}{ag} $"),
        format!("{none_of}{ag}{w}{{0,3}}(?:{fit}|{does}|{qualify}) "),
        format!(" none of{the}?{fit}{ag} "),
        format!(" none{be}?{fit} "),
        format!("{cannot} (?:find|select|choose)(?: (?:a|an|any))?{fit}?{ag} "),
        format!(
            " (?:all|every){n}?{ag}{be}?(?: (?:ineligible|unavailable) |{dropped}(?: $| by | the filters? ))"
        ),
        " (?:unschedulable|not schedulable) $".to_owned(),
        " unschedulable task ".to_owned(),
    ]
    .iter()
    .map(|text| pattern(text))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBMITTED: &str = r#"{"seq":1,"kind":"task.submitted","content":{"requirements":{"v":"1.0","capabilities":[{"name":"order.investigate","version":2}],"clearances":["orders.read"],"residency":"eu"}}}"#;
    const ADMITTED: &str =
        r#"{"seq":2,"kind":"task.admitted","content":{"agent":{"name":"ann","namespace":"s"}}}"#;
    const BOUND: &str = r#"{"seq":3,"kind":"task.bound","content":{"scheduling":{"requirements":{"v":"1.0","capabilities":[{"name":"order.investigate","version":2}],"clearances":["orders.read"],"residency":"eu"},"declaration":{"v":"1.0","agent":{"name":"ann","namespace":"s"},"capabilities":[{"name":"order.investigate","version":2}],"clearances":["orders.read"],"residency":["eu"]},"candidates":["ann","bob"],"filters_passed":["capability:order.investigate/2","clearance:orders.read","residency:eu"],"filters_failed":[{"candidate":"bob","predicate":"residency:eu"}],"scores":{"ann":{"total":1}}}}}"#;
    const RESUMED: &str = r#"{"seq":4,"kind":"task.bound","content":{"resumed":true,"scheduling":{"recorded_in":{"kind":"task.bound","seq":3},"requirements":{"v":"1.0","capabilities":[{"name":"order.investigate","version":2}],"clearances":["orders.read"],"residency":"eu"},"declaration":{"v":"1.0","agent":{"name":"ann","namespace":"s"},"capabilities":[{"name":"order.investigate","version":2}],"clearances":["orders.read"],"residency":["eu"]}}}}"#;

    fn swap(record: &str, old: &str, new: &str) -> String {
        assert!(record.contains(old), "{old} is not in the record");
        record.replacen(old, new, 1)
    }

    /// `LINE CODE POINTER`, with the scheduling's own pointer shortened to `~`.
    fn findings(lines: &[&str]) -> Vec<String> {
        let verdicts = verify(lines.join("\n").as_bytes());
        let brief = |verdict: Verdict| {
            let pointer = verdict.pointer.replace(SCHEDULING, "~");
            format!("{} {} {pointer}", verdict.line, verdict.code)
        };
        verdicts.into_iter().map(brief).collect()
    }

    /// What a change to the placement of an otherwise sound trace gives.
    fn bound_findings(old: &str, new: &str) -> Vec<String> {
        findings(&[SUBMITTED, ADMITTED, &swap(BOUND, old, new)])
    }

    fn resumed_findings(old: &str, new: &str) -> Vec<String> {
        findings(&[SUBMITTED, ADMITTED, BOUND, &swap(RESUMED, old, new)])
    }

    #[test]
    fn a_sound_trace_has_no_findings() {
        assert_eq!(findings(&[SUBMITTED, ADMITTED, BOUND, RESUMED]), [""; 0]);
    }

    #[test]
    fn serde_json_is_as_strict_as_the_grammar() {
        let values = [
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "-",
            "NaN",
            "Infinity",
            "0x1",
            "'a'",
            "tru",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\"}",
            "{\"a\":}",
            "{1:2}",
            "\"\t\"",
            "\"\u{0}\"",
            r#""\x41""#,
            r#""\u12""#,
            r#""\ud800""#,
            r#""\udc00""#,
            r#""\ud800\u0041""#,
            r#"{"\ud800":1}"#,
            r#"[["\uDFFF"]]"#,
            "[1]]",
            "1/**/",
            "\u{a0}1",
            "\u{feff}1",
            "\x0c1",
            "\"",
        ];
        for value in values {
            assert!(!accepts(format!("{{\"a\":{value}}}").as_bytes()), "{value}");
        }
        for line in [
            "",
            "[]",
            "1",
            "{",
            "{}x",
            "{}{}",
            "{}\0",
            "\0{}",
            "\u{feff}{}",
        ] {
            assert!(!accepts(line.as_bytes()), "{line}");
        }
        assert!(!accepts(b"{\"a\":\"\xff\"}"));
        assert!(!accepts(b"{\"a\":\"\xed\xa0\x80\"}"));
    }

    #[test]
    fn everything_the_grammar_has_is_accepted() {
        let digits = "7".repeat(5000);
        let values = [
            "1e400",
            "-0",
            "-0.0e-0",
            "1E+2",
            &digits,
            "\"\u{7f}\u{2028}\"",
            r#""\ud83d\ude00\u0000\/\b""#,
            "[ ]",
            "\r\t null",
            r#"{"$serde_json::private::Number":"1","$serde_json::private::RawValue":"x"}"#,
            r#"{"a":1,"a":2,"":{}}"#,
        ];
        for value in values {
            assert!(
                accepts(format!(" {{\"a\":{value}}}\r").as_bytes()),
                "{value}"
            );
        }
    }

    #[test]
    fn depth_and_length_are_limited() {
        let nested =
            |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(accepts(nested(1023).as_bytes()));
        let objects = format!("{}1{}", "{\"a\":".repeat(1024), "}".repeat(1024));
        assert!(accepts(objects.as_bytes()));
        assert!(!accepts(nested(1024).as_bytes()));
        assert!(!accepts(nested(100_000).as_bytes()));
        assert!(accepts(
            format!("{{\"a\":\"\\\"{}\"}}", "[".repeat(2000)).as_bytes()
        ));
        let padded = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        assert!(accepts(padded(MAX_RECORD_BYTES).as_bytes()));
        assert!(!accepts(padded(MAX_RECORD_BYTES + 1).as_bytes()));
    }

    #[test]
    fn bad_lines_do_not_disturb_the_next() {
        let lines = [
            "\u{feff}",
            "{",
            SUBMITTED,
            " \r",
            "\u{feff}{}",
            ADMITTED,
            BOUND,
            "",
        ];
        assert_eq!(findings(&lines), ["2 E_STRUCTURE ", "5 E_STRUCTURE "]);
    }

    #[test]
    fn records_have_seq_and_kind() {
        for seq in [
            "3.0",
            "3e0",
            "\"3\"",
            "-1",
            "18446744073709551616",
            "null",
            "3,\"s\\u0065q\":3",
        ] {
            let record = format!("{{\"seq\":{seq},\"kind\":\"x\"}}");
            assert_eq!(findings(&[&record]), ["1 E_STRUCTURE /seq"], "{seq}");
        }
        assert_eq!(
            findings(&["{}"]),
            ["1 E_STRUCTURE /kind", "1 E_STRUCTURE /seq"]
        );
        assert_eq!(
            findings(&[r#"{"seq":-0,"kind":""}"#]),
            ["1 E_STRUCTURE /kind"]
        );
        for kind in ["submitted", "admitted", "bound", "rejected"] {
            let record = format!("{{\"seq\":1,\"kind\":\"task.{kind}\"}}");
            assert_eq!(findings(&[&record]), ["1 E_STRUCTURE /content"], "{kind}");
        }
    }

    #[test]
    fn seqs_rise_and_the_first_gap_is_told() {
        let records = [5, 5, 4, 6, 8, 18, 3].map(|seq| format!("{{\"seq\":{seq},\"kind\":\"x\"}}"));
        let lines: Vec<&str> = records.iter().map(String::as_str).collect();
        let expected = [
            "2 E_STRUCTURE /seq",
            "3 E_STRUCTURE /seq",
            "5 W_SEQ_GAP /seq",
            "7 E_STRUCTURE /seq",
        ];
        assert_eq!(findings(&lines), expected);
    }

    #[test]
    fn a_doubled_member_is_unreadable_and_its_first_value_is_searched() {
        let found = bound_findings(
            r#""scores""#,
            r#""candidates":[],"candidates":[0],"scores""#,
        );
        assert_eq!(found, ["3 E_STRUCTURE ~/candidates"]);
        let found = bound_findings(
            r#""declaration":{"v""#,
            r#""declaration":{"v":2},"declaration":{"v""#,
        );
        let inner = ["", "/agent", "/capabilities", "/clearances", "/v"];
        assert_eq!(
            found,
            inner.map(|name| format!("3 E_STRUCTURE ~/declaration{name}"))
        );
    }

    #[test]
    fn optional_nulls_are_absent() {
        let found = bound_findings(r#""scores""#, r#""route":null,"recorded_in":null,"scores""#);
        assert_eq!(found, ["3 W_NULL ~/recorded_in", "3 W_NULL ~/route"]);
        assert_eq!(
            bound_findings(r#""v":"1.0""#, r#""v":null,"x":null"#),
            ["3 W_NULL ~/requirements/v"]
        );
    }

    #[test]
    fn a_string_that_breaks_its_grammar_still_counts() {
        let found = bound_findings(
            r#""clearances":["orders.read"],"residency":["eu"]"#,
            r#""clearances":["orders.read","X"],"residency":["eu"]"#,
        );
        assert_eq!(found, ["3 E_STRUCTURE ~/declaration/clearances/1"]);
        let submitted = swap(SUBMITTED, "orders.read", "Orders");
        let bound = BOUND.replace("orders.read", "Orders");
        let expected = [
            "1 E_STRUCTURE /content/requirements/clearances/0",
            "3 E_STRUCTURE ~/declaration/clearances/0",
            "3 E_STRUCTURE ~/requirements/clearances/0",
        ];
        assert_eq!(findings(&[&submitted, ADMITTED, &bound]), expected);
    }

    #[test]
    fn an_incomplete_set_is_not_compared_but_its_entries_are_checked() {
        let found = bound_findings(
            r#""clearances":["orders.read"]"#,
            r#""clearances":[7,"a.b"]"#,
        );
        assert_eq!(
            found,
            [
                "3 E_CLEARANCE_UNMET ~/requirements/clearances/1",
                "3 E_STRUCTURE ~/requirements/clearances/0"
            ]
        );
    }

    #[test]
    fn scope_compares_both_names() {
        let mismatch = ["3 E_DECLARATION_SCOPE ~/declaration/agent"];
        assert_eq!(
            findings(&[SUBMITTED, r#"{"seq":2,"kind":"x"}"#, BOUND]),
            mismatch
        );
        assert_eq!(
            findings(&[SUBMITTED, &swap(ADMITTED, r#""s""#, r#""t""#), BOUND]),
            mismatch
        );
        let unreadable = swap(ADMITTED, r#""namespace":"s""#, r#""namespace":"""#);
        assert_eq!(
            findings(&[SUBMITTED, &unreadable, BOUND]),
            ["2 E_STRUCTURE /content/agent/namespace"]
        );
        let differs = swap(&unreadable, "ann", "bob");
        assert_eq!(findings(&[SUBMITTED, &differs, BOUND])[1..], mismatch);
    }

    #[test]
    fn a_route_may_add_and_not_drop() {
        let plain = swap(SUBMITTED, r#""clearances":["orders.read"],"#, "");
        let routed = swap(BOUND, r#""scores""#, r#""route":"r","scores""#);
        let mismatch = ["3 E_REQUIREMENTS_MISMATCH ~/requirements"];
        assert_eq!(findings(&[&plain, ADMITTED, BOUND]), mismatch);
        assert_eq!(findings(&[&plain, ADMITTED, &routed]), [""; 0]);
        let unreadable = swap(BOUND, r#""scores""#, r#""route":1,"scores""#);
        assert_eq!(
            findings(&[&plain, ADMITTED, &unreadable]),
            ["3 E_STRUCTURE ~/route"]
        );
        let more = swap(SUBMITTED, r#""residency""#, r#""tools":["t"],"residency""#);
        assert_eq!(findings(&[&more, ADMITTED, &routed]), mismatch);
    }

    #[test]
    fn each_predicate_has_its_code() {
        let asks = r#""requirements":{"agentRef":{"name":"bob"},"exclude":["ann","ann"],"tools":["t"],"model":{"latency_class":"slow"},"v""#;
        let unmet: Vec<String> = bound_findings(r#""requirements":{"v""#, asks)
            .into_iter()
            .filter(|finding| finding.contains("UNMET"))
            .collect();
        let expected = [
            "3 E_AGENTREF_UNMET ~/requirements/agentRef",
            "3 E_ANTIAFFINITY_UNMET ~/requirements/exclude/0",
            "3 E_MODEL_UNMET ~/requirements/model/latency_class",
            "3 E_TOOL_UNMET ~/requirements/tools/0",
        ];
        assert_eq!(unmet, expected);
        let found = bound_findings(r#"],"residency":["eu"]"#, "]");
        assert_eq!(found, ["3 E_RESIDENCY_UNMET ~/requirements/residency"]);
        let found = bound_findings(
            r#"2}],"clearances":["orders.read"],"residency":["#,
            r#"3}],"clearances":[],"residency":["#,
        );
        assert_eq!(
            found,
            [
                "3 E_CAPABILITY_UNMET ~/requirements/capabilities/0",
                "3 E_CLEARANCE_UNMET ~/requirements/clearances/0"
            ]
        );
    }

    #[test]
    fn a_declared_member_that_is_not_whole_decides_nothing_against_the_agent() {
        let found = bound_findings(
            r#"2}],"clearances":["orders.read"],"residency":["#,
            r#"2.0}],"clearances":["orders.read",1],"residency":["#,
        );
        let expected = [
            "3 E_STRUCTURE ~/declaration/capabilities/0/version",
            "3 E_STRUCTURE ~/declaration/clearances/1",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn explanations_are_checked_one_by_one() {
        let found = bound_findings(r#","residency:eu"]"#, "]");
        assert_eq!(found, ["3 E_EXPLANATION ~/filters_passed"]);
        let found = bound_findings(
            r#"{"candidate":"bob""#,
            r#"{"candidate":"ann","predicate":"x"},{"candidate":"bob""#,
        );
        let expected = [
            "3 E_EXPLANATION ~/filters_failed/0",
            "3 W_CANDIDATES ~/candidates",
            "3 W_FAILED_PREDICATE ~/filters_failed/0/predicate",
        ];
        assert_eq!(found, expected);
        let found = bound_findings(r#""scores":{"ann""#, r#""scores":{"Ann""#);
        assert_eq!(
            found,
            ["3 E_EXPLANATION ~/scores", "3 W_CANDIDATES ~/candidates"]
        );
        let found = bound_findings(r#""scores":{"ann":{"total":1}}"#, r#""scores":null"#);
        assert_eq!(found, ["3 E_STRUCTURE ~/scores"]);
    }

    #[test]
    fn references_name_an_earlier_full_explanation() {
        let wrong_seq = ["4 E_EXPLANATION ~/recorded_in/seq"];
        assert_eq!(resumed_findings(r#""seq":3"#, r#""seq":2"#), wrong_seq);
        assert_eq!(resumed_findings(r#""seq":3"#, r#""seq":4"#), wrong_seq);
        assert_eq!(
            resumed_findings(r#""seq":3"#, r#""seq":-3"#),
            ["4 E_STRUCTURE ~/recorded_in/seq"]
        );
        assert_eq!(resumed_findings(r#","seq":3"#, ""), [""; 0]);
        assert_eq!(
            resumed_findings(r#""seq":3"#, r#""seq":null"#),
            ["4 W_NULL ~/recorded_in/seq"]
        );
        assert_eq!(
            resumed_findings(r#""resumed":true,"#, ""),
            ["4 E_EXPLANATION /content/resumed"]
        );
        assert_eq!(
            resumed_findings(r#"{"kind":"task.bound","seq""#, r#"{"seq""#),
            ["4 E_EXPLANATION ~/recorded_in/kind"]
        );
        let doubled = r#"{"kind":"task.bound","kind":1,"seq""#;
        assert_eq!(
            resumed_findings(r#"{"kind":"task.bound","seq""#, doubled),
            ["4 E_STRUCTURE ~/recorded_in/kind"]
        );
        assert_eq!(
            resumed_findings(r#"{"kind":"task.bound","seq":3}"#, "7"),
            ["4 E_STRUCTURE ~/recorded_in"]
        );
    }

    #[test]
    fn an_open_reference_waits_for_a_full_explanation() {
        let open = swap(
            &swap(RESUMED, r#","seq":3"#, ""),
            r#""seq":4"#,
            r#""seq":3"#,
        );
        let pending = "3 W_REFERENCE_PENDING ~/recorded_in";
        let late = swap(BOUND, r#""seq":3"#, r#""seq":4"#);
        assert_eq!(findings(&[SUBMITTED, ADMITTED, &open, &late]), [pending]);
        let never = findings(&[SUBMITTED, ADMITTED, &open]);
        assert_eq!(never, ["3 E_EXPLANATION ~/recorded_in", pending]);
    }

    #[test]
    fn an_unreadable_seq_of_an_earlier_placement_leaves_references_undecided() {
        let bound = swap(BOUND, r#""seq":3"#, r#""seq":"3""#);
        let found = findings(&[SUBMITTED, ADMITTED, &bound, RESUMED]);
        assert_eq!(found, ["3 E_STRUCTURE /seq", "4 W_SEQ_GAP /seq"]);
    }

    #[test]
    fn changes_between_records_are_told() {
        let other = SUBMITTED
            .replace("orders.read", "orders.write")
            .replace(r#""seq":1"#, r#""seq":4"#);
        let moved = ADMITTED
            .replace("ann", "bob")
            .replace(r#""seq":2"#, r#""seq":5"#);
        let found = findings(&[SUBMITTED, ADMITTED, BOUND, &other, &moved]);
        assert_eq!(
            found,
            [
                "4 W_RESUBMITTED /content/requirements",
                "5 W_RESUBMITTED /content/agent"
            ]
        );
        let routed = swap(
            RESUMED,
            r#""eu"},"#,
            r#""eu","agentRef":"ann"},"route":"r","#,
        );
        let found = findings(&[SUBMITTED, ADMITTED, BOUND, &routed]);
        assert_eq!(found, ["4 W_RESUMED_REQUIREMENTS ~/requirements"]);
    }

    #[test]
    fn rejections_that_claim_name_a_predicate() {
        let rejected = |reason: &str| {
            let record =
                format!("{{\"seq\":1,\"kind\":\"task.rejected\",\"content\":{{{reason}}}}}");
            findings(&[&record])
        };
        let wrong = ["1 E_REJECTION_REASON /content/reason"];
        assert_eq!(rejected(r#""reason":"No agent available.""#), wrong);
        assert_eq!(
            rejected(r#""reason":{"a":[1,{"none eligible":null}]}"#),
            wrong
        );
        assert_eq!(
            rejected(r#""reason":{"a":["none eligible"],"tool:x":0}"#),
            [""; 0]
        );
        assert_eq!(rejected(r#""reason":null"#), ["1 W_NULL /content/reason"]);
        assert_eq!(
            rejected(r#""reason":"no agents","reason":1"#),
            ["1 E_STRUCTURE /content/reason"]
        );
        assert_eq!(rejected(""), [""; 0]);
    }

    #[test]
    fn predicate_strings_are_told_from_what_looks_like_them() {
        let predicates = [
            "capability:a.b/1",
            "x (capability:a.b-/1)",
            "capability:a.b-c.d/12.",
            "clearance:a.b",
            "summariser/clearance:x.y",
            "clearance:a.bX",
            "tool:x",
            "étool:x",
            "tool:(",
            "residency:eu",
            "model.latency_class:batch",
            "agentRef:é",
            "anti-affinity:a",
        ];
        for text in predicates {
            assert!(holds_predicate(text), "{text}");
        }
        let others = [
            "capability:a.b",
            "capability:a-.b/1",
            "capability:a.b/1x",
            "capability:a.b/1_",
            "capability:a/1",
            "clearance:a",
            "mytool:hammer",
            "_tool:x",
            "tool: x",
            "tool:",
            "tool:,",
            "tool:`",
            "Tool:x",
            "agentref:x",
            "residency:\u{a0}x",
        ];
        for text in others {
            assert!(!holds_predicate(text), "{text}");
        }
    }

    #[test]
    fn claims_are_told_from_what_looks_like_them() {
        let claims = [
            "No agent available",
            "0/12 agents are available: 12 busy",
            "NoEligibleAgent",
            "NO_ELIGIBLE_AGENT",
            "none eligible",
            "no agent holds the clearance",
            "all candidates were filtered",
            "task is unschedulable",
            "x. no agents.",
            "couldn't find an agent",
            "zero out of the 3 candidates currently in use match",
            "none of the 12 agents qualify",
            "every candidate was filtered out by policy",
            "no feasible placements",
            "no candidate in the pool was currently suitable",
            "x - no-agent - y",
            "unschedulable task 7",
            "no agents found for it",
            "none of the eligible agents",
            "no agent meets all the hard filters",
        ];
        for text in claims {
            assert!(claims_none_eligible(text), "{text}");
        }
        let others = [
            "the request names no agent",
            "no agent can approve its own plan",
            "no agent left feedback",
            "budget exhausted after 0/3 agents",
            "all candidates rejected the contract",
            "unschedulable flag not allowed",
            "1.0 agents left",
            "",
            "10/12 agents are available",
            "no. agent available",
            "casino eligible agents",
            "no, eligible agents",
            "no agent holds its own quite long line of tools",
            "no eligible agentry",
        ];
        for text in others {
            assert!(!claims_none_eligible(text), "{text}");
        }
    }
}
