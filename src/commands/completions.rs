//! `completions SHELL`.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;

/// Writes what the shell needs to complete our options.
pub(super) fn write(out: &mut dyn Write, shell: Shell) -> io::Result<()> {
    // The generator panics where writing fails, and memory does not fail.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tracecheck", &mut script);
    out.write_all(&script)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_completes_options_and_codes() {
        for &shell in Shell::value_variants() {
            let mut script = Vec::new();
            write(&mut script, shell).expect("written");
            let script = String::from_utf8(script).expect("UTF-8");
            for word in ["trace-key", "explain"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }
}
