//! The subcommands: whatever is not verifying traces.

mod check;
mod completions;
pub(crate) mod document;
mod explain;
mod man;
mod match_documents;
mod state;
mod vectors;

use std::io::{self, Write};

use crate::cli::Command;
use crate::config::Environment;
use crate::exit::Status;

/// Carries a subcommand out.
pub(crate) fn run(command: Command) -> Status {
    match command {
        Command::Explain { codes } => print(|out| explain::write(out, &codes)),
        Command::Completions { shell } => print(|out| completions::write(out, shell)),
        Command::Man => print(|out| man::write(out)),
        Command::Check(options) => check::run(&options, &Environment::of_process()),
        Command::Match {
            requirements,
            declaration,
        } => match_documents::run(&requirements, &declaration, &Environment::of_process()),
        Command::Vectors { dir } => vectors::run(&dir),
        Command::State(options) => state::run(&options, &Environment::of_process()),
    }
}

/// Writes a line to standard error; there is nowhere to report that this failed.
pub(crate) fn complain(message: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{message}");
}

/// Writes to standard output. That its reader has seen enough is success.
fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Status {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = write(&mut out).and_then(|()| out.flush());
    if written.is_err() {
        // The buffer would try once more when dropped, and a second time is no better.
        let _ = out.into_parts();
    }
    finish_output(written, Status::Success)
}

/// The status of a command whose output was `written`, and whose work came to `status`.
fn finish_output(written: io::Result<()>, status: Status) -> Status {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(format_args!("error: cannot write the output: {error}"));
            Status::Failure
        }
        _ => status,
    }
}
