//! The `scheduling` object of a `task.bound` (section 6, R11).

use std::mem;

use super::agent::Agent;
use super::declaration::{DECLARATION, Declaration};
use super::known::KnownPair;
use super::requirements::{REQUIREMENTS, Requirements, names};
use super::{NON_EMPTY, plain};
use crate::decode::document::{Document, List, Member, Need, Reading};
use crate::decode::reader::{JsonStr, Read, Reader, Type};
use crate::pointer::Path;

/// What `scheduling` is, for messages.
pub(crate) const SCHEDULING: &str = "the scheduling object of section 6";

const CANDIDATES: &str = "a list of the names of every agent considered";
const FILTERS_PASSED: &str = "a list of predicates";
const FILTERS_FAILED: &str = "a list of {candidate, predicate}";
const SCORES: &str = "an object with a member for each eligible candidate";

/// How a placement came about.
#[derive(Debug)]
pub(crate) struct Scheduling<'a> {
    /// The two documents, where they are those of the placements before; the next two members are
    /// absent then.
    pub(crate) known: Option<&'a KnownPair>,
    pub(crate) requirements: Reading<Requirements<'a>>,
    pub(crate) declaration: Reading<Declaration<'a>>,
    pub(crate) candidates: Reading<List<JsonStr<'a>>>,
    pub(crate) filters_passed: Reading<List<JsonStr<'a>>>,
    pub(crate) filters_failed: Reading<List<Failed<'a>>>,
    /// The names that are scored.
    pub(crate) scores: Reading<Vec<JsonStr<'a>>>,
    pub(crate) recorded_in: Reading<RecordedIn<'a>>,
    pub(crate) route: Reading<JsonStr<'a>>,
    /// Whether the four lists are there and well formed: a *full explanation*.
    pub(crate) full: bool,
    /// Whether a member `resumed` stands here, where it does not belong.
    pub(crate) resumed_here: bool,
    /// The documents as they are written.
    pub(crate) requirements_text: &'a str,
    pub(crate) declaration_text: &'a str,
}

/// An ineligible candidate and the first predicate that it failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed<'a> {
    pub(crate) candidate: Option<JsonStr<'a>>,
    pub(crate) predicate: Option<JsonStr<'a>>,
}

/// The placement whose explanation covers this one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedIn<'a> {
    pub(crate) kind: ReferredKind<'a>,
    pub(crate) seq: Reading<u64>,
}

/// What `recorded_in.kind` says. It is judged by R16 alone: any value but `task.bound` is an
/// `E_EXPLANATION`, and none is malformed but by occurring twice.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReferredKind<'a> {
    Missing,
    /// Occurs twice; a fault stands for it.
    Doubled,
    String(JsonStr<'a>),
    Other(Type),
}

impl<'a> Scheduling<'a> {
    /// Reads a scheduling object.
    pub(crate) fn read(document: &mut Document<'a>, at: &Path) -> Read<Reading<Box<Self>>> {
        let mut members = Members::default();
        let found = document.object(at, SCHEDULING, |document, member, at| {
            members.read(document, member, at)
        })?;
        if !found {
            return Ok(Reading::Unreadable);
        }
        document.demand(
            &at.name("requirements"),
            REQUIREMENTS,
            &mut members.requirements,
        );
        document.demand(
            &at.name("declaration"),
            DECLARATION,
            &mut members.declaration,
        );
        members.demand_explanation(document, at);
        let known = members.known(document, at)?;
        Ok(Reading::Value(Box::new(members.scheduling(known))))
    }

    /// The agent that declares this, either half of which may be unreadable.
    pub(crate) fn agent(&self) -> Option<Agent<'_>> {
        match self.known {
            Some(pair) => Some(Agent::of(&pair.agent)),
            None => self.declaration.value()?.agent.value().copied(),
        }
    }
}

#[derive(Default)]
struct Members<'a> {
    requirements: Member<Requirements<'a>>,
    declaration: Member<Declaration<'a>>,
    candidates: Member<List<JsonStr<'a>>>,
    filters_passed: Member<List<JsonStr<'a>>>,
    filters_failed: Member<List<Failed<'a>>>,
    scores: Member<Vec<JsonStr<'a>>>,
    recorded_in: Member<RecordedIn<'a>>,
    route: Member<JsonStr<'a>>,
    resumed_here: bool,
    requirements_text: &'a str,
    declaration_text: &'a str,
    /// Whether the first requirements, and the first declaration, were the known ones.
    knows_requirements: bool,
    knows_declaration: bool,
}

