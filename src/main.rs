//! The command: parse, configure, run, exit status.

mod checking;
mod checkpoint;
mod cli;
mod commands;
mod config;
mod daemon;
mod emit;
mod engine;
mod exit;
mod health;
mod journal;
mod metrics;
mod notify;
mod output;
mod parallel;
mod progress;
mod run;
mod saving;
mod signals;
mod source;
mod tally;
mod ticks;
mod watch;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use tracing_subscriber::EnvFilter;

use crate::cli::Cli;
use crate::commands::complain;
use crate::config::{Config, ConfigError, Environment};
use crate::daemon::Start;
use crate::emit::sanitise::visible;
use crate::exit::Status;
use crate::source::listen::Activated;

fn main() -> ExitCode {
    // First of all, while there is one thread: it takes variables out of the environment.
    let activated = Activated::from_environment();
    let cli = Cli::parse();
    if let Some(command) = cli.command {
        return commands::run(command).into();
    }
    let environment = Environment {
        has_passed_sockets: !activated.is_empty(),
        ..Environment::of_process()
    };
    match Config::new(cli.run.clone(), &environment) {
        Ok(config) => verify(Start {
            config: Arc::new(config),
            typed: &cli.run,
            environment: &environment,
            activated,
        })
        .into(),
        Err(error) => refuse(&error).into(),
    }
}

fn verify(start: Start<'_>) -> Status {
    let config = Arc::clone(&start.config);
    start_diagnostics(&config);
    tracing::debug!("{}", visible(&format!("{config:?}"), usize::MAX));
    let outcome = match config.follow {
        true => daemon::run(start),
        false => run::run(&config),
    };
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
