//! Streaming verification of A3 Capability Schema traces.

pub mod explain;
pub mod decode;
pub mod filter;
pub mod finding;
pub mod pointer;
pub mod schema;

pub use explain::{Explanation, explanation};
pub use filter::{Filter, FilterError};
pub use finding::Code;
