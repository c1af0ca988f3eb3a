//! Checkpoints: positions in files and the states of open traces, on disk, so that a run goes on
//! where the one before stopped, was killed or lost its power.
//!
//! # What is promised
//!
//! A checkpoint is *durable* once everything that was found before it was taken has been written to
//! the output; until then it has no [seal](format) and nobody uses it. So whatever is lost with a
//! process lies behind its last durable checkpoint, and is read again. Findings of it may come
//! twice, with the same `id`; none is lost.
//!
//! # What is in the directory
//!
//! | name | what it is |
//! | --- | --- |
//! | `lock` | held by the process that uses the directory, with its number; see [`lock`] |
//! | `checkpoint` | the last durable checkpoint |
//! | `checkpoint.old` | the one before |
//! | `checkpoint.new` | the one that is being written; whole only in the moment before it is renamed |
//! | `damaged-SECONDS-NAME` | what could not be used, and when it was found; three are kept |
//! | `unused-SECONDS-NAME` | what another configuration has left, likewise |
//!
//! # Why no embedded store
//!
//! What is saved is one consistent cut through everything, a few hundred bytes a trace, and most of
//! what is open changes between two cuts. A store of keys and values would want each trace that
//! changed marked, written twice (log and table) and compacted; it would bring its own files, its
//! own recovery and a format that is not ours, and its transactions would still have to wait for the
//! output. Writing one file from beginning to end goes at the speed of memory, costs the verifying
//! thread no fsync, is read by one short loop, and recovery is a look at three names. The price is
//! that a checkpoint costs as much as there is open; [`keeper`] therefore takes fewer of them where
//! one takes long. If states grew to gigabytes, a log of changes between two full checkpoints would
//! be the next step.

mod expiry;
mod format;
mod keeper;
mod lock;
#[cfg(test)]
mod sample;
mod state;
mod store;

pub(crate) use expiry::Remembered;
pub(crate) use format::{Damage, Entry, FileEntry, Identity, Reader};
pub(crate) use keeper::{Freshness, Keeper};
pub(crate) use state::{Outline, State, StateRef};
pub(crate) use store::{CheckpointWriter, Found, Loaded, Saved, Store, find_current, unix_seconds};
