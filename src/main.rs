//! The command: parse, configure, run, exit status.

mod cli;
mod commands;
// TODO(merge): the run reads all of these.
#[allow(dead_code)]
mod config;
#[allow(dead_code)]
mod emit;
#[allow(dead_code)]
mod exit;
#[allow(dead_code)]
mod progress;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

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
        Ok(config) => run(&config).into(),
        Err(error) => refuse(&error).into(),
    }
}

// TODO(merge): the run.
fn run(_config: &Config) -> Status {
    complain(format_args!("error: verifying traces is not there yet"));
    Status::Failure
}

fn refuse(error: &ConfigError) -> Status {
    match error {
        ConfigError::NothingGiven => complain(format_args!("{}", Cli::command().render_help())),
        ConfigError::Faults(_) => complain(format_args!("{error}")),
    }
    Status::Failure
}
