//! The subcommands: whatever is not verifying traces.

mod completions;
mod explain;
mod man;

use std::io::{self, Write};

use crate::cli::Command;
use crate::exit::Status;

/// Carries a subcommand out.
pub(crate) fn run(command: Command) -> Status {
    match command {
        Command::Explain { code } => print(|out| explain::write(out, code)),
        Command::Completions { shell } => print(|out| completions::write(out, shell)),
        Command::Man => print(|out| man::write(out)),
        // TODO(merge): these need the verifier.
        Command::Check(_) | Command::Match { .. } | Command::Vectors { .. } => {
            complain(format_args!("error: this subcommand is not there yet"));
            Status::Failure
        }
    }
}

/// Writes a line to standard error; there is nowhere to report that this failed.
pub(crate) fn complain(message: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{message}");
}

/// Writes to standard output. That its reader has seen enough is success.
fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Status {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Ok(()) => Status::Success,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            // The buffer would try once more when dropped, and a second time is no better.
            let _ = out.into_parts();
            Status::Success
        }
        Err(error) => {
            complain(format_args!(
                "error: cannot write to standard output: {error}"
            ));
            Status::Failure
        }
    }
}
