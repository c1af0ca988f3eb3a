//! From the start of the program to its first finding.

use std::io::{self, BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::arguments::Scale;
use crate::data::Data;
use crate::measure::quiet;
use crate::table::{Spread, Table};

pub(crate) fn run(scale: &Scale, data: &Data, table: &mut Table) -> io::Result<()> {
    let milliseconds = (0..scale.starts)
        .map(|_| start(scale, data))
        .collect::<io::Result<Vec<_>>>()?;
    let spread = Spread::of(milliseconds);
    table.target(
        "start to first finding, a small file",
        "5 ms",
        format!("{:.1} ms", spread.median),
        spread.range(1, ""),
        spread.median <= 5.0,
    );
    Ok(())
}

/// Milliseconds until a finding was read.
fn start(scale: &Scale, data: &Data) -> io::Result<f64> {
    let mut command = Command::new(&scale.program);
    command.args(["--format", "json"]).arg(&data.small);
    quiet(&mut command);
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.contains(r#""event":"finding""#) {
        line.clear();
        if out.read_line(&mut line)? == 0 {
            return Err(io::Error::other("no finding in the small file"));
        }
    }
    let milliseconds = started.elapsed().as_secs_f64() * 1e3;
    io::copy(&mut out, &mut io::sink())?;
    child.wait()?;
    Ok(milliseconds)
}
