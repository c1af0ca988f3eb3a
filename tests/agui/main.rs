//! AG-UI from outside: the program, and the library held against a naive model.

#[cfg(feature = "cli")]
mod command;
mod model;
#[cfg(feature = "cli")]
#[path = "../support/program.rs"]
mod program;
#[cfg(feature = "cli")]
mod saved;
mod streams;
