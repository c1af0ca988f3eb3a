//! The texts of the `W_*` codes: what section 6 asks a runtime to record and no step checks, and
//! what a person should know about how a trace was read.

use super::{ExampleKind, Explanation};
use crate::finding::Code;

pub(super) static SEQ_GAP: Explanation = Explanation {
    code: Code::SeqGap,
    summary: "Numbers are missing from the `seq` of a trace",
    meaning: &[
        "A record's `seq` is more than one above that of the record before. Gaps are allowed, and \
         a runtime may leave numbers out on purpose; but if it does not, records were lost on the \
         way, and a lost record can hide a violation.",
        "Said once a trace, at its first gap.",
    ],
    section: "Section 7 takes the trace for granted; nothing in it asks for numbers without gaps. \
              Rule R3.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/W_SEQ_GAP.jsonl"),
    example_options: &[],
    action: &[
        "If your runtime numbers without gaps, look for what drops records between it and here: a \
         full queue, a rotated file that was not read to its end, a filter in the shipper.",
        "If it leaves gaps by design, turn this off with --ignore W_SEQ_GAP.",
    ],
};

pub(super) static NULL: Explanation = Explanation {
    code: Code::Null,
    summary: "An optional member is null and was read as absent",
    meaning: &[
        "The schema knows members that are there and members that are absent; null is neither. For \
         an optional member the verifier takes it as absent and goes on; for a required one it is \
         E_STRUCTURE.",
        "Another reader may take it for a value of the wrong type and refuse the record.",
    ],
    section: "Sections 3, 4 and 6, which say for each member whether it is required; none may be \
              null. Rule R5.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/W_NULL.jsonl"),
    example_options: &[],
    action: &[
        "Let the writer leave the member out where it has no value. Most serializers have an \
         option for it (such as omitempty, skip_serializing_if or exclude_none).",
    ],
};

pub(super) static REFERENCE_PENDING: Explanation = Explanation {
    code: Code::ReferencePending,
    summary: "A resumed placement waits for one that explains it",
    meaning: &[
        "A resumed placement refers to an earlier one by `recorded_in` without `seq`, and the \
         trace has had no placement with a full explanation so far. If one comes before the trace \
         ends, all is well; if none does, an E_EXPLANATION with the position of this record \
         follows.",
        "Until then the explanation of this placement is open, not right.",
    ],
    section: "Section 7, step 6: where `recorded_in.seq` is absent \"the trace MUST hold\" a \
              placement with a full explanation; section 6 for when it may be left out. Rule R16.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/W_REFERENCE_PENDING.jsonl"),
    example_options: &[],
    action: &[
        "A resumption normally comes after the placement that it resumes. See whether records \
         arrive out of order, or whether the first placement was written to another trace.",
        "Let the runtime put `seq` into `recorded_in` wherever it knows it.",
    ],
};

pub(super) static CANDIDATES: Explanation = Explanation {
    code: Code::Candidates,
    summary: "The candidates do not fit the failed and the scored",
    meaning: &[
        "Every agent that was considered is a candidate, and each either failed a filter or got a \
         score. Here a name is missing from `candidates`, or a candidate is in neither list, or in \
         both. One warning a record, naming up to ten.",
        "The placement itself may be right. But who asks why an agent was not chosen finds no \
         answer, or two.",
    ],
    section: "Section 6 asks for \"names of every agent considered\", for the failed predicate \
              \"for each ineligible candidate\" and for scores \"for each eligible candidate\"; \
              no step of section 7 checks it. Rule R15 has what is checked.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/W_CANDIDATES.jsonl"),
    example_options: &[],
    action: &[
        "See how the runtime fills the three members. Usual reasons: lists that are cut at a \
         length, scores for the best few only, agents that vanished between filter and score.",
    ],
};

