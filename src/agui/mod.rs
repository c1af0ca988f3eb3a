//! AG-UI: an agent's `AgentCapabilities` declaration, by itself and held against its runs.
//!
//! A declaration tells an application what an agent can do. [`check`] holds one against the
//! protocol's shape, in two layers: a consumer must not use a declaration in which a described
//! member is malformed, and must not reject one for members that it does not know; the strict layer
//! is the closed schema. [`Capabilities`] is a declaration that a consumer can use.
//!
//! [`RunChecker`] holds a stream of events against one. [`EventFramer`] finds the events in the bytes
//! of a source: one a line, or server-sent events.

mod before;
mod capabilities;
mod checker;
mod contradictions;
mod declaration;
mod event;
mod integer;
mod memory;
mod run;
#[cfg(feature = "serde")]
mod saved;
mod shape;
mod sse;
mod stream;

pub use capabilities::{
    Answer, Capabilities, Execution, HumanInTheLoop, Identity, MultiAgent, Multimodal,
    MultimodalInput, MultimodalOutput, Output, Reasoning, State, SubagentInfo, Tool, Tools,
    Transport,
};
pub use checker::RunChecker;
pub use declaration::{check, looks_like_a3};
pub use memory::MAX_REMEMBERED;
#[cfg(feature = "serde")]
pub use saved::{RestoredRun, SAVED_FORMAT, SavedRun};
pub use stream::EventFramer;