impl<'a> Members<'a> {
    fn read(&mut self, document: &mut Document<'a>, member: &str, at: &Path) -> Read<()> {
        use Need::{Later, Optional};
        match member {
            "requirements" => self.read_requirements(document, at),
            "declaration" => self.read_declaration(document, at),
            // Whether these four are required depends on `recorded_in`, which may follow.
            "candidates" => document.member(
                at,
                Later,
                CANDIDATES,
                &mut self.candidates,
                |document, at| document.list(at, CANDIDATES, plain::name, names),
            ),
            "filters_passed" => {
                let slot = &mut self.filters_passed;
                document.member(at, Later, FILTERS_PASSED, slot, |document, at| {
                    document.list(at, FILTERS_PASSED, plain::string, |document, at| {
                        document.string(at, "a predicate (a string)")
                    })
                })
            }
            "filters_failed" => document.member(
                at,
                Later,
                FILTERS_FAILED,
                &mut self.filters_failed,
                failures,
            ),
            "scores" => document.member(at, Later, SCORES, &mut self.scores, scored_names),
            "recorded_in" => {
                let slot = &mut self.recorded_in;
                document.member(at, Optional, "", slot, RecordedIn::read)
            }
            "route" => document.member(at, Optional, "", &mut self.route, |document, at| {
                document.string(at, "a string")
            }),
            "resumed" => {
                self.resumed_here = true;
                document.unknown(at)
            }
            _ => document.unknown(at),
        }
    }

    fn read_requirements(&mut self, document: &mut Document<'a>, at: &Path) -> Read<()> {
        let slot = &mut self.requirements;
        if let Some(known) = document.known
            && slot.is_missing()
            && document.reader.pass_if(&known.requirements_text)
        {
            self.knows_requirements = true;
            slot.pass();
            return Ok(());
        }
        let start = document.reader.mark_value()?;
        document.member(at, Need::Required, REQUIREMENTS, slot, Requirements::read)?;
        self.requirements_text = document.reader.text_since(start);
        Ok(())
    }

    fn read_declaration(&mut self, document: &mut Document<'a>, at: &Path) -> Read<()> {
        let slot = &mut self.declaration;
        if let Some(known) = document.known
            && slot.is_missing()
            && document.reader.pass_if(&known.declaration_text)
        {
            self.knows_declaration = true;
            slot.pass();
            return Ok(());
        }
        let start = document.reader.mark_value()?;
        document.member(at, Need::Required, DECLARATION, slot, Declaration::read)?;
        self.declaration_text = document.reader.text_since(start);
        Ok(())
    }

