//! The command.

// Until the run is wired.
#![allow(dead_code)]

mod emit;
mod progress;

fn main() {}
