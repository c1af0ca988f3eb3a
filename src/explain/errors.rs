//! The texts of the `E_*` codes: violations of section 7.

use super::{ExampleKind, Explanation};
use crate::finding::Code;

pub(super) static STRUCTURE: Explanation = Explanation {
    code: Code::Structure,
    summary: "A record, or a member of it, is malformed",
    meaning: &[
        "The line is not one JSON object, or a member that the verifier reads is missing, null, of \
         the wrong type, not in its grammar, or there twice. The finding's `pointer` names the \
         member, as deep down as the fault is; an empty pointer means the whole line. Its value \
         shows what stands there.",
        "The same code is given to a record whose `seq` is not greater than every `seq` before it \
         in its trace, to a line that is longer than --max-record-bytes or nested deeper than \
         1,024 levels, and, with --trace-key, to a record without that member. In a stream of \
         AG-UI events (--protocol ag-ui) it is given to what is no JSON object with a string `type`, \
         and to nothing else.",
        "Only the checks that need the bad member are passed over; all others were made. More may \
         come to light once it is mended.",
    ],
    section: "Section 7, step 2, where it says that `scheduling` \"absent or malformed is \
              E_STRUCTURE\"; elsewhere in a record, what section 7 takes for granted. The grammars \
              are those of sections 2 to 4 and 6. Rules R1 to R5, R7 to R9 and R11.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/E_STRUCTURE.jsonl"),
    example_options: &[],
    action: &[
        "Find the line by `source` and `line` (or `offset`), the member by `pointer`, and mend the \
         code that writes it. In the example the declaration lacks `clearances`, which may be an \
         empty list but must be there.",
        "A whole line that is no JSON most often comes from a writer that was killed half-way, from \
         two processes that write to one file, or from log output that got mixed into the trace.",
        "A `seq` that does not grow most often means that a restarted writer began again at 1, or \
         that several traces share one file: give each trace a file of its own, or name the member \
         that tells them apart with --trace-key.",
    ],
};

pub(super) static DECLARATION_SCOPE: Explanation = Explanation {
    code: Code::DeclarationScope,
    summary: "The declaration is not that of the admitted agent",
    meaning: &[
        "The task was admitted for one agent, and the placement carries the declaration of another: \
         `scheduling.declaration.agent` and the `agent` of the latest task.admitted differ in \
         `name`, in `namespace` or in both. A placement without any task.admitted before it counts \
         as a mismatch too.",
        "The pair of name and namespace identifies an agent. The same name in another namespace is \
         another agent, with other grants; whatever was checked against this declaration says \
         nothing of the agent that was admitted.",
    ],
    section: "Section 7, step 3: \"scheduling.declaration.agent MUST equal the agent in \
              task.admitted\"; section 3 for what identifies an agent. Rule R12.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/E_DECLARATION_SCOPE.jsonl"),
    example_options: &[],
    action: &[
        "Find out which agent really runs the task. If it is not the admitted one, treat this as a \
         task that runs under authority nobody granted it for, and stop it.",
        "If the right agent runs, the record is wrong: look for a cache of declarations that is \
         keyed by name alone, or for a namespace that is filled in from the scheduler's own \
         configuration.",
        "With no task.admitted before it: the runtime starts work before admission is recorded, or \
         the records of several traces got mixed (see --trace-key).",
    ],
};

pub(super) static REQUIREMENTS_MISMATCH: Explanation = Explanation {
    code: Code::RequirementsMismatch,
    summary: "What was matched is not what was asked for",
    meaning: &[
        "The requirements in task.submitted and the requirements in the placement do not say the \
         same. The finding lists the predicates that are missing and those that were added.",
        "Missing is always wrong: something that the task asked for was never checked, and a route \
         may only add. Added is wrong only where `scheduling.route` names no rule that added it, \
         since then nobody can find out who did. No task.submitted, or one without requirements, \
         asks for nothing; every predicate then counts as added.",
    ],
    section: "Section 7, step 4: \"S MUST be a subset of P\", and equal to it where \
              `scheduling.route` is absent; section 6 for what a route may do. Rule R13.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/E_REQUIREMENTS_MISMATCH.jsonl"),
    example_options: &[],
    action: &[
        "Missing predicates first: the agent may lack what the task needs, so check its clearances \
         and tools by hand, and then find the code between submission and matching that drops \
         them. In the example `clearance:orders.read` was asked for and never matched.",
        "Added predicates: let the control-plane rule that adds them write its name into `route`.",
        "If a task may be submitted again with other requirements, the placement is held to the \
         latest task.submitted of the trace (see W_RESUBMITTED).",
    ],
};

