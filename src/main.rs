//! The command: parse, configure, run, exit status.

// Until the daemon is whole.
#![allow(dead_code)]

mod checking;
mod checkpoint;
mod cli;
mod commands;
mod config;
mod emit;
mod engine;
mod exit;
mod health;
mod metrics;
mod notify;
mod output;
mod parallel;
mod progress;
mod run;
mod signals;
mod source;
mod tally;
mod ticks;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use tracing_subscriber::EnvFilter;

use crate::cli::Cli;
use crate::commands::complain;
use crate::config::{Config, ConfigError, Environment};
use crate::exit::Status;

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(command) = cli.command {
        return commands::run(command).into();
    }
    match Config::new(cli.run, &Environment::of_process()) {
        Ok(config) => verify(&Arc::new(config)).into(),
        Err(error) => refuse(&error).into(),
    }
}

fn verify(config: &Arc<Config>) -> Status {
    start_diagnostics(config);
    let outcome = run::run(config);
    if let Some(message) = outcome.message() {
        complain(format_args!("tracecheck: {message}"));
    }
    outcome.status()
}

/// Sends what the program has to say of itself to standard error.
fn start_diagnostics(config: &Config) {
    let filter = EnvFilter::builder()
        .with_default_directive(config.verbosity.into())
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(config.color_diagnostics)
        .with_target(false)
        // There is nowhere to report that standard error is gone, and trying would panic.
        .log_internal_errors(false)
        .init();
}

fn refuse(error: &ConfigError) -> Status {
    match error {
        ConfigError::NothingGiven => complain(format_args!("{}", Cli::command().render_help())),
        ConfigError::Faults(_) => complain(format_args!("{error}")),
    }
    Status::Failure
}
