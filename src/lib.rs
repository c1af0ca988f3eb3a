//! Streaming verification of A3 Capability Schema traces.

pub mod decode;
pub mod event;
pub mod finding;
pub mod pointer;
pub mod schema;