pub(super) static CAPABILITY_UNMET: Explanation = Explanation {
    code: Code::CapabilityUnmet,
    summary: "A required capability is not declared at its version",
    meaning: &[
        "The placement requires a capability, and the chosen agent's declaration does not list it \
         at exactly that major version. The task was given to an agent that does not claim to be \
         able to do it.",
        "Versions are compared by equality. A higher one is no substitute: another major version \
         is a different capability. The finding says which versions are declared, if any.",
    ],
    section: "Section 7, step 5, with section 5: `capability:<name>/<version>` is satisfied when \
              \"the declaration lists <name> at major version <version>\". Rule R14.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/E_CAPABILITY_UNMET.jsonl"),
    example_options: &[],
    action: &[
        "Name there, version different: an agent was rolled out or rolled back and the tasks were \
         not. Let the agent declare both versions while it can do both, or change the requirement.",
        "Name not there: the scheduler's filter let an unfit agent through, or matched an older \
         declaration than the one that it recorded. Record the declaration as it was matched.",
    ],
};

pub(super) static CLEARANCE_UNMET: Explanation = Explanation {
    code: Code::ClearanceUnmet,
    summary: "A required clearance is not held",
    meaning: &[
        "The placement requires a clearance, and the chosen agent's declaration does not list it. \
         By what is on record, the task runs with an agent that may not do what it asks for.",
        "Clearances have no hierarchy: `refunds.issue` does not imply `orders.read`, and a common \
         first part means nothing. Each must be listed letter for letter.",
    ],
    section: "Section 7, step 5, with section 5: `clearance:<id>` is satisfied when \"the \
              declaration lists <id>\"; section 2: \"there is no implicit hierarchy\". Rule R14.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/E_CLEARANCE_UNMET.jsonl"),
    example_options: &[],
    action: &[
        "Take it for a matter of authority until it is shown to be one of records. See whether the \
         agent holds the grant, and what the task has done already; stop it if it does not.",
        "If it does, the declaration in the trace is stale or cut short: mend what writes it. Never \
         add a clearance to a declaration to silence this; a declaration asserts a grant and does \
         not create it.",
    ],
};

pub(super) static TOOL_UNMET: Explanation = Explanation {
    code: Code::ToolUnmet,
    summary: "A required tool is not bound to the agent",
    meaning: &[
        "The placement requires a tool, and the `tools` of the chosen agent's declaration do not \
         contain it. The agent may know how to do the work and still cannot reach what it needs.",
        "A declaration without `tools` is bound to none. Names are compared letter for letter.",
    ],
    section: "Section 7, step 5, with section 5: `tool:<name>` is satisfied when \"the \
              declaration's tools contains <name>\". Rule R14.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/E_TOOL_UNMET.jsonl"),
    example_options: &[],
    action: &[
        "Expect the task to fail, or to have failed, at its first call of the tool.",
        "See whether the tool was bound when the task was placed: a server that was down, renamed \
         or not yet registered takes its tools out of the declaration. If it was bound, the runtime \
         does not record its bindings in `tools`.",
    ],
};

pub(super) static RESIDENCY_UNMET: Explanation = Explanation {
    code: Code::ResidencyUnmet,
    summary: "The required residency is not among the agent's",
    meaning: &[
        "The placement requires a residency label, and the `residency` of the chosen agent's \
         declaration does not contain it. By what is on record, data that has to stay in one place \
         may have been handled in another.",
        "An agent without any `residency` does not satisfy it either, although section 3 says of \
         that member \"Absent means unconstrained\". Section 5 says when the predicate \
         `residency:<label>` is satisfied: \"The declaration's residency contains <label>\". A list \
         that is not there contains nothing, and step 5 of the verification goes by section 5. \
         Unconstrained means that the agent promises no place, not that it is in every place.",
        "Labels are opaque and compared letter for letter: `eu` and `eu-west` have nothing to do \
         with each other.",
    ],
    section: "Section 7, step 5, with section 5: \"The declaration's residency contains <label>\"; \
              section 3, of `residency`: \"Absent means unconstrained\". Rule R14 settles how the \
              two go together.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/E_RESIDENCY_UNMET.jsonl"),
    example_options: &[],
    action: &[
        "If the agent's runtime does satisfy the label, let it say so: add the label to \
         `residency` of its declaration. If the runtime leaves `residency` out to mean anywhere, \
         list the labels that it satisfies instead, as in `\"residency\": [\"eu\", \"us-gov\"]`.",
        "If it does not, the data has been in the wrong place: stop the task and tell whoever \
         answers for data protection.",
    ],
};

pub(super) static MODEL_UNMET: Explanation = Explanation {
    code: Code::ModelUnmet,
    summary: "The required latency class is not the agent's",
    meaning: &[
        "The placement requires a latency class, and `model.latency_class` of the chosen agent's \
         declaration is another one or is not there. Most often somebody is waiting for an answer \
         that a batch agent will give when it gets to it.",
        "The two are compared by equality: `interactive` does not count as `batch`, although it is \
         faster, and an agent that declares no class satisfies neither.",
    ],
    section: "Section 7, step 5, with section 5: `model.latency_class:<class>` is satisfied when \
              \"the declaration's model.latency_class equals <class>\". Rule R14.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/E_MODEL_UNMET.jsonl"),
    example_options: &[],
    action: &[
        "Let the scheduler filter by latency class and not merely score by it; it is a hard \
         requirement once a task states it.",
        "An agent that declares no class: add the one that its model is served in.",
    ],
};

