//! Streaming verification of A3 Capability Schema traces.

pub mod agui;
pub mod decode;
pub mod documents;
pub mod event;
pub mod explain;
pub mod filter;
pub mod finding;
pub mod framing;
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
