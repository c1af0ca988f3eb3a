//! Step 2, placement (R11): reads `scheduling`, and takes it through steps 3 to 6.

use super::drafts::Drafts;
use super::resumed::{Reference, ResumedRecord};
use super::seq_index::SetHash;
use super::state::TraceState;
use super::{advisories, consistency, explanation, resumed, satisfaction, scope};
use crate::decode::Placement;
use crate::decode::document::Reading;
use crate::pointer::Path;
use crate::schema::predicate_set::pack_into;
use crate::schema::requirements::{Asked, Requirements};
use crate::schema::scheduling::Scheduling;
use crate::schema::{Predicate, declaration::Declaration};

/// P, the predicate set of what was matched.
pub(crate) struct Matched<'r, 'a> {
    /// One for each entry, in the order of the requirements.
    pub(crate) asked: &'r [Asked<'a>],
    /// Sorted and without repeats.
    pub(crate) set: Vec<&'r Predicate<'a>>,
    pub(crate) complete: bool,
    packed: Vec<u8>,
}

impl<'r, 'a> Matched<'r, 'a> {
    pub(crate) fn of(requirements: &'r Requirements<'a>) -> Self {
        let mut set: Vec<_> = requirements
            .asked
            .iter()
            .map(|asked| &asked.predicate)
            .collect();
        set.sort_unstable();
        set.dedup();
        let mut packed = Vec::new();
        pack_into(&set, &mut packed);
        Matched {
            asked: &requirements.asked,
            set,
            complete: requirements.complete,
            packed,
        }
    }

    /// Whether the set holds `predicate`.
    pub(crate) fn holds(&self, predicate: &Predicate<'_>) -> bool {
        self.set
            .binary_search_by(|held| (**held).cmp(predicate))
            .is_ok()
    }

    /// The set as the state of a trace keeps it.
    pub(crate) fn packed(&self) -> &[u8] {
        &self.packed
    }

    fn hash(&self) -> SetHash {
        if self.complete {
            SetHash::of(&self.packed)
        } else {
            SetHash::INCOMPLETE
        }
    }
}

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
    let declaration = scheduling.declaration.value();
    let requirements = scheduling.requirements.value();
    let matched = requirements.map(Matched::of);

    if let Some(state) = state.as_deref() {
        judge_against(state, scheduling, declaration, matched.as_ref(), drafts);
    }
    if let (Some(requirements), Some(declaration)) = (requirements, declaration) {
        satisfaction::judge(requirements, declaration, drafts);
    }
    let set = matched.as_ref().map_or(SetHash::INCOMPLETE, Matched::hash);
    let reference = judge_recorded_in(placement, scheduling, seq, set, state.as_deref(), drafts);
    if scheduling.recorded_in.is_absent() || has_all_lists(scheduling) {
        let chosen = declaration.and_then(Declaration::agent_name);
        explanation::judge(scheduling, matched.as_ref(), chosen, drafts);
        advisories::candidates(scheduling, chosen, drafts);
        advisories::failed_predicates(scheduling, matched.as_ref(), drafts);
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
    declaration: Option<&Declaration<'_>>,
    matched: Option<&Matched<'_, '_>>,
    drafts: &mut Drafts,
) {
    if let Some(agent) = declaration.and_then(|declaration| declaration.agent.value()) {
        scope::judge(agent, &state.admission, drafts);
    }
    if let Some(matched) = matched
        && matched.complete
    {
        let (set, packed) = (&matched.set, matched.packed());
        consistency::judge(&state.submission, set, packed, &scheduling.route, drafts);
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

/// Whether the four lists of an explanation are there, well formed or not.
fn has_all_lists(scheduling: &Scheduling<'_>) -> bool {
    !scheduling.candidates.is_absent()
        && !scheduling.filters_passed.is_absent()
        && !scheduling.filters_failed.is_absent()
        && !scheduling.scores.is_absent()
}
