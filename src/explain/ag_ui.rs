//! The texts of the codes that are given to AG-UI declarations and streams. "The page" is the
//! protocol's page on capabilities.

use super::{ExampleKind, Explanation};
use crate::finding::Code;

pub(super) static DECLARATION_MALFORMED: Explanation = Explanation {
    code: Code::DeclarationMalformed,
    summary: "A member of an AG-UI declaration is malformed",
    meaning: &[
        "A group or field that the protocol describes has a value that its schema rejects: another \
         type, null, a number that is no integer or out of range, a required member of a tool or \
         subagent that is missing, or the same member twice. `pointer` names it; an empty pointer \
         means that the document is no JSON object.",
        "A consumer must not use such a declaration, not even the rest of it: it goes on as for an \
         agent that declared nothing. No run may fail because of it.",
    ],
    section: "Error Handling, in the page: \"A known field carrying a value the schema rejects\" \
              is \"malformed, and a consumer MUST NOT use a declaration it cannot validate\".",
    example_kind: ExampleKind::Declaration,
    example: include_str!("examples/E_DECLARATION_MALFORMED.jsonl"),
    example_options: &[],
    action: &[
        "Mend the value in the agent that declares it. A boolean is written true or false, without \
         quotes; a field that has nothing to say is left out, never null.",
        "If the value comes from a newer version of the protocol, a consumer of this version cannot \
         use the declaration either way.",
    ],
};

pub(super) static DECLARATION_UNRECOGNISED: Explanation = Explanation {
    code: Code::DeclarationUnrecognised,
    summary: "An AG-UI declaration has a member nobody described",
    meaning: &[
        "A group or field is none that version 1.0 of the protocol defines. This is the strict \
         layer, reported with --strict only: the schema closes every object of a declaration but \
         `identity.metadata`, `custom`, the `metadata` of a tool and what its `parameters` hold.",
        "A consumer must not reject a declaration for it, and mostly never sees what it says. \
         Often it is a described name in another spelling; the finding then says which.",
    ],
    section: "Error Handling, in the page: unrecognised members \"are the strict layer's concern, \
              not the consumer's: the schema closes every capability object\".",
    example_kind: ExampleKind::Declaration,
    example: include_str!("examples/E_DECLARATION_UNRECOGNISED.jsonl"),
    example_options: &["--strict"],
    action: &[
        "A misspelt name: correct it. Until then consumers take the capability for undeclared.",
        "A capability of your own: put it into `custom`, which is open to anything.",
        "An A3 declaration (`v`, `clearances`) is another document: tracecheck check declaration.",
    ],
};

pub(super) static CAPABILITY: Explanation = Explanation {
    code: Code::Capability,
    summary: "A run does what the agent declares it does not",
    meaning: &[
        "The declaration says `false` of something, or sets a limit, and an event of the run goes \
         against it. `line` is the first such event, `pointer` the declared field, `value` what is \
         declared. Said once for each run and field.",
        "The stream is right and the declaration wrong: events are authoritative and declarations \
         informative. Nothing may be rejected for it; but whoever built an interface on the \
         declaration was misled, such as with no place to show a tool call or an approval.",
        "A field that is left out or true is never contradicted, and a capability that no event \
         used is no finding.",
    ],
    section: "Declaring, in the page: such a run \"has a producer worth a complaint, not a stream \
              worth rejecting\"; \"what is declared SHOULD hold\".",
    example_kind: ExampleKind::Events {
        declaration: r#"{"tools":{"supported":false}}"#,
    },
    example: include_str!("examples/W_CAPABILITY.jsonl"),
    example_options: &[],
    action: &[
        "Correct the declaration, or leave the field out where nobody can know: a minimal \
         declaration is conforming, a wrong one is not.",
        "Where the declaration is right, find out why the agent does it all the same: a framework \
         that streams by default, a tool that was added, a subagent that inherits tools.",
        "As a warning it leaves the exit status at 0; --fail-on warning makes it 1.",
    ],
};
