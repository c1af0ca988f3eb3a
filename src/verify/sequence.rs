//! The order of a trace's records (R3), and whether its beginning was seen.

use super::advisories;
use super::drafts::Drafts;
use super::state::TraceState;
use crate::decode::{Body, Record};
use crate::finding::Code;
use crate::pointer::Path;

/// Judges the next record's `seq`.
pub(crate) fn judge(seq: u64, state: &mut TraceState, drafts: &mut Drafts) {
    let at = Path::ROOT.name("seq");
    if !state.begun {
        state.begun = true;
        if state.partial {
            // From here on it is known what was seen.
            state.explanations.begin_after(seq.saturating_sub(1));
        }
        state.greatest_seq = seq;
        return;
    }
    let greatest = state.greatest_seq;
    if seq <= greatest {
        let message = match seq == greatest {
            true => format!("`seq` is {seq}, and so was an earlier one"),
            false => format!("`seq` is {seq}, but {greatest} came before it"),
        };
        let detail = format!(
            "expected more than every `seq` before it in the trace, at least {}",
            u128::from(greatest) + 1
        );
        drafts.add(Code::Structure, "7", &at, message, detail);
        return;
    }
    if seq - greatest > 1 && !state.gap_reported {
        state.gap_reported = true;
        let message = format!("`seq` goes from {greatest} to {seq}");
        let detail = match seq - greatest - 1 {
            1 => "the one between is not in the trace; later gaps are not reported".to_owned(),
            several => {
                format!("the {several} between are not in the trace; later gaps are not reported")
            }
        };
        drafts.add(Code::SeqGap, "7", &at, message, detail);
    }
    state.greatest_seq = seq;
}

/// Judges by a trace's first record whether its beginning was seen. A trace begins with a
/// task.submitted, and any record at 0 or 1 is its first; of one whose `seq` could not be read
/// nobody can say that. After some trace was given up, any that begins higher may be that one.
/// Before, where traces come whole, a first record is a beginning.
pub(crate) fn judge_beginning(
    record: &Record<'_>,
    state: &mut TraceState,
    whole_traces: bool,
    any_evicted: bool,
    drafts: &mut Drafts,
) {
    let is_judged = std::mem::replace(&mut state.first_judged, true);
    if is_judged || whole_traces && !any_evicted {
        return;
    }
    let is_first = record.seq.is_some_and(|seq| seq <= 1);
    let is_submission = matches!(record.body, Body::Submitted(_));
    if !is_first && (any_evicted || !is_submission) {
        state.begin_partial(record.seq);
        advisories::partial(state, drafts);
    }
}