    /// The known pair, if both documents are its. Where only one is, it is read after all: what
    /// is known is that the two fit each other.
    fn known(&mut self, document: &mut Document<'a>, at: &Path) -> Read<Option<&'a KnownPair>> {
        let Some(known) = document.known else {
            return Ok(None);
        };
        let knows_requirements = self.knows_requirements && self.requirements.is_single();
        let knows_declaration = self.knows_declaration && self.declaration.is_single();
        if knows_requirements && knows_declaration {
            return Ok(Some(known));
        }
        let depth = document.reader.depth();
        if knows_requirements {
            let reader = Reader::over(&known.requirements_text, depth);
            let after = mem::replace(&mut document.reader, reader);
            self.requirements.reading = Requirements::read(document, &at.name("requirements"))?;
            document.reader = after;
            self.requirements_text = &known.requirements_text;
        }
        if knows_declaration {
            let reader = Reader::over(&known.declaration_text, depth);
            let after = mem::replace(&mut document.reader, reader);
            self.declaration.reading = Declaration::read(document, &at.name("declaration"))?;
            document.reader = after;
            self.declaration_text = &known.declaration_text;
        }
        Ok(None)
    }

    /// The four lists are required unless `recorded_in` is there, malformed or not (R11).
    fn demand_explanation(&mut self, document: &mut Document<'a>, at: &Path) {
        let need = match self.recorded_in.reading {
            Reading::Absent => Need::Required,
            _ => Need::Optional,
        };
        document.settle(
            &at.name("candidates"),
            need,
            CANDIDATES,
            &mut self.candidates,
        );
        document.settle(
            &at.name("filters_passed"),
            need,
            FILTERS_PASSED,
            &mut self.filters_passed,
        );
        document.settle(
            &at.name("filters_failed"),
            need,
            FILTERS_FAILED,
            &mut self.filters_failed,
        );
        document.settle(&at.name("scores"), need, SCORES, &mut self.scores);
    }

    fn scheduling(self, known: Option<&'a KnownPair>) -> Scheduling<'a> {
        let whole = |list: &Reading<List<JsonStr<'a>>>| list.value().is_some_and(|l| l.whole);
        Scheduling {
            full: whole(&self.candidates.reading)
                && whole(&self.filters_passed.reading)
                && self
                    .filters_failed
                    .reading
                    .value()
                    .is_some_and(|list| list.whole)
                && self.scores.reading.value().is_some(),
            requirements: self.requirements.reading,
            declaration: self.declaration.reading,
            candidates: self.candidates.reading,
            filters_passed: self.filters_passed.reading,
            filters_failed: self.filters_failed.reading,
            scores: self.scores.reading,
            recorded_in: self.recorded_in.reading,
            route: self.route.reading,
            resumed_here: self.resumed_here,
            known,
            requirements_text: self.requirements_text,
            declaration_text: self.declaration_text,
        }
    }
}

impl<'a> RecordedIn<'a> {
    fn read(document: &mut Document<'a>, at: &Path) -> Read<Reading<Self>> {
        let expected = "an object with `kind` and `seq`";
        let mut seq = Member::new();
        let mut kind = ReferredKind::Missing;
        let found = document.object(at, expected, |document, member, at| match member {
            "kind" => {
                kind = match (kind, document.reader.peek()?) {
                    (ReferredKind::Missing, Type::String) => {
                        ReferredKind::String(document.reader.string()?)
                    }
                    (ReferredKind::Missing, other) => {
                        document.reader.skip()?;
                        ReferredKind::Other(other)
                    }
                    (before, _) => {
                        if !matches!(before, ReferredKind::Doubled) {
                            document.doubled(at);
                        }
                        document.reader.skip()?;
                        ReferredKind::Doubled
                    }
                };
                Ok(())
            }
            "seq" => document.member(at, Need::Optional, "", &mut seq, Document::integer),
            _ => document.unknown(at),
        })?;
        if !found {
            return Ok(Reading::Unreadable);
        }
        Ok(Reading::Value(RecordedIn {
            kind,
            seq: seq.reading,
        }))
    }
}

/// Reads `filters_failed`. An entry of which one half is malformed is kept for the other.
fn failures<'a>(document: &mut Document<'a>, at: &Path) -> Read<Reading<List<Failed<'a>>>> {
    let expected = "an object with `candidate` and `predicate`";
    let mut whole = true;
    let mut reading = document.list(at, FILTERS_FAILED, plain::failed, |document, at| {
        let (mut candidate, mut predicate) = (Member::new(), Member::new());
        let found = document.object(at, expected, |document, member, at| match member {
            "candidate" => document.member(at, Need::Required, NON_EMPTY, &mut candidate, names),
            "predicate" => document.member(at, Need::Required, NON_EMPTY, &mut predicate, names),
            _ => document.unknown(at),
        })?;
        if !found {
            return Ok(Reading::Unreadable);
        }
        document.demand(&at.name("candidate"), NON_EMPTY, &mut candidate);
        document.demand(&at.name("predicate"), NON_EMPTY, &mut predicate);
        let failed = Failed {
            candidate: candidate.reading.value().copied(),
            predicate: predicate.reading.value().copied(),
        };
        whole &= failed.candidate.is_some() && failed.predicate.is_some();
        Ok(Reading::Value(failed))
    })?;
    if let Reading::Value(list) = &mut reading {
        list.whole &= whole;
    }
    Ok(reading)
}

/// Reads the names in `scores`; what they are given and whether one repeats is nobody's business.
fn scored_names<'a>(document: &mut Document<'a>, at: &Path) -> Read<Reading<Vec<JsonStr<'a>>>> {
    if document.reader.peek()? != Type::Object {
        return document.wrong_type(at, SCORES);
    }
    let mut names = Vec::new();
    document.members(|document, name| {
        names.push(name);
        document.reader.skip().map(drop)
    })?;
    Ok(Reading::Value(names))
}
