//! Requirements and a declaration that came before, byte for byte.
//!
//! A task that is parked and resumed is placed with the same two documents time and again. Where a
//! placement repeats those of the placements before it, they need neither be read nor judged
//! again: a comparison tells, at the speed of memory. Measured on such a trace, this is worth a
//! third of the whole run.

use super::declaration::{Declaration, Verdict};
use super::predicate_set::Matched;
use super::requirements::{Asked, Requirements};
use crate::decode::document::Reading;
use crate::decode::{Body, Placement, Record};
use crate::finding::AgentId;

/// Longest document that is kept for comparison; larger ones are rare.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// Two documents in which nothing is wrong, the second satisfying the first, and what a placement
/// is judged by.
#[derive(Debug)]
pub(crate) struct KnownPair {
    pub(crate) requirements_text: String,
    pub(crate) declaration_text: String,
    asked: Vec<Asked<'static>>,
    order: Vec<u32>,
    packed: Vec<u8>,
    pub(crate) agent: AgentId,
}

impl KnownPair {
    /// The predicate set of the requirements.
    pub(crate) fn matched(&self) -> Matched<'_, 'static> {
        Matched::known(&self.asked, &self.order, &self.packed)
    }

    fn of(
        texts: &Texts,
        requirements: &Requirements<'_>,
        declaration: &Declaration<'_>,
    ) -> Option<Self> {
        let asked = &requirements.asked;
        let satisfied =
            |asked: &Asked<'_>| declaration.judge(&asked.predicate) == Verdict::Satisfied;
        if !requirements.complete || !asked.iter().all(satisfied) {
            return None;
        }
        let (order, packed) = Matched::of(requirements).into_parts();
        Some(KnownPair {
            requirements_text: texts.requirements.clone(),
            declaration_text: texts.declaration.clone(),
            asked: asked.iter().map(Asked::to_static).collect(),
            order,
            packed,
            agent: declaration.agent.value()?.id()?,
        })
    }
}

/// What is remembered of the placements before: the pair that repeats, if one does.
#[derive(Debug, Default)]
pub(crate) struct KnownDocuments {
    pub(crate) pair: Option<Box<KnownPair>>,
    last: Texts,
}

/// The documents of the last placement.
#[derive(Debug, Default)]
struct Texts {
    requirements: String,
    declaration: String,
}

impl KnownDocuments {
    /// Learns from a record, if it is a placement without fault. A pair is known once it has come
    /// twice running.
    pub(crate) fn learn(&mut self, record: &Record<'_>) {
        let Body::Bound(Placement {
            scheduling: Reading::Value(scheduling),
            ..
        }) = &record.body
        else {
            return;
        };
        let (requirements, declaration) =
            (scheduling.requirements_text, scheduling.declaration_text);
        if scheduling.known.is_some()
            || !record.faults.is_empty()
            || requirements.len().max(declaration.len()) > MAX_TEXT_BYTES
        {
            return;
        }
        if self.last.requirements != requirements || self.last.declaration != declaration {
            self.last.requirements.clear();
            self.last.requirements.push_str(requirements);
            self.last.declaration.clear();
            self.last.declaration.push_str(declaration);
        } else if let (Some(requirements), Some(declaration)) = (
            scheduling.requirements.value(),
            scheduling.declaration.value(),
        ) {
            let pair = KnownPair::of(&self.last, requirements, declaration);
            self.pair = pair.map(Box::new);
        }
    }
}
