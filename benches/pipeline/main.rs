//! The whole program, from the file to the last byte of its output, measured from outside and held
//! against what others make of the same files. README.md beside this directory says how to read it.
//!
//! ```text
//! cargo bench --bench pipeline -- [--mb 512] [--rounds 5] [--data DIR] [--program FILE]
//! cargo bench --bench pipeline -- --smoke
//! cargo bench --bench pipeline -- generate mixed FILE --mb 64
//! ```

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a table on standard output is what this is for"
)]

mod arguments;
mod data;
mod growth;
mod latency;
mod machine;
mod measure;
mod memory;
mod naive;
mod start;
mod table;
mod tape;
mod throughput;
#[path = "../traces/mod.rs"]
mod traces;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use table::Table;

fn main() -> ExitCode {
    if std::env::args_os().len() == 1 {
        println!("nothing is measured but by `cargo bench --bench pipeline`");
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::parse();
    let done = match &arguments.command {
        None => run(&arguments),
        Some(Command::Generate(wanted)) => data::generate(wanted),
        Some(Command::Measure(call)) => measure::measure(call),
        Some(Command::Tape { file }) => tape::read(file),
        Some(Command::Naive { trace_key, file }) => naive::verify(file, trace_key.as_deref()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pipeline: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<()> {
    let scale = arguments.scale();
    println!("{}", machine::description(&scale));
    let data = data::Data::make(&scale)?;
    let mut targets = Table::new(["What", "Target", "Result", "Range", "Met"]);

    let throughput = throughput::run(&scale, &data)?;
    throughput.targets(&mut targets);
    memory::run(&scale, &throughput, &mut targets)?;
    latency::run(&scale, &data, &mut targets)?;
    start::run(&scale, &data, &mut targets)?;
    println!("### Targets\n\n{targets}");
    println!(
        "### Throughput on one core, MB/s\n\n{}",
        throughput.speeds()
    );
    for (title, table) in growth::run(&scale)? {
        println!("### {title}\n\n{table}");
    }
    Ok(())
}
