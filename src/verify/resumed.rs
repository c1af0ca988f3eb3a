//! Step 6 for a resumed placement (R16): it refers to the placement that weighed the candidates.

use super::drafts::Drafts;
use super::placement::scheduling_path;
use super::seq_index::{Lookup, SetHash};
use super::state::TraceState;
use crate::decode::Resumed;
use crate::decode::document::{Draft, Reading, quoted};
use crate::finding::Code;
use crate::pointer::Path;
use crate::schema::scheduling::{RecordedIn, ReferredKind};

/// What R16 needs of the record that carries `recorded_in`.
pub(crate) struct ResumedRecord<'a> {
    pub(crate) seq: Option<u64>,
    pub(crate) resumed: Resumed<'a>,
    /// Whether `resumed` stands inside `scheduling`, where it does not belong.
    pub(crate) resumed_inside: bool,
    /// Whether the record carries a full explanation itself.
    pub(crate) full: bool,
    /// What it is held to.
    pub(crate) set: SetHash,
}

/// What becomes of the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// It is decided, or cannot be.
    Settled,
    /// It waits for a placement with a full explanation.
    Waits,
}

/// Judges what the record itself tells: `resumed` and `recorded_in.kind`.
pub(crate) fn judge_form(
    recorded_in: &RecordedIn<'_>,
    record: &ResumedRecord<'_>,
    drafts: &mut Drafts,
) {
    if record.resumed != Resumed::True {
        let message = match record.resumed {
            Resumed::Missing => "a placement with `recorded_in` lacks `resumed`".to_owned(),
            Resumed::Doubled => "`resumed` occurs twice in its object".to_owned(),
            Resumed::Other(text) => format!("`resumed` is {}", quoted(text)),
            Resumed::True => unreachable!("judged above"),
        };
        let mut detail =
            "expected `\"resumed\": true` in `content`, beside `scheduling`".to_owned();
        if record.resumed_inside {
            detail.push_str("; it stands inside `scheduling`, where it does not count");
        }
        let content = Path::ROOT.name("content");
        drafts.add(
            Code::Explanation,
            "7.6",
            &content.name("resumed"),
            message,
            detail,
        );
    }
    let message = match recorded_in.kind {
        ReferredKind::Doubled => return,
        ReferredKind::String(kind) if kind == *"task.bound" => return,
        ReferredKind::String(kind) => {
            format!("`recorded_in.kind` is {:?}", quoted(&kind.decode()))
        }
        ReferredKind::Missing => "`recorded_in.kind` is missing".to_owned(),
        ReferredKind::Other(found) => format!("`recorded_in.kind` is {}", found.described()),
    };
    add(
        "kind",
        message,
        "expected \"task.bound\"".to_owned(),
        drafts,
    );
}

/// Judges which placement is referred to, by what has come of the trace.
pub(crate) fn judge_reference(
    recorded_in: &RecordedIn<'_>,
    record: &ResumedRecord<'_>,
    state: &TraceState,
    drafts: &mut Drafts,
) -> Reference {
    match recorded_in.seq {
        Reading::Unreadable => {}
        Reading::Value(referred) => judge_seq(referred, record, state, drafts),
        Reading::Absent if record.full || state.explained || state.partial => {}
        Reading::Absent => {
            let message = "no placement with a full explanation has come yet".to_owned();
            let detail = "`recorded_in` states no `seq`; the placement waits for one to come, until its trace ends";
            scheduling_path(|at| {
                let at = at.name("recorded_in");
                drafts.add(
                    Code::ReferencePending,
                    "7.6",
                    &at,
                    message,
                    detail.to_owned(),
                );
            });
            return Reference::Waits;
        }
    }
    Reference::Settled
}

fn judge_seq(referred: u64, record: &ResumedRecord<'_>, state: &TraceState, drafts: &mut Drafts) {
    let expected = "expected that of an earlier task.bound of this trace with `candidates`, `filters_passed`, \
         `filters_failed` and `scores`";
    let set = match state.explanations.find(referred) {
        Lookup::Unknown => return,
        Lookup::NotFound if state.explained_without_seq => return,
        // Nobody knows yet from which `seq` on the trace was seen.
        Lookup::NotFound if state.partial && !state.begun => return,
        Lookup::NotFound => {
            let message = format!(
                "`recorded_in.seq` is {referred}, and no earlier placement with a full explanation has \
                 that `seq`"
            );
            return add("seq", message, expected.to_owned(), drafts);
        }
        Lookup::Found(set) => set,
    };
    if let Some(own) = record.seq
        && referred >= own
    {
        let message = format!(
            "`recorded_in.seq` is {referred}, which is not smaller than this record's own `seq`, {own}"
        );
        add("seq", message, expected.to_owned(), drafts);
    }
    if set.differs(record.set) {
        let message = format!(
            "the resumed placement is held to other requirements than the one at seq {referred}"
        );
        let detail =
            "a resumed task goes back \"under the envelope it already has\" (section 6)".to_owned();
        scheduling_path(|at| {
            drafts.add(
                Code::ResumedRequirements,
                "6",
                &at.name("requirements"),
                message,
                detail,
            );
        });
    }
}

/// What is found when a trace ends and a placement still waits.
pub(crate) fn never_came() -> Draft {
    Draft {
        code: Code::Explanation,
        rule: "7.6",
        pointer: scheduling_path(|at| at.name("recorded_in").render()),
        predicate: None,
        message: "the trace ended without a placement that explains this one".to_owned(),
        detail: Some(
            "`recorded_in` states no `seq`; expected a task.bound with a full explanation somewhere in the trace".to_owned(),
        ),
    }
}

fn add(member: &str, message: String, detail: String, drafts: &mut Drafts) {
    scheduling_path(|at| {
        let at = at.name("recorded_in");
        drafts.add(Code::Explanation, "7.6", &at.name(member), message, detail);
    });
}
