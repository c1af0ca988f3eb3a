//! Takes one record through what section 7 demands of its kind.

use super::drafts::Drafts;
use super::placement;
use super::reason::ClaimPatterns;
use super::report::{Place, declared_agent};
use super::resumed::Reference;
use super::state::{Admission, Pending, Submission, TraceState};
use super::{MAX_DOCUMENT_BYTES, MAX_PENDING, advisories, rejection, sequence};
use crate::decode::document::Reading;
use crate::decode::{Body, Record};
use crate::schema::agent::Agent;
use crate::schema::predicate_set::{Matched, PredicateSet};
use crate::schema::requirements::Requirements;

/// Longest agent that is kept of a placement that waits, in bytes.
const MAX_PENDING_AGENT_BYTES: usize = 1024;

/// Judges a record, and takes over into the state of its trace what later ones are held to.
/// Without a state, because the record names no trace, only what it tells by itself is judged.
pub(crate) fn record(
    record: &Record<'_>,
    mut state: Option<&mut TraceState>,
    claims: &ClaimPatterns,
    drafts: &mut Drafts,
) -> Reference {
    if let (Some(seq), Some(state)) = (record.seq, state.as_deref_mut()) {
        sequence::judge(seq, state, drafts);
    }
    match (&record.body, state) {
        (Body::Bound(placement), state) => {
            return placement::judge(placement, record.seq, state, drafts);
        }
        (Body::Rejected(Some(reason)), _) => rejection::judge(reason, claims, drafts),
        (Body::Submitted(requirements), Some(state)) => submitted(requirements, state, drafts),
        (Body::Admitted(agent), Some(state)) => admitted(agent, state, drafts),
        _ => {}
    }
    Reference::Settled
}

/// Judges whether the beginning of a trace was seen, at its first record with a readable `seq`.
/// After some trace was given up, any that begins above 1 may be that one. A placement before that
/// would be held against records that nobody knows to be missing: where its `seq` is unreadable,
/// nobody can tell, and it counts as one that begins above 1.
pub(crate) fn beginning(
    record: &Record<'_>,
    state: &mut TraceState,
    any_evicted: bool,
    drafts: &mut Drafts,
) {
    let is_late = match record.seq {
        Some(seq) => seq > 1,
        None => matches!(record.body, Body::Bound(_)),
    };
    if state.begun || !is_late {
        return;
    }
    if state.partial || any_evicted || !matches!(record.body, Body::Submitted(_)) {
        state.begin_partial(record.seq);
        advisories::partial(state, drafts);
    }
}

/// Keeps a placement until the one that explains it has come.
pub(crate) fn wait(
    place: &Place<'_>,
    record: &Record<'_>,
    state: &mut TraceState,
    drafts: &mut Drafts,
) {
    if state.rare().pending.len() == MAX_PENDING {
        return advisories::too_many_pending(state, drafts);
    }
    state.rare().pending.push(Pending {
        source: place.source.clone(),
        line: place.line.number,
        offset: place.line.offset,
        line_hash: place.line_hash(),
        seq: record.seq,
        agent: declared_agent(record)
            .filter(|agent| agent.name.len() + agent.namespace.len() <= MAX_PENDING_AGENT_BYTES),
    });
}

fn submitted(
    requirements: &Reading<Requirements<'_>>,
    state: &mut TraceState,
    drafts: &mut Drafts,
) {
    let submission = match requirements {
        Reading::Value(requirements) if requirements.complete => {
            let set = Matched::of(requirements);
            if set.packed().len() <= MAX_DOCUMENT_BYTES {
                Submission::Set(PredicateSet::from_packed(set.packed()))
            } else {
                advisories::document_too_large(state, drafts);
                Submission::Unknown
            }
        }
        _ => Submission::Unknown,
    };
    advisories::resubmitted(&state.submission, &submission, drafts);
    state.submission = submission;
}

fn admitted(agent: &Reading<Agent<'_>>, state: &mut TraceState, drafts: &mut Drafts) {
    let admission = Admission::of(agent);
    if admission == Admission::Unknown && agent.value().is_some() {
        advisories::document_too_large(state, drafts);
    }
    advisories::readmitted(&state.admission, &admission, drafts);
    state.admission = admission;
}
