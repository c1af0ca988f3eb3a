//! Step 5, satisfaction (R14): the declaration satisfies every predicate that was matched.

use std::collections::HashSet;

use super::drafts::Drafts;
use super::placement::scheduling_path;
use crate::decode::document::{Draft, Reading, quoted};
use crate::finding::Code;
use crate::schema::declaration::{Declaration, Verdict};
use crate::schema::requirements::Requirements;
use crate::schema::{Predicate, PredicateKind};

/// Judges each predicate once, at the first entry that asks for it.
pub(crate) fn judge(
    requirements: &Requirements<'_>,
    declaration: &Declaration<'_>,
    drafts: &mut Drafts,
) {
    let mut reported = HashSet::new();
    for asked in &requirements.asked {
        let predicate = &asked.predicate;
        if declaration.judge(predicate) == Verdict::Unmet && reported.insert(predicate) {
            drafts.list.push(Draft {
                code: Code::unmet(predicate.kind),
                rule: "7.5",
                pointer: scheduling_path(|at| asked.pointer(&at.name("requirements"))),
                predicate: Some(predicate.to_string()),
                message: message(predicate),
                detail: Some(detail(predicate, declaration)),
            });
        }
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
