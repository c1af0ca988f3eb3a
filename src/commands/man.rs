//! `man`: the manual page, from the same definitions as the help text.

use std::io::{self, Write};

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli::{Cli, ENVIRONMENT, EXAMPLES, EXIT_STATUS};

/// Writes the page in roff, with the subcommands on it.
pub(super) fn write(out: &mut dyn Write) -> io::Result<()> {
    let mut command = Cli::command();
    command.build();
    let man = Man::new(command.clone());
    man.render_title(out)?;
    man.render_name_section(out)?;
    write_synopsis(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    write_subcommands(out, &command)?;
    write_verbatim(out, "EXIT STATUS", EXIT_STATUS)?;
    write_verbatim(out, "ENVIRONMENT", ENVIRONMENT)?;
    write_verbatim(out, "EXAMPLES", EXAMPLES)?;
    man.render_version_section(out)
}

/// The generated one names every option and fills a screen.
fn write_synopsis(out: &mut dyn Write) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([bold("tracecheck"), roman(" [OPTIONS] [PATH]...")]);
    roff.control("br", []);
    roff.text([bold("tracecheck"), roman(" SUBCOMMAND")]);
    roff.to_writer(out)
}

/// One paragraph each: pages of their own would have to be installed to be found.
fn write_subcommands(out: &mut dyn Write, command: &Command) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", ["SUBCOMMANDS"]);
    for subcommand in command.get_subcommands() {
        let usage = subcommand.clone().render_usage().to_string();
        let about = subcommand.get_long_about().or(subcommand.get_about());
        roff.control("TP", []);
        roff.text([bold(usage.trim_start_matches("Usage: "))]);
        roff.text([roman(about.map(ToString::to_string).unwrap_or_default())]);
    }
    roff.to_writer(out)
}

fn write_verbatim(out: &mut dyn Write, title: &str, text: &str) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    roff.control("nf", []);
    roff.text([roman(text)]);
    roff.control("fi", []);
    roff.to_writer(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_option_and_subcommand() {
        let mut page = Vec::new();
        write(&mut page).expect("written");
        let page = String::from_utf8(page).expect("UTF-8").replace('\\', "");
        let command = Cli::command();
        for argument in command.get_arguments() {
            let name = argument.get_long().unwrap_or("PATH");
            assert!(page.contains(name), "{name}");
        }
        for subcommand in command.get_subcommands() {
            let usage = format!("tracecheck {}", subcommand.get_name());
            assert!(page.contains(&usage), "{usage}");
        }
        let verbatim = [EXAMPLES, ENVIRONMENT, EXIT_STATUS];
        for line in verbatim.into_iter().flat_map(str::lines) {
            let line = line.replace('\'', "*(Aq");
            assert!(page.contains(&line), "{line}");
        }
    }
}
