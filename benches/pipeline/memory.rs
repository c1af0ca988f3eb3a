//! How much memory a run takes, and an open trace in it.

use std::io;

use crate::arguments::Scale;
use crate::measure::Call;
use crate::table::{Spread, Table};
use crate::throughput::{Shape, Throughput};
use crate::traces::{Amount, State, write};

const MIB: f64 = (1 << 20) as f64;

pub(crate) fn run(scale: &Scale, throughput: &Throughput, table: &mut Table) -> io::Result<()> {
    for (what, shapes, most) in [
        ("peak memory, `mixed`", &[Shape::Mixed][..], 24.0),
        ("peak memory, `fleet`", &[Shape::Fleet], 24.0),
        (
            "peak memory, `many`, all traces open",
            &[Shape::Many],
            100.0,
        ),
    ] {
        let peaks = shapes
            .iter()
            .map(|&shape| throughput.peak_bytes(shape).greatest / MIB);
        let peak = Spread::of(peaks).greatest;
        let target = format!("{most:.0} MiB");
        table.target(
            what,
            &target,
            format!("{peak:.1} MiB"),
            String::new(),
            peak <= most,
        );
    }
    state(scale, table)
}

/// What one more open trace takes, with one requirement set and three placements.
fn state(scale: &Scale, table: &mut Table) -> io::Result<()> {
    let peak = |traces: u64| -> io::Result<f64> {
        let call = Call::new(&scale.program)
            .args(&["--trace-key", "/trace", "-"])
            .on_cores(2);
        let took = call.run_fed(|out| {
            let amount = Amount::Records(traces * State::RECORDS);
            write(&mut State::new(6), amount, &mut { out }).map(drop)
        })?;
        Ok(took.expect(0, "open traces")?.peak_bytes as f64)
    };
    eprintln!("state of open traces");
    let each = (0..scale.rounds.min(3))
        .map(|_| Ok((peak(2 * scale.open)? - peak(scale.open)?) / scale.open as f64))
        .collect::<io::Result<Vec<_>>>()?;
    let each = Spread::of(each);
    table.target(
        &format!("an open trace, {} against {}", 2 * scale.open, scale.open),
        "300 bytes",
        format!("{:.0} bytes", each.median),
        each.range(0, ""),
        each.median <= 300.0,
    );
    Ok(())
}
