//! Streaming verification of A3 Capability Schema traces.
//!
//! A runtime that places tasks on agents records each placement: what the task requires, what the
//! chosen agent declared, who else was considered and why they failed. This crate re-runs the
//! match from such a trace, record by record, and says what does not hold: the procedure of
//! section 7 of the schema. It keeps no record, and of each open trace only what later records are
//! held to.
//!
//! ```text
//! source ──> framing ──> decode ──> verify ──> finding ──> event
//! bytes      one line     record     state of    what is     a line of
//!            at a time               its trace   wrong       JSON
//! ```
//!
//! An arrow only points right, and everything here is pure: it knows no socket, file or clock. The
//! source, and what becomes of an event, are its user's business; the program `tracecheck` is one
//! such user, and a runtime that embeds the crate is another.
//!
//! # Use
//!
//! A [`Verifier`] takes lines and gives findings:
//!
//! ```
//! use tracecheck::{Code, Verifier};
//!
//! let mut verifier = Verifier::default();
//! let findings = verifier.push(
//!     br#"{"seq":1,"kind":"task.rejected","content":{"reason":"No agent available"}}"#,
//! );
//! assert_eq!(findings[0].code, Code::RejectionReason);
//! assert_eq!(findings[0].pointer, "/content/reason");
//! // The trace has ended: what still waited is decided.
//! assert!(verifier.finish().is_empty());
//! ```
//!
//! [`Verifier::push`] is for one source. For bytes that come in pieces there is a [`Framer`], for
//! many sources and for traces told apart by a key [`Verifier::verify`] with [`Options`], and for
//! the JSON that the program writes [`event`].
//!
//! # Where each rule lives
//!
//! | what | rules | where |
//! | --- | --- | --- |
//! | lines | R1, R4 | [`framing`] |
//! | records, and what is malformed in them | R2, R4 to R6 | [`decode`] |
//! | order of `seq` | R3 | `verify/sequence.rs` |
//! | documents and their predicates (step 1) | R7 to R10 | [`schema`] |
//! | placement (step 2) | R11 | `schema/scheduling.rs`, `verify/placement.rs` |
//! | scope (step 3) | R12 | `verify/scope.rs` |
//! | consistency (step 4) | R13 | `verify/consistency.rs` |
//! | satisfaction (step 5) | R14 | `verify/satisfaction.rs` |
//! | explanation (step 6) | R15 | `verify/explanation.rs` |
//! | resumed placements (step 6) | R16 | `verify/resumed.rs`, `verify/seq_index.rs` |
//! | rejection (step 7) | R17 | `verify/rejection.rs`, `verify/reason.rs` |
//! | advisories | | `verify/advisories.rs` |
//!
//! The rules are numbered readings of the schema where it is open; README.md states them. A test
//! holds the verifier against a second, naive one, `tests/support/reference.rs`.
//!
//! # Hostile input
//!
//! Traces are untrusted. What a line can cost is bounded before the line has ended
//! ([`Framer::new`]), so is its nesting ([`decode::MAX_DEPTH`]), and so is what is kept of a trace
//! ([`verify::MAX_INDEX_BYTES`], [`verify::MAX_DOCUMENT_BYTES`], [`verify::MAX_PENDING`]) and how
//! many are open ([`Options::max_traces`]). A bad line is a finding, never an error and never a
//! panic. Messages and other texts of a [`Finding`] may contain anything that a trace contains:
//! escape them where they are shown.
//!
//! # Features
//!
//! - `cli` (default): what the program needs. Without it (`default-features = false`) the library
//!   is the same and has few dependencies.
//! - `serde` (part of `cli`): saving what is known of open traces, and going on from it after a
//!   restart: `Verifier::save_traces` and `Verifier::restore_trace`,
//!   `RunChecker::save_runs` and `RunChecker::restore_run`. Where to go on in a source,
//!   [`Framer::position`] tells.

pub mod agui;
pub mod decode;
pub mod documents;
pub mod event;
pub mod explain;
pub mod filter;
pub mod finding;
pub mod framing;
mod holes;
pub mod pointer;
pub mod schema;
mod traces;
pub mod verify;

pub use explain::{Explanation, explanation};
pub use filter::{Filter, FilterError};
pub use finding::{AgentId, Code, Counts, Finding, FindingId, Report, Severity, Source, TraceEnd};
pub use framing::{Framer, Line};
pub use pointer::JsonPointer;
pub use verify::{ClaimPatterns, Options, Totals, Verifier};

/// Runs the examples of README.md as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
