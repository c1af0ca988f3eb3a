//! Step 2, placement (R11): reads `scheduling`, and takes it through steps 3 to 6.

use super::drafts::Drafts;
use super::resumed::{Reference, ResumedRecord};
use super::seq_index::SetHash;
use super::state::TraceState;
use super::{advisories, consistency, explanation, resumed, satisfaction, scope};
use crate::decode::Placement;
use crate::decode::document::Reading;
use crate::pointer::Path;
use crate::schema::agent::Agent;
use crate::schema::predicate_set::Matched;
use crate::schema::scheduling::Scheduling;

/// Judges a placement. Without the state of its trace, because the record names none, only what
/// the record itself tells is judged.
pub(crate) fn judge(
    placement: &Placement<'_>,
    seq: Option<u64>,
    state: Option<&mut TraceState>,
    drafts: &mut Drafts,
) -> Reference {
    let Reading::Value(scheduling) = &placement.scheduling else {
        return Reference::Settled;
    };
    let known = scheduling.known;
    let declaration = scheduling.declaration.value();
    let requirements = scheduling.requirements.value();
    let matched = match known {
        Some(pair) => Some(pair.matched()),
        None => requirements.map(Matched::of),
    };
    let matched = matched.as_ref();
    let agent = scheduling.agent();

    if let Some(state) = state.as_deref() {
        judge_against(state, scheduling, agent, matched, drafts);
    }
    // A known pair is one that satisfies.
    if let (Some(requirements), Some(declaration)) = (requirements, declaration) {
        satisfaction::judge(requirements, declaration, drafts);
    }
    let set = set_hash(matched);
    let reference = judge_recorded_in(placement, scheduling, seq, set, state.as_deref(), drafts);
    if scheduling.recorded_in.is_absent() || has_all_lists(scheduling) {
        let chosen = agent.and_then(|agent| agent.name);
        explanation::judge(scheduling, matched, chosen, drafts);
        advisories::candidates(scheduling, chosen, drafts);
        advisories::failed_predicates(scheduling, matched, drafts);
    }
    if let Some(state) = state
        && scheduling.full
        && state.explain(seq, set)
    {
        advisories::index_full(state, drafts);
    }
    reference
}

/// Calls `with` with the place of a record's `scheduling`.
pub(crate) fn scheduling_path<T>(with: impl FnOnce(&Path) -> T) -> T {
    with(&Path::ROOT.name("content").name("scheduling"))
}

/// Steps 3 and 4, which compare the placement with what came before.
fn judge_against(
    state: &TraceState,
    scheduling: &Scheduling<'_>,
    agent: Option<Agent<'_>>,
    matched: Option<&Matched<'_, '_>>,
    drafts: &mut Drafts,
) {
    if let Some(agent) = agent {
        scope::judge(&agent, &state.admission, drafts);
    }
    if let Some(matched) = matched
        && matched.complete
    {
        consistency::judge(&state.submission, matched, &scheduling.route, drafts);
    }
}

fn judge_recorded_in(
    placement: &Placement<'_>,
    scheduling: &Scheduling<'_>,
    seq: Option<u64>,
    set: SetHash,
    state: Option<&TraceState>,
    drafts: &mut Drafts,
) -> Reference {
    let Reading::Value(recorded_in) = &scheduling.recorded_in else {
        return Reference::Settled;
    };
    let record = ResumedRecord {
        seq,
        resumed: placement.resumed,
        resumed_inside: scheduling.resumed_here,
        full: scheduling.full,
        set,
    };
    resumed::judge_form(recorded_in, &record, drafts);
    match state {
        Some(state) => resumed::judge_reference(recorded_in, &record, state, drafts),
        None => Reference::Settled,
    }
}

fn set_hash(matched: Option<&Matched<'_, '_>>) -> SetHash {
    let complete = matched.filter(|matched| matched.complete);
    complete.map_or(SetHash::INCOMPLETE, |matched| SetHash::of(matched.packed()))
}

/// Whether the four lists of an explanation are there, well formed or not.
fn has_all_lists(scheduling: &Scheduling<'_>) -> bool {
    !scheduling.candidates.is_absent()
        && !scheduling.filters_passed.is_absent()
        && !scheduling.filters_failed.is_absent()
        && !scheduling.scores.is_absent()
}
