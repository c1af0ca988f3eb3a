//! From the bytes of one line to a [`Record`].
pub(crate) mod reader;
mod scan;
pub use reader::{JsonStr, MAX_DEPTH, Malformed, Why};