pub(super) static AGENTREF_UNMET: Explanation = Explanation {
    code: Code::AgentRefUnmet,
    summary: "The task named another agent",
    meaning: &[
        "The task is bound directly: its requirements name an agent with `agentRef`. Only that \
         agent satisfies the predicate, and the declaration is that of another.",
        "Compared is `agent.name` of the declaration alone; the namespace is the business of \
         E_DECLARATION_SCOPE.",
    ],
    section: "Section 7, step 5, with section 5: `agentRef:<name>` is \"satisfied only by that \
              agent\". Rule R14.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/E_AGENTREF_UNMET.jsonl"),
    example_options: &[],
    action: &[
        "A scheduler must not fall back to a similar agent when the one that was named is away: it \
         has to wait, or reject the task with `agentRef:<name>` in its reason.",
        "Look for a renamed agent, or for a replica whose name carries a suffix that the task does \
         not know.",
    ],
};

pub(super) static ANTIAFFINITY_UNMET: Explanation = Explanation {
    code: Code::AntiAffinityUnmet,
    summary: "The task excludes this agent",
    meaning: &[
        "The requirements list this agent under `exclude`, and the task was placed on it all the \
         same. Every other agent would have satisfied the predicate.",
        "Exclusion is how a check is kept from the one whose work is checked. A result that comes \
         from such a placement has not been verified independently.",
    ],
    section: "Section 7, step 5, with section 5: `anti-affinity:<name>` is \"satisfied by every \
              other agent\". Rule R14.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/E_ANTIAFFINITY_UNMET.jsonl"),
    example_options: &[],
    action: &[
        "Do not use the result: have the task done again by another agent.",
        "Then see why the filter let it through. Usual reasons: only one agent was up and \
         exclusion was treated as a wish, or a route added the exclusion after the candidates had \
         been filtered.",
    ],
};

pub(super) static EXPLANATION: Explanation = Explanation {
    code: Code::Explanation,
    summary: "The explanation contradicts the placement",
    meaning: &[
        "A placement explains itself with four lists, and they do not fit it: `filters_passed` is \
         not the set of predicates that the requirements derive, or the chosen agent stands in \
         `filters_failed`, or `scores` has no member of its name. Each is a finding of its own; \
         `pointer` says which.",
        "A resumed placement refers to the one that explains it with `recorded_in`, and that does \
         not hold: `content.resumed` is not true, `kind` is not task.bound, `seq` is not that of \
         an earlier placement with a full explanation, or there is no `seq` and the whole trace \
         has no such placement.",
    ],
    section: "Section 7, step 6; section 6 for the lists and for `recorded_in`. Rules R15 and R16.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/E_EXPLANATION.jsonl"),
    example_options: &[],
    action: &[
        "Usually the agent is fit (an unfit one gives an E_*_UNMET code as well) and the record of \
         why is wrong. Let the runtime write `filters_passed` from the predicates that it did \
         evaluate for the chosen agent. In the example `clearance:orders.read` was required and \
         not put down.",
        "The chosen agent among the failed: the scheduler chose after the filter without looking \
         at its outcome, or wrote down the lists of another attempt. Take this one seriously.",
        "A resumed placement: put `resumed` beside `scheduling`, not into it, and let `seq` be that \
         of the placement that weighed the candidates, not that of the last resumption.",
    ],
};

pub(super) static REJECTION_REASON: Explanation = Explanation {
    code: Code::RejectionReason,
    summary: "A rejection names no predicate that failed",
    meaning: &[
        "The reason of a task.rejected claims that no agent was eligible, and nowhere in it is the \
         predicate that they failed. Whoever reads it cannot tell what to change: the task, the \
         grants, or the number of agents.",
        "Looked for are the strings of section 5, such as `clearance:refunds.issue` or \
         `capability:order.investigate/2`, letter for letter, in any text of `reason`. Rejections \
         for other reasons, such as a budget, need none.",
    ],
    section: "Section 7, step 7; section 6: \"'No agent available' is not a conformant reason\". \
              Rule R17.",
    example_kind: ExampleKind::Trace,
    example: include_str!("examples/E_REJECTION_REASON.jsonl"),
    example_options: &[],
    action: &[
        "Let the scheduler put the first predicate that each candidate failed into the reason, as \
         in \"no agent eligible: summariser failed capability:order.investigate/2\".",
        "If the wording is no claim of that kind at all, please report it with the reason's text. \
         If your runtime has wordings of its own that are, add them with --claim-pattern.",
    ],
};
