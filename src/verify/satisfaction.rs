//! Step 5, satisfaction (R14): the declaration satisfies every predicate that was matched.

use std::collections::HashSet;

use super::drafts::Drafts;
use super::placement::scheduling_path;
use crate::decode::document::{Draft, Reading, quoted};
use crate::finding::Code;
use crate::schema::declaration::{Declaration, Verdict};
use crate::schema::requirements::Requirements;
use crate::schema::{Predicate, PredicateKind};

/// Predicates from which on an index of the declaration pays. Without one, a hostile record could
/// make each of a hundred thousand predicates look through as many entries.
const MANY_PREDICATES: usize = 64;

/// Judges each predicate once, at the first entry that asks for it.
pub(crate) fn judge(
    requirements: &Requirements<'_>,
    declaration: &Declaration<'_>,
    drafts: &mut Drafts,
) {
    let asked = &requirements.asked;
    let index = (asked.len() >= MANY_PREDICATES).then(|| declaration.index());
    let mut reported = HashSet::new();
    for asked in asked {
        let predicate = &asked.predicate;
        let code = Code::unmet(predicate.kind);
        let verdict = declaration.judge_with(predicate, index.as_ref());
        if verdict != Verdict::Unmet || !reported.insert(predicate) || !drafts.has_room(code) {
            continue;
        }
        drafts.list.push(Draft {
            code,
            rule: "7.5",
            pointer: scheduling_path(|at| asked.pointer(&at.name("requirements"))),
            predicate: Some(predicate.to_string()),
            message: message(predicate),
            detail: Some(detail(predicate, declaration)),
        });
    }
}

/// What is not satisfied, in words.
pub(crate) fn message(predicate: &Predicate<'_>) -> String {
    let name = quoted(&predicate.name);
    match predicate.kind {
        PredicateKind::Capability => format!(
            "the agent does not declare capability `{name}` at major version {}",
            predicate.version
        ),
        PredicateKind::Clearance => format!("the agent does not hold clearance `{name}`"),
        PredicateKind::Tool => format!("the agent is not bound to tool `{name}`"),
        PredicateKind::Residency => format!("the agent's residency does not contain `{name}`"),
        PredicateKind::LatencyClass => format!("the agent's latency class is not `{name}`"),
        PredicateKind::AgentRef => format!("the task names agent `{name}`, and this is another"),
        PredicateKind::AntiAffinity => format!("the task excludes agent `{name}`"),
    }
}

/// What the declaration holds instead. A residency that is absent is unconstrained by section 3
/// and contains nothing by section 5, and step 5 goes by section 5; both are quoted.
pub(crate) fn detail(predicate: &Predicate<'_>, declaration: &Declaration<'_>) -> String {
    let holdings = declaration.holdings(predicate);
    if predicate.kind == PredicateKind::Residency
        && matches!(declaration.residency, Reading::Absent)
    {
        return format!(
            "{holdings}; section 3 says \"Absent means unconstrained\", but step 5 goes by section 5: \
             satisfied when \"the declaration's residency contains\" the label"
        );
    }
    holdings
}

#[cfg(test)]
mod tests {
    use crate::{Code, Verifier};

    /// Findings on a placement that asks for `asked` clearances of which the agent holds `held`.
    fn findings(asked: usize, held: usize) -> Vec<crate::Finding> {
        let list = |count: usize| {
            let names: Vec<_> = (0..count).map(|n| format!("\"a.c{n}\"")).collect();
            names.join(",")
        };
        let line = format!(
            r#"{{"seq":1,"kind":"task.bound","content":{{"scheduling":{{"requirements":{{"clearances":[{}]}},"declaration":{{"v":"1.0","agent":{{"name":"n","namespace":"s"}},"capabilities":[],"clearances":[{}]}},"route":"r","recorded_in":{{}}}}}}}}"#,
            list(asked),
            list(held)
        );
        Verifier::default().push(line.as_bytes())
    }

    #[test]
    fn the_index_changes_no_verdict() {
        for asked in [1, 63, 64, 65, 200] {
            for held in [0, 1, asked - 1, asked] {
                let unmet: Vec<_> = findings(asked, held)
                    .into_iter()
                    .filter(|finding| finding.code == Code::ClearanceUnmet)
                    .map(|f| f.predicate.unwrap())
                    .collect();
                let expected: Vec<_> = (held..asked).map(|n| format!("clearance:a.c{n}")).collect();
                assert_eq!(unmet, expected, "{asked} asked, {held} held");
            }
        }
    }

    #[test]
    fn a_hostile_record_is_judged_in_bounded_space_and_says_what_it_leaves_out() {
        let findings = findings(200_000, 100_000);
        let unmet: Vec<_> = findings
            .iter()
            .filter(|finding| finding.code == Code::ClearanceUnmet)
            .collect();
        assert_eq!(unmet.len(), crate::decode::MAX_FAULTS);
        let last = unmet.last().unwrap().detail.clone().unwrap();
        assert!(last.contains("more findings are not listed"), "{last}");
    }
}
