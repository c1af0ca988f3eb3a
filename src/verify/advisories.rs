//! What the schema asks a runtime to record and no step of section 7 checks: advisories.

use std::collections::{HashMap, HashSet};

use super::drafts::Drafts;
use super::placement::scheduling_path;
use super::state::{Admission, Submission, TraceState};
use crate::decode::JsonStr;
use crate::decode::document::{Draft, Reading, quoted};
use crate::finding::Code;
use crate::pointer::Path;
use crate::schema::Predicate;
use crate::schema::predicate_set::Matched;
use crate::schema::scheduling::Scheduling;

/// Predicates that are compared one by one before they are looked up.
const MAX_KNOWN: usize = 16;

/// Most names that one `W_CANDIDATES` lists.
const MAX_NAMED: usize = 10;

/// `W_CANDIDATES`: the chosen, failed and scored names are candidates, and each candidate is
/// either failed or scored. Only for a full explanation.
pub(crate) fn candidates(
    scheduling: &Scheduling<'_>,
    chosen: Option<JsonStr<'_>>,
    drafts: &mut Drafts,
) {
    let Some(chosen) = chosen else { return };
    let (Reading::Value(candidates), Reading::Value(failed), Reading::Value(scores)) = (
        &scheduling.candidates,
        &scheduling.filters_failed,
        &scheduling.scores,
    ) else {
        return;
    };
    if !scheduling.full {
        return;
    }
    let failed: Vec<_> = failed
        .values()
        .filter_map(|failed| failed.candidate)
        .collect();
    let listed: Vec<_> = candidates.values().copied().collect();
    if fits_in_order(&listed, &failed, scores, chosen) {
        return;
    }
    let misfits = misfits(&listed, &failed, scores, chosen);
    if misfits.is_empty() {
        return;
    }
    let shown = misfits
        .iter()
        .take(MAX_NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    let detail = match misfits.len().saturating_sub(MAX_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    };
    let message = "`candidates` does not fit `filters_failed` and `scores`".to_owned();
    scheduling_path(|at| {
        drafts.add(
            Code::Candidates,
            "6",
            &at.name("candidates"),
            message,
            detail,
        );
    });
}

/// Whether the lists fit and are in the same order, as most runtimes write them; decided without
/// a table of names.
fn fits_in_order(
    candidates: &[JsonStr<'_>],
    failed: &[JsonStr<'_>],
    scores: &[JsonStr<'_>],
    chosen: JsonStr<'_>,
) -> bool {
    let (mut next_failed, mut next_scored) = (failed.iter().peekable(), scores.iter().peekable());
    let mut chosen_listed = false;
    for candidate in candidates {
        chosen_listed |= *candidate == chosen;
        if next_scored.next_if_eq(&candidate).is_none()
            && next_failed.next_if_eq(&candidate).is_none()
        {
            return false;
        }
    }
    let all_listed = next_failed.peek().is_none() && next_scored.peek().is_none();
    chosen_listed && all_listed && are_disjoint(failed, scores)
}

/// Whether no name is in both lists; `false` also where that is not cheap to tell.
fn are_disjoint(left: &[JsonStr<'_>], right: &[JsonStr<'_>]) -> bool {
    /// Bits of the filter: for a thousand names, one in sixty others is taken for one of them.
    const BITS: usize = 1 << 16;
    /// How many of those are looked for in the list before the table is the cheaper way. It also
    /// bounds what a trace can make of names that all fall on one bit.
    const MAX_LOOKS: usize = 64;

    let mut filter = [0_u64; BITS / 64];
    for name in left {
        let Some(name) = name.plain() else {
            return false;
        };
        let bit = mix(name) % BITS;
        filter[bit / 64] |= 1 << (bit % 64);
    }
    let mut looks = 0;
    right.iter().all(|name| {
        let Some(text) = name.plain() else {
            return false;
        };
        let bit = mix(text) % BITS;
        if filter[bit / 64] >> (bit % 64) & 1 == 0 {
            return true;
        }
        looks += 1;
        looks <= MAX_LOOKS && !left.contains(name)
    })
}

/// A number in which the beginning, the end and the length of a name take part.
fn mix(name: &str) -> usize {
    let bytes = name.as_bytes();
    let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let (first, last) = match bytes.len() {
        0..8 => (
            bytes
                .iter()
                .fold(0, |word, &byte| word << 8 | u64::from(byte)),
            0,
        ),
        _ => (word(bytes.first_chunk()), word(bytes.last_chunk())),
    };
    let mixed =
        (first ^ last.rotate_left(32) ^ bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize
}

/// What does not fit, in words.
fn misfits(
    candidates: &[JsonStr<'_>],
    failed: &[JsonStr<'_>],
    scores: &[JsonStr<'_>],
    chosen: JsonStr<'_>,
) -> Vec<String> {
    let candidates: Vec<_> = candidates.iter().map(|name| name.decode()).collect();
    let failed: Vec<_> = failed.iter().map(|name| name.decode()).collect();
    let scores: Vec<_> = scores.iter().map(|name| name.decode()).collect();
    let chosen = chosen.decode();
    #[derive(Default)]
    struct Seen {
        candidate: bool,
        failed: bool,
        scored: bool,
        chosen: bool,
        told: bool,
    }
    let mut seen: HashMap<&str, Seen> = HashMap::with_capacity(candidates.len());
    candidates
        .iter()
        .for_each(|name| seen.entry(name).or_default().candidate = true);
    failed
        .iter()
        .for_each(|name| seen.entry(name).or_default().failed = true);
    scores
        .iter()
        .for_each(|name| seen.entry(name).or_default().scored = true);
    seen.entry(&chosen).or_default().chosen = true;

    let mut misfits = Vec::new();
    let names = std::iter::once(&chosen)
        .chain(&candidates)
        .chain(&failed)
        .chain(&scores);
    for name in names {
        let Some(seen) = seen.get_mut(&**name).filter(|seen| !seen.told) else {
            continue;
        };
        seen.told = true;
        let problem = match seen {
            Seen {
                candidate: false,
                chosen: true,
                ..
            } => "is chosen but no candidate",
            Seen {
                candidate: false,
                failed: true,
                ..
            } => "failed but is no candidate",
            Seen {
                candidate: false, ..
            } => "is scored but no candidate",
            Seen {
                failed: true,
                scored: true,
                ..
            } => "failed and has a score",
            Seen {
                failed: false,
                scored: false,
                ..
            } => "neither failed nor has a score",
            _ => continue,
        };
        misfits.push(format!("`{}` {problem}", quoted(name)));
    }
    misfits
}

/// `W_FAILED_PREDICATE`: what a candidate failed is a predicate of P. One for each predicate.
pub(crate) fn failed_predicates(
    scheduling: &Scheduling<'_>,
    matched: Option<&Matched<'_, '_>>,
    drafts: &mut Drafts,
) {
    let (Reading::Value(failed), Some(matched)) = (&scheduling.filters_failed, matched) else {
        return;
    };
    if !matched.complete {
        return;
    }
    let mut told = HashSet::new();
    // Few predicates are failed by many candidates: what was found to be asked for is known by its
    // spelling from then on.
    let mut known: Vec<JsonStr<'_>> = Vec::new();
    for (index, entry) in &failed.entries {
        let Some(predicate) = entry
            .predicate
            .filter(|predicate| !known.contains(predicate))
        else {
            continue;
        };
        let text = predicate.decode();
        if Predicate::parse(&text).is_some_and(|predicate| matched.holds(&predicate)) {
            if known.len() < MAX_KNOWN {
                known.push(predicate);
            }
            continue;
        }
        if told.contains(&*text) || !drafts.has_room() {
            continue;
        }
        drafts.list.push(Draft {
            code: Code::FailedPredicate,
            rule: "6",
            pointer: scheduling_path(|at| {
                at.name("filters_failed")
                    .index(*index)
                    .name("predicate")
                    .render()
            }),
            predicate: Some(text.clone().into_owned()),
            message: format!(
                "a candidate failed {}, which nobody asked for",
                quoted(&text)
            ),
            detail: Some("expected a predicate of the requirements that were matched".to_owned()),
        });
        told.insert(text.into_owned());
    }
}

/// `W_RESUBMITTED` for a later `task.submitted` with other requirements.
pub(crate) fn resubmitted(before: &Submission, now: &Submission, drafts: &mut Drafts) {
    if let (Submission::Set(before), Submission::Set(now)) = (before, now)
        && before != now
    {
        let content = Path::ROOT.name("content");
        let message = "the task was submitted again with other requirements".to_owned();
        let detail = "later placements are held to these".to_owned();
        drafts.add(
            Code::Resubmitted,
            "7",
            &content.name("requirements"),
            message,
            detail,
        );
    }
}

/// `W_RESUBMITTED` for a later `task.admitted` to another agent.
pub(crate) fn readmitted(before: &Admission, now: &Admission, drafts: &mut Drafts) {
    if let (Admission::Agent(before), Admission::Agent(now)) = (before, now)
        && before.is_whole()
        && now.is_whole()
        && before != now
    {
        let content = Path::ROOT.name("content");
        let message = "the task was admitted again, to another agent".to_owned();
        let before = [before.namespace(), before.name()].map(Option::unwrap_or_default);
        let detail = format!("it was admitted to {} before", quoted(&before.join("/")));
        drafts.add(
            Code::Resubmitted,
            "7",
            &content.name("agent"),
            message,
            detail,
        );
    }
}

/// `W_PARTIAL_TRACE` at the first record of a trace whose beginning was not seen.
pub(crate) fn partial(state: &mut TraceState, drafts: &mut Drafts) {
    let detail = "checks that need a record that was not seen are passed over";
    partial_trace(
        state,
        "the beginning of the trace was not seen",
        detail,
        drafts,
    );
}

/// `W_PARTIAL_TRACE` when the index of placements had to forget some.
pub(crate) fn index_full(state: &mut TraceState, drafts: &mut Drafts) {
    let detail = "references to the oldest placements are passed over from here on";
    partial_trace(
        state,
        "the index of the trace's placements is full",
        detail,
        drafts,
    );
}

/// `W_PARTIAL_TRACE` when a document is too large to keep.
pub(crate) fn document_too_large(state: &mut TraceState, drafts: &mut Drafts) {
    let detail = "placements are not compared with it";
    partial_trace(
        state,
        "the record's document is too large to be kept",
        detail,
        drafts,
    );
}

/// `W_PARTIAL_TRACE` when too many placements wait.
pub(crate) fn too_many_pending(state: &mut TraceState, drafts: &mut Drafts) {
    let detail = "whether further ones are ever explained is passed over";
    partial_trace(
        state,
        "too many placements wait for the one that explains them",
        detail,
        drafts,
    );
}

fn partial_trace(state: &mut TraceState, message: &str, detail: &str, drafts: &mut Drafts) {
    if !std::mem::replace(&mut state.partial_reported, true) {
        let (message, detail) = (message.to_owned(), detail.to_owned());
        drafts.add(Code::PartialTrace, "7", &Path::ROOT, message, detail);
    }
}
