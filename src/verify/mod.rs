//! The verifier: the seven steps of section 7, one record at a time.
//!
//! | step | file |
//! | --- | --- |
//! | 1 requirements | [`crate::schema::requirements`](crate::schema), `mod.rs` |
//! | 2 placement | `placement.rs` |
//! | 3 scope | `scope.rs` |
//! | 4 consistency | `consistency.rs` |
//! | 5 satisfaction | `satisfaction.rs` |
//! | 6 explanation | `explanation.rs`, `resumed.rs` with `seq_index.rs` |
//! | 7 rejection | `rejection.rs` with `reason.rs` |
//!
//! What section 7 takes for granted of the trace format is in [`crate::decode`] and `sequence.rs`,
//! what no step checks in `advisories.rs`.

mod advisories;
mod consistency;
mod drafts;
mod explanation;
mod judge;
mod placement;
mod reason;
mod rejection;
pub(crate) mod report;
mod resumed;
pub(crate) mod satisfaction;
#[cfg(feature = "serde")]
mod saved;
mod scope;
mod seq_index;
mod sequence;
pub(crate) mod state;
mod verifier;

pub use reason::{ClaimPatterns, PatternError};
#[cfg(feature = "serde")]
pub use saved::{RestoredTrace, SAVED_FORMAT, SavedMeta, SavedTrace};
pub use verifier::{Options, Totals, Verifier};

/// Most that the index of a trace's placements may take, in bytes: enough for half a million to a
/// million placements, and little enough that no single trace can exhaust the memory.
pub const MAX_INDEX_BYTES: usize = 1 << 20;

/// Largest requirements document or agent that is kept of a trace, in bytes as kept: far beyond
/// any that a person writes, and little enough that hostile ones cannot exhaust the memory.
pub const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// Most placements of a trace that may wait for the one that explains them (R16), each of which
/// takes about a hundred bytes.
pub const MAX_PENDING: usize = 10_000;