pub(super) static FAILED_PREDICATE: Explanation = Explanation {
    code: Code::FailedPredicate,
    summary: "A candidate failed a predicate nobody asked for",
    meaning: &[
        "An entry of `filters_failed` gives as the reason a predicate that is not in the set that \
         the placement's requirements derive, or that is not written as section 5 writes it. The \
         candidate was turned away for something that is not on record as required.",
    ],
    section: "Section 6: `filters_failed` holds for each ineligible candidate \"the first \
              predicate it failed\"; no step of section 7 compares it with the requirements. \
              Rule R10 has the predicate set.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/W_FAILED_PREDICATE.jsonl"),
    example_options: &[],
    action: &[
        "See whether the scheduler filters by rules of its own. They have to be in \
         `scheduling.requirements`, with the name of the rule in `route`.",
        "If it is only another spelling, such as `clearance: orders.read` with a space, write the \
         canonical string.",
    ],
};

pub(super) static RESUMED_REQUIREMENTS: Explanation = Explanation {
    code: Code::ResumedRequirements,
    summary: "A resumed placement is held to other requirements",
    meaning: &[
        "A resumed placement names an earlier one as its explanation, and the two derive different \
         sets of predicates. The earlier lists then explain a match that is not quite this one: \
         nobody weighed the candidates against what the task is held to now.",
    ],
    section: "Section 6, a resumed placement: it names the placement \"whose explanation covers \
              this placement\"; no step of section 7 compares the two. Rule R16 has what is \
              checked.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/W_RESUMED_REQUIREMENTS.jsonl"),
    example_options: &[],
    action: &[
        "If a route or a new submission changed the requirements while the task was parked, weigh \
         the candidates again and record all four lists.",
        "If nothing was meant to change, see which of the two placements lost or gained a \
         predicate on its way into the record.",
    ],
};

pub(super) static RESUBMITTED: Explanation = Explanation {
    code: Code::Resubmitted,
    summary: "A later submission or admission differs",
    meaning: &[
        "The trace has a second task.submitted with other requirements, or a second task.admitted \
         with another agent. Placements from here on are held to the later one; the schema does \
         not say what should happen.",
        "Often it means that two tasks share one trace, and then every finding after it has to be \
         read with care.",
    ],
    section: "Section 7, steps 1 and 3 read task.submitted and task.admitted as if a trace had one \
              of each. Rules R12 and R13 go by the latest.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/W_RESUBMITTED.jsonl"),
    example_options: &[],
    action: &[
        "Several tasks in one file: name the member that tells them apart with --trace-key, or \
         write a file for each.",
        "One task that was changed on purpose: nothing to do, except to know that earlier \
         placements were held to the earlier requirements.",
    ],
};

pub(super) static PARTIAL_TRACE: Explanation = Explanation {
    code: Code::PartialTrace,
    summary: "The beginning of a trace was not seen",
    meaning: &[
        "Checks that need a record from before are passed over in this trace, never guessed: what \
         was asked for (step 4), which agent was admitted (step 3), and whether an earlier \
         placement is the one referred to (step 6). Everything that a record says of itself is \
         checked as ever. Said once a trace.",
        "A trace is partial when, in following, its first record has a `seq` above 1 and is not \
         task.submitted; or that `seq` could not be read; when its state was given up because \
         more than --max-traces were open; or when more would have to be remembered than is kept of \
         a trace: placements, placements that wait, or a document of more than 1 MiB. A run \
         without --follow takes its input for the whole trace, so that only the last two can make \
         one partial.",
    ],
    section: "Section 7 \"runs over a trace\", the whole of it. Rules R12, R13 and R16 are the \
              ones that look back.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/W_PARTIAL_TRACE.jsonl"),
    example_options: &["--follow"],
    action: &[
        "Right after a start this is expected for traces that were under way; verify the whole \
         trace later, without --follow, if it matters.",
        "At any other time records are missing at the start, or traces are given up too early: see \
         the `trace` events of state `evicted`, and raise --max-traces or end traces with \
         --end-kind or --trace-idle.",
    ],
};
