//! Streaming verification of A3 Capability Schema traces.

pub mod filter;
pub mod finding;
pub mod pointer;
pub mod schema;

pub use filter::{Filter, FilterError};
pub use finding::Code;
