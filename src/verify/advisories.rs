//! What the schema asks a runtime to record and no step of section 7 checks: advisories.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use super::consistency::difference;
use super::drafts::Drafts;
use super::placement::scheduling_path;
use super::state::{Admission, Submission, TraceState};
use crate::decode::JsonStr;
use crate::decode::document::{Draft, Reading, quoted};
use crate::finding::Code;
use crate::pointer::Path;
use crate::schema::Predicate;
use crate::schema::declaration::listed;
use crate::schema::predicate_set::Matched;
use crate::schema::scheduling::Scheduling;

/// Predicates that are compared one by one before they are looked up: more than most requirements
/// have, and few enough that comparing is the cheaper way.
const MAX_KNOWN: usize = 16;

/// Most names that one `W_CANDIDATES` lists: a fleet has thousands, and ten show what went wrong.
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

/// Comparisons of names one by one that cost no more than any other way to compare two lists.
const FEW_COMPARISONS: usize = 256;

/// Whether no name is in both lists. `false` also where a name is written with escapes and the
/// lists are long: it takes decoding to tell.
fn are_disjoint(left: &[JsonStr<'_>], right: &[JsonStr<'_>]) -> bool {
    if left.len() * right.len() <= FEW_COMPARISONS {
        return !right.iter().any(|name| left.contains(name));
    }
    let plain = |names: &[JsonStr<'_>]| names.iter().all(|name| name.plain().is_some());
    if !plain(left) || !plain(right) {
        return false;
    }
    are_disjoint_by_filter(left, right).unwrap_or_else(|| {
        let left: HashSet<_, RandomState> = left.iter().filter_map(|name| name.plain()).collect();
        !right
            .iter()
            .filter_map(|name| name.plain())
            .any(|name| left.contains(name))
    })
}

/// The same for names without escapes; `None` where too many may be in both to look each up.
fn are_disjoint_by_filter(left: &[JsonStr<'_>], right: &[JsonStr<'_>]) -> Option<bool> {
    /// Bits of the filter: for a thousand names, one in sixty others is taken for one of them.
    const BITS: usize = 1 << 16;
    /// Comparisons for each name that looking those up may cost before a table is the cheaper way.
    /// It also bounds what a trace can make of names that all fall on one bit.
    const COMPARISONS_A_NAME: usize = 4;

    let bit = |name: &JsonStr<'_>| name.plain().map_or(0, mix) % BITS;
    let mut filter = [0_u64; BITS / 64];
    for bit in left.iter().map(bit) {
        filter[bit / 64] |= 1 << (bit % 64);
    }
    let mut comparisons = COMPARISONS_A_NAME * (left.len() + right.len());
    for name in right {
        let bit = bit(name);
        if filter[bit / 64] >> (bit % 64) & 1 == 0 {
            continue;
        }
        comparisons = comparisons.checked_sub(left.len())?;
        if left.contains(name) {
            return Some(false);
        }
    }
    Some(true)
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
        if told.contains(&*text) || !drafts.has_room(Code::FailedPredicate) {
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
        let (before, now): (Vec<_>, Vec<_>) = (before.iter().collect(), now.iter().collect());
        let (old, new) = (
            difference(before.iter(), now.iter()),
            difference(now.iter(), before.iter()),
        );
        let mut parts = Vec::new();
        if !old.is_empty() {
            parts.push(format!("no longer asked for: {}", listed(&old)));
        }
        if !new.is_empty() {
            parts.push(format!("asked for now: {}", listed(&new)));
        }
        let detail = parts.join("; ");
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

#[cfg(test)]
mod tests {
    use super::{JsonStr, are_disjoint};
    use crate::{Code, Verifier};

    /// What the advisory of that code says, with its line and pointer, wherever it is found.
    fn said(code: Code, trace: &[String]) -> Vec<(u64, String, String)> {
        let mut verifier = Verifier::default();
        let found = trace.iter().flat_map(|line| verifier.push(line.as_bytes()));
        found
            .filter(|finding| finding.code == code)
            .map(|finding| (finding.line, finding.pointer.clone(), finding.sentence()))
            .collect()
    }

    fn said_once(code: Code, trace: &[String]) -> (u64, String, String) {
        let mut said = said(code, trace);
        assert_eq!(said.len(), 1, "{said:?}");
        said.remove(0)
    }

    fn record(seq: usize, kind: &str, content: &str) -> String {
        format!(r#"{{"seq":{seq},"kind":"{kind}","content":{content}}}"#)
    }

    fn submitted(seq: usize, requirements: &str) -> String {
        let content = format!(r#"{{"requirements":{requirements}}}"#);
        record(seq, "task.submitted", &content)
    }

    /// A placement of agent `n`, of which only the explanation matters.
    fn bound(candidates: &str, failed: &str, scores: &str) -> String {
        let content = format!(
            r#"{{"scheduling":{{"requirements":{{"tools":["t"]}},"declaration":{{"v":"1.0","agent":{{"name":"n","namespace":"s"}},"capabilities":[],"clearances":[],"tools":["t"]}},"candidates":{candidates},"filters_passed":["tool:t"],"filters_failed":{failed},"scores":{scores}}}}}"#
        );
        record(1, "task.bound", &content)
    }

    #[test]
    fn lists_of_every_length_are_told_apart() {
        let names = |from: usize, count: usize| -> Vec<String> {
            (from..from + count)
                .map(|n| format!("agent-{n:05}"))
                .collect()
        };
        for (left, right) in [
            (0, 0),
            (1, 1),
            (3, 5),
            (16, 16),
            (17, 16),
            (400, 600),
            (4000, 6000),
        ] {
            let (left_names, right_names) = (names(0, left), names(left, right));
            let left: Vec<_> = left_names.iter().map(|name| JsonStr::of(name)).collect();
            let mut right: Vec<_> = right_names.iter().map(|name| JsonStr::of(name)).collect();
            assert!(
                are_disjoint(&left, &right),
                "{} and {}",
                left.len(),
                right.len()
            );
            if let (Some(&shared), Some(last)) = (left.last(), right.last_mut()) {
                *last = shared;
                assert!(
                    !are_disjoint(&left, &right),
                    "{} and {}",
                    left.len(),
                    right.len()
                );
            }
        }
    }

    #[test]
    fn candidates_that_do_not_fit_are_named_in_one_finding() {
        let failed = r#"[{"candidate":"f","predicate":"tool:t"},{"candidate":"g","predicate":"tool:t"},{"candidate":"g","predicate":"tool:t"}]"#;
        let placement = bound(r#"["x","x","g","y"]"#, failed, r#"{"g":1,"s":2,"y":3}"#);
        let (line, pointer, sentence) = said_once(Code::Candidates, &[placement]);
        assert_eq!((line, &*pointer), (1, "/content/scheduling/candidates"));
        assert_eq!(
            sentence,
            "`candidates` does not fit `filters_failed` and `scores`; `n` is chosen but no \
             candidate, `x` neither failed nor has a score, `g` failed and has a score, `f` failed \
             but is no candidate, `s` is scored but no candidate"
        );
    }

    #[test]
    fn ten_candidates_are_named_and_the_others_counted() {
        let names: Vec<_> = (0..12).map(|n| format!("\"c{n}\"")).collect();
        let placement = bound(&format!("[\"n\",{}]", names.join(",")), "[]", r#"{"n":1}"#);
        let (.., sentence) = said_once(Code::Candidates, &[placement]);
        assert!(sentence.ends_with("`c9` neither failed nor has a score and 2 more"));
    }

    #[test]
    fn candidates_that_fit_are_not_spoken_of_in_whatever_order() {
        let failed =
            r#"[{"candidate":"a","predicate":"tool:t"},{"candidate":"b","predicate":"tool:t"}]"#;
        for candidates in [
            r#"["a","b","n"]"#,
            r#"["n","b","a"]"#,
            r#"["n","a","n","b"]"#,
        ] {
            let placement = bound(candidates, failed, r#"{"n":1}"#);
            assert_eq!(said(Code::Candidates, &[placement]), []);
        }
    }

    #[test]
    fn a_failed_predicate_that_nobody_asked_for_is_told_once_at_its_first_entry() {
        let failed = r#"[{"candidate":"a","predicate":"tool:t"},{"candidate":"b","predicate":"tool:u"},{"candidate":"c","predicate":"tool:u"},{"candidate":"d","predicate":"u"}]"#;
        let placement = bound(r#"["n"]"#, failed, r#"{"n":1}"#);
        let said = said(Code::FailedPredicate, &[placement]);
        let pointers: Vec<_> = said.iter().map(|(_, pointer, _)| &**pointer).collect();
        let at = |index| format!("/content/scheduling/filters_failed/{index}/predicate");
        assert_eq!(pointers, [at(1), at(3)]);
        assert!(
            said[0]
                .2
                .starts_with("a candidate failed tool:u, which nobody asked for")
        );
    }

    #[test]
    fn a_later_submission_that_differs_says_in_what() {
        let trace = [
            submitted(1, r#"{"tools":["a","b"]}"#),
            submitted(2, r#"{"tools":["b","a","b"],"v":"1.1","session":"s"}"#),
            submitted(3, r#"{"tools":["b","c"]}"#),
            submitted(4, r#"{"tools":["b",7]}"#),
            submitted(5, "{}"),
        ];
        let (line, pointer, sentence) = said_once(Code::Resubmitted, &trace);
        assert_eq!((line, &*pointer), (3, "/content/requirements"));
        assert_eq!(
            sentence,
            "the task was submitted again with other requirements; no longer asked for: tool:a; \
             asked for now: tool:c"
        );
    }

    #[test]
    fn a_later_admission_to_another_agent_says_to_which_one_it_was_before() {
        let admitted = |seq, agent: &str| {
            let content = format!(r#"{{"agent":{agent}}}"#);
            record(seq, "task.admitted", &content)
        };
        let trace = [
            admitted(1, r#"{"name":"a","namespace":"s"}"#),
            admitted(2, r#"{"namespace":"s","name":"\u0061","more":1}"#),
            admitted(3, r#"{"name":"a","namespace":"t"}"#),
            admitted(4, r#"{"name":"b"}"#),
            admitted(5, r#"{"name":"c","namespace":"t"}"#),
        ];
        let (line, pointer, sentence) = said_once(Code::Resubmitted, &trace);
        assert_eq!((line, &*pointer), (3, "/content/agent"));
        assert_eq!(
            sentence,
            "the task was admitted again, to another agent; it was admitted to s/a before"
        );
    }

    #[test]
    fn a_gap_is_told_once_a_trace() {
        let note = |seq| record(seq, "note", "{}");
        let trace = [note(5), note(6), note(8), note(20), note(9)];
        let (line, pointer, sentence) = said_once(Code::SeqGap, &trace);
        assert_eq!((line, &*pointer), (3, "/seq"));
        assert!(sentence.starts_with("`seq` goes from 6 to 8; the one between"));
    }
}
