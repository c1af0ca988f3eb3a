//! The daemon from outside: files that are rotated under it, sockets, restarts, signals and sinks.
//!
//! The cases are kinds of faults that users of such programs have met. Each test says the right
//! behaviour in its name. `probe` is a record that has exactly one error, under the name of its
//! trace, so that lost input shows as a missing finding and input read twice as a double one.

#![cfg(all(feature = "cli", target_os = "linux"))]
#![allow(clippy::print_stdout, reason = "a failing test says what it knows")]

#[path = "../../src/source/listen/authority.rs"]
mod authority;
mod checkpoints;
mod files;
mod hostile;
mod kill;
mod load;
mod model;
mod output;
mod place;
mod reload;
mod soak;
mod sockets;
mod supervision;
mod surroundings;
mod tls;
